"""Routers share the work of patterns: the compounds are those of one monitor that has it all."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import palio
from palio.errors import InvalidPattern, RoutingError
from palio.model.predicate import Filter
from palio.routing import Advertise, Joined, Left, Publish, Received, Restate, Role, Router, Tick
from palio.routing.dump import dump
from palio.routing.packets import Send, Subscribe, Unadvertise
from palio.routing.patterns import (
    Assembled,
    Compound,
    Monitor,
    Pattern,
    Sieved,
    Task,
    Unwatch,
    Watch,
    parse,
)
from palio.routing.patterns.pattern import Then, Within, core
from palio.routing.patterns.watching import PatternSettings
from palio.routing.poset import Poset
from tests.routing.patterns.pattern_strategies import SYMBOLS, drawn, patterns, symbols
from tests.routing.timed_network import DELAY_MAX, TimedNetwork, found, offer
from tests.seeds import sizes

HOP = DELAY_MAX + 1
ROUTERS_MAX = 6
SETTINGS = PatternSettings(lateness=HOP * (ROUTERS_MAX + 1), hop=HOP)


@st.composite
def trees(draw: st.DrawFn) -> list[int]:
    count = draw(st.integers(1, ROUTERS_MAX - 1))
    return [draw(st.integers(0, i)) for i in range(count)]


@settings(max_examples=150, deadline=None)
@given(
    trees(),
    st.lists(patterns(), min_size=1, max_size=2),
    st.lists(st.tuples(st.sampled_from(SYMBOLS), st.integers(0, 60), st.sampled_from([1, 2])),
             max_size=14),
    st.integers(0, 1000),
    st.booleans(),
)  # fmt: skip
def test_delegated_equals_local(
    parents: list[int],
    watched: list[Pattern],
    messages: list[tuple[str, int, int]],
    seed: int,
    delegates: bool,
) -> None:
    """Random trees, patterns, sources and delays; nothing is late, and nothing differs."""
    rng = random.Random(seed)
    used = PatternSettings(delegates, SETTINGS.lateness, SETTINGS.hop)
    net = TimedNetwork(parents, rng, used)
    providers = {c: rng.sample(range(len(parents) + 1), rng.choice((1, 1, 2))) for c in SYMBOLS}
    for symbol, routers in providers.items():
        for router in routers:
            net.advertise(router, symbol)
    where = [rng.randrange(len(parents) + 1) for _ in watched]
    for id, (router, pattern) in enumerate(zip(where, watched, strict=True)):
        net.watch(router, id, pattern)
    net.rest()
    for symbol, gap, key in messages:
        net.wait(gap)
        net.publish(rng.choice(providers[symbol]), symbol, key)
    net.rest()
    assert net.late == 0
    for id, (router, pattern) in enumerate(zip(where, watched, strict=True)):
        assert net.got[f"c{router}", id] == found(pattern, net.published)


@sizes(90, 200)
def test_delegated_equals_local_on_larger_networks(size: int) -> None:
    """Long runs with many matches and all tasks; and less crosses the links."""
    rng, tasks, compounds = random.Random(36), Counter[Task](), 0
    crossed = {True: 0, False: 0}
    for case in range(size):
        symbols = "abcdef"
        parents = [rng.randrange(i + 1) for i in range(rng.randint(2, ROUTERS_MAX - 1))]
        count = len(parents) + 1
        sites = rng.sample(range(count), 2)
        providers = {c: rng.sample(sites, rng.choice((1, 1, 1, 1, 2))) for c in symbols}
        pattern = Pattern(drawn(rng, symbols, rng.randint(2, 5)), rng.choice([(), ("k",)]))
        script = [
            (rng.randint(0, 40), rng.choice(symbols), rng.randint(1, 2), rng.random())
            for _ in range(80)
        ]
        for delegates in (True, False):
            used = PatternSettings(delegates, SETTINGS.lateness, SETTINGS.hop)
            net = TimedNetwork(parents, random.Random(case), used)
            for symbol, routers in providers.items():
                for router in routers:
                    net.advertise(router, symbol)
            net.watch(0, 1, pattern)
            net.rest()
            for gap, symbol, key, where in script:
                net.wait(gap)
                net.publish(providers[symbol][int(where * len(providers[symbol]))], symbol, key)
            net.rest()
            assert net.late == 0
            expected = found(pattern, net.published)
            assert net.got["c0", 1] == expected, pattern
            crossed[delegates] += net.crossed
            tasks.update(net.tasks)
        compounds += len(expected)
    assert compounds > size / 2
    assert min(tasks[task] for task in (Task.ASSEMBLE, Task.SIEVE)) > 0.08 * size, tasks
    assert crossed[True] < 0.75 * crossed[False], crossed


@sizes(15, 100)
def test_watches_that_share_a_delegation_are_exact(size: int) -> None:
    """Related patterns are watched and ended between messages, at several routers. Each watch finds
    what a monitor finds that begins with it, whatever the others had matched before."""
    rng, compounds, uses, delegations = random.Random(361), 0, 0, 0
    for case in range(size):
        parents = [rng.randrange(i + 1) for i in range(rng.randint(2, ROUTERS_MAX - 1))]
        net = TimedNetwork(parents, random.Random(case), SETTINGS)
        providers = {c: rng.randrange(len(parents) + 1) for c in "cd"}
        providers |= dict.fromkeys("ab", rng.randrange(len(parents) + 1))
        for symbol, router in providers.items():
            net.advertise(router, symbol)
        shared = drawn(rng, "ab", rng.randint(2, 3))
        open_: dict[tuple[int, int], tuple[Pattern, int]] = {}
        for id in range(12):
            net.rest()
            if open_ and rng.random() < 0.3:
                ended = rng.choice(sorted(open_))
                net.unwatch(*ended)
                del open_[ended]
            node = Then((shared, drawn(rng, "cd", 1))) if rng.random() < 0.5 else shared
            if rng.random() < 0.4:
                node = Within(node, rng.randint(20, 400))
            router, pattern = rng.randrange(len(parents) + 1), Pattern(node)
            net.watch(router, id, pattern)
            open_[router, id] = pattern, len(net.published)
            net.rest()
            tables = [list(r.watches.available) for r in net.routers.values()]
            delegations += sum(map(len, tables))
            uses += sum(len(entry.uses) for table in tables for entry in table)
            for _ in range(rng.randint(0, 12)):
                net.wait(rng.randint(0, 40))
                symbol = rng.choice("aabbcd")
                net.publish(providers[symbol], symbol)
        net.rest()
        assert net.late == 0
        for (router, id), (pattern, begin) in open_.items():
            expected = found(pattern, net.published[begin:])
            assert net.got[f"c{router}", id] == expected, (case, pattern)
            compounds += len(expected)
    assert compounds > 12 * size
    assert uses > 1.5 * delegations > 12 * size, (uses, delegations)


class Changes(RuleBasedStateMachine):
    """Advertisements and watches come and go while messages are published: what is found is true,
    and not found twice; who began in quiet and saw no change got everything; in the end
    nothing is left."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = random.Random(5)
        self.net = TimedNetwork([0, 1, 1, 0], self.rng, SETTINGS)
        self.providers: dict[str, set[int]] = {symbol: set() for symbol in SYMBOLS}
        self.open: dict[tuple[int, int], Pattern] = {}
        self.exact: dict[tuple[int, int], int] = {}  # -> how many were published before
        self.all: dict[tuple[str, int], Pattern] = {}
        self.ids = 0

    @rule(router=st.integers(0, 4), symbol=st.sampled_from(SYMBOLS))
    def advertise(self, router: int, symbol: str) -> None:
        self.providers[symbol].add(router)
        self.net.advertise(router, symbol)
        self.exact = {}

    @rule(symbol=st.sampled_from(SYMBOLS))
    def unadvertise(self, symbol: str) -> None:
        if self.providers[symbol]:
            self.net.unadvertise(self.providers[symbol].pop(), symbol)
            self.exact = {}

    @rule(router=st.integers(0, 4), pattern=patterns())
    def watch_something(self, router: int, pattern: Pattern) -> None:
        self.watch(router, pattern)

    def watch(self, router: int, pattern: Pattern) -> None:
        self.ids += 1
        self.net.rest()
        self.net.watch(router, self.ids, pattern)
        self.net.rest()
        self.open[router, self.ids] = self.all[f"c{router}", self.ids] = pattern
        self.exact[router, self.ids] = len(self.net.published)

    @precondition(lambda self: self.open)
    @rule(router=st.integers(0, 4), data=st.data())
    def watch_what_is_there(self, router: int, data: st.DataObject) -> None:
        """The same again, or with more steps, or with other limits: it shares what it can."""
        known = self.open[data.draw(st.sampled_from(sorted(self.open)))]
        node = known.node
        if data.draw(st.booleans()):
            node = Then((node, data.draw(symbols())))
        micros = data.draw(st.sampled_from([None, 100, 1000]))
        self.watch(router, Pattern(node if micros is None else Within(node, micros), known.same))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def unwatch(self, data: st.DataObject) -> None:
        router, id = data.draw(st.sampled_from(sorted(self.open)))
        self.net.unwatch(router, id)
        del self.open[router, id]
        self.exact.pop((router, id), None)

    @rule(symbols=st.lists(st.sampled_from(SYMBOLS), max_size=8), gap=st.integers(0, 60))
    def publish(self, symbols: list[str], gap: int) -> None:
        for symbol in symbols:
            self.net.wait(gap)
            if self.providers[symbol]:
                self.net.publish(min(self.providers[symbol]), symbol, self.rng.randint(1, 2))

    @invariant()
    def neighbours_match_what_is_used(self) -> None:
        """When nothing is on its way, each delegation is a watch at its neighbour, and once."""
        if not self.net.is_quiet:
            return
        for name, router in self.net.routers.items():
            for peer, other in self.net.routers.items():
                told = router.watches.available.told(peer)
                assert list(told) == [w.watch for w in other.watches if w.peer == name]
                assert len({(w.task, core(w.pattern)[0]) for w in told}) == len(told)

    @invariant()
    def what_is_found_is_true(self) -> None:
        published = set(self.net.published)
        for (client, id), compounds in self.net.got.items():
            assert len({c.messages for c in compounds}) == len(compounds)
            for compound in compounds:
                assert published.issuperset(compound.messages)
                alone = Monitor(self.all[client, id])
                assert [c for m in compound.messages for c in alone.feed(m)] == [compound]

    def teardown(self) -> None:
        self.net.rest()
        for (router, id), begin in self.exact.items():
            expected = found(self.open[router, id], self.net.published[begin:])
            assert self.net.got[f"c{router}", id] == expected
        for router, id in list(self.open):
            self.net.unwatch(router, id)
        self.net.rest()
        for router in self.net.routers.values():
            assert (list(router.watches), list(router.subscriptions)) == ([], [])
            assert list(router.watches.available) == []


