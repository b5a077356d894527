"""Claims of "Content-Based Addressing and Routing" (CU-CS-902-00), sections 2.2 to 2.4 and 3.5."""

from __future__ import annotations

import pytest
from tests.routing.network import check_forwards

from palio import Advertisement, Filter, Message
from palio.model import notation
from palio.routing import (
    Advertise,
    Joined,
    Left,
    Publish,
    Received,
    Role,
    Router,
    Send,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from palio.routing.dump import dump


def filter_of(text: str) -> Filter:
    return notation.parse_filter(text.replace(", ", "\n"))


ANY_AIRLINE = filter_of("string airline any")
UA_TO_ARN = filter_of("string airline = UA, string dest = ARN")
UA = filter_of("string airline = UA")
TO_ARN = filter_of("string dest = ARN")


def server_1(*, advertisements: bool = False) -> Router:
    """Server 1 of figures 3 to 5: neighbours 2, 3 and 4, and the client a."""
    router = Router("1", advertisements=advertisements)
    for neighbour in "234":
        router.step(Joined(neighbour, Role.NEIGHBOUR))
    router.step(Joined("a"))
    return router


def subscribe(router: Router, peer: str, filter: Filter) -> list[Send]:
    sends = router.step(Received(peer, Subscribe(filter)))
    check_forwards(router, advertisements=False)
    return sends


def unsubscribe(router: Router, peer: str, filter: Filter) -> list[Send]:
    sends = router.step(Received(peer, Unsubscribe(filter)))
    check_forwards(router, advertisements=False)
    return sends


# ---- figures 3, 4 and 5


def figure_3() -> tuple[Router, list[Send]]:
    router = server_1()
    return router, subscribe(router, "3", ANY_AIRLINE)


def figure_4() -> tuple[Router, list[Send]]:
    router, _ = figure_3()
    return router, subscribe(router, "2", UA_TO_ARN)


def figure_5() -> tuple[Router, list[Send]]:
    router, _ = figure_4()
    return router, subscribe(router, "a", ANY_AIRLINE)


def test_figure_3_a_root_goes_to_all_but_where_it_came_from() -> None:
    """3.5: forwarded to servers 2 and 4 but not to 3, which is in the NST set."""
    router, sends = figure_3()
    assert sends == [Send("2", Subscribe(ANY_AIRLINE)), Send("4", Subscribe(ANY_AIRLINE))]
    assert router.subscriptions.poset.roots() == {ANY_AIRLINE}
    assert router.subscribers(ANY_AIRLINE) == {"3"}
    assert router.forwards(ANY_AIRLINE) == {"2", "4"}


def test_figure_4_a_covered_one_goes_where_the_root_did_not() -> None:
    """3.5: an immediate successor of the root, forwarded to server 3 only."""
    router, sends = figure_4()
    assert sends == [Send("3", Subscribe(UA_TO_ARN))]
    assert set(router.subscriptions.poset.successors(ANY_AIRLINE)) == {UA_TO_ARN}
    assert set(router.subscriptions.poset.predecessors(UA_TO_ARN)) == {ANY_AIRLINE}
    assert router.subscribers(ANY_AIRLINE) == {"3"}
    assert router.forwards(ANY_AIRLINE) == {"2", "4"}
    assert router.subscribers(UA_TO_ARN) == {"2"}
    assert router.forwards(UA_TO_ARN) == {"3"}


def test_figure_5_forwards_move_up() -> None:
    """3.5: a is added to the subscribers; NST is empty now, so 3 gets the root, and leaves the
    forwards of what it covers."""
    router, sends = figure_5()
    assert sends == [Send("3", Subscribe(ANY_AIRLINE))]
    assert router.subscribers(ANY_AIRLINE) == {"3", "a"}
    assert router.forwards(ANY_AIRLINE) == {"2", "3", "4"}
    assert router.subscribers(UA_TO_ARN) == {"2"}
    assert router.forwards(UA_TO_ARN) == frozenset()


def test_figure_5_server_3_drops_the_covered_one_by_itself() -> None:
    """3.5, cases 2 and 3: U is removed from all the subscriptions covered by f."""
    third = Router("3")
    third.step(Joined("1", Role.NEIGHBOUR))
    for filter in (UA_TO_ARN, ANY_AIRLINE):
        third.step(Received("1", Subscribe(filter)))
    assert third.subscriptions.said("1") == [ANY_AIRLINE]
    assert list(third.subscriptions) == [ANY_AIRLINE]


def test_arrows_are_the_way_of_notifications() -> None:
    """3.5: "arrows indicate the direction of notifications": in by forwards, out to subscribers."""
    router, _ = figure_5()
    flight = {"airline": "UA", "dest": "ARN"}
    assert router.destinations(flight, source="4") == ["2", "3", "a"]
    assert router.destinations(flight, source="2") == ["3", "a"]
    assert router.destinations({"airline": "AZ"}, source="4") == ["3", "a"]


# ---- the three cases


@pytest.mark.parametrize("again", [ANY_AIRLINE, UA, UA_TO_ARN])
def test_case_1_no_effect(again: Filter) -> None:
    """3.5, case 1: U is a subscriber of one that covers f."""
    router, _ = figure_3()
    before = dump(router)
    assert subscribe(router, "3", again) == []
    assert dump(router) == before


def test_case_2_equal_ones_share_an_entry() -> None:
    """3.5, case 2: f' covers f and f covers f'; U becomes a subscriber of f'."""
    router, _ = figure_4()
    turned = filter_of("string dest = ARN, string airline = UA")
    assert turned != UA_TO_ARN
    sends = subscribe(router, "4", turned)
    assert sends == []  # 3 has it, and 2 has what covers it
    assert len(router.subscriptions) == 2
    assert router.subscribers(turned) == router.subscribers(UA_TO_ARN) == {"2", "4"}


def test_case_3_between_predecessors_and_successors() -> None:
    """3.5, case 3: f is inserted between its immediate predecessors and successors."""
    router, _ = figure_4()
    sends = subscribe(router, "4", UA)
    poset = router.subscriptions.poset
    assert set(poset.predecessors(UA)) == {ANY_AIRLINE}
    assert set(poset.successors(UA)) == {UA_TO_ARN}
    assert set(poset.predecessors(UA_TO_ARN)) == {UA}
    assert sends == [Send("3", Subscribe(UA))]
    assert router.forwards(UA) == {"3"}
    assert router.forwards(UA_TO_ARN) == frozenset()


def test_cases_2_and_3_take_the_subscriber_from_what_is_covered() -> None:
    """3.5: U is removed from all the covered; those with no other subscribers are removed."""
    router = server_1()
    subscribe(router, "2", UA_TO_ARN)
    subscribe(router, "2", TO_ARN)  # case 3
    assert list(router.subscriptions) == [TO_ARN]
    subscribe(router, "3", UA_TO_ARN)
    subscribe(router, "3", ANY_AIRLINE)
    subscribe(router, "a", UA_TO_ARN)
    subscribe(router, "a", ANY_AIRLINE)  # case 2
    assert list(router.subscriptions) == [TO_ARN, ANY_AIRLINE]
    assert router.subscribers(ANY_AIRLINE) == {"3", "a"}


# ---- formula (1)


def test_formula_1_a_subscription_that_is_covered_goes_nowhere() -> None:
    """3.5, formula (1), last term; 3.4: only root filters cause network traffic."""
    router = server_1()
    subscribe(router, "a", ANY_AIRLINE)
    assert subscribe(router, "4", UA) == []
    assert router.forwards(UA) == frozenset()


def test_formula_1_incomparable_ones_all_go() -> None:
    """3.4: a flat poset is the degenerate case, where every subscription is forwarded."""
    router = server_1()
    for filter in (UA, TO_ARN):
        assert [send.peer for send in subscribe(router, "a", filter)] == ["2", "3", "4"]


# ---- unsubscription


def test_unsubscription_cancels_all_that_it_covers() -> None:
    """2.4.3: an unsubscription cancels all subscriptions that it covers, of that subscriber."""
    router = server_1()
    for filter in (UA, TO_ARN):
        subscribe(router, "a", filter)
    subscribe(router, "2", UA_TO_ARN)
    unsubscribe(router, "a", Filter(()))
    assert list(router.subscriptions) == [UA_TO_ARN]
    assert router.subscriptions.said("a") == []


def test_unsubscription_forwards_what_had_been_hidden() -> None:
    """2.4.3 and 3.5, back from figure 5 to figure 4: server 3 is told both in one packet."""
    router, _ = figure_5()
    assert unsubscribe(router, "a", ANY_AIRLINE) == [
        Send("3", Unsubscribe(ANY_AIRLINE, (UA_TO_ARN,)))
    ]
    assert dump(router) == dump(figure_4()[0])


def test_unsubscription_back_to_the_beginning() -> None:
    """From figure 4: without the root, its successor is one, and goes where the root had gone."""
    router, _ = figure_4()
    assert unsubscribe(router, "3", ANY_AIRLINE) == [
        Send("2", Unsubscribe(ANY_AIRLINE)),
        Send("4", Unsubscribe(ANY_AIRLINE, (UA_TO_ARN,))),
    ]
    assert router.forwards(UA_TO_ARN) == {"3", "4"}
    assert unsubscribe(router, "2", UA_TO_ARN) == [
        Send("3", Unsubscribe(UA_TO_ARN)),
        Send("4", Unsubscribe(UA_TO_ARN)),
    ]
    assert dump(router) == dump(server_1())


def test_unsubscription_of_nothing_has_no_effect() -> None:
    """2.4.3: it removes entries; where there are none it does nothing."""
    router, _ = figure_4()
    before = dump(router)
    assert unsubscribe(router, "a", ANY_AIRLINE) == []
    assert unsubscribe(router, "3", UA) == []  # it does not cover what 3 said
    assert dump(router) == before


def test_who_leaves_takes_all_back() -> None:
    router, _ = figure_5()
    assert router.step(Left("a")) == [Send("3", Unsubscribe(ANY_AIRLINE, (UA_TO_ARN,)))]


# ---- routing by content


def test_messages_follow_the_map() -> None:
    """2.2: n is routed to the union of the next hops of all addresses that cover it."""
    router = server_1()
    subscribe(router, "2", UA)
    subscribe(router, "a", TO_ARN)
    flight = notation.parse_message("string airline = UA\nstring dest = ARN")
    packet = Publish(flight, "p", 1)
    assert router.step(Received("4", packet)) == [Send("2", packet), Send("a", packet)]
    assert router.destinations({"airline": "UA"}, "4") == ["2"]
    assert router.destinations({"airline": "AZ"}, "4") == []


def test_who_unsubscribes_is_no_addressee() -> None:
    """2.1: while it subscribes, the subscriber is an implicit addressee; afterwards it is not."""
    router = server_1()
    for peer in ("2", "a"):
        subscribe(router, peer, UA)
    assert router.destinations({"airline": "UA"}) == ["2", "a"]
    unsubscribe(router, "a", UA)
    assert router.destinations({"airline": "UA"}) == ["2"]


def test_publishers_do_not_see_subscribers_come_and_go() -> None:
    """2: that subscribers are dynamic is transparent to publishers: they are sent nothing."""
    router = server_1()
    router.step(Joined("publisher"))
    router.step(Received("publisher", Advertise(FLIGHTS)))
    sends = [send for peer in "2a" for send in subscribe(router, peer, ANY_AIRLINE)]
    sends += router.step(Received("publisher", Publish(Message({"airline": "UA"}), "p", 1)))
    sends += unsubscribe(router, "2", ANY_AIRLINE) + router.step(Left("a"))
    assert {send.peer for send in sends} == {"2", "3", "4", "a"}


def test_content_based_subnets() -> None:
    """2.3: s1 -> H1, s2 -> H2, s1 covers s2, H1 contains H2: s1 -> H1 is all that is needed."""
    router = server_1()
    for peer in ("2", "3"):
        subscribe(router, peer, UA)  # H1
    subscribe(router, "2", UA_TO_ARN)  # H2: no entry of its own
    assert list(router.subscriptions) == [UA]
    assert router.destinations({"airline": "UA", "dest": "ARN"}) == ["2", "3"]


def test_no_subnet_where_the_next_hops_differ() -> None:
    """2.3: without H1 containing H2, both mappings are needed."""
    router = server_1()
    subscribe(router, "3", UA)
    subscribe(router, "2", UA_TO_ARN)
    assert list(router.subscriptions) == [UA, UA_TO_ARN]
    assert router.destinations({"airline": "UA"}) == ["3"]


# ---- advertisements


def advertisement(text: str) -> Advertisement:
    return notation.parse_advertisement(text.replace(", ", "\n"))


FLIGHTS = advertisement("string airline any, string dest any")
UA_FLIGHTS = advertisement("string airline = UA, string dest any")


def test_advertisements_are_treated_symmetrically() -> None:
    """3.5: figures 3 to 5 with advertisements, ordered by their own covering relation."""
    router = server_1()

    def advertise(peer: str, item: Advertisement) -> list[Send]:
        return router.step(Received(peer, Advertise(item)))

    assert advertise("3", FLIGHTS) == [Send("2", Advertise(FLIGHTS)), Send("4", Advertise(FLIGHTS))]
    assert advertise("2", UA_FLIGHTS) == [Send("3", Advertise(UA_FLIGHTS))]
    assert advertise("a", FLIGHTS) == [Send("3", Advertise(FLIGHTS))]
    assert router.advertisements.forwards(FLIGHTS) == {"2", "3", "4"}
    assert router.advertisements.forwards(UA_FLIGHTS) == frozenset()
    assert router.step(Received("a", Unadvertise(FLIGHTS))) == [
        Send("3", Unadvertise(FLIGHTS, (UA_FLIGHTS,)))
    ]


def test_subscriptions_go_toward_advertisements_only() -> None:
    """2.4.2: a subscription need be routed only along paths toward advertisements."""
    router = server_1(advertisements=True)
    router.step(Received("2", Advertise(UA_FLIGHTS)))
    router.step(Received("3", Advertise(advertisement("string ship any"))))
    assert router.step(Received("a", Subscribe(TO_ARN))) == [Send("2", Subscribe(TO_ARN))]
    az = filter_of("string airline = AZ")
    assert router.step(Received("a", Subscribe(az))) == []
    assert router.forwards(TO_ARN) == {"2"}


def test_subscriptions_follow_advertisements() -> None:
    """2.4.2: a new source is told, a lost one is told that it is no longer asked."""
    router = server_1(advertisements=True)
    router.step(Received("a", Subscribe(TO_ARN)))
    sends = router.step(Received("4", Advertise(FLIGHTS)))
    assert sends[-1] == Send("4", Subscribe(TO_ARN))
    sends = router.step(Received("4", Unadvertise(FLIGHTS)))
    assert sends[-1] == Send("4", Unsubscribe(TO_ARN))
