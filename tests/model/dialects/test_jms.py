"""Selectors of JMS: the cases of ActiveMQ, Artemis and Joram, and the errors."""

from __future__ import annotations

import json
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import palio
from palio.errors import InvalidPredicate, LimitExceeded, ParseError
from palio.model.dialects.jms import NESTING_MAX, TEXT_MAX, like_pattern, read
from palio.model.message import Message

CASES = json.loads(Path(__file__).with_name("jms_cases.json").read_text("utf-8"))
REFUSED = {
    "XPATH ": "a selector tests properties, and XPath looks into the body",
    "REGEX(": "a function of ActiveMQ alone",
    "INLIST(": "a function of ActiveMQ alone",
}
"""How selectors begin that we refuse and their owners read, and why."""


def outcome(selector: str, message: Message) -> object:
    try:
        return read(selector).matches(message)
    except ParseError:
        return "invalid"


def test_cases_of_the_owners() -> None:
    """Facts: selector, message, what the owner's test expects ("valid": it can be read)."""
    messages = [Message(one) for one in CASES["messages"]]
    passed: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for owner, test, selector, message, expected in CASES["cases"]:
        found = outcome(selector, messages[message])
        if expected == "invalid" or not selector.startswith(tuple(REFUSED)):
            is_right = found != "invalid" if expected == "valid" else found == expected
            assert is_right, (owner, test, selector, found)
            passed[owner] += 1
        else:
            assert found == "invalid", selector
            refused[owner] += 1
    assert passed == {"activemq": 241, "artemis": 239, "joram": 63}
    assert refused == {"activemq": 38, "artemis": 27}


@pytest.mark.parametrize(
    ("selector", "meaning"),
    [
        ("", "TRUE"),
        ("JMSType = 'car' AND color = 'blue' AND weight > 2500", None),
        ("NOT (a = 1 OR b <> 2.5)", "a <> 1 AND b = 2.5"),
        ("a = 'it''s'", "a = 'it\\'s'"),
        ('"JMS type" = 1', "`JMS type` = 1"),
        ("order.total > 5", None),
        ("x = 0x1F", "x = 31"),
        ("x = 0b11", "x = 3"),
        ("x = 017", "x = 15"),
        ("x = 5L", "x = 5"),
        ("x = -9223372036854775808", None),
        ("x = 7.", "x = 7D"),
        ("x = 6.5F", "x = 6.5D"),
        ("x = +5", "x = 5"),
        ("x != 5", "x <> 5"),
        ("x NOT BETWEEN 1 AND 5", "x < 1 OR x > 5"),
        ("x BETWEEN low AND high + 1", "x >= low AND x <= high + 1"),
        ("name LIKE 'a!%b%' ESCAPE '!'", "startswith(name, 'a%b')"),
        ("name LIKE 'a!b%' ESCAPE '!'", "startswith(name, 'a!b')"),
        ("name LIKE 'a\\b%'", "startswith(name, 'a\\\\b')"),
        ("name NOT LIKE '_b%'", None),
        ("x IN ('a', 'b') AND y NOT IN (1, -2)", None),
        ("(a + b) * -c / 2 >= 1", None),
        ("a - (b - c) = 1", None),
        ("-(-x) = 1", None),
        ("first + ' ' + last = 'Ann Lee'", "concat(concat(first, ' '), last) = 'Ann Lee'"),
        ("vip AND NOT banned = TRUE", "vip = TRUE AND banned <> TRUE"),
        ("x = 1 -- or not\n OR y /* no */ IS NULL", "x = 1 OR y IS NULL"),
        ("not x is not null", "x IS NULL"),
        ("1 = 'a' OR x = 1", "x = 1"),
    ],
)
def test_a_selector_is_sql(selector: str, meaning: str | None) -> None:
    assert read(selector) == palio.parse(meaning or selector)


@pytest.mark.parametrize(
    "selector", ["x + 1 = 3", "-x = -2", "x / y = 0.5", "x % 2 = 0", "x * 1.5 = 3"]
)
def test_arithmetic(selector: str) -> None:
    assert read(selector).matches({"x": 2, "y": 4})
    assert not read(selector).matches({"x": "2", "y": "4"})
    assert not read(selector).matches({})
    assert not read(f"NOT ({selector})").matches({"x": "2"}), "what is unknown stays so"