@sizes(15, 300)
def test_changes(size: int) -> None:
    run_state_machine_as_test(
        Changes, settings=settings(max_examples=size, stateful_step_count=20, deadline=None)
    )


# ---- one router


def router(clock: Callable[[], int] | None = None, **values: int) -> Router:
    """Router 1 with neighbours 2 (a, b) and 3 (c), and the clients ann and bob."""
    made = Router("1", advertisements=True, patterns=PatternSettings(**values), clock=clock)  # type: ignore[arg-type]
    for peer, types in (("2", "ab"), ("3", "c")):
        made.step(Joined(peer, Role.NEIGHBOUR))
        made.step(Received(peer, Restate((), tuple(map(offer, types)))))
    made.step(Joined("ann"))
    made.step(Joined("bob"))
    return made


ABC = parse("[t = 'a'] then [t = 'b'] then [t = 'c']")
CAB = parse("[t = 'c'] then [t = 'a'] then [t = 'b']")
AB = parse("[t = 'a'] then [t = 'b']")


def message(symbol: str, number: int) -> Publish:
    return Publish(palio.Message({"t": symbol, "k": 1}), "p", number, number)


def compounds(sends: list[Send]) -> list[str]:
    return [
        "".join(str(m.message["t"]) for m in s.packet.compound.messages)
        for s in sends
        if isinstance(s.packet, Assembled)
    ]


