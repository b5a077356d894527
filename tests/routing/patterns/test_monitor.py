"""Monitors against brute force by the written semantics."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from palio.errors import InvalidFile, InvalidValue
from palio.model.message import Message
from palio.model.predicate import Predicate
from palio.routing.packets import Publish
from palio.routing.patterns import Assembler, Monitor, Pattern, parse
from palio.routing.patterns.automaton import LeafEvent, build, span_of
from palio.routing.patterns.pattern import Node
from tests.routing.patterns import naive_patterns
from tests.routing.patterns.pattern_strategies import drawn, nodes, patterns, published


def texts(word: str) -> list[Publish]:
    """One message for each symbol, a microsecond apart; blanks let time pass."""
    return [Publish(Message({"t": c}), "p", i, i) for i, c in enumerate(word) if not c.isspace()]


def found(monitor: Monitor, messages: list[Publish]) -> list[list[Publish]]:
    return [list(c.messages) for m in messages for c in monitor.feed(m)]


def ends(pattern: str, word: str) -> list[str]:
    """The matches in a word, as places."""
    made = found(Monitor(pattern), texts(word))
    return ["".join(str(m.time) for m in c) for c in made]


@settings(max_examples=400, deadline=None)
@given(patterns(), published())
def test_monitor_equals_brute_force(pattern: Pattern, messages: list[Publish]) -> None:
    assert found(Monitor(pattern), messages) == naive_patterns.compounds(pattern, messages)


def test_monitor_equals_brute_force_on_larger_patterns() -> None:
    """Patterns of up to five parts, most of which match, some of them several times."""
    rng, matched = random.Random(5), 0
    for _ in range(300):
        pattern = Pattern(drawn(rng, "abcd", rng.randint(2, 5)))
        messages, time = [], 0
        for number in range(14):
            time += rng.choice([0, 1, 1, 2])
            messages.append(Publish(Message({"t": rng.choice("abcd")}), "p", number, time))
        expected = naive_patterns.compounds(pattern, messages)
        assert found(Monitor(pattern), messages) == expected, pattern
        matched += bool(expected)
    assert matched > 150


@settings(max_examples=200, deadline=None)
@given(patterns(), published())
def test_assembler_gives_the_tight_matches(pattern: Pattern, messages: list[Publish]) -> None:
    plain = Pattern(pattern.node)
    assembler = Assembler(plain)
    made = [frozenset(map(messages.index, c.messages)) for m in messages for c in assembler.feed(m)]
    expected = naive_patterns.tight(plain.node, messages)
    assert made == [expected[span] for span in sorted(expected)]


@pytest.mark.parametrize(
    ("pattern", "word", "expected"),
    [
        ("[t = 'a'] then [t = 'b']", "aab b ab", ["12", "67"]),  # the latest a; then anew
        ("[t = 'a'] then [t = 'b'] then [t = 'c']", "abbc", ["013"]),  # b completes a then b first
        ("[t = 'a'] then ([t = 'b'] then [t = 'c'])", "abbc", ["023"]),  # the latest b then c
        ("[t = 'a'] and [t = 'b']", "bba", ["12"]),
        ("[t = 'a'] and [t = 'a']", "aaa", ["01"]),  # different messages
        ("[TRUE] and [t = 'b']", "ba", ["01"]),
        ("[TRUE] and [t = 'b']", "ab", ["01"]),
        ("[t IN ('a', 'b')] with [t IN ('b', 'c')]", "b", ["0"]),  # the same message
        ("[t IN ('a', 'b')] with [t IN ('b', 'c')]", "acb", ["01", "2"]),
        ("[t = 'a'] with [t = 'b']", "bba", ["12"]),  # as `and`, where nothing is in common
        ("[t = 'a'] with [t = 'a']", "aa", ["0", "1"]),
        ("([t = 'a'] then [t = 'b']) with [t = 'b']", "ab", ["01"]),  # `and` would be refused
        ("([t = 'a'] then [t = 'b']) with ([t = 'b'] then [t = 'c'])", "abc", ["012"]),
        ("([t = 'a'] with [t = 'b']) then [t = 'c'] within 2 microseconds", "ab bac", ["345"]),
        ("[t = 'a'] or [t = 'b']", "ab", ["0", "1"]),
        ("[t = 'a'] then [t = 'b'] within 2 microseconds", "a  b a b", ["57"]),
        ("([t = 'a'] then [t = 'b'] within 1 microsecond) then [t = 'c']", "a babc", ["345"]),
        ("([t = 'a'] then [t = 'b']) and [t = 'c']", "acb", ["012"]),
        ("([t = 'a'] then [t = 'b']) or [t = 'b']", "ab", ["1"]),  # the one that starts last
    ],
)
def test_examples(pattern: str, word: str, expected: list[str]) -> None:
    assert ends(pattern, word) == expected


def test_then_needs_a_later_time() -> None:
    monitor = Monitor("[t = 'a'] then [t = 'b']")
    assert monitor.feed(({"t": "a"}, 5)) == []
    assert monitor.feed(({"t": "b"}, 5)) == []
    assert [c.start for c in monitor.feed(({"t": "b"}, 6))] == [5]


def test_keys_are_equal_as_in_sql() -> None:
    monitor = Monitor("[t = 'a'] then [t = 'b'] same k")
    monitor.feed(({"t": "a", "k": 1}, 1))
    assert monitor.feed(({"t": "b", "k": True}, 2)) == []
    assert monitor.feed(({"t": "b"}, 2)) == []
    assert [c.key for c in monitor.feed(({"t": "b", "k": 1.0}, 3))] == [(1,)]
    assert monitor.counters.ignored == 1
    nan = float("nan")
    monitor.feed(({"t": "a", "k": nan}, 4))
    assert len(monitor.feed(({"t": "b", "k": nan}, 5))) == 1


@settings(max_examples=100, deadline=None)
@given(patterns(), published(), st.integers(1, 5), st.randoms(use_true_random=False))
def test_lateness_restores_the_order(
    pattern: Pattern, messages: list[Publish], lateness: int, rng: random.Random
) -> None:
    """Each message comes at most `lateness` after its time: the matches are those in order."""
    arrivals = sorted(messages, key=lambda m: (m.time + rng.randint(0, lateness), rng.random()))
    monitor = Monitor(pattern, lateness=lateness)
    made = found(monitor, arrivals) + [list(c.messages) for c in monitor.expire(10**6)]
    assert made == naive_patterns.compounds(pattern, messages)
    assert monitor.counters.late == 0


def test_what_is_too_late_is_counted() -> None:
    monitor = Monitor("[t = 'a'] then [t = 'b']", lateness=2)
    for symbol, time in [("b", 10), ("a", 8), ("a", 7), ("b", 20)]:
        assert monitor.feed(({"t": symbol}, time)) == [] or time == 20
    assert monitor.counters.late == 1
    assert monitor.counters.matches == 1


def test_what_is_held_has_a_limit() -> None:
    """The oldest is taken early, and what comes before it then is late."""
    monitor = Monitor("[t = 'a'] then [t = 'b']", lateness=100, held_max=2)
    fed = [("a", 10), ("b", 20), ("b", 15), ("a", 30), ("a", 5)]
    ends = [c.end for symbol, time in fed for c in monitor.feed(({"t": symbol}, time))]
    assert ends == [15]
    assert monitor.counters.late == 1
    with pytest.raises(InvalidValue, match="int of microseconds"):
        monitor.feed(({"t": "a"}, 1.5))  # type: ignore[arg-type]


@settings(max_examples=100, deadline=None)
@given(patterns(), published(), st.randoms(use_true_random=False))
def test_held_until_told(pattern: Pattern, messages: list[Publish], rng: random.Random) -> None:
    """With no lateness, `expire` alone decides; and it has nothing to do before `due`."""
    monitor = Monitor(pattern, lateness=None)
    arrivals = rng.sample(messages, len(messages))
    assert found(monitor, arrivals) == []
    made: list[list[Publish]] = []
    while (due := monitor.due) is not None and due < 10**6:
        before = monitor.snapshot()
        assert monitor.expire(due - 1) == []
        assert len(monitor.snapshot()) - len(before) in range(-4, 5)  # the clock alone
        made += [list(c.messages) for c in monitor.expire(due)]
    assert made == naive_patterns.compounds(pattern, messages)
    if pattern.micros is not None:
        assert len(monitor) == 0


@settings(max_examples=100, deadline=None)
@given(patterns(), published(), st.integers(0, 10), st.integers(0, 3))
def test_snapshots_go_on(
    pattern: Pattern, messages: list[Publish], cut: int, lateness: int
) -> None:
    whole = Monitor(pattern, lateness=lateness)
    first = Monitor(pattern, lateness=lateness)
    second = Monitor(pattern, lateness=lateness)
    expected = found(whole, messages) + [list(c.messages) for c in whole.expire(10**6)]
    made = found(first, messages[:cut])
    second.restore(first.snapshot())
    made += found(second, messages[cut:]) + [list(c.messages) for c in second.expire(10**6)]
    assert made == expected
    assert second.counters == whole.counters
    assert second.snapshot() == whole.snapshot()


@pytest.mark.parametrize("bad", [b"", b"[]", b"{}", b'{"pattern": "x"}', b"\xff"])
def test_bad_snapshots_are_refused(bad: bytes) -> None:
    with pytest.raises(InvalidFile, match="snapshot"):
        Monitor("[t = 'a'] then [t = 'b']").restore(bad)


@settings(max_examples=60, deadline=None)
@given(nodes(), st.randoms(use_true_random=False))
def test_state_is_bounded_by_the_pattern(node: Node, rng: random.Random) -> None:
    """However many messages come, of a pattern of k parts at most 2k^2 spans are kept."""
    takes: list[Predicate | int] = []
    state = build(node, takes)
    time = 0
    for number in range(200):
        message = Publish(Message({"t": rng.choice("abcd")}), "p", number, time)
        time += rng.randint(0, 1)
        wanted = (
            i
            for i, t in enumerate(takes)
            if isinstance(t, Predicate) and t.matches(message.message)
        )
        state.feed(LeafEvent(span_of((message,)), frozenset(wanted)))
        assert len(state.spans()) <= 2 * len(takes) ** 2
        assert len(state.starts()) <= 2 * (len(takes) - 1)


def test_keys_expire_and_have_a_limit() -> None:
    monitor = Monitor("[t = 'a'] then [t = 'b'] within 10 microseconds same k", keys_max=3)
    for time in range(5):
        monitor.feed(({"t": "a", "k": time}, time))
    assert (len(monitor), monitor.counters.keys_dropped) == (3, 2)
    assert monitor.feed(({"t": "b", "k": 1}, 6)) == []  # dropped
    assert len(monitor.feed(({"t": "b", "k": 4}, 7))) == 1
    assert len(monitor) == 2
    monitor.expire(13)
    assert len(monitor) == 1
    monitor.expire(14)
    assert len(monitor) == 0
    monitor.feed(({"t": "a", "k": 1}, 20))
    monitor.feed(({"t": "a", "k": 2}, 40))  # a feed expires as well
    assert len(monitor) == 1


@settings(max_examples=100, deadline=None)
@example(parse("[t = 'a'] then [t = 'b']"), [])
@given(patterns(), published())
def test_feeding_is_deterministic(pattern: Pattern, messages: list[Publish]) -> None:
    assert found(Monitor(pattern), messages) == found(Monitor(str(pattern)), messages)
