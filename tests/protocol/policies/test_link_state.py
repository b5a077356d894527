"""Link-state flooding on networks with delays, cuts and crashes, and each rule on its own."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio import parse
from palio.errors import InvalidPredicate, InvalidTopology
from palio.protocol.policies import link_state
from palio.protocol.policies.broker_record import DurableFact
from palio.protocol.policies.link_state import (
    AHEAD_US_MAX,
    Heard,
    LinkStateDatabase,
    LinkStateSettings,
)
from palio.protocol.wire.control import Durable, LinkState, LinkStates
from palio.protocol.wire.frames import BrokenFrame
from palio.protocol.wire.routing_memory import RoutingMemory
from tests.protocol.policies.link_state_network import SETTINGS, LinkStateNetwork
from tests.seeds import seeds

TEXTS = ("x > 1", "x > 3", "y = 'a'", "x > 1 AND y = 'b'", "z IS NULL", "x>1", "TRUE", "x=1 OR x=2")
FACTS = [Durable("x > 2", 10, 1), Durable("y = 'c'", 20, 1), Durable("x > 2", 30, 2)]
NAMES = ("ann", "bob", "cy", "dan", "eve")


def complete(broker: str, number: int, **more: Any) -> LinkState:
    given = {"epoch": "e", "base": 0, "links": (), **more}
    return LinkState(broker=broker, number=number, **given)


def receiver() -> LinkStateDatabase:
    return LinkStateDatabase("me", "mine", 0)


# ---- networks


def act(net: LinkStateNetwork, rng: random.Random) -> None:
    """Change something at random, and deliver a few control messages."""
    names = sorted(net.stores)
    here = sorted(net.brokers)
    what = rng.choice("want want want durable durable join join cut crash start lose step".split())
    one = rng.choice(here) if here else ""
    if what == "want" and here:
        net.want(one, rng.sample(TEXTS, rng.randrange(3)), rng.sample(TEXTS, rng.randrange(3)))
    elif what == "durable" and here:
        net.set_durable(one, rng.choice("pq"), rng.choice([None, *FACTS]))
    elif what == "join" and len(here) > 1:
        a, b = rng.sample(here, 2)
        if (min(a, b), max(a, b)) not in net.links:
            net.join(a, b, rng.choice([1, 2, 0.5]), rng.choice([1, 3]))
    elif what == "cut" and net.links:
        net.cut(*rng.choice(sorted(net.links)))
    elif what == "crash" and len(here) > 2:
        net.crash(one)
    elif what in ("start", "lose") and len(here) < len(names):
        one = rng.choice([name for name in names if name not in here])
        if what == "lose":
            net.lose_disk(one, f"e{rng.randrange(10**6)}")
        net.start(one, clock_us=rng.choice([None, None, 0]))
    if here and rng.random() < 0.7:
        net.flood_news(rng.choice(sorted(net.brokers)))
    for _ in range(rng.choice([0, 1, 5, 50])):
        net.step()
    net.now_us += rng.choice([0, 0, 100, 10_000])


@seeds(20, 60)
def test_all_that_are_connected_agree_after_quiet(seed: int) -> None:
    rng = random.Random(seed)
    net = LinkStateNetwork(NAMES[: rng.randrange(2, 6)], rng)
    for _ in range(120):
        act(net, rng)
        if rng.random() < 0.03:
            net.quiet(3_000_000 if rng.random() < 0.3 else 0)
    net.quiet(3_000_000)  # outnumbering an earlier life takes a second each
    net.check()
    for name in sorted(net.stores):  # in the end all return and are linked
        if name not in net.brokers:
            net.start(name)
    for name in NAMES[1 : len(net.stores)]:
        if ("ann", name) not in net.links:
            net.join("ann", name)
    net.quiet(3_000_000)
    net.check()
    everything = [sorted(broker.durables()) for broker in net.brokers.values()]
    assert all(found == everything[0] for found in everything)


def test_a_killed_broker_leaves_the_topology_and_its_durable_subscriptions_stay() -> None:
    net = LinkStateNetwork(NAMES[:4], random.Random(1))
    for a, b in (("ann", "bob"), ("bob", "cy"), ("cy", "dan"), ("ann", "dan")):
        net.join(a, b)
    net.set_durable("cy", "audit", FACTS[0])
    net.want("cy", ["x > 1"])
    net.quiet()
    assert all(net.brokers[name].reachable("cy") for name in net.brokers)
    net.crash("cy")
    net.quiet()
    for broker in net.brokers.values():
        assert not broker.reachable("cy")
        assert DurableFact("cy", "audit", FACTS[0]) in set(broker.durables())
    net.quiet(SETTINGS.age_us * 2)
    for broker in net.brokers.values():
        assert broker.wanted("cy").filters == ()
        assert list(broker.durables()) == [DurableFact("cy", "audit", FACTS[0])]


def test_a_new_broker_learns_the_durable_subscriptions_of_an_absent_one() -> None:
    net = LinkStateNetwork(("ann", "bob", "cy"), random.Random(2))
    net.join("ann", "bob")
    net.set_durable("bob", "audit", FACTS[1])
    net.quiet()
    net.crash("bob")
    net.quiet(SETTINGS.age_us * 2)
    net.join("ann", "cy")
    net.quiet()
    assert list(net.brokers["cy"].durables()) == [DurableFact("bob", "audit", FACTS[1])]
    assert not net.brokers["cy"].reachable("bob")
    net.start("bob")
    net.join("bob", "cy")
    net.quiet()
    net.check()


def test_durable_subscriptions_survive_a_restart_and_make_no_broker_reachable() -> None:
    net = LinkStateNetwork(("ann", "bob", "cy"), random.Random(3))
    net.join("ann", "bob")
    net.join("bob", "cy")
    net.set_durable("cy", "audit", FACTS[1])
    net.want("cy", ["x > 1"])
    net.quiet()
    net.crash("bob")
    net.start("bob")
    bob = net.brokers["bob"]
    assert list(bob.durables()) == [DurableFact("cy", "audit", FACTS[1])]
    assert not bob.reachable("cy")
    net.join("ann", "bob")  # ann has the complete state of the number that bob has stored
    net.quiet()
    assert bob.wanted("cy") == parse("x > 1")
    net.join("bob", "cy")
    net.quiet()
    net.check()


def test_a_subscription_is_flooded_as_a_change() -> None:
    net = LinkStateNetwork(("ann", "bob", "cy"), random.Random(4))
    net.join("ann", "bob")
    net.join("bob", "cy")
    net.want("ann", [f"x > {i}" for i in range(1000)])
    net.quiet()
    net.sent.clear()
    net.want("ann", ["y = 1"], ["x > 7"])
    net.quiet()
    said = [state for sent in net.sent if isinstance(sent, LinkStates) for state in sent.states]
    assert [(s.wanted, s.unwanted) for s in said] == [(("y = 1",), ("x > 7",))] * 2
    net.check()


def test_a_forgotten_broker_is_forgotten_by_all_and_may_come_back() -> None:
    net = LinkStateNetwork(("ann", "bob", "cy"), random.Random(5))
    net.join("ann", "bob")
    net.join("bob", "cy")
    net.set_durable("cy", "audit", FACTS[0])
    net.quiet()
    with pytest.raises(InvalidTopology, match="it is reachable"):
        net.brokers["ann"].forget("cy", net.now_us)
    with pytest.raises(InvalidTopology, match="no broker has this name"):
        net.brokers["ann"].forget("zoe", net.now_us)
    net.crash("cy")
    net.quiet()
    state, removed = net.brokers["ann"].forget("cy", net.now_us)
    assert removed == (DurableFact("cy", "audit", FACTS[0]),)
    net.flood("ann", state)
    net.quiet()
    assert [list(net.brokers[name].durables()) for name in ("ann", "bob")] == [[], []]
    net.start("cy", clock_us=0)
    net.join("bob", "cy")
    net.quiet(3_000_000)
    net.check()
    assert list(net.brokers["ann"].durables()) == [DurableFact("cy", "audit", FACTS[0])]


# ---- laws


changes = st.lists(
    st.one_of(
        st.tuples(
            st.just("want"), st.sets(st.sampled_from(TEXTS)), st.sets(st.sampled_from(TEXTS))
        ),
        st.tuples(st.just("fact"), st.sampled_from("pqr"), st.none() | st.sampled_from(FACTS)),
        st.tuples(
            st.just("link"),
            st.dictionaries(st.sampled_from("uvw"), st.sampled_from([1.0, 2.5])),
            st.none(),
        ),
        st.tuples(st.just("flood"), st.none(), st.none()),
        st.tuples(st.just("share"), st.none(), st.none()),
    ),
    max_size=30,
)


@settings(max_examples=150, deadline=None)
@given(changes)
def test_changes_and_complete_states_lead_to_equal_records(steps: Any) -> None:
    """One receives all changes, one a complete state now and then, one the last complete state."""
    sender = LinkStateDatabase("bob", "e", 0)
    often, rarely, last = receiver(), receiver(), receiver()
    now_us = 0
    for kind, first, second in (*steps, ("flood", None, None)):
        now_us += 1
        if kind == "want":
            sender.want(first, second)
        elif kind == "fact":
            sender.set_durable(first, second)
        elif kind == "link":
            sender.set_links(first)
        elif kind == "share":
            whole = sender.whole("bob")
            if whole is not None:
                rarely.hear(whole, now_us)
        elif (state := sender.news(now_us)) is not None:
            assert often.hear(state, now_us).is_new
            if rarely.hear(state, now_us).is_missing:
                assert rarely.hear(whole_of(sender, "bob"), now_us).is_new
    whole = whole_of(sender, "bob")
    assert last.hear(whole, now_us).is_new
    for one in (often, rarely, last):
        assert set(one.wanted("bob").filters) == set(sender.wanted("bob").filters)
        assert set(one.durables()) == set(sender.durables())
        told = one.facts("bob")
        assert (told.number, told.durable) == (whole.number, whole.durable)
        place = next(p for p in one.places() if p.broker == "bob")
        assert place.links == tuple(sorted(whole.links))


@settings(max_examples=100, deadline=None)
@given(st.permutations(range(1, 7)), st.data())
def test_old_states_never_win(order: list[int], data: st.DataObject) -> None:
    """The largest number wins whatever the order of arrival; epochs make no difference."""
    epochs = {n: data.draw(st.sampled_from("ef")) for n in order}
    heard = receiver()
    for n in order:
        heard.hear(complete("bob", n, epoch=epochs[n], wanted=(f"x > {n}",)), n)
    assert heard.wanted("bob") == parse("x > 6")
    assert heard.digest() == [("bob", epochs[6], 6)]


# ---- rules


def test_added_and_removed_durable_subscriptions_are_reported() -> None:
    heard = receiver()
    first = heard.hear(complete("bob", 1, durable={"p": FACTS[0], "q": FACTS[1]}), 1)
    assert first.added == (DurableFact("bob", "p", FACTS[0]), DurableFact("bob", "q", FACTS[1]))
    assert first.removed == ()
    change = complete("bob", 2, base=1, durable={"p": FACTS[2]}, undurable=("q", "r"))
    second = heard.hear(change, 2)
    assert set(second.removed) == {
        DurableFact("bob", "p", FACTS[0]),
        DurableFact("bob", "q", FACTS[1]),
    }
    assert second.added == (DurableFact("bob", "p", FACTS[2]),)


def test_a_new_epoch_keeps_nothing_of_the_old_one() -> None:
    heard = receiver()
    heard.hear(complete("bob", 1, wanted=("x > 1",), durable={"p": FACTS[0], "q": FACTS[1]}), 1)
    assert heard.hear(complete("bob", 2, epoch="f", base=1), 2).is_missing
    anew = heard.hear(complete("bob", 2, epoch="f", durable={"p": FACTS[0]}), 2)
    assert set(anew.removed) == {
        DurableFact("bob", "p", FACTS[0]),
        DurableFact("bob", "q", FACTS[1]),
    }
    assert anew.added == (DurableFact("bob", "p", FACTS[0]),)
    assert heard.wanted("bob").filters == ()
    assert not heard.hear(complete("bob", 2, wanted=("x > 1",)), 3).is_new


def test_a_broker_outnumbers_a_state_of_its_earlier_life() -> None:
    me = LinkStateDatabase("me", "mine", 0)
    assert me.news(5) is not None
    heard = me.hear(complete("me", 9_000_000, epoch="mine", wanted=("x > 1",)), 6)
    assert not heard.is_new
    assert me.news(7) is None  # its last flood is less than a second ago
    assert me.deadline_us == 1_000_005
    state = me.news(1_000_005)
    assert state is not None
    assert (state.base, state.wanted) == (0, ())
    assert state.number > 9_000_000
    assert me.hear(state, 1_000_006) == Heard()
    assert me.news(1_000_007) is None


def test_a_link_needs_both_ends_and_has_the_larger_weight() -> None:
    me = receiver()
    me.set_links({"bob": 1.0, "cy": 1.0})
    me.hear(complete("bob", 1, links=(("me", 4.0), ("dan", 1.0))), 1)
    me.hear(complete("cy", 1, links=(("dan", 1.0),)), 1)
    me.hear(complete("dan", 1, links=(("bob", 2.0),)), 1)
    net = me.topology()
    assert net is not None
    assert set(net.edges) == {("bob", "me", 4.0), ("bob", "dan", 2.0)}
    assert [me.reachable(name) for name in ("me", "bob", "cy", "dan", "zoe")] == [
        *(True, True, False, True, False)
    ]
    before = me.version
    me.hear(complete("bob", 2, base=1, links=(("me", 4.0), ("dan", 1.0))), 2)  # a refresh
    assert (me.version, me.topology() is net) == (before, True)
    me.set_links({})
    assert me.version > before
    assert me.topology() is None


def test_a_record_ages_and_its_old_number_does_not_revive_it() -> None:
    me = LinkStateDatabase("me", "mine", 0, LinkStateSettings(refresh_us=10, age_us=30))
    me.set_links({"bob": 1.0})
    said = complete("bob", 4, links=(("me", 1.0),), wanted=("x > 1",), durable={"p": FACTS[0]})
    me.hear(said, 100)
    me.news(100)
    assert me.deadline_us == 110
    me.wake(129)
    assert me.reachable("bob")
    me.wake(130)
    assert not me.reachable("bob")
    assert me.wanted("bob").filters == ()
    assert list(me.durables()) == [DurableFact("bob", "p", FACTS[0])]
    assert me.hear(said, 131) == Heard()
    third = LinkStateDatabase("cy", "third", 0)  # it learns the durable part only, and knows that
    assert third.hear(whole_of(me, "bob"), 131).added == (DurableFact("bob", "p", FACTS[0]),)
    assert third.hear(complete("bob", 5, base=4), 131).is_missing
    assert me.hear(complete("bob", 5, base=4), 131).is_missing
    assert me.hear(msgspec.structs.replace(said, number=5), 132).is_new
    assert me.reachable("bob")


def test_a_refresh_is_an_empty_change() -> None:
    me = LinkStateDatabase("me", "mine", 7, LinkStateSettings(refresh_us=10, age_us=30))
    me.want(["x > 1"])
    first = me.news(100)
    assert first is not None
    assert (first.number, first.base, first.wanted) == (100, 0, ("x > 1",))
    assert me.news(109) is None
    second = me.news(110)
    assert second is not None
    assert (second.number, second.base, second.wanted, second.unwanted) == (110, 100, (), ())


def test_changes_larger_than_the_state_are_sent_as_the_state() -> None:
    me = LinkStateDatabase("me", "mine", 7)
    me.want([f"x > {i}" for i in range(10)])
    me.news(1)
    me.want(["y = 1"], [f"x > {i}" for i in range(9)])
    state = me.news(2)
    assert state is not None
    assert (state.base, set(state.wanted)) == (0, {"x > 9", "y = 1"})


def test_a_change_is_undone_after_a_new_neighbour_got_it_and_before_it_is_flooded() -> None:
    bob, me = LinkStateDatabase("bob", "e", 0), receiver()
    bob.want(["x > 1", *(f"y = {i}" for i in range(9))])  # many, so that changes are flooded
    bob.news(1)
    bob.want(["x > 2"], ["x > 1"])
    bob.set_durable("p", FACTS[0])
    me.hear(whole_of(bob, "bob"), 2)
    bob.want(["x > 1"], ["x > 2"])
    bob.set_durable("p", None)
    state = bob.news(3)
    assert state is not None
    assert state.base
    assert me.hear(state, 3).is_new
    assert set(me.wanted("bob").filters) == set(bob.wanted("bob").filters)
    assert list(me.durables()) == []


def test_routing_memory_travels_with_states_and_causes_none() -> None:
    bob = LinkStateDatabase("bob", "e", 0, LinkStateSettings(refresh_us=10, age_us=30))
    bob.own.memory_now = lambda: RoutingMemory("PIF", predicates=len(told))
    me, told = receiver(), list[int]()
    for now_us in (100, 105, 110):
        state = bob.news(now_us)
        assert (state is None) == (now_us == 105)
        if state is not None:
            me.hear(state, now_us)
        told.append(now_us)
    assert me.memories()["bob"] == RoutingMemory("PIF", predicates=2)
    assert whole_of(me, "bob").memory == RoutingMemory("PIF", predicates=2)
    assert me.facts("bob").memory is None
    assert [place.memory for place in me.places()] == [None, None]


def test_the_bytes_of_texts_are_counted() -> None:
    me = LinkStateDatabase("me", "mine", 7, LinkStateSettings(age_us=30))
    me.want(["x > 1"])
    me.hear(complete("bob", 1, wanted=("x > 1", "s = 'é'")), 1)
    assert me.text_bytes() == 5 + 5 + 8
    me.hear(complete("bob", 2, base=1, wanted=("y = 10",), unwanted=("x > 1", "z = 1")), 2)
    assert me.text_bytes() == 5 + 8 + 6
    me.wake(1000)
    assert me.text_bytes() == 5


def test_two_texts_of_one_filter() -> None:
    me = receiver()
    before = me.follow()
    me.hear(complete("bob", 1, wanted=("x > 1", "x>1")), 1)
    assert before == me.follow() == {"bob": {parse("x > 1").filters[0]: True}}
    before.clear()
    me.hear(complete("bob", 2, base=1, unwanted=("x>1",)), 2)
    assert me.wanted("bob") == parse("x > 1")
    assert before == {}
    me.hear(complete("bob", 3, base=2, unwanted=("x > 1",)), 3)
    assert me.wanted("bob").filters == ()
    assert before == {"bob": {parse("x > 1").filters[0]: False}}
    assert me.follow() == {}


@pytest.mark.parametrize(
    "state",
    [
        complete("bob", 1, wanted=("x >",)),
        complete("bob", 1, durable={"p": Durable("nonsense (", 0, 1)}),
        complete("bob", 0),
        complete("bob", 3, base=-1),
        complete("", 3),
        complete("me", 1 << 63),
        complete("bob/cy", 1),
        complete("b" * 1000, 1),
        complete("bob\n", 1),
        complete("bob", 1, links=(("c/y", 1.0),)),
        complete("bob", 1, links=(("bob", 1.0),)),
        complete("bob", 1, links=(("cy", 0.0),)),
        complete("bob", 1, links=(("cy", float("nan")),)),
        complete("bob", 1, links=(("cy", 1e300),)),
        complete("bob", 1, is_faded=True, wanted=("x > 1",)),
        complete("bob", 1, memory=RoutingMemory("P" * 65)),
    ],
    ids=str,
)
def test_invalid_states_are_broken_frames_and_change_nothing(state: LinkState) -> None:
    me = receiver()
    with pytest.raises(BrokenFrame):
        me.hear(state, 1)
    assert me.digest() == []
    assert [place.broker for place in me.places()] == ["me"]


def test_own_mistakes_are_errors() -> None:
    me = receiver()
    with pytest.raises(InvalidPredicate):
        me.want(["x >"])
    with pytest.raises(InvalidTopology, match="weigh"):
        me.set_links({"bob": -1.0})
    with pytest.raises(InvalidTopology, match="to another broker"):
        me.set_links({"me": 1.0})
    me.news(1)
    assert whole_of(me, "me").durable == {}


def whole_of(database: LinkStateDatabase, broker: str) -> LinkState:
    found = database.whole(broker)
    assert found is not None
    return found


def test_a_digest_says_what_is_missing() -> None:
    me = receiver()
    for i in range(3):
        me.hear(complete(f"b{i}", 1, wanted=(f"x = {i}",)), 1)
    assert me.newer_than([]) == ["b0", "b1", "b2"]
    assert me.newer_than([("b1", "e", 1)]) == ["b0", "b2"]
    assert me.newer_than(me.digest()) == []


def test_a_number_far_ahead_is_not_believed_and_whatever_is_believed_can_be_outnumbered() -> None:
    """A neighbour invents states of bob. He is not cut off for longer than clocks differ."""
    now_us = 1_800_000_000_000_000
    others = LinkStateDatabase("ann", "a", now_us)
    bob = LinkStateDatabase("bob", "b", now_us)
    for number in (1 << 62, (1 << 62) - 1, now_us + AHEAD_US_MAX + 1_000_000_000):
        false = complete("bob", number, epoch="zzz")
        assert "century" in others.hear(false, now_us).refused
        assert "century" in bob.hear(false, now_us).refused
    first = bob.news(now_us)
    assert first is not None
    assert others.hear(first, now_us).is_new
    false = complete("bob", now_us + AHEAD_US_MAX, epoch="zzz")
    assert others.hear(false, now_us).is_new
    assert not bob.hear(false, now_us).refused
    now_us += 2_000_000
    bob.want(["x > 1"])
    answer = bob.news(now_us)
    assert answer is not None
    assert others.hear(answer, now_us).is_new
    assert others.wanted("bob") == parse("x > 1")


def test_a_broker_whose_clock_is_behind_outnumbers_what_others_have_believed() -> None:
    now_us = 1_800_000_000_000_000
    others, bob = LinkStateDatabase("ann", "a", now_us), LinkStateDatabase("bob", "b", now_us)
    false = complete("bob", now_us + AHEAD_US_MAX, epoch="zzz")
    assert others.hear(false, now_us).is_new
    behind_us = now_us - 30_000_000
    assert not bob.hear(false, behind_us).refused
    answer = bob.news(behind_us)
    assert answer is not None
    assert others.hear(answer, now_us + 1).is_new


def test_a_clock_that_stands_in_1970_or_2099_is_no_reason_to_refuse_a_state() -> None:
    year_us = 365 * 24 * 3600 * 1_000_000
    for here_us, there_us in ((0, 57 * year_us), (57 * year_us, 129 * year_us), (129 * year_us, 0)):
        ann, bob = LinkStateDatabase("ann", "a", here_us), LinkStateDatabase("bob", "b", there_us)
        state = bob.news(there_us + 1)
        assert state is not None
        assert ann.hear(state, here_us).is_new


def test_the_brokers_of_a_database_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_state, "BROKERS_MAX", 4)
    me = receiver()
    for i in range(3):
        assert me.hear(complete(f"b{i}", 1), 1).is_new
    assert "one broker more" in me.hear(complete("b3", 1), 1).refused
    assert me.hear(complete("b2", 2, wanted=("x > 1",)), 1).is_new
    assert [place.broker for place in me.places()] == ["b0", "b1", "b2", "me"]