def test_a_pattern_is_factored_and_parts_are_delegated() -> None:
    one = router()
    subscribe, watch = one.step(Received("ann", Watch(7, ABC)))
    assert subscribe == Send("3", Subscribe(palio.parse("t = 'c'").filters[0]))
    assert watch == Send("2", Watch(1, AB, Task.ASSEMBLE, 0))
    assert dump(one).partition("patterns\n")[2] == (
        "  [t = 'a'] then [t = 'b'] then [t = 'c'] whole ->ann #7\n"
        "    here <0> then [t = 'c']\n"
        "    <0> assemble [t = 'a'] then [t = 'b'] <-2 #1\n"
    )
    assert "  t = 'c' <-3 ->1" not in dump(one)  # messages go from 3 to 1
    assert "  t = 'c' ->1 <-3\n" in dump(one)
    assert one.step(Received("2", Assembled(1, Compound((message("a", 1), message("b", 2)))))) == []
    (found,) = one.step(Received("3", message("c", 3)))
    assert found.peer == "ann"
    assert isinstance(found.packet, Assembled)
    assert found.packet.id == 7
    assert compounds([found]) == ["abc"]


def test_taking_back() -> None:
    one = router()
    empty = dump(one)
    one.step(Received("ann", Watch(7, ABC)))
    taken = one.step(Received("ann", Unwatch(7)))
    assert [type(send.packet).__name__ for send in taken] == ["Unsubscribe", "Unwatch"]
    assert dump(one) == empty
    assert one.step(Received("ann", Unwatch(7))) == []
    # What was on its way is dropped, and who leaves takes all back.
    assert one.step(Received("2", Assembled(1, Compound((message("a", 1), message("b", 2)))))) == []
    one.step(Received("bob", Watch(1, AB)))
    assert one.step(Left("bob")) == [Send("2", Unwatch(2))]


