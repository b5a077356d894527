"""The text of patterns: what is read, what is printed, and where errors point."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import palio
from palio.errors import InvalidPattern, InvalidValue, LimitExceeded, PalioError, ParseError
from palio.model.covering import intersects
from palio.routing.patterns import (
    And,
    Monitor,
    Or,
    Part,
    Pattern,
    Then,
    With,
    Within,
    parse,
    pattern,
)
from palio.routing.patterns.pattern import COMPARED_MAX
from tests import strategies
from tests.routing.patterns.pattern_strategies import nodes

A, B, C = (Part(palio.parse(f"t = '{symbol}'")) for symbol in "abc")


def test_what_is_read() -> None:
    assert parse("[t = 'a'] then [t='b'] THEN [t = 'c']").node == Then((A, B, C))
    assert parse("[t = 'a'] and ([t = 'b'] or [t = 'c'])").node == And((A, Or((B, C))))
    assert parse("([t = 'a'] then [t = 'b'] within 2 hours) and [t = 'c']").node == And(
        (Within(Then((A, B)), 7_200_000_000), C)
    )
    assert parse("([t = 'a'] then [t = 'b']) WITH [t = 'b']").node == With((Then((A, B)), B))
    for text in ("[t = 'a'] within 1 day same k, `x y`", "[t = 'a'] same k, `x y` within 24 hours"):
        assert parse(text) == Pattern(Within(A, 86_400_000_000), ("k", "x y"))
    assert parse("[a = ']' OR `]` = \"]\" /* ] */ AND b = r'\\]' -- ]\n]").node == Part(
        palio.parse("a = ']' OR `]` = ']' AND b = r'\\]'")
    )


def test_brackets_in_a_predicate() -> None:
    read = parse("[tags[0] = ']' AND m['k'] = 5] then [a[b[c[0]]] = 1]")
    parts = (Part(palio.parse("tags[0] = ']' AND m['k'] = 5")), Part(palio.parse("a[b[c[0]]] = 1")))
    assert read.node == Then(parts)
    assert parse(str(read)) == read
    with pytest.raises(ParseError, match="is not closed"):
        parse("[tags[0 = 1] then [x = 2]")
    started = time.monotonic()
    for text in ("[" * 1_000_000, "[x[" + "y[" * 500_000, "[" + "x[0] " * 200_000):
        with pytest.raises(ParseError, match="is not closed"):
            parse(text)
    assert time.monotonic() - started < 10


def test_the_zone_of_the_text() -> None:
    text = "[at = TIMESTAMP '2024-03-01 10:00:00'] then [hour(at) = 11]"
    read = parse(text, zone="America/New_York")
    first, second = (
        palio.parse(one[1:-1], zone="America/New_York") for one in text.split(" then ")
    )
    assert read.node == Then((Part(first), Part(second)))
    assert read != parse(text) == parse(text, zone="UTC")
    assert parse(str(read)) == read, "what is printed says its zone"
    assert parse(text, zone="America/New_York", limit=2) == read
    hours = [datetime(2024, 3, 1, 10, tzinfo=UTC) + timedelta(hours=i) for i in range(24)]
    for zone, begins in ((None, 10), ("America/New_York", 15)):
        monitor = Monitor(text, zone=zone)
        [found] = [c for i, at in enumerate(hours) for c in monitor.feed(({"at": at}, i))]
        assert (found.start, found.end) == (begins - 10, begins - 9)
    with pytest.raises(InvalidValue, match="no time zone"):
        parse(text, zone="Nowhere")


def test_normal_form() -> None:
    """(A then B) then C is A then B then C; A then (B then C) is another pattern."""
    assert parse("([t = 'a'] then [t = 'b']) then [t = 'c']").node == Then((A, B, C))
    assert parse("[t = 'a'] then ([t = 'b'] then [t = 'c'])").node == Then((A, Then((B, C))))
    assert parse("[t = 'a'] and ([t = 'b'] and [t = 'c'])").node == And((A, B, C))
    assert parse("([t = 'a'] or [t = 'b']) or [t = 'c']").node == Or((A, B, C))
    assert parse("[t = 'a'] with ([t = 'b'] with [t = 'c'])").node == With((A, B, C))
    assert parse("[t = 'a'] and ([t = 'b'] with [t = 'c'])").node == And((A, With((B, C))))
    assert parse("(([t = 'a']))").node == A


names = st.lists(st.sampled_from([*strategies.PLAIN_NAMES, *strategies.TRICKY_NAMES]), max_size=3)


@settings(max_examples=300, deadline=None)
@given(nodes(), names)
def test_printing_then_parsing_gives_the_same(node: object, same: list[str]) -> None:
    made = Pattern(node, tuple(same))  # type: ignore[arg-type]
    assert parse(str(made)) == made
    assert str(parse(str(made))) == str(made)


@settings(max_examples=200, deadline=None)
@given(strategies.predicates)
def test_any_predicate_stands_in_brackets(predicate: palio.Predicate) -> None:
    part = Part(palio.parse(str(predicate)))
    assert parse(f"[{predicate}] then [{predicate}]").node == Then((part, part))


@pytest.mark.parametrize(
    ("text", "reason", "position"),
    [
        ("", "predicate in brackets", 0),
        ("[t = 1] then", "the pattern ends", 12),
        ("[t = 1] [t = 2]", "here may stand then, and, with, or", 8),
        ("[t = 1] then [t = 2] or [t = 3]", "`then` and `or` are mixed", 21),
        ("[t = 1] and [t = 2] with [t = 3]", "`and` and `with` are mixed", 20),
        ("[t = 1] with", "the pattern ends", 12),
        ("[t = 1] then t = 2", "predicate in brackets", 13),
        ("[t = 1", "bracket is not closed", 0),
        ("[t = 'x]", "this ' is not closed", 5),
        ("[]", "[TRUE] selects every message", 0),
        ("[t = 1] then [t = ]", "ends too early", 17),
        ("([t = 1] then [t = 2]", "parenthesis is not closed", 0),
        ("[t = 1])", "closes nothing", 7),
        ("[t = 1] within minutes", "whole number and a unit", 15),
        ("[t = 1] within 5 parsecs", "microseconds, milliseconds, seconds", 17),
        ("[t = 1] within 0 days", "above zero", 15),
        ("[t = 1] within 999999999999 days", "above zero and below", 15),
        ("[t = 1] within 1 day within 1 day", "there already", 21),
        ("[t = 1] within 1 day same k within 1 day", "there already", 28),
        ("[t = 1] same k same j", "there already", 15),
        ("([t = 1] same k) then [t = 2]", "belongs to the whole pattern", 9),
        ("[t = 1] same 5", "names of attributes", 13),
        ("([a = 1] then [b = 1]) and [c = 1]", "may select the same message", 27),
        ("([a = 1] then [b = 1]) and [c = 1]", "write `with`", 27),
        ("(" * 60, "nested more than 50 deep", 50),
    ],
)
def test_errors_point_at_the_character(text: str, reason: str, position: int) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    assert reason in caught.value.reason
    assert caught.value.position == position


def test_a_comment_that_is_not_closed_is_searched_once() -> None:
    started = time.process_time()
    with pytest.raises(ParseError):
        parse(f"[x = {'x /* ' * 30_000}] then [y = 1]")
    assert time.process_time() - started < 5


def test_limits() -> None:
    with pytest.raises(LimitExceeded, match="64 parts"):
        parse(" or ".join(["[TRUE]"] * 65))
    with pytest.raises(InvalidPattern, match="64"):
        Pattern(Or((A,) * 65))
    for wrong in (lambda: Then((A,)), lambda: Within(A, 0), lambda: And((Then((A, B)), A))):
        with pytest.raises(InvalidPattern):
            wrong()
    with pytest.raises(InvalidPattern, match="not a int"):
        parse(5)  # type: ignore[arg-type]


def product(count: int, tag: int) -> str:
    """A predicate of 2 to the power of `count` filters; those of other tags exclude it."""
    return f"q = {tag} AND " + " AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(count))


def steps(count: int, size: int) -> list[str]:
    """Patterns of two steps, of which no two want the same message."""
    return [f"([{product(size, i)}] then [{product(size, i + 1)}])" for i in range(0, 2 * count, 2)]


def test_all_parts_share_the_limit_of_filters() -> None:
    text = f"[{product(3, 1)}] then [{product(3, 2)}] then [x = 1]"
    assert parse(text, limit=17) == parse(text)
    with pytest.raises(
        LimitExceeded, match="17 filters or more in its parts; the limit is 16"
    ) as caught:
        parse(text, limit=16)
    assert text[caught.value.position :].startswith("x = 1")
    with pytest.raises(LimitExceeded, match="the limit is 4"):
        parse(text, limit=12)


def test_comparing_the_parts_of_and_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predicates are intersected only after the effort was found to be small."""
    calls = 0

    def counted(a: palio.Predicate, b: palio.Predicate) -> bool:
        nonlocal calls
        calls += len(a.filters) * len(b.filters)
        return intersects(a, b)

    monkeypatch.setattr(pattern, "intersects", counted)
    parse(" and ".join(steps(4, 3)))
    assert 0 < calls < COMPARED_MAX
    calls = 0
    with pytest.raises(LimitExceeded, match="the limit is 200,000"):
        parse(" and ".join(steps(4, 6)))
    assert calls == 0
    around = "".join(f" and [q = {i}])" for i in range(100, 140))
    with pytest.raises(LimitExceeded, match="the limit is 200,000"):
        parse("(" * 40 + " and ".join(steps(2, 4)) + around)
    assert calls < 2 * COMPARED_MAX
    with pytest.raises(LimitExceeded, match="the limit is 200,000"):
        And(tuple(Then((Part(palio.parse(product(6, i))), A)) for i in range(5)))


@settings(max_examples=300, deadline=None)
@given(st.text("[]()'`\"ab=1 \\then and with or within same days,-/*", max_size=60))
def test_any_text_is_a_pattern_or_a_clear_error(text: str) -> None:
    with suppress(PalioError):
        assert parse(str(parse(text))) == parse(text)
