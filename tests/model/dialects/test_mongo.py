"""Query documents: the cases of sift and mingo, random queries against a reference, errors."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import palio
from palio.errors import InvalidPredicate, LimitExceeded, ParseError
from palio.model.dialects.mongo import read
from palio.model.dialects.mongo_values import value_of
from palio.model.message import Message
from tests.model.dialects.mongo_reference import matches

CASES = json.loads(Path(__file__).with_name("mongo_cases.json").read_text("utf-8"))

REASONS = {
    "object": "an object is compared as a whole: a message has its fields as attributes",
    "null": "null and a field that is not there are one; so are an object and its fields",
    "type": "types that no attribute has: null, object, undefined, decimal, timestamp",
    "arrays": "an array is compared with an array of arrays",
    "$where": "JavaScript",
    "index": "sift: an element that is not there is no null; MongoDB says it is",
    "$in": "an operator without a field",
}


def why_not(owner: str, query: dict[str, Any], document: dict[str, Any]) -> str:
    """The reason why a case cannot be expected to pass."""
    text = json.dumps(query)
    if "$where" in text:
        return "$where"
    if "$in" in query:
        return "$in"
    if "$type" in text:
        return "type"
    if "field.0" in text:
        return "index"
    if "$exists" in text:
        return "null"
    if re.search(r": \[+\[", text):
        return "arrays"
    return "object"


def test_cases_of_the_owners() -> None:
    passed: Counter[str] = Counter()
    failed: Counter[tuple[str, str]] = Counter()
    for owner, test, query, document, expected in CASES:
        try:
            found: object = read(json.dumps(query)).matches(message_of(document))
        except ParseError:
            found = "invalid"
        if found == expected:
            passed[owner] += 1
        else:
            assert why_not(owner, query, document) in REASONS, (owner, test, query, document)
            failed[owner, why_not(owner, query, document)] += 1
    assert passed == {"sift": 327, "mingo": 107}
    assert failed == {
        ("sift", "object"): 17,
        ("sift", "null"): 6,
        ("sift", "type"): 4,
        ("sift", "$where"): 4,
        ("sift", "$in"): 2,
        ("sift", "index"): 1,
        ("mingo", "type"): 7,
        ("mingo", "object"): 4,
        ("mingo", "null"): 2,
        ("mingo", "arrays"): 2,
    }


def message_of(document: dict[str, Any]) -> Message:
    plain = _plain(document)
    assert isinstance(plain, dict)
    return Message(plain)


def _plain(value: Any) -> Any:
    found = value_of(value) if isinstance(value, dict) else value
    if isinstance(found, dict):
        return {name: _plain(one) for name, one in found.items()}
    return [_plain(one) for one in found] if isinstance(found, list) else found


@pytest.mark.parametrize(
    ("query", "meaning"),
    [
        ({}, "TRUE"),
        ({"a": 1, "b": "x"}, "a = 1 AND b = 'x'"),
        ({"a": {"$gt": 3, "$lte": 9.5}}, "a > 3 AND a <= 9.5"),
        ({"a": {"$in": ["x", "y"]}}, "a IN ('x', 'y')"),
        ({"a": {"$in": ["x", 1, None]}}, "a = 'x' OR a = 1 OR a IS NULL"),
        ({"a": {"$ne": 5}}, "NOT coalesce(a = 5, FALSE)"),
        ({"a": {"$ne": None}}, "a IS NOT NULL"),
        ({"a": None}, "a IS NULL"),
        ({"a": {"$exists": True}}, "a IS NOT NULL"),
        ({"a": {"$exists": False}}, "a IS NULL"),
        ({"a": {"$nin": ["x", "y"]}}, "NOT coalesce(a IN ('x', 'y'), FALSE)"),
        ({"a": {"$not": {"$gt": 5}}}, "NOT coalesce(a > 5, FALSE)"),
        ({"$or": [{"a": 1}, {"b": 2, "c": 3}]}, "a = 1 OR b = 2 AND c = 3"),
        ({"$nor": [{"a": 1}]}, "NOT coalesce(a = 1, FALSE)"),
        ({"a.b": 1}, "a.b = 1"),
        ({"a": {"$regex": "^ab"}}, "startswith(a, 'ab')"),
        ({"a": {"$regex": "ab"}}, "contains(a, 'ab')"),
        ({"a": {"$regex": "a.b$", "$options": "si"}}, "a RLIKE '(?is)a.b$'"),
        ({"a": re.compile("a.b", re.IGNORECASE)}, "a RLIKE '(?i)a.b'"),
        ({"a": {"$mod": [4, 1]}}, "a % 4 = 1"),
        ({"a": {"$size": 2}}, "size(a) = 2"),
        ({"a": {"$type": "string"}}, "a >= ''"),
        ({"a": {"$type": "int"}}, "typeof(a) = 'int'"),
        ({"a": {"$gt": False}}, "a = TRUE"),
        ({"a": {"$gte": None}}, "a IS NULL"),
        ({"a": {"$elemMatch": {"$gt": 1, "$lt": 5}}}, "exists(a, each -> each > 1 AND each < 5)"),
        ({"at": {"$lt": {"$date": "2024-03-01T00:00:00Z"}}}, "at < TIMESTAMP '2024-03-01'"),
        ({"at": datetime(2024, 3, 1, tzinfo=UTC)}, "at = TIMESTAMP '2024-03-01'"),
        ({"at": date(2024, 3, 1)}, "at = TIMESTAMP '2024-03-01'"),
        ({"a": {"$numberLong": "5"}, "b": {"$oid": "5f"}}, "a = 5 AND b = '5f'"),
        ({"a": Decimal("2.5"), "b": Decimal(3)}, "a = 2.5 AND b = 3"),
        ({"a": UUID(int=1)}, "a = '00000000-0000-0000-0000-000000000001'"),
        ({"$expr": {"$gt": ["$a", "$b.c"]}}, "a > b.c"),
        ({"$expr": {"$lt": [{"$multiply": ["$a", 2]}, {"$add": ["$b", 1]}]}}, "a * 2 < b + 1"),
        ({"$expr": {"$ne": ["$a", "$b"]}}, "NOT coalesce(a = b, FALSE)"),
        ({"$expr": {"$in": [{"$toLower": "$a"}, ["x", "y"]]}}, "lower(a) = 'x' OR lower(a) = 'y'"),
        ({"$comment": "no matter", "a": 1}, "a = 1"),
    ],
)
def test_a_query_without_arrays_is_a_condition(query: dict[str, Any], meaning: str) -> None:
    assert str(read(query, arrays=())) == str(palio.parse(meaning))


@pytest.mark.parametrize(
    ("query", "meaning"),
    [
        ({"tags": "red"}, "tags = 'red' OR array_contains(tags, 'red')"),
        ({"tags": {"$gt": 5}}, "tags > 5 OR exists(tags, each -> each > 5)"),
        ({"a.b": 1}, "a.b = 1"),
        (
            {"items.qty": 1},
            "items.qty = 1 OR exists(items, each -> each.qty = 1 OR array_contains(each.qty, 1))",
        ),
    ],
)
def test_arrays_that_are_named(query: dict[str, Any], meaning: str) -> None:
    assert str(read(query, arrays={"tags", "items"})) == str(palio.parse(meaning))


def test_wide_queries_stay_few_filters() -> None:
    names = [f"a{at}" for at in range(20)]
    predicate = read(dict.fromkeys(names, 1))
    assert len(predicate) == 1
    assert predicate.matches({name: [2, 1] if name == "a7" else 1 for name in names})
    assert not predicate.matches({name: [2, 3] if name == "a7" else 1 for name in names})


# ---- random queries


class _Draw:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def plain(self) -> Any:
        return self.random.choice([0, 1, 2, 2.5, "a", "b", "", True, False])

    def document(self, depth: int = 2) -> dict[str, Any]:
        return {name: self.value(depth) for name in "abc" if self.random.random() < 0.7}

    def value(self, depth: int) -> Any:
        draw = self.random.random()
        if depth and draw < 0.25:
            return self.document(depth - 1) or {"a": 1}
        if depth and draw < 0.4:
            return [self.document(0) or {"b": 2} for _ in range(self.random.randint(0, 3))]
        if draw < 0.6:
            return [self.plain() for _ in range(self.random.randint(0, 3))]
        return self.plain()

    def path(self) -> str:
        return ".".join(self.random.choices("abc", k=self.random.choice([1, 1, 2])))

    def query(self, depth: int) -> dict[str, Any]:
        draw = self.random
        if depth and draw.random() < 0.4:
            operator = draw.choice(["$and", "$or", "$nor"])
            return {operator: [self.query(depth - 1) for _ in range(draw.randint(1, 2))]}
        return {self.path(): self.condition(depth) for _ in range(draw.randint(1, 2))}

    def condition(self, depth: int) -> Any:
        draw = self.random
        kind = draw.choice(["plain", "order", "set", "not", "size", "ne", "element", "mod"])
        if kind == "plain":
            return self.plain()
        if kind == "order":
            return {draw.choice(["$lt", "$lte", "$gt", "$gte", "$eq"]): draw.choice([1, 2.5, "a"])}
        if kind == "set":
            operator = draw.choice(["$in", "$nin", "$all"])
            return {operator: [self.plain() for _ in range(draw.randint(1, 3))]}
        if kind == "not" and depth:
            inner = self.condition(depth - 1)
            return {"$not": inner if isinstance(inner, dict) else {"$eq": inner}}
        if kind == "size":
            return {"$size": draw.randint(0, 3)}
        if kind == "element":
            return {
                "$elemMatch": draw.choice(
                    [{"$gt": 0, "$lt": 2.5}, {"b": self.plain()}, {"b": {"$gt": 1}, "c": "a"}]
                )
            }
        return {"$mod": [2, 1]} if kind == "mod" else {"$ne": self.plain()}


@pytest.mark.parametrize("limit", [4096, 2])
def test_random_queries_select_what_the_reference_says(limit: int) -> None:
    """With a small limit, tests of fields are expressions instead of several constraints."""
    draw, compared = _Draw(limit), 0
    for _ in range(250):
        query = draw.query(2)
        try:
            predicate = read(query, limit=limit)
        except LimitExceeded:
            continue
        for _ in range(8):
            document = draw.document()
            compared += 1
            found = predicate.matches(document)
            assert found is matches(query, document), (query, document, str(predicate))
    assert compared > 1000


# ---- differences, errors, bounds


@pytest.mark.parametrize(
    ("query", "at", "reason"),
    [
        ('{"a": {"$foo": 1}}', "1", "the operator $foo is not supported"),
        ('{"$where": "x"}', '"x"', "the operator $where is not supported"),
        ('{"a": {"b": 1}}', '{"b"', "write 'a.b': 1"),
        ('{"a": {"$gt": 1, "b": 2}}', "2", "the operator b is not supported"),
        ('{"$or": []}', "[]", "an array of queries"),
        ('{"$or": [{"a": 1}, 5]}', "5", "a query is an object"),
        ('{"a": {"$in": 1}}', "1", "take an array"),
        ('{"a": {"$mod": [0, 1]}}', "[0", "not 0"),
        ('{"a": {"$size": "x"}}', '"x"', "a whole number"),
        ('{"a": {"$exists": "x"}}', '"x"', "true or false"),
        ('{"a": {"$type": "object"}}', '"object"', "$type object is not supported"),
        ('{"a": {"$gt": [1]}}', "[1]", "no order"),
        ('{"a": {"$regex": "a", "$options": "x"}}', '"a"', "the option x"),
        ('{"a": {"$date": "never"}}', '{"$date', "this is no $date"),
        ('{"a": {"$date": {"a": 1}}}', '{"$date', "this is no $date"),
        ('{"a": {"$numberDouble": "NaN"}}', '{"$number', "NaN is compared with nothing"),
        ('{"a": 99999999999999999999}', "9999", "64 bits"),
        ('{"$expr": {"$gt": ["$a", null]}}', "null", "null equals nothing"),
        ('{"$expr": {"$gt": ["$a"]}}', '["$a', "two expressions"),
        ('{"$expr": {"$foo": ["$a"]}}', '{"$foo', "no condition of $expr"),
        ('{"$expr": {"$gt": ["$a", {"$bar": 1}]}}', '{"$bar', "not supported in $expr"),
        ('{"a": 1, "a": 2}', "{", "twice"),
        ("[1]", "[1]", "a query is an object"),
    ],
)
def test_errors_point_at_the_character(query: str, at: str, reason: str) -> None:
    with pytest.raises(ParseError) as raised:
        read(query)
    assert reason in raised.value.reason
    assert query[raised.value.position :].startswith(at), query[raised.value.position :]


def test_errors_of_objects_name_the_way() -> None:
    with pytest.raises(ParseError, match=r"at \$and\[1\]\.a"):
        read({"$and": [{"a": 1}, {"a": {"b": 1}}]})


def test_bounds() -> None:
    deep: Any = {"a": 1}
    for _ in range(60):
        deep = {"$and": [deep]}
    with pytest.raises(LimitExceeded, match="nested"):
        read(deep)
    with pytest.raises(ParseError, match="at most 32 parts"):
        read({".".join("a" * 100): 1})
    with pytest.raises(InvalidPredicate, match="keys"):
        read({5: 1})
    with pytest.raises(LimitExceeded):
        read({"$or": [{"a": {"$gt": at}} for at in range(5000)]})
    nested: Any = {"$gt": 1}
    for _ in range(4):
        nested = {"$elemMatch": nested}
    with pytest.raises(ParseError, match="to a depth of 3"):
        read({"a": nested})
    with pytest.raises(ParseError, match="regular expression"):
        read({"a": {"$regex": "(a"}})