def test_a_neighbour_answers_with_what_was_asked_for() -> None:
    """A neighbour assembles: a single message would be taken for an answer."""
    one = router()
    (asked,) = one.step(Received("ann", Watch(7, AB)))
    assert asked == Send("2", Watch(1, AB, Task.ASSEMBLE, 0))
    with pytest.raises(RoutingError, match="with task assemble with Sieved"):
        one.step(Received("2", Sieved(1, message("a", 1))))


def test_the_same_id_with_another_pattern_is_a_new_watch() -> None:
    one = router()
    one.step(Received("ann", Watch(7, ABC)))
    assert one.step(Received("ann", Watch(7, ABC))) == []
    sends = one.step(Received("ann", Watch(7, CAB)))
    assert sends == [Send("2", Unwatch(1)), Send("2", Watch(2, AB, Task.SIEVE, 0))]
    assert [str(active.watch.pattern) for active in one.watches] == [str(CAB)]


def test_a_watch_costs_the_same_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """It subscribes to its own parts, and does not state those of the others again."""
    one = Router("1")
    one.step(Joined("2", Role.NEIGHBOUR))
    one.step(Joined("ann"))
    inserted: list[Filter] = []
    insert = Poset.insert
    monkeypatch.setattr(Poset, "insert", lambda self, item: inserted.append(item) or insert(self, item))  # fmt: skip
    counts = []
    for i in range(40):
        inserted.clear()
        one.step(Received("ann", Watch(i, parse(f"[w = {i}] then [v > {i}]"))))
        counts.append(len(inserted))
    assert set(counts) == {2}
    # `v > 0` goes, and uncovers only what is next.
    sends = one.step(Received("ann", Unwatch(0)))
    assert sorted(str(f) for s in sends for f in (s.packet.filter, *s.packet.instead)) == [
        "v > 0",
        "v > 1",
        "w = 0",
    ]


