"""Event patterns as predicates: cases of event-ruler's tests, random ones, and what is refused."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.errors import InvalidPredicate, LimitExceeded, ParseError
from palio.model.dialects.eventbridge import read
from palio.model.expressions.names import canonical
from palio.model.language import parse
from palio.model.message import Message
from tests.model.dialects.eventbridge_drawing import draw_event, draw_pattern
from tests.model.dialects.eventbridge_naive import matches
from tests.seeds import seeds

FILE = json.loads(Path(__file__).with_name("eventbridge_cases.json").read_text("utf-8"))
REPEATED = {
    "ACMachineTest.testDuplicateKeyLastOneWins",
    "JsonRuleCompilerTest.testWithRuleOverride",
}
"""Tests of what event-ruler does with a field that stands twice: the last one wins. Here it is an error."""


# ---- cases of event-ruler


def test_cases_of_event_ruler() -> None:
    differing: Counter[str] = Counter()
    for test, pattern, event, matching in FILE["cases"]:
        try:
            found: object = read(pattern).matches(Message.from_json(event))
        except InvalidPredicate as error:
            found = str(error)
        if found is not matching:
            differing[test] += 1
            assert test in REPEATED, (test, pattern, event, found)
    assert differing.total() == 4
    assert len(FILE["cases"]) == 681


def test_patterns_that_event_ruler_accepts() -> None:
    refused = []
    for pattern in FILE["accepted"]:
        try:
            read(pattern)
        except InvalidPredicate as error:
            refused.append(str(error))
    assert len(refused) == 2
    assert all("the field stands twice" in error for error in refused)


def test_patterns_that_event_ruler_refuses() -> None:
    accepted = []
    for pattern in FILE["refused"]:
        try:
            read(pattern)
            accepted.append(pattern)
        except InvalidPredicate:
            pass
    assert accepted == ['{"x":[{"numeric":["=",1E-325]}]}'], "it is 0 here"


# ---- random cases


@seeds(2, 40)
def test_random_patterns(seed: int) -> None:
    r = Random(seed)
    for _ in range(150):
        pattern = draw_pattern(r)
        predicate = read(pattern)
        for event in [draw_event(r, pattern) for _ in range(3)]:
            found = predicate.matches(Message.from_json(json.dumps(event)))
            assert found is matches(pattern, event), (pattern, event)


@seeds(1, 10)
def test_what_is_read_is_as_the_language_says(seed: int) -> None:
    """Names are canonical, and the text of the predicate is read back to it."""
    r = Random(seed)
    for _ in range(60):
        predicate = read(draw_pattern(r))
        names = [one.name for own in predicate for one in own if one.name.startswith("=")]
        assert [name for name in names if canonical(name) != name] == []
        if len(predicate) < 100:
            assert parse(str(predicate)) == predicate


@seeds(1, 10)
def test_without_arrays(seed: int) -> None:
    """Where no event has arrays, saying so changes nothing."""
    r = Random(seed)
    for _ in range(100):
        pattern = draw_pattern(r)
        event = _without_arrays(draw_event(r, pattern))
        found = read(pattern, arrays=()).matches(Message.from_json(json.dumps(event)))
        assert found is matches(pattern, event), (pattern, event)


def _without_arrays(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _without_arrays(inner) for name, inner in value.items()}
        return {name: inner for name, inner in kept.items() if inner is not None}
    if isinstance(value, list):
        return _without_arrays(value[0]) if value else None
    return value


@seeds(1, 10)
def test_the_order_of_keys_and_members_says_nothing(seed: int) -> None:
    r = Random(seed)
    for _ in range(40):
        pattern = draw_pattern(r)
        assert set(read(_shuffled(r, pattern))) == set(read(pattern))


def _shuffled(r: Random, pattern: dict[str, Any]) -> dict[str, Any]:
    def inner(value: Any) -> Any:
        if isinstance(value, list):
            value = [_shuffled(r, one) if isinstance(one, dict) else one for one in value]
            return r.sample(value, len(value))
        return _shuffled(r, value) if isinstance(value, dict) else value

    skips = {"numeric"}
    return {
        name: value if name in skips else inner(value)
        for name, value in r.sample(list(pattern.items()), len(pattern))
    }


# ---- what becomes what


@pytest.mark.parametrize(
    ("member", "sql"),
    [
        ("x", "f = 'x'"),
        (5, "f = 5"),
        (2.5, "f = 2.5"),
        (True, "f = TRUE"),
        (None, "f IS NULL"),
        ("10.0.0.1", "f = '10.0.0.1'"),
        ("::1", "ip_key(f) = '600000000000000000000000000000001'"),
        ({"exactly": "::1"}, "f = '::1'"),
        ({"prefix": "x"}, "f LIKE 'x%'"),
        ({"suffix": "x"}, "f LIKE '%x'"),
        ({"prefix": {"equals-ignore-case": "X"}}, "lower(f) LIKE 'x%'"),
        ({"equals-ignore-case": "X"}, "lower(f) = 'x'"),
        ({"wildcard": "a*"}, "f LIKE 'a%'"),
        ({"wildcard": "*a*"}, "f LIKE '%a%'"),
        ({"wildcard": "a*b"}, "f LIKE 'a%b'"),
        ({"wildcard": "a_\\**\\\\%"}, "f LIKE 'a\\\\_*%\\\\\\\\\\\\%'"),
        ({"wildcard": "*"}, "typeof(f) = 'string'"),
        ({"wildcard": "a"}, "f = 'a'"),
        ({"numeric": ["=", 5]}, "f = 5"),
        ({"numeric": [">", 0, "<=", 5]}, "f > 0 AND f <= 5"),
        ({"cidr": "10.0.0.0/8"}, "ip_key(f) >= '40a000000' AND ip_key(f) <= '40affffff'"),
        ({"cidr": "10.0.0.7/32"}, "ip_key(f) = '40a000007'"),
        ({"exists": True}, "f IS NOT NULL"),
        ({"exists": False}, "f IS NULL"),
    ],
)
def test_conditions(member: Any, sql: str) -> None:
    assert read({"f": [member]}, arrays=()) == parse(sql)


@pytest.mark.parametrize(
    ("excluded", "sql"),
    [
        ("x", "f != 'x'"),
        (["x", "y"], "f != 'x' AND f != 'y'"),
        ({"prefix": "x"}, "NOT f LIKE 'x%'"),
        ({"suffix": ["x", "y"]}, "NOT f LIKE '%x' AND NOT f LIKE '%y'"),
        ({"equals-ignore-case": "X"}, "lower(f) != 'x'"),
        ({"wildcard": "a*b"}, "NOT f LIKE 'a%b'"),
    ],
)
def test_anything_but_is_satisfied_by_other_types(excluded: Any, sql: str) -> None:
    own, *others = read({"f": [{"anything-but": excluded}]}, arrays=())
    assert [own] == list(parse(sql))
    predicate = read({"f": [{"anything-but": excluded}]})
    assert all(predicate.matches({"f": value}) for value in (5, 2.5, True, "other", [None]))
    assert not predicate.matches({})
    assert len(others) == 3


def test_the_number_of_filters_grows_with_the_pattern() -> None:
    """And not with its powers: each field may be an array."""
    pattern = {f"f{number}": ["x"] for number in range(20)}
    assert len(read(pattern)) == 41
    assert len(read(pattern, arrays=["f3"])) == 3
    assert len(read(pattern, arrays=())) == 1


def test_long_lists_are_one_constraint() -> None:
    values = [f"v{number}" for number in range(1000)]
    predicate = read({"f": values})
    assert [len(own) for own in predicate] == [1, 2]
    assert predicate.matches({"f": "v999"})
    assert predicate.matches({"f": ["no", "v999"]})


def test_lists_of_many_kinds() -> None:
    """Their alternatives multiply only so far."""
    members = [*({"prefix": f"p{number}"} for number in range(40)), {"numeric": [">", 5]}]
    predicate = read({"a": members, "b": members})
    assert len(predicate) < 50
    assert predicate.matches({"a": "p39", "b": 6})
    assert not predicate.matches({"a": "p39", "b": 5})


def test_objects_in_arrays_satisfy_a_rule_each_on_its_own() -> None:
    people = {"people": [[{"first": "John", "last": "Doe"}], {"first": "Anna", "last": "Smith"}]}
    assert read({"people": {"first": ["Anna"], "last": ["Smith"]}}).matches(people)
    assert not read({"people": {"first": ["Anna"], "last": ["Doe"]}}).matches(people)


def test_a_field_of_two_shapes() -> None:
    """As in event-ruler, a key that stands twice is no error when it says two things."""
    predicate = read('{"points": [5], "points": {"x": [6]}}')
    assert predicate.matches({"points": [[5], {"x": 6}]})
    assert not predicate.matches({"points": [[5], {"x": 7}]})


def test_or_as_the_name_of_a_field() -> None:
    assert read({"$or": {"a": ["x"]}}, arrays=()) == parse("`$or.a` = 'x'")
    assert read({"$or": [{"prefix": "x"}]}, arrays=()) == parse("`$or` LIKE 'x%'")


# ---- differences


def test_null_is_a_field_that_is_not_there() -> None:
    """Messages do not tell them apart."""
    assert read({"f": [None]}).matches({})
    assert read({"f": [None]}).matches({"f": None})
    assert read({"f": [{"exists": False}]}).matches({"f": None})
    assert not read({"f": [{"exists": True}]}).matches({"f": None})
    assert not read({"f": [{"anything-but": "x"}]}).matches({"f": None})
    assert read({"f": [None]}).matches({"f": ["x", None]})
    assert not read({"f": [None]}).matches({"f": ["x"]})


def test_large_integers_are_numbers() -> None:
    """event-ruler compares doubles, and takes integers that are none for texts."""
    assert read({"f": [{"numeric": [">", 5]}]}).matches({"f": 2**53 + 1})
    assert read({"f": [2**53 + 1]}).matches({"f": 2**53 + 1})
    assert not read({"f": [2**53 + 1]}).matches({"f": 2**53})


def test_addresses() -> None:
    block = read({"f": [{"cidr": "10.0.0.0/8"}]})
    assert not block.matches({"f": "010.0.0.1"})
    assert block.matches({"f": "::ffff:10.0.0.1"})
    assert not read({"f": [{"cidr": "::/0"}]}).matches({"f": "10.0.0.1"})


# ---- errors


@pytest.mark.parametrize(
    ("pattern", "field", "says"),
    [
        ([], None, "an event pattern is a JSON object"),
        ({}, None, "the object is empty"),
        ({"a": {}}, "a", "the object is empty"),
        ({"a": []}, "a", "its list is empty"),
        ({"a": {"b": "x"}}, "a.b", "'x' is no list of conditions; write [\"x\"]"),
        ({"a": {"b": [["x"]]}}, "a.b", "['x'] is no condition"),
        ({"a": [{"prefex": "x"}]}, "a", "did you mean 'prefix'?"),
        ({"a": [{"prefix": ["x", "y"]}]}, "a", "write one condition for each"),
        ({"a": [{"prefix": "x", "suffix": "y"}]}, "a", "this one has 'prefix', 'suffix'"),
        ({"a": [{"wildcard": "a**b"}]}, "a", "two stars side by side"),
        ({"a": [{"wildcard": "a\\b"}]}, "a", "a backslash stands before 'b'"),
        ({"a": [{"numeric": ["<", 5, ">", 0]}]}, "a", "< and > make no range"),
        ({"a": [{"numeric": [">", 5, "<", 5]}]}, "a", 'write {"numeric": ["=", 5]}'),
        ({"a": [{"cidr": "10.0.0.0"}]}, "a", "is no block of addresses; write 10.0.0.0/8"),
        ({"a": [{"cidr": "10.0.0.0/33"}]}, "a", "fixes 33 bits of an address that has 32"),
        ({"a": [{"exists": "yes"}]}, "a", "exists takes true or false, not 'yes'"),
        ({"a": [{"anything-but": ["x", 5]}]}, "a", "strings or numbers, and not both"),
        ({"a": [{"anything-but": {"cidr": "10.0.0.0/8"}}]}, "a", "does not combine with 'cidr'"),
        ({"a": [2**63]}, "a", "does not fit in 64 bits"),
        ({"a": ["\ud800"]}, "a", "lone surrogate"),
        ({"a": ["x"], "$or": [{"a": ["y"]}, {"b": ["z"]}]}, "a", "stands twice in one rule"),
        ({"$or": [{"a": ["x"]}]}, "$or", "takes two objects of fields or more"),
        ({"d": {"$or": [{"a": {"prefix": ["x"]}}, {"b": ["y"]}]}}, "d.a.prefix", "within $or"),
    ],
)
def test_errors(pattern: Any, field: str | None, says: str) -> None:
    with pytest.raises(InvalidPredicate) as caught:
        read(pattern)
    assert caught.value.attribute == field
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says", "position"),
    [
        ('{"a": ["x" "y"]}', "the pattern is not JSON: Expecting ',' delimiter", 11),
        ('{"a": [NaN]}', "the pattern is not JSON: NaN stands in it", 7),
        ("", "the pattern is not JSON", 0),
    ],
)
def test_errors_in_the_text(text: str, says: str, position: int) -> None:
    with pytest.raises(ParseError, match=says) as caught:
        read(text)
    assert caught.value.position == position


def test_depth_is_bounded() -> None:
    with pytest.raises(InvalidPredicate, match="nested at most 64"):
        read('{"a":' * 65 + '["x"]' + "}" * 65)
    with pytest.raises(ParseError, match="nested too deeply"):
        read('{"a":' * 100_000)


def _nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {"z": ["q"], "y": ["q"]}
    for _ in range(depth):
        found = {"x": ["q"], "b": found}
    return found


def test_objects_within_objects() -> None:
    """Each may be in an array, and has two fields that the rule wants."""
    pattern = _nested(6)
    predicate = read({"a": pattern})
    event: Any = [{"z": "q", "y": "q"}]
    for _ in range(6):
        event = [{"x": "q"}, [{"x": ["q"], "b": event}]]
    assert predicate.matches({"a": event})
    assert parse(str(predicate)) == predicate
    with pytest.raises(InvalidPredicate, match="more than 8 deep"):
        read({"a": _nested(7)})


def test_alternatives_are_bounded() -> None:
    pattern = {
        f"f{number}": {"$or": [{"a": ["x"]}, {"b": ["y"]}, {"c": ["z"]}]} for number in range(10)
    }
    with pytest.raises(LimitExceeded, match="59,049 filters or more"):
        read(pattern)


WORDS = (
    *(
        "a",
        "a.b",
        "",
        ".",
        "$or",
        "prefix",
        "suffix",
        "equals-ignore-case",
        "wildcard",
        "anything-but",
    ),
    *(
        "numeric",
        "exists",
        "cidr",
        "exactly",
        "=",
        "<",
        ">=",
        "10.0.0.0/8",
        "::1",
        "*",
        "\\",
        "\ud800",
    ),
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=1000)
@given(ANYTHING)
def test_anything_else_is_an_error_of_the_library(pattern: Any) -> None:
    try:
        predicate = read(pattern)
    except InvalidPredicate:
        return
    predicate.matches({"a": "x", "b": [{"a": 1}]})
    assert parse(str(predicate)) == predicate


@given(st.text(st.sampled_from('{}[]":,a0.e-tf \\n'), max_size=30))
def test_any_text_is_a_pattern_or_an_error(text: str) -> None:
    with contextlib.suppress(InvalidPredicate):
        read(text)
