"""Comparisons that say the same are one attribute."""

from __future__ import annotations

import pytest

from palio.matching.table import ForwardingTable
from palio.model.covering import covers
from palio.model.language import parse

SAME = [
    ("5 < x", "x > 5"),
    ("a < b", "b > a"),
    ("a <= b", "b >= a"),
    ("a = b", "b = a"),
    ("a != b", "b != a"),
    ("a <=> b", "b <=> a"),
    ("lower(a) = b", "b = lower(a)"),
    ("NOT (a < b)", "NOT (b > a)"),
    ("if(5 < x, a < b, c = d)", "if(x > 5, b > a, d = c)"),
    ("exists(tags, t -> 5 < t)", "exists(tags, t -> t > 5)"),
    ("exists(tags, t -> t > x)", "exists(tags, t -> x < t)"),
    ("exists(a, t -> exists(b, u -> u = t))", "exists(a, t -> exists(b, u -> t = u))"),
    ("(x + 5) = (x + 3)", "(x + 3) = (x + 5)"),
    ("coalesce(0.1 >= abs(x - 3), TRUE)", "coalesce(abs(x - 3) <= 0.1, TRUE)"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_equal_comparisons_are_one_attribute(one: str, other: str) -> None:
    first, second = parse(one), parse(other)
    assert first == second
    assert covers(first, second)
    assert parse(str(first)) == first


@pytest.mark.parametrize(
    ("one", "other"), [("a < b", "a > b"), ("a <= b", "a < b"), ("a < b", "b < a")]
)
def test_others_are_not(one: str, other: str) -> None:
    assert parse(one) != parse(other)


def test_a_table_computes_them_once() -> None:
    table = ForwardingTable.compile({"r": "a < b", "s": "b > a AND x = 1", "t": "NOT (a < b)"})
    assert table.expressions.shared == ("=a < b",)
    assert table.forward({"a": 1, "b": 2, "x": 1}) == ["r", "s"]
    assert table.forward({"a": 2, "b": 2, "x": 1}) == ["t"]


def test_zones_do_not_change_the_order() -> None:
    one = parse("year(at) = x AND hour(at) > day(due)", zone="Europe/Rome")
    other = parse("x = year(at) AND day(due) < hour(at)", zone="Europe/Rome")
    assert one == other
    assert parse(str(one)) == one
