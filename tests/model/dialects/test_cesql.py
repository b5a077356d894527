"""CESQL: the cases of the specification, random expressions against an evaluation, errors."""

from __future__ import annotations

import json
import random
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import palio
from palio.errors import InvalidPredicate, LimitExceeded, ParseError
from palio.model.dialects.cesql import evaluate, read
from palio.model.dialects.cesql_parser import NESTING_MAX, TEXT_MAX
from palio.model.message import Message
from tests.model.dialects.cesql_drawing import draw_event, draw_expression

CASES = json.loads(Path(__file__).with_name("cesql_cases.json").read_text("utf-8"))
"""Facts of cesql/cesql_tck in cloudevents/spec: suite, expression, attributes, value, error."""
EVENT = {"id": "1", "source": "/tests", "type": "t", "specversion": "1.0"}
AGAINST_THE_TEXT = {
    "NOT 10": "the suite has a cast error and TRUE; 3.7 says that an Integer MUST be cast, so it is FALSE",
}


def selects(expression: str, event: dict[str, Any]) -> bool:
    return read(expression).matches(Message(event))


def quoted(value: Any) -> str:
    if isinstance(value, str):
        marked = value.replace("'", "\\'")
        return f"'{marked}'"
    return str(value)


def test_all_cases_are_there() -> None:
    assert len(CASES) == 275
    assert sum(error is not None for *_, error in CASES) == 35


@pytest.mark.parametrize(("suite", "expression", "attributes", "value", "error"), CASES)
def test_cases_of_the_specification(
    suite: str, expression: str, attributes: dict[str, Any], value: Any, error: str | None
) -> None:
    event = {**EVENT, **attributes} if "id" not in attributes else attributes
    event = {**EVENT, **event}
    if error == "parse":
        with pytest.raises(ParseError):
            read(expression)
        with pytest.raises(ParseError):
            evaluate(expression, event)
        return
    found = evaluate(expression, event)
    if expression in AGAINST_THE_TEXT:
        assert (found.value, found.error) == (False, None)
        assert not selects(expression, event)
        return
    assert (found.value, found.error) == (value, error), suite
    assert type(found.value) is type(value)
    if error == "missingFunction":
        with pytest.raises(ParseError, match="there is no function"):
            read(expression)
    elif isinstance(value, bool):
        assert selects(expression, event) == (value and error is None)
        assert selects(f"NOT ({expression})", event) == (not value and error is None)
    elif error is None:
        assert selects(f"({expression}) = {quoted(value)}", event)
        assert not selects(f"({expression}) != {quoted(value)}", event)
    else:
        with pytest.raises(ParseError, match="and a filter is a Boolean"):
            read(expression)
        assert not selects(f"({expression}) = {quoted(value)}", event), "an error never passes"
        assert not selects(f"({expression}) != {quoted(value)}", event)


@pytest.mark.parametrize("seed", range(6))
def test_random_expressions(seed: int) -> None:
    """A predicate selects an event where the value is TRUE and there is no error."""
    rng = random.Random(seed)
    selected = errors = 0
    for _ in range(60):
        expression = draw_expression(rng)
        try:
            predicate = read(expression)
        except LimitExceeded:
            continue
        for _ in range(12):
            event = draw_event(rng)
            found = evaluate(expression, event)
            wanted = found.value is True and found.error is None
            assert predicate.matches(Message(event)) == wanted, (expression, event, found)
            selected += wanted
            errors += found.error is not None
    assert selected > 40
    assert errors > 100


@pytest.mark.parametrize(
    ("expression", "meaning"),
    [
        ("type = 'com.example.made'", None),
        ("type <> 'a' AND id LIKE 'b%'", "type <> 'a' AND id LIKE 'b%'"),
        ("EXISTS subject", "subject IS NOT NULL"),
        ("NOT EXISTS subject", "subject IS NULL"),
        ("type IN ('a', 'b')", None),
        ("type NOT IN ('a', 'b')", None),
        ("firstname = 'Ann'", None),
        ("firstname LIKE 'A%'", None),
        ("sequence > 5", "cesql_int(sequence) > 5"),
        ("sequence = '5'", "cesql_string(sequence) = '5'"),
        ("sequence = other", "cesql_equal(sequence, other)"),
        ("urgent", "urgent = TRUE"),
        ("urgent = TRUE", "cesql_bool(urgent) = TRUE"),
        ("id = 'a' OR type = 'b'", "id = 'a' OR id IS NOT NULL AND type = 'b'"),
        ("id = 'a' OR id = 'b'", None),
        ("TRUE = (id = 'a')", "id = 'a'"),
        ("LENGTH('abc') = 3 AND id = 'x'", "id = 'x'"),
        ('TYPE = "it\'s"', "type = 'it\\'s'"),
        ("type LIKE 'a\\%b%'", "startswith(type, 'a%b')"),
        ("type LIKE 'a\\b%'", "startswith(type, 'a\\\\b')"),
    ],
)
def test_an_expression_is_sql(expression: str, meaning: str | None) -> None:
    assert palio.reduce(read(expression)) == palio.reduce(palio.parse(meaning or expression))


def test_operators_of_one_rank_are_read_from_the_left() -> None:
    assert not selects("TRUE OR TRUE AND FALSE", EVENT)
    assert selects("FALSE AND FALSE OR TRUE", EVENT)
    assert evaluate("10 - 4 - 3", {}).value == 3
    assert evaluate("NOT TRUE = FALSE", {}).value is True, "NOT binds more tightly than ="


def test_an_error_is_never_selected() -> None:
    assert selects("subject = 'x' OR id = '1'", {**EVENT, "subject": "y"})
    assert not selects("subject = 'x' OR id = '1'", EVENT)
    assert selects("id = '1' OR subject = 'x'", EVENT)
    assert not selects("NOT (n = 5)", {**EVENT, "n": "five"})
    assert selects("NOT (n = 5)", {**EVENT, "n": "6"})