def test_properties_are_not_cast() -> None:
    assert not read("x = '5'").matches({"x": 5})
    assert not read("x <> '5'").matches({"x": 5})
    assert not read("x = 5").matches({"x": "5"})
    assert read("x = 5").matches({"x": 5.0})


@pytest.mark.parametrize(
    ("selector", "position", "reason"),
    [
        ("3 + 5", 0, "a number is no condition"),
        ("TRUE AND 3+5", 9, "a number is no condition"),
        ("a = 1 AMD b = 2", 6, "AND, OR or the end"),
        ("a = 1 = 2", 6, "joined by AND, not chained"),
        ("NULL = x", 0, "write IS NULL"),
        ("x < 'a'", 4, "by = and <> only"),
        ("TRUE > 0", 0, "by = and <> only"),
        ("x == 3", 2, "write ="),
        ("a = 1 && b = 2", 6, "write AND"),
        ("x = 'abc", 4, "not closed"),
        ("x = 1 /* abc", 6, "not closed"),
        ('"x = 1', 0, "not closed"),
        ("x = 09", 4, "octal"),
        ("x = 1e999", 4, "does not fit"),
        ("x = 9223372036854775808", 4, "does not fit in 64 bits"),
        ("x = " + "9" * 5000, 4, "does not fit in 64 bits"),
        ("x = 5q", 4, "neither a number nor a name"),
        ("IN > 0", 0, 'written "IN"'),
        ("x IN ()", 6, "is expected here"),
        ("x IN (y)", 6, "strings or numbers"),
        ("x IN ('a' 'b')", 10, "a comma or the end"),
        ("x LIKE y", 7, "takes a string"),
        ("x LIKE 'a' ESCAPE 'bc'", 18, "one character"),
        ("'a' LIKE 'a'", 0, "the name of a property"),
        ("x IS 5", 5, "NULL or NOT NULL"),
        ("x NOT = 5", 6, "BETWEEN, IN or LIKE"),
        ("x BETWEEN 'a' AND 'b'", 10, "numbers only"),
        ("x BETWEEN 1", 11, "two bounds"),
        ("x = (1", 6, "closed"),
        ("(a = 1) = TRUE", 0, "a condition is not compared"),
        ("x * TRUE = 1", 4, "a boolean is no number"),
        ("'a' + 1 = 'a1'", 6, "a number is no string"),
        ("XPATH 'a'", 0, "tests properties"),
        ("REGEX('a', x)", 0, "calls no functions"),
        ("a = 1 OR", 8, "ends too early"),
        ("x = #", 4, "no meaning here"),
    ],
)
def test_errors_point_at_the_character(selector: str, position: int, reason: str) -> None:
    with pytest.raises(ParseError) as raised:
        read(selector)
    assert raised.value.position == position
    assert reason in raised.value.reason
    assert raised.value.text == selector


def test_bounds() -> None:
    deep = NESTING_MAX + 1
    for selector in ("(" * deep + "x" + ")" * deep, "NOT " * deep + "x", "- " * deep + "x = 1"):
        with pytest.raises(ParseError, match="nested more than"):
            read(selector)
    assert read("(" * NESTING_MAX + "x" + ")" * NESTING_MAX) == read("x")
    with pytest.raises(LimitExceeded, match="characters"):
        read("x = 1 OR " * (TEXT_MAX // 9) + "x = 1 OR x = 2")
    with pytest.raises(LimitExceeded, match="filters") as raised:
        read(" AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(20)))
    assert raised.value.text.startswith("(a0 = 1")
    with pytest.raises(LimitExceeded):
        read("a = 1 OR b = 1", limit=1)
    with pytest.raises(InvalidPredicate, match="not a int"):
        read(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pattern", "escape", "expected"),
    [
        ("a%", "", "a%"),
        ("a!%", "!", "a\\%"),
        ("a!!", "!", "a!"),
        ("\\%", "\\", "\\%"),
        ("a\\", "", "a\\\\"),
    ],
)
def test_escapes_of_like(pattern: str, escape: str, expected: str) -> None:
    assert like_pattern(pattern, escape) == expected


def test_any_text_is_read_or_refused() -> None:
    draw = random.Random(17)
    words: list[Any] = (
        "a b 1 2.5 'x' ( ) AND OR NOT = <> < >= + - * / IN LIKE BETWEEN IS NULL , TRUE".split()
    )
    for _ in range(3000):
        selector = " ".join(draw.choices(words, k=draw.randint(1, 12)))
        with suppress(ParseError):
            read(selector).matches({"a": 1, "b": "x"})
