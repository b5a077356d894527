"""Predicates as event patterns, and which there are none for."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from palio.errors import InvalidPredicate
from palio.model.dialects.eventbridge import read, write
from palio.model.language import parse
from palio.model.message import Message
from palio.model.predicate import Predicate
from tests.model.dialects.eventbridge_drawing import draw_event, draw_pattern
from tests.seeds import seeds


@pytest.mark.parametrize(
    ("sql", "pattern"),
    [
        ("f = 'x'", {"f": ["x"]}),
        ("f IN ('x', 'y')", {"f": ["x", "y"]}),
        ("f = 5 OR f = TRUE OR f LIKE 'x%'", {"f": [5, True, {"prefix": "x"}]}),
        ("f != TRUE", {"f": [False]}),
        ("f LIKE '%x'", {"f": [{"suffix": "x"}]}),
        ("f LIKE '%x*%'", {"f": [{"wildcard": "*x\\**"}]}),
        ("f LIKE 'a%b\\\\_c'", {"f": [{"wildcard": "a*b_c"}]}),
        ("f LIKE 'a%%b'", {"f": [{"wildcard": "a*b"}]}),
        ("f > 5", {"f": [{"numeric": [">", 5]}]}),
        ("f <= 5 AND f > 2.5", {"f": [{"numeric": [">", 2.5, "<=", 5]}]}),
        ("f IS NULL", {"f": [{"exists": False}]}),
        ("f IS NOT NULL", {"f": [{"exists": True}]}),
        ("typeof(f) = 'string'", {"f": [{"wildcard": "*"}]}),
        ("f != 'x'", {"f": [{"anything-but": "x"}]}),
        ("f NOT IN (5, 6)", {"f": [{"anything-but": [5, 6]}]}),
        ("f NOT LIKE 'x%' AND f NOT LIKE 'y%'", {"f": [{"anything-but": {"prefix": ["x", "y"]}}]}),
        ("f != 'x' AND f NOT LIKE '%y'", {"f": [{"anything-but": {"wildcard": ["x", "*y"]}}]}),
        ("f NOT LIKE 'a%b'", {"f": [{"anything-but": {"wildcard": "a*b"}}]}),
        ("lower(f) = 'x'", {"f": [{"equals-ignore-case": "x"}]}),
        ("lower(f) LIKE 'x%'", {"f": [{"prefix": {"equals-ignore-case": "x"}}]}),
        ("lower(f) != 'x'", {"f": [{"anything-but": {"equals-ignore-case": "x"}}]}),
        ("array_contains(f, 'x')", {"f": ["x"]}),
        (
            "ip_key(f) >= '40a000000' AND ip_key(f) <= '40affffff'",
            {"f": [{"cidr": "10.0.0.0/8"}]},
        ),
        ("ip_key(f) = '600000000000000000000000000000001'", {"f": ["::1"]}),
        ("a.b = 'x' AND a.c = 'y' AND d = 1", {"a": {"b": ["x"], "c": ["y"]}, "d": [1]}),
        ("a = 'x' AND a.b = 'y'", {"a": ["x"], "a.b": ["y"]}),
        ("a = 'x' AND (b = 1 OR c = 2)", {"a": ["x"], "$or": [{"b": [1]}, {"c": [2]}]}),
        ("a = 'x' AND b = 1 OR a = 'y' AND b = 1", {"a": ["x", "y"], "b": [1]}),
        ("a = 'x' OR a = 'x' AND b = 1", {"a": ["x"]}),
    ],
)
def test_constraints(sql: str, pattern: dict[str, Any]) -> None:
    predicate = parse(sql)
    text = write(predicate)
    assert json.loads(text) == pattern
    assert read(text)


@pytest.mark.parametrize(
    ("sql", "field", "says"),
    [
        ("a = 1 AND f < 'x'", "f", "filter 1: attribute 'f': no event pattern says f < 'x'"),
        ("f = TIMESTAMP '2024-03-01 10:00:00'", "f", "no event pattern says f = TIMESTAMP"),
        ("f > CAST('-Infinity' AS DOUBLE)", "f", "no event pattern says f > CAST"),
        ("typeof(f) = 'int'", "f", "no event pattern says typeof(f) = 'int'"),
        ("f LIKE 'a_b'", "f", "no event pattern says f LIKE 'a_b'"),
        ("f LIKE 'a%' AND f LIKE '%b'", "f", "says f LIKE 'a%' and f LIKE '%b'; palio.reduce"),
        ("f > 5 AND f < 3", "f", "no event pattern says"),
        ("f != 5 AND f != 'x'", "f", "no event pattern says"),
        ("lower(f) = 'X'", "f", "no event pattern says lower(f) = 'X'"),
        ("x < y", "x < y", "no event pattern says x < y"),
        ("price * qty > 100", "price * qty", "no event pattern says price * qty > 100"),
        ("ip_key(f) >= '40a000001' AND ip_key(f) <= '40affffff'", "f", "no event pattern says"),
        ("`$or` = 1", "$or", "is no name of a field"),
        ("a.prefix = 1 OR b = 1", "a.prefix", "within $or no field has this name"),
        ("TRUE", None, "selects every message"),
        ("FALSE", None, "selects nothing"),
    ],
)
def test_what_no_pattern_says(sql: str, field: str | None, says: str) -> None:
    with pytest.raises(InvalidPredicate) as caught:
        write(parse(sql))
    assert caught.value.attribute == field
    assert says in str(caught.value)


SERVICE = {
    "source": ["aws.ec2", {"prefix": "custom."}],
    "detail-type": ["EC2 Instance State-change Notification"],
    "resources": [{"suffix": "a0"}, {"wildcard": "arn:*:i-*"}],
    "detail": {
        "state": [{"anything-but": ["pending", "stopped"]}],
        "source-ip": [{"cidr": "10.0.0.0/24"}],
        "c-count": [{"numeric": [">", 0, "<=", 5]}],
        "tags": [{"exists": False}, {"equals-ignore-case": "prod"}],
        "$or": [{"x": [{"exists": True}]}, {"y": [{"anything-but": {"prefix": "init"}}]}],
    },
}


@pytest.mark.parametrize("arrays", [None, (), ("resources",)])
def test_a_pattern_comes_back(arrays: tuple[str, ...] | None) -> None:
    predicate = read(SERVICE, arrays=arrays)
    if arrays:  # which fields these are is not tried
        with pytest.raises(InvalidPredicate):
            write(predicate)
    else:
        assert _filters(read(write(predicate), arrays=arrays)) == _filters(predicate)


def _filters(predicate: Predicate) -> set[frozenset[Any]]:
    return {frozenset(own) for own in predicate}


@seeds(1, 20)
def test_what_is_written_means_the_same(seed: int) -> None:
    r = Random(seed)
    count = 0
    for _ in range(60):
        pattern = draw_pattern(r)
        predicate = read(pattern)
        try:
            text = write(predicate)
        except InvalidPredicate:
            continue
        count += 1
        for event in [draw_event(r, pattern) for _ in range(3)]:
            message = Message.from_json(json.dumps(event))
            assert read(text).matches(message) is predicate.matches(message), (pattern, text)
    assert count > 45


CONSTRAINTS = [
    "a = 'x'", "a != 'x'", "a LIKE 'x%'", "a NOT LIKE '%x'", "b > 5", "b <= 5", "b IN (1, 2)", "c IS NULL",
    "c = TRUE", "lower(a) = 'x'", "a LIKE 'x%y'", "d.e = 'x'", "d.f IS NOT NULL", "d.f NOT IN (1, 2)",
]  # fmt: skip


@seeds(1, 20)
def test_what_was_not_a_pattern_means_the_same(seed: int) -> None:
    """On messages with values of the types that are compared."""
    r = Random(seed)
    for _ in range(100):
        parts = [
            " AND ".join(r.sample(CONSTRAINTS, r.choice([1, 2, 3])))
            for _ in range(r.choice([1, 2]))
        ]
        predicate = parse(" OR ".join(parts))
        try:
            found = read(write(predicate))
        except InvalidPredicate:
            continue
        for _ in range(10):
            message = {
                "a": r.choice(["x", "X", "xy", "xay", "y", None]),
                "b": r.choice([1, 2, 5, 6.5, None]),
                "c": r.choice([True, False, None]),
                "d.e": r.choice(["x", "y", None]),
                "d.f": r.choice([1, 2, 3, None]),
            }
            assert found.matches(message) is predicate.matches(message), (str(predicate), message)