def test_without_advertisements_all_is_matched_at_home() -> None:
    one = Router("1")
    one.step(Joined("2", Role.NEIGHBOUR))
    one.step(Received("2", Restate((), tuple(map(offer, "abc")))))
    one.step(Joined("ann"))
    sends = one.step(Received("ann", Watch(1, AB)))
    assert [str(send.packet.filter) for send in sends] == ["t = 'a'", "t = 'b'"]
    assert one.step(Received("2", message("a", 1))) == []
    assert compounds(one.step(Received("2", message("b", 2)))) == ["ab"]


def test_below_a_master_all_is_matched_at_home() -> None:
    """A master sends what it likes, advertised or not."""
    one = Router("1", advertisements=True)
    one.step(Joined("0", Role.MASTER))
    one.step(Joined("2", Role.SLAVE))
    one.step(Received("2", Restate((), tuple(map(offer, "abc")))))
    one.step(Joined("ann"))
    sends = one.step(Received("ann", Watch(1, AB)))
    assert [send.peer for send in sends] == ["0", "0"]
    assert [str(send.packet.filter) for send in sends] == ["t = 'a'", "t = 'b'"]
    one.step(Received("0", message("a", 1)))
    assert compounds(one.step(Received("2", message("b", 2)))) == ["ab"]


def test_new_advertisements_start_a_pattern_anew_where_the_plan_changes() -> None:
    one = router()
    one.step(Received("ann", Watch(1, CAB)))  # 2 sieves a and b
    one.step(Received("3", message("c", 1)))
    # Of no concern, or only one more source of what is matched here: the instance goes on.
    assert one.step(Received("3", Advertise(offer("x")))) != []
    more = one.step(Received("bob", Advertise(offer("c"))))
    assert not any(isinstance(send.packet, Watch | Unwatch) for send in more)
    one.step(Received("2", Sieved(1, message("a", 2))))
    assert compounds(one.step(Received("2", Sieved(1, message("b", 3))))) == ["cab"]
    # b comes from 3 as well: nobody has `a then b` alone. What was open is gone.
    one.step(Received("3", message("c", 4)))
    one.step(Received("2", Sieved(1, message("a", 5))))
    changed = one.step(Received("3", Advertise(offer("b"))))
    assert [send for send in changed if isinstance(send.packet, Unwatch)] == [Send("2", Unwatch(1))]
    assert one.step(Received("2", message("b", 6))) == []
    for symbol, number in (("c", 7), ("a", 8)):
        assert compounds(one.step(Received("2", message(symbol, number)))) == []
    assert compounds(one.step(Received("3", message("b", 9)))) == ["cab"]
    # And back, with an id of its own: answers to the old one are dropped.
    again = one.step(Received("3", Unadvertise(offer("b"))))
    assert again[-1] == Send("2", Watch(2, AB, Task.SIEVE, 0))
    assert one.step(Received("2", Sieved(1, message("a", 10)))) == []


