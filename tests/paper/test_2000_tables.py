"""Claims of "Content-Based Addressing and Routing" (CU-CS-902-00) on the size of routing tables and the
traffic that they cause: sections 2.3, 2.4.2, 2.4.3 and 3.4. All figures are counts of entries and
packets."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TypeVar

import pytest

from palio import Advertisement, Constraint, Filter, Message, covers, parse
from palio.routing import (
    Advertise,
    Joined,
    Publish,
    Received,
    Restate,
    Role,
    Router,
    Send,
    Subscribe,
    Unadvertise,
)
from palio.routing.poset import ADVERTISEMENTS, SUBSCRIPTIONS, Order, Poset

T = TypeVar("T", Filter, Advertisement)


def one(text: str) -> Filter:
    (found,) = parse(text)
    return found


def server(*neighbours: str, advertisements: bool = False) -> Router:
    router = Router("1", advertisements=advertisements)
    for neighbour in neighbours:
        router.step(Joined(neighbour, Role.NEIGHBOUR))
        router.step(Received(neighbour, Restate()))
    return router


def subscribed(router: Router, peer: str, filters: Iterable[Filter]) -> list[Send]:
    return [send for f in filters for send in router.step(Received(peer, Subscribe(f)))]


NETS = [f"10.{i}.{j}." for i in range(4) for j in range(5)]
HOSTS = [one(f"dest = '{net}{k}'") for net in NETS for k in range(6)]
SUBNETS = [one(f"dest LIKE '{net}%'") for net in NETS]
WHOLE = one("dest LIKE '10.%'")


# ---- 2.3: subnets


def test_subnets_shrink_the_table() -> None:
    """2.3: addresses with the same next hops are stored as the one that represents them: 120 hosts,
    20 networks, then one entry, and the messages go where they went."""
    router = server("2", "3")
    sizes = []
    for filters in (HOSTS, SUBNETS, [WHOLE]):
        subscribed(router, "2", filters)
        sizes.append(len(router.subscriptions))
        assert router.destinations({"dest": "10.3.4.5"}) == ["2"]
    assert sizes == [120, 20, 1]
    assert router.destinations({"dest": "11.3.4.5"}) == []


def test_subnets_shrink_the_table_in_any_order() -> None:
    """2.3: what is covered needs no entry, whether it comes before or after."""
    router = server("2", "3")
    assert len(subscribed(router, "2", [WHOLE, *SUBNETS, *HOSTS])) == 1
    assert list(router.subscriptions) == [WHOLE]


def test_a_table_shrinks_only_where_next_hops_are_contained() -> None:
    """2.3, "in general": s1 covers s2 and H1 contains H2. Hosts behind another neighbour stay."""
    router = server("2", "3")
    subscribed(router, "2", HOSTS[:60])
    subscribed(router, "3", HOSTS[60:])
    subscribed(router, "2", [WHOLE])
    assert len(router.subscriptions) == 61
    assert router.destinations({"dest": "10.3.4.5"}) == ["2", "3"]
    subscribed(router, "3", [WHOLE])
    assert list(router.subscriptions) == [WHOLE]


def test_without_a_common_address_nothing_is_combined() -> None:
    """2.3, condition 2: disjoint addresses have no representative among themselves."""
    router = server("2", "3")
    subscribed(router, "2", HOSTS)
    assert len(router.subscriptions) == len(HOSTS)


# ---- 3.4, figure 2: the arrows of the poset

FIGURE_2 = [
    *(
        one(text)
        for text in ("airline IS NOT NULL", "price < 500", "price < 400", "dest LIKE 'A%'")
    ),
    *(one(f"airline = 'UA' AND {text}") for text in ("price < 500", "price < 100", "dest = 'ARN'")),
    *(one(f"airline = 'UA' AND dest = 'ARN' AND price < {price}") for price in (50, 200, 450)),
    *(one(text) for text in ("airline = 'UA'", "airline = 'AZ'", "dest = 'ARN'")),
]
"""The drawing is lost: simple subscriptions as in figures 3 to 5, several with two predecessors."""
AS_ADVERTISEMENTS = [Advertisement(item.constraints) for item in FIGURE_2]


def drawn(order: Order[T], items: list[T], seed: int) -> Poset[T]:
    """A poset of the items, in some order of insertion; a third of them was removed and came back."""
    random = Random(seed)
    poset = Poset(order)
    for item in random.sample(items, len(items)):
        assert poset.insert(item) == item
    for item in random.sample(items, len(items) // 3):
        poset.remove(item)
        poset.insert(item)
    return poset


def check_arrows(poset: Poset[T], items: list[T]) -> None:
    """The definitions of 3.4, over all triples."""
    above = {(f, g) for f in items for g in items if f != g and covers(f, g)}
    immediate = {
        (f, g) for f, g in above if not any((f, x) in above and (x, g) in above for x in items)
    }
    assert immediate < above, "some relations follow from others"
    assert {(f, g) for f in items for g in poset.successors(f)} == immediate
    assert {(f, g) for g in items for f in poset.predecessors(g)} == immediate
    assert poset.roots() == set(items) - {g for _, g in immediate}
    reached = {(f, g) for f in items for g in _below(poset, f)}
    assert reached == above, "transitivity gives the rest"


def _below(poset: Poset[T], item: T) -> set[T]:
    found = set(poset.successors(item))
    return found.union(*(_below(poset, lower) for lower in found))


@pytest.mark.parametrize("seed", range(5))
def test_figure_2_arrows_are_the_immediate_relation(seed: int) -> None:
    """3.4: g is an immediate successor of f, and f an immediate predecessor of g, iff f covers g and no
    other filter x is between them; roots have no predecessors. In P_S and in P_A, each by its relation."""
    check_arrows(drawn(SUBSCRIPTIONS, FIGURE_2, seed), FIGURE_2)
    check_arrows(drawn(ADVERTISEMENTS, AS_ADVERTISEMENTS, seed), AS_ADVERTISEMENTS)


def test_figure_2_a_poset_has_several_roots_and_shared_successors() -> None:
    """3.4: a partial order, no tree: some subscriptions have two immediate predecessors."""
    poset = drawn(SUBSCRIPTIONS, FIGURE_2, 0)
    roots = {one(text) for text in ("airline IS NOT NULL", "price < 500", "dest LIKE 'A%'")}
    assert poset.roots() == roots
    assert poset.predecessors(one("airline = 'UA' AND dest = 'ARN'")) == {
        one("airline = 'UA'"),
        one("dest = 'ARN'"),
    }


# ---- 3.4: the shape of the poset


def test_only_immediate_relations_are_stored() -> None:
    """3.4: covering is transitive, and the poset has the edges from which the rest follows."""
    router = server("2")
    subscribed(router, "a", [])
    for number in range(10):
        router.step(Joined(f"c{number}"))
        subscribed(router, f"c{number}", [one(f"x < {number}")])
    poset = router.subscriptions.poset
    assert poset.roots() == {one("x < 9")}
    assert sum(len(poset.successors(f)) for f in poset) == 9  # of 45 coverings
    assert all(poset.covers(one("x < 9"), f) for f in poset)


def clients(router: Router, filters: list[Filter]) -> list[Send]:
    """Each filter from a client of its own."""
    sends = []
    for number, found in enumerate(filters):
        router.step(Joined(f"c{number}"))
        sends += subscribed(router, f"c{number}", [found])
    return sends


def test_only_roots_cause_traffic() -> None:
    """3.4: of 141 subscriptions with one root, only that one is forwarded, once to each neighbour."""
    router = server("2", "3", "4")
    sends = clients(router, [WHOLE, *SUBNETS, *HOSTS])
    assert len(router.subscriptions) == 141
    assert router.subscriptions.poset.roots() == {WHOLE}
    assert sends == [Send(peer, Subscribe(WHOLE)) for peer in "234"]
    assert {f for f in router.subscriptions if router.forwards(f)} == {WHOLE}


def test_roots_cause_the_traffic_whatever_the_order() -> None:
    """3.4: when the root comes last, the neighbours have the more special ones, and are told the root;
    afterwards only the root is forwarded."""
    router = server("2", "3", "4")
    clients(router, [*SUBNETS, WHOLE])
    assert {f for f in router.subscriptions if router.forwards(f)} == {WHOLE}


def test_a_vertical_poset_is_summarized_by_few() -> None:
    """3.4: "a poset that extends vertically": 50 subscriptions, each within the one before."""
    router = server("2", "3")
    sends = clients(router, [one(f"x < {100 - number}") for number in range(50)])
    assert len(sends) == 2
    assert len(router.subscriptions) == 50


def test_a_flat_poset_forwards_all() -> None:
    """3.4: "the degenerate case of a flat poset corresponds to ... IP multicast", where group
    addresses are disjoint: each goes to every neighbour."""
    router = server("2", "3", "4")
    groups = [one(f"group = '224.0.0.{number}'") for number in range(50)]
    sends = clients(router, groups)
    assert router.subscriptions.poset.roots() == set(groups)
    assert len(sends) == 3 * 50


def test_a_neighbour_table_holds_roots_only() -> None:
    """3.4 with 2.3: the next server stores the summary, not what it summarizes."""
    near, far = server("2"), Router("2")
    far.step(Joined("1", Role.NEIGHBOUR))
    for send in clients(near, [WHOLE, *SUBNETS, *HOSTS]):
        far.step(Received("1", send.packet))
    assert (len(near.subscriptions), len(far.subscriptions)) == (141, 1)


# ---- 2.4.2 and 2.4.3: advertisements


def offer(*pairs: tuple[str, str]) -> Advertisement:
    return Advertisement(tuple(Constraint(name, "=", value) for name, value in pairs))


def test_advertisements_have_tables_of_their_own() -> None:
    """2.4.2: advertisements "would be routed with their own routing tables"."""
    router = server("2", "3")
    router.step(Received("2", Advertise(offer(("what", "alarm")))))
    assert (len(router.advertisements), len(router.subscriptions)) == (1, 0)
    assert router.destinations({"what": "alarm"}) == []
    router.step(Received("3", Subscribe(one("what = 'alarm'"))))
    assert (len(router.advertisements), len(router.subscriptions)) == (1, 1)


def test_messages_take_the_way_of_the_subscription_back() -> None:
    """2.4.2: a subscription follows the advertisement to its publisher, and messages are "routed in
    reverse back to the subscriber": servers 1 - 2 - 3, and 4 beside 2, which gets neither."""
    links = [("1", "2"), ("2", "3"), ("2", "4")]
    routers = {name: Router(name, advertisements=True) for name in "1234"}
    asked: list[tuple[str, str]] = []
    carried: list[tuple[str, str]] = []

    def say(name: str, event: Joined | Received) -> None:
        for send in routers[name].step(event):
            if send.peer in routers:
                if isinstance(send.packet, Subscribe):
                    asked.append((name, send.peer))
                if isinstance(send.packet, Publish):
                    carried.append((name, send.peer))
                say(send.peer, Received(name, send.packet))

    for a, b in links + [(b, a) for a, b in links]:
        routers[a].step(Joined(b, Role.NEIGHBOUR))
    for name, client in (("1", "ann"), ("3", "publisher")):
        say(name, Joined(client))
    say("3", Received("publisher", Advertise(offer(("what", "alarm")))))
    say("1", Received("ann", Subscribe(one("what = 'alarm'"))))
    say("3", Received("publisher", Publish(Message({"what": "alarm"}), "publisher", 1)))
    assert asked == [("1", "2"), ("2", "3")]
    assert carried == [(b, a) for a, b in reversed(asked)]


def test_an_unadvertisement_cancels_all_that_it_covers() -> None:
    """2.4.3: "an unsubscription (unadvertisement) cancels all ... that it covers"; it removes entries,
    and what others advertised stays."""
    router = server("2", "3")
    alarm, login = offer(("what", "alarm")), offer(("what", "login"))
    for peer, item in (("2", alarm), ("2", login), ("3", alarm)):
        router.step(Received(peer, Advertise(item)))
    router.step(Received("2", Unadvertise(Advertisement((Constraint("what", "any"),)))))
    assert router.advertisements.said("2") == []
    assert router.advertisements.said("3") == [alarm]
