"""2000, 3.5 on graphs with cycles: NST(f), and formula (1) along spanning trees, of peer-to-peer servers.

Subscriptions go back along the paths of messages: w has f from its neighbour u if messages of w go by u to
an original subscriber of f. Advertisements go ahead of the messages: along the tree of their origin.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from tests.routing.test_overlay_graphs import FILTERS, Graph, drawn

from palio import Advertisement, Filter, Message
from palio.model import notation
from palio.model.language import parse
from palio.routing import Advertise, Packet, Publish, Send, Subscribe, Unadvertise, Unsubscribe
from palio.routing.subscriptions import Subscriptions

(WIDE,) = parse("airline IS NOT NULL").filters
(NARROW,) = parse("airline = 'UA'").filters
FLIGHTS = notation.parse_advertisement("string airline any")
UA_FLIGHTS = notation.parse_advertisement("string airline = UA")
FLIGHT = Message({"airline": "UA"})
SEEDS = range(8)

RING_OF_4 = {("1", "2", 1), ("2", "3", 1), ("3", "4", 1), ("1", "4", 1)}
RING_OF_5 = {("1", "2", 1), ("2", "3", 1), ("3", "4", 1), ("4", "5", 1), ("1", "5", 1)}
FIGURES = {("1", "2", 1), ("1", "3", 1), ("1", "4", 1), ("2", "3", 1)}
"""The servers of figures 3 to 5, and a link between 2 and 3."""


class Peers(Graph):
    """A graph that records every packet between routers."""

    def do(self, name: str, sends: list[Send]) -> None:
        self.sent = getattr(self, "sent", [])  # the first packets come while the graph is made
        self.sent += [(name, s.peer, s.packet) for s in sends if s.peer in self.routers]
        super().do(name, sends)

    def links(self, kind: type[Packet]) -> list[tuple[str, str]]:
        """The links that packets of a kind have crossed, one entry a packet."""
        return sorted((a, str(b)) for a, b, packet in self.sent if isinstance(packet, kind))

    def tell(self, name: str, packet: Packet) -> None:
        """The client of a router says something, and everything follows."""
        self.sent.clear()
        self.client(name, packet)
        self.run()

    def forwards(self, item: Filter | Advertisement) -> dict[str, set[str]]:
        """The neighbours to which each router has forwarded an item, for those that have any."""
        found: dict[str, set[str]] = {}
        for name, table in self.tables().items():
            _, forwards = table.get(item, ((), ()))
            if forwards:
                found[name] = set(forwards)
        return found

    def tables(self) -> dict[str, dict[Any, Any]]:
        """Every item of every router, with those who have it and those to whom it was forwarded."""
        return {
            name: {**table(router.subscriptions), **table(router.advertisements)}
            for name, router in self.routers.items()
        }


def table(items: Subscriptions[Any]) -> dict[Any, Any]:
    return {item: (items.subscribers(item), items.forwards(item)) for item in items}


def peers(edges: set[tuple[str, str, int]], *, advertisements: bool = False) -> Peers:
    return Peers(edges, Random(1), advertisements=advertisements)


def random_peers(seed: int, *, advertisements: bool = False) -> Peers:
    """Four to eight servers with up to six links more than a tree, and many ties."""
    random = Random(seed)
    return peers(drawn(random, random.randint(4, 8), 3 + seed % 4), advertisements=advertisements)


def next_hop(graph: Graph, source: str, target: str) -> str:
    """Whom a message of the source to the target reaches first."""
    net = graph.topology(source)
    assert net is not None
    return str(net.tree(source).path(target)[1])


# ---- NST(f)


def test_nst_a_subscription_follows_the_spanning_tree_of_its_origin() -> None:
    """f is forwarded to all neighbours except those not on any spanning tree of a subscriber: in a
    ring of four, the router opposite hears it from one side, and its neighbour there not from it."""
    graph = peers(RING_OF_4)
    graph.tell("1", Subscribe(WIDE))
    assert graph.forwards(WIDE) == {"1": {"2", "4"}, "2": {"3"}}
    assert graph.routers["3"].subscribers(WIDE) == {"2"}


@pytest.mark.parametrize("seed", SEEDS)
def test_nst_leaves_out_who_is_on_no_tree_of_any_subscriber(seed: int) -> None:
    """ "All neighbors except those not on any spanning tree rooted at an original subscriber": with two
    subscribers of f, those on either tree."""
    graph = random_peers(seed)
    origins = Random(seed).sample(graph.names, 2)
    for origin in origins:
        graph.tell(origin, Subscribe(WIDE))
    expected: dict[str, set[str]] = {}
    for w in graph.names:
        for origin in origins:
            if w != origin:
                expected.setdefault(next_hop(graph, w, origin), set()).add(w)
    assert graph.forwards(WIDE) == expected
    graph.tell(origins[0], Unsubscribe(WIDE))
    alone = random_peers(seed)
    alone.tell(origins[1], Subscribe(WIDE))
    assert graph.tables() == alone.tables(), "the tree of the other is left"


def test_nst_is_of_the_paths_that_messages_take() -> None:
    """Where shortest paths are not unique, the tree of 3 reaches 1 by 2, while messages of 1 go to 3 directly:
    then 1 needs the subscription of 3 from 3 itself, and hears of its advertisement from 2."""
    graph = peers({("1", "2", 1), ("2", "3", 1), ("1", "3", 2)})
    graph.tell("3", Subscribe(WIDE))
    graph.tell("3", Advertise(FLIGHTS))
    assert graph.forwards(WIDE) == {"3": {"1", "2"}}
    assert graph.forwards(FLIGHTS) == {"3": {"2"}, "2": {"1"}}
    graph.tell("1", Publish(FLIGHT, "p", 1))
    assert graph.links(Publish) == [("1", "3")]
    assert graph.got == [("3", 1)]


@pytest.mark.parametrize("seed", SEEDS)
def test_nst_advertisements_follow_the_spanning_tree_of_their_origin(seed: int) -> None:
    """Advertisements are treated symmetrically: u sends one to its children in the tree of its origin."""
    graph = random_peers(seed)
    origin = Random(seed).choice(graph.names)
    graph.tell(origin, Advertise(FLIGHTS))
    net = graph.topology(origin)
    assert net is not None
    children = {u: set(net.tree(origin).children(u)) for u in net.nodes}
    assert graph.forwards(FLIGHTS) == {u: found for u, found in children.items() if found}


PAIRS = [
    (Subscribe(WIDE), Unsubscribe(WIDE)),
    (Advertise(FLIGHTS), Unadvertise(FLIGHTS)),
]


@pytest.mark.parametrize(("said", "taken_back"), PAIRS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_spanning_tree_of_n_servers_takes_n_minus_1_packets(
    seed: int, said: Packet, taken_back: Packet
) -> None:
    """Whatever links there are beyond a tree; the unsubscription, or unadvertisement, crosses the same
    ones, and leaves nothing."""
    graph = random_peers(seed)
    origin = Random(seed).choice(graph.names)
    graph.tell(origin, said)
    crossed = graph.links(type(said))
    assert len(crossed) == len(graph.sent) == len(graph.names) - 1
    assert sorted({b for _, b in crossed}) == [name for name in graph.names if name != origin]
    graph.tell(origin, taken_back)
    assert graph.links(type(taken_back)) == crossed
    assert len(graph.sent) == len(crossed)
    assert not any(graph.tables().values())


def test_peers_are_alike() -> None:
    """Captions of figures 4 and 5: peer-to-peer servers. Where shortest paths are unique, other names
    give the same tables under other names: no server has a role of its own."""
    edges = {
        ("1", "2", 3),
        ("2", "3", 5),
        ("3", "4", 7),
        ("1", "4", 11),
        ("2", "4", 9),
        ("3", "5", 2),
    }
    for turn in range(1, 5):
        new = {str(i): str((i + turn) % 5 + 1) for i in range(1, 6)}
        found = []
        for name in (lambda old: old), new.__getitem__:
            graph = peers({(*sorted((name(u), name(v))), weight) for u, v, weight in edges})  # type: ignore[misc]
            for origin, item in (("1", WIDE), ("4", NARROW), ("5", WIDE)):
                graph.tell(name(origin), Subscribe(item))
            found.append([graph.forwards(item) for item in (WIDE, NARROW)])
        renamed = [{new[u]: {new[w] for w in to} for u, to in of.items()} for of in found[0]]
        assert found[1] == renamed


# ---- formula (1)


def test_formula_1_a_cover_hides_only_what_its_tree_reaches() -> None:
    """1 and 2 subscribe in a ring of five. What 1 forwards to 2 hides nothing of 2 towards 3, since
    the tree of 1 reaches 3, 4 and 5 partly on the other side."""
    graph = peers(RING_OF_5)
    graph.tell("1", Subscribe(WIDE))
    graph.tell("2", Subscribe(NARROW))
    assert graph.forwards(WIDE)["2"] == {"3"}, "the tree of 1 ends there"
    assert graph.forwards(NARROW) == {"2": {"1", "3"}, "3": {"4"}}, "the tree of 2 goes on to 4"
    assert graph.routers["4"].subscribers(NARROW) == {"3"}


def test_formula_1_with_advertisements_on_a_ring() -> None:
    """The same with advertisements, ordered by their own relation; then the wide one is taken back, and
    the narrow one goes where it was hidden."""
    graph = peers(RING_OF_5)
    graph.tell("1", Advertise(FLIGHTS))
    graph.tell("2", Advertise(UA_FLIGHTS))
    assert graph.forwards(UA_FLIGHTS) == {"2": {"1", "3"}, "3": {"4"}}
    graph.tell("1", Unadvertise(FLIGHTS))
    assert graph.forwards(UA_FLIGHTS) == {"2": {"1", "3"}, "3": {"4"}, "1": {"5"}}
    assert graph.links(Unadvertise) == [("1", "2"), ("1", "5"), ("2", "3"), ("5", "4")]


def figures_with_a_cycle(steps: int) -> Peers:
    """The first steps of figures 3 to 5, where servers 2 and 3 are neighbours, too."""
    graph = peers(FIGURES)
    for name, item in (("3", WIDE), ("2", NARROW), ("1", WIDE))[:steps]:
        graph.tell(name, Subscribe(item))
    return graph


def test_figures_3_to_5_with_a_cycle() -> None:
    """3: server 2 has the root from 3 itself, so it is in the NST of 1. 4: what 2 subscribes reaches 3
    directly, and 4 has what covers it: 1 forwards it to nobody. 5: NST of 1 is empty for the root."""
    graph = figures_with_a_cycle(1)
    assert graph.forwards(WIDE) == {"3": {"1", "2"}, "1": {"4"}}
    graph = figures_with_a_cycle(2)
    assert graph.links(Subscribe) == [("2", "1"), ("2", "3")]
    assert graph.forwards(NARROW) == {"2": {"1", "3"}}
    graph = figures_with_a_cycle(3)
    assert graph.links(Subscribe) == [("1", "2"), ("1", "3")]
    assert graph.forwards(WIDE) == {"3": {"1", "2"}, "1": {"2", "3", "4"}}


def test_figures_5_to_3_back_with_a_cycle() -> None:
    """2.4.3: each unsubscription leads back to the figure before."""
    graph = figures_with_a_cycle(3)
    for steps, name, item in ((2, "1", WIDE), (1, "2", NARROW), (0, "3", WIDE)):
        graph.tell(name, Unsubscribe(item))
        assert graph.tables() == figures_with_a_cycle(steps).tables()


def test_unsubscription_forwards_what_had_been_hidden_on_a_cycle() -> None:
    """2.4.3 and formula (1): without the root of 3, server 4 needs what it had covered."""
    graph = figures_with_a_cycle(2)
    graph.tell("3", Unsubscribe(WIDE))
    assert graph.forwards(NARROW) == {"2": {"1", "3"}, "1": {"4"}}
    replaced = [(a, b, p) for a, b, p in graph.sent if getattr(p, "instead", ())]
    assert [(a, b) for a, b, _ in replaced] == [("1", "4")]
    assert replaced[0][2].instead == (NARROW,), "in one packet: no message is lost in between"


ADVERTISEMENTS = [Advertisement(item.constraints) for item in FILTERS]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("items", "say", "take_back"),
    [(FILTERS, Subscribe, Unsubscribe), (ADVERTISEMENTS, Advertise, Unadvertise)],
)
def test_what_is_cancelled_leaves_no_trace(
    seed: int, items: list[Any], say: Callable[..., Packet], take_back: Callable[..., Packet]
) -> None:
    """2.4.3 on any graph: after unsubscriptions, or unadvertisements, all tables are those of servers
    that have only ever heard of what is left."""
    random = Random(100 + seed)
    graph = random_peers(seed)
    known = {
        name: random.choice(items) for name in graph.names
    }  # one each: nothing is covered at home
    for name, item in known.items():
        graph.tell(name, say(item))
    for name in random.sample(graph.names, len(graph.names) // 2 + 1):
        graph.tell(name, take_back(known.pop(name)))
    fresh = random_peers(seed)
    for name in random.sample(sorted(known), len(known)):
        fresh.tell(name, say(known[name]))
    assert graph.tables() == fresh.tables()


# ---- subscriptions toward advertisements


def test_a_subscription_takes_the_path_to_its_publisher_only() -> None:
    """2.4.2 on a ring of five: 3 publishes, 1 subscribes; nobody else hears of it, and messages take the
    path in reverse. Without the advertisement, the subscription stays at home."""
    graph = peers(RING_OF_5, advertisements=True)
    graph.tell("1", Subscribe(NARROW))
    assert graph.sent == []
    graph.tell("3", Advertise(FLIGHTS))
    assert graph.links(Subscribe) == [("1", "2"), ("2", "3")]
    graph.tell("3", Publish(FLIGHT, "p", 1))
    assert graph.links(Publish) == [("2", "1"), ("3", "2")]
    assert graph.got == [("1", 1)]
    graph.tell("3", Unadvertise(FLIGHTS))
    assert graph.forwards(NARROW) == {}
    assert [name for name, table in graph.tables().items() if table] == ["1"]


@pytest.mark.parametrize("seed", SEEDS)
def test_subscriptions_are_on_the_paths_from_publishers_to_subscribers(seed: int) -> None:
    """2.4.2 with 3.5: on any graph, the servers that have f are those between the two; each message
    crosses every link of its path once."""
    graph = random_peers(seed, advertisements=True)
    publisher, subscriber = Random(seed).sample(graph.names, 2)
    graph.tell(publisher, Advertise(FLIGHTS))
    graph.tell(subscriber, Subscribe(NARROW))
    net = graph.topology(publisher)
    assert net is not None
    path = net.tree(publisher).path(subscriber)
    assert graph.forwards(NARROW) == {b: {a} for a, b in pairwise(path)}
    graph.tell(publisher, Publish(FLIGHT, "p", 1))
    assert graph.links(Publish) == sorted(pairwise(path))
    assert graph.got == [(subscriber, 1)]
    graph.tell(subscriber, Unsubscribe(NARROW))
    assert not any(len(router.subscriptions) for router in graph.routers.values())


@pytest.mark.parametrize("seed", SEEDS)
def test_notifications_take_the_way_of_the_subscription_back(seed: int) -> None:
    """ "Arrows indicate the direction of notifications": from every server, a message crosses the links
    that f has crossed, in the other direction, to each subscriber once."""
    graph = random_peers(seed)
    subscriber = Random(seed).choice(graph.names)
    graph.tell(subscriber, Subscribe(WIDE))
    asked = graph.links(Subscribe)
    for source in graph.names:
        graph.got.clear()
        graph.tell(source, Publish(FLIGHT, source, 1))
        assert {(b, a) for a, b in graph.links(Publish)} <= set(asked)
        assert graph.got == [(subscriber, 1)] * (source != subscriber)