def test_a_copy_of_a_message_is_taken_once() -> None:
    """Two sieves and a subscription may bring the same message."""
    one = router(lateness=10)
    pattern = parse("[t = 'c'] then [t = 'a'] then [t = 'b'] then [t IN ('a', 'c')] then [t = 'a']")
    one.step(Received("ann", Watch(1, pattern)))
    assert [d.task for w in one.watches for d in w.plan.delegations] == [Task.SIEVE]
    one.step(Received("3", message("c", 1)))
    for symbol, number in (("a", 2), ("b", 3), ("a", 4)):
        one.step(Received("2", Sieved(1, message(symbol, number))))
        if symbol == "a":
            one.step(Received("2", message(symbol, number)))
    assert one.step(Tick(50)) == []  # a, twice, would have completed it
    twice = parse("[t = 'c'] then ([TRUE] and [TRUE])")
    one.step(Received("bob", Watch(2, twice)))
    for number in (60, 60, 61, 61):
        one.step(Received("3", message("c", number)))
    assert compounds(one.step(Tick(90))) == []
    many = router()
    many.step(Received("ann", Watch(1, parse("[t = 'c'] and [t = 'c']"))))
    for number in range(0, 2000, 2):
        for _ in range(2):
            sends = many.step(Received("3", message("c", number)))
            assert len({s.packet.compound.messages for s in sends}) == len(sends)


def test_nothing_goes_to_a_neighbour_that_has_not_restated() -> None:
    """It may be new, and use its ids for something else."""
    one = router()
    one.step(Received("bob", Advertise(offer("d"))))
    dd = parse("[t = 'd'] then [t = 'd']")
    one.step(Received("2", Watch(1, dd)))
    one.step(Received("bob", message("d", 1)))
    (told,) = one.step(Joined("2", Role.NEIGHBOUR))
    assert told.packet.watches == ()
    assert one.step(Received("bob", message("d", 2))) == []
    # What it goes on to watch goes on; what it does not say is void.
    restated = Restate((), (offer("a"), offer("b")), (Watch(1, dd),))
    one.step(Received("2", restated))
    one.step(Received("bob", message("d", 3)))
    assert compounds(one.step(Received("bob", message("d", 4)))) == ["dd"]
    one.step(Received("2", Restate((), (offer("a"), offer("b")))))
    assert list(one.watches) == []


def test_a_neighbour_that_joins_again_is_told_what_it_watches_for_us() -> None:
    one = router()
    one.step(Received("ann", Watch(1, ABC)))
    (told,) = one.step(Joined("2", Role.NEIGHBOUR))
    assert told.packet.watches == (Watch(1, AB, Task.ASSEMBLE, 0),)


def test_nothing_is_handed_back_to_where_it_comes_from() -> None:
    one = router()
    sends = one.step(Received("2", Watch(1, AB)))
    assert not any(isinstance(send.packet, Watch) for send in sends)
    assert one.step(Received("2", message("a", 1))) == []
    assert one.step(Received("2", message("b", 2))) == []


def test_equal_watches_cause_one_delegation() -> None:
    """It ends with the last watch; each of them gets its own answer."""
    one = router()
    assert one.step(Received("ann", Watch(7, AB))) == [Send("2", Watch(1, AB, Task.ASSEMBLE, 0))]
    assert one.step(Received("bob", Watch(8, AB))) == []
    (told,) = one.step(Received("ann", Watch(9, ABC)))  # a then b is there
    assert told == Send("3", Subscribe(palio.parse("t = 'c'").filters[0]))
    assert one.watches.available.providers(AB) == ("2",)
    answer = Assembled(1, Compound((message("a", 1), message("b", 2))))
    sends = one.step(Received("2", answer)) + one.step(Received("3", message("c", 3)))
    assert [(s.peer, s.packet.id) for s in sends] == [("ann", 7), ("bob", 8), ("ann", 9)]
    assert compounds(sends) == ["ab", "ab", "abc"]
    assert one.step(Received("ann", Unwatch(7))) == []
    assert one.step(Left("bob")) == []
    sends = one.step(Received("ann", Unwatch(9)))
    assert sends[-1] == Send("2", Unwatch(1))
    assert list(one.watches.available) == []


