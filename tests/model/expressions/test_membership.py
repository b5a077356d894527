"""Conditions on arrays become questions for elements, and select the same messages."""

from __future__ import annotations

import random
from typing import Any

import pytest

from palio.model.expressions.membership import MEMBERS_MAX
from palio.model.expressions.names import value_of
from palio.model.language import parse
from palio.model.message import Message
from palio.model.operators import Op
from palio.model.predicate import Constraint

_LISTED = ", ".join(map(str, range(MEMBERS_MAX)))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("arrays_overlap(tags, array('a', 'b'))", "array_contains(tags, 'a') OR array_contains(tags, 'b')"),
        ("arrays_overlap(array('a', NULL, 'a'), tags)", "array_contains(tags, 'a')"),
        ("exists(tags, t -> t = 'a')", "array_contains(tags, 'a')"),
        ("exists(tags, t -> 'a' = t) = TRUE", "array_contains(tags, 'a')"),
        ("exists(tags, t -> t = 1.5) IS TRUE", "array_contains(tags, 1.5)"),
        ("exists(tags, t -> t IN (1, NULL, -2))", "array_contains(tags, 1) OR array_contains(tags, -2)"),
        (
            "x = 1 AND exists(tags, t -> t = 'a' OR t IN ('b') OR t = TRUE)",
            "x = 1 AND array_contains(tags, 'a') OR x = 1 AND array_contains(tags, 'b') "
            "OR x = 1 AND array_contains(tags, TRUE)",
        ),
        (  # one is enough to find a filter by: the one that asks for the fewest
            "arrays_overlap(tags, array(1, 2, 3)) AND arrays_overlap(other, array(4, 5))",
            "arrays_overlap(tags, array(1, 2, 3)) AND array_contains(other, 4) "
            "OR arrays_overlap(tags, array(1, 2, 3)) AND array_contains(other, 5)",
        ),
    ],
)  # fmt: skip
def test_a_condition_asks_for_elements(text: str, meant: str) -> None:
    assert str(parse(text)) == meant
    assert parse(meant) == parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "NOT (arrays_overlap(tags, array('a', 'b')))",
        "NOT (exists(tags, each -> each = 'a'))",
        "exists(tags, each -> each = NULL)",
        "exists(tags, each -> each = 'a' AND x = 1)",
        "exists(tags, each -> x = each)",
        "exists(tags, each -> each != 'a')",
        "exists(tags, each -> each = 'a' OR each > 'c')",
        "exists(tags, each -> x = 'a')",
        "exists(tags, each -> exists(other, each1 -> each = 'a'))",
        "exists(tags, each -> exists(other, each1 -> each1 IN (each, 'a')))",
        "exists(split(text, ','), each -> each = 'a')",
        "arrays_overlap(tags, other)",
        "arrays_overlap(tags, array(x, 'a'))",
        f"exists(tags, each -> each IN ({_LISTED}, {MEMBERS_MAX}))",
    ],
)
def test_what_asks_for_something_else_stays_as_it_is(text: str) -> None:
    (only,) = parse(text).filters
    assert len(only.constraints) == 1
    assert "array_contains" not in str(parse(text))
    assert parse(str(parse(text))) == parse(text)


def test_as_many_are_split_as_keep_within_the_limit() -> None:
    text = " OR ".join(f"arrays_overlap(tags, array({i}, {i + 1}))" for i in range(0, 20, 2))
    found = parse(text, limit=15)
    assert len(found.filters) == 15
    assert parse(str(found), limit=15) == found
    assert len(parse(text).filters) == 20


_LITERALS = ["'a'", "'b'", "1", "1.0", "1.5", "2e0", "-1", "TRUE", "FALSE", "NULL", "''"]
_ELEMENTS: list[Any] = ["a", "b", "c", "", 1, 1.0, 1.5, 2, -1, -0.0, True, False, None]


def _condition(draw: random.Random) -> str:
    def listed() -> str:
        return ", ".join(draw.choices(_LITERALS, k=draw.randint(1, 4)))

    if draw.random() < 0.4:
        return f"arrays_overlap(tags, array({listed()}))"
    body = f"t = {draw.choice(_LITERALS)}" if draw.random() < 0.5 else f"t IN ({listed()})"
    if draw.random() < 0.3:
        body += f" OR {draw.choice(_LITERALS)} = t"
    return f"exists(tags, t -> {body})"


def _tags(draw: random.Random) -> Any:
    if draw.random() < 0.1:
        return draw.choice([None, "a", 1])
    found: list[Any] = draw.choices(_ELEMENTS, k=draw.randint(0, 4))
    return [*found, ["a"]] if draw.random() < 0.1 else found


@pytest.mark.parametrize("seed", range(4))
def test_the_same_messages_are_selected_when_negated_too(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(400):
        text = _condition(draw)
        message = Message({"tags": tags} if (tags := _tags(draw)) is not None else {})
        whole = Constraint(f"={text}", Op.EQ, True)  # of a name nothing is split
        truth = value_of(whole.name, message)
        assert parse(text).matches(message) is (truth is True), (text, message)
        assert parse(f"NOT {text}").matches(message) is (truth is False), (text, message)
        assert parse(f"({text}) IS NOT TRUE").matches(message) is (truth is not True), text