def test_values_of_other_types_are_strings() -> None:
    at = datetime(2024, 3, 1, 10, tzinfo=UTC)
    assert selects("time = '2024-03-01T10:00:00Z'", {"time": at})
    assert selects("time LIKE '2024-%'", {"time": at})
    assert evaluate("n", {"n": 1 << 40}).value == str(1 << 40)
    assert selects("n = '1099511627776'", {"n": 1 << 40})
    assert not selects("n > 5", {"n": 1 << 40})


@pytest.mark.parametrize(
    ("expression", "position", "reason"),
    [
        ("", 0, "an attribute, a literal or ("),
        ("id = ", 5, "an attribute, a literal or ("),
        ("id == 'a'", 4, "an attribute, a literal or ("),
        ("id = 'a", 5, "this string is not closed"),
        ("id LIKE 5", 8, "the pattern of LIKE is a string"),
        ("id LIKE other", 8, "the pattern of LIKE is a string"),
        ("id IN 'a'", 6, "IN takes a list in parentheses"),
        ("id IN ()", 8, "the list of IN is not empty"),
        ("id NOT 'a'", 3, "behind this NOT stands LIKE or IN"),
        ("id = 'a' type", 9, "an operator or the end"),
        ("(id = 'a'", 9, "not closed by a )"),
        ("id = #", 5, "this has no meaning"),
        ("my_id = 'a'", 0, "letters and digits"),
        ("n = 2147483648", 4, "does not fit in 32 bits"),
        ("+n = 1", 0, "a + stands between two operands"),
        ("id = 'a' AND FOO(id)", 13, "there is no function FOO of 1 argument"),
        ("LENGTH(id, id) = 1", 0, "there is no function LENGTH of 2 arguments"),
        ("1 + n", 2, "gives an Integer, and a filter is a Boolean"),
        ("CONCAT(a, b)", 0, "gives a String, and a filter is a Boolean"),
        ("f1(id) = 1", 0, "letters and underscores"),
        ("EXISTS 'id'", 7, "the name of an attribute"),
    ],
)
def test_errors_point_at_the_character(expression: str, position: int, reason: str) -> None:
    with pytest.raises(
        ParseError, match=reason.replace("(", "\\(").replace(")", "\\)").replace("+", "\\+")
    ) as caught:
        read(expression)
    assert caught.value.position == position


@pytest.mark.parametrize(
    "unit", ["(", "NOT ", "-", "ABS(", "id IN (", "1 - (", "TRUE AND (TRUE OR "]
)
def test_nesting_is_bounded(unit: str) -> None:
    with pytest.raises(ParseError):
        read(unit * 5_000 + "1")


def test_size_is_bounded() -> None:
    with pytest.raises(ParseError, match=f"more than {NESTING_MAX} deep"):
        read("n" + " + 1" * 100 + " = 1")
    with pytest.raises(LimitExceeded, match="the limit is"):
        read(" " * (TEXT_MAX + 1))
    with pytest.raises(InvalidPredicate, match="a CESQL expression is a string"):
        read(5)  # type: ignore[arg-type]
    nested = "n = 1"
    for at in range(11):
        nested = f"((a{at} OR b{at}) AND ({nested} OR NOT (c{at} = 5 AND d{at} < 3)) = e{at})"
    with pytest.raises(LimitExceeded):
        read(f"({nested}) XOR ({nested})")


def test_many_alternatives_are_as_many_filters() -> None:
    text = " OR ".join(f"subject = 'x{at}'" for at in range(500))
    assert read(text) == palio.parse(text)


@pytest.mark.parametrize(
    "expression",
    [
        " OR ".join(f"a{at} = 'x'" for at in range(9_000)),
        " AND ".join(f"a{at} = 5" for at in range(9_000)).join(("NOT (", ")")),
        "SUBSTRING(" * 40 + "a" + ", 1)" * 40 + " = 'x'",
        "LEFT(" * 40 + "a" + ", LENGTH(b))" * 40 + " = 'x'",
        f"CONCAT_WS('{'-' * 900_000}', a{', a' * 900}) = 'x'",
        "XOR".join(f" (a{at} = 1 AND b{at} = 2) " for at in range(45)),
        f"CONCAT_WS('{'-' * 900_000}', ''{', LOWER(1)' * 900}) = a",
        f"a LIKE '{'%_' * 6000}'",
    ],
    ids=str.split("or and substring left concat xor constant like"),
)
def test_small_expressions_do_not_become_large(expression: str) -> None:
    with suppress(LimitExceeded, ParseError):
        assert not read(expression).matches({"id": "1"})


def test_what_is_constant_and_too_long_is_an_error() -> None:
    long = "-" * 900_000
    assert (
        evaluate(f"LENGTH(CONCAT_WS('{long}', '', '', '')) > 0", {}).error == "functionEvaluation"
    )
    assert evaluate(f"'a' LIKE '{'%a' * 6000}'", {}).error == "generic"
    assert not selects(f"'a' LIKE '{'%a' * 6000}'", EVENT)


def test_tables_select_the_same() -> None:
    rng = random.Random(7)
    rules: dict[str, Any] = {}
    while len(rules) < 30:
        with suppress(LimitExceeded):
            rules[f"r{len(rules)}"] = read(draw_expression(rng))
    events = [draw_event(rng) for _ in range(40)]
    for engine in ("pivot", "naive"):
        table = palio.ForwardingTable.compile(rules, engine=engine)
        for event in events:
            wanted = [name for name, one in rules.items() if one.matches(Message(event))]
            assert table.forward(event) == wanted