def test_a_watch_gets_nothing_of_what_began_before_it() -> None:
    """A neighbour that assembles for ann already knows an a that bob must not get."""
    time = 0
    one = router(clock=lambda: time)
    one.step(Received("ann", Watch(7, AB)))
    time = 5
    one.step(Received("bob", Watch(8, AB)))
    before = Assembled(1, Compound((message("a", 4), message("b", 6))))
    after = Assembled(1, Compound((message("a", 7), message("b", 8))))
    assert [s.peer for s in one.step(Received("2", before))] == ["ann"]
    assert [s.peer for s in one.step(Received("2", after))] == ["ann", "bob"]
    # Without a clock, what has been seen is past.
    one = router()
    one.step(Received("ann", Watch(7, AB)))
    one.step(Received("2", before))
    one.step(Received("bob", Watch(8, AB)))
    overlapping = Assembled(1, Compound((message("a", 5), message("b", 8))))
    assert one.step(Received("2", overlapping)) == []  # ann has had what was published up to 6
    assert [s.peer for s in one.step(Received("2", after))] == ["ann", "bob"]


def test_limits_of_a_delegated_watch_change_in_place() -> None:
    """The neighbour 3 needs `a then b` within a longer time, and sooner: what is open continues."""
    one = router(lateness=100, hop=20)
    one.step(Received("bob", Advertise(offer("d"))))
    dd = "[t = 'd'] then [t = 'd']"
    one.step(Received("3", Watch(1, parse(f"{dd} within 50 microseconds"), Task.ASSEMBLE, 80)))
    one.step(Received("bob", message("d", 1000)))
    assert one.due == 1081
    one.step(Received("3", Watch(1, parse(f"{dd} within 500 microseconds"), Task.ASSEMBLE, 60)))
    assert one.due == 1061
    one.step(Received("bob", message("d", 1400)))
    assert compounds(one.step(Tick(1461))) == ["dd"]
    # A narrower one, and in no hurry: it waits longer again.
    one.step(Received("3", Watch(1, parse(f"{dd} within 5 microseconds"), Task.ASSEMBLE, 90)))
    one.step(Received("bob", message("d", 1500)))
    assert one.due == 1591
    one.step(Received("bob", message("d", 1506)))
    assert one.step(Tick(1700)) == []
    # What is delegated further follows.
    one.step(Received("3", Watch(2, AB, Task.ASSEMBLE, 80)))
    wider = parse("[t = 'a'] then [t = 'b'] within 1 hour")
    assert one.step(Received("3", Watch(2, wider, Task.ASSEMBLE, 40))) == [
        Send("2", Watch(1, wider, Task.ASSEMBLE, 20))
    ]
    # With less than a hop left it is matched here.
    sends = one.step(Received("3", Watch(2, wider, Task.ASSEMBLE, 10)))
    assert sends[-1] == Send("2", Unwatch(1))


def test_lateness_is_spent_hop_by_hop() -> None:
    """A router that has less than a hop left matches what it is given."""
    one = router(lateness=100, hop=60)
    assert one.step(Received("ann", Watch(1, AB))) == [Send("2", Watch(1, AB, Task.ASSEMBLE, 40))]
    sends = one.step(Received("3", Watch(1, AB, Task.WHOLE, 40)))
    assert not any(isinstance(send.packet, Watch) for send in sends)
    assert one.due is None
    one.step(Received("2", message("b", 101)))
    one.step(Received("2", message("a", 100)))
    assert one.due == 141
    assert one.step(Tick(140)) == []
    one.step(Received("2", message("b", 120)))
    assert compounds(one.step(Tick(162))) == ["ab"]
    assert one.late == 0
    one.step(Received("2", message("b", 110)))
    assert one.late == 1
    one.step(Received("3", Unwatch(1)))
    assert one.late == 1


def test_bad_input_gets_a_sentence() -> None:
    with pytest.raises(RoutingError, match="0 or more microseconds"):
        PatternSettings(lateness=-1)
    with pytest.raises(InvalidPattern, match="0 or more microseconds, not -1"):
        Watch(1, AB, lateness=-1)
    with pytest.raises(RoutingError, match="the router's own name"):
        Router("1").step(Joined("1"))
