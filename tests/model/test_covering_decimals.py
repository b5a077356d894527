"""Covering, reduction and intersection with decimals that no double stands for: whatever a relation says holds for
the decimals between two neighbouring doubles too, and it says yes wherever all numbers there are agree."""

from __future__ import annotations

import itertools
import math
import random
from decimal import Decimal
from typing import Any

import pytest

from palio import (
    Advertisement,
    Constraint,
    Filter,
    Message,
    Predicate,
    covers,
    intersects,
    parse,
    reduce,
)
from palio.model.boxes import box, is_contradiction
from palio.model.covering import uncovered, witness
from palio.model.long_decimals import written
from palio.model.valuesets import example
from tests.seeds import sizes

_NEXT = math.nextafter(0.1, 1)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("d >= 0.10000000000000002", "d > 0.1"),
        ("d <= 0.1", "d < 0.10000000000000002"),
        ("d = 0.1", "d >= 0.1 AND d < 0.10000000000000002"),
        ("d <= 0.1 OR d >= 0.10000000000000002", "d IS NOT NULL AND typeof(d) = 'float'"),
        ("d > 9007199254740993", "d > 9007199254740992 AND d < 9007199254740993"),
        ("d >= 9007199254740993", "d > 9007199254740992"),
        ("d < 9223372036854775807", "d < 9223372036854775808.0"),
        ("d <= 1e37", "d < 1.0000000000000001e37"),
        ("d != 0.1", "d >= 0.1 AND d < 0.10000000000000002"),
        ("d >= 0.10000000000000002", "coalesce(d, 0) > 0.1"),
    ],
)
def test_a_decimal_lies_between(a: str, b: str) -> None:
    assert not covers(a, b)
    assert not covers(a, b, exact=True)
    found = witness(a, b)
    assert found is not None
    assert parse(b).matches(found)
    assert not parse(a).matches(found)
    assert intersects(b, b)
    assert len(reduce(b)) == 1


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("d > 0.1", "d >= 0.10000000000000002"),
        ("d > 0.1 AND d < 0.10000000000000002 OR d = 0.10000000000000002", "d > 0.1 AND d <= 0.10000000000000002"),
        ("d <= 0.1 OR d > 0.1 AND d < 0.10000000000000002 OR d >= 0.10000000000000002", "d != 3"),
        ("d != 0.1", "d > 0.1 AND d < 0.10000000000000002"),
        ("d > 3", "coalesce(d, 0) > 3"), ("d > 0.1", "coalesce(d, 0) > 0.1"), ("d < 0.1", "coalesce(d, 5) < 0.1"),
        ("d >= 0.1", "coalesce(d, 0) >= 0.1"), ("d != 0.1", "coalesce(d, 0.1) != 0.1"),
        ("d != 3", "coalesce(d, 3) != 3"), ("d > 0", "coalesce(d, 0) > 0"), ("d = 0.1", "coalesce(d, 0) = 0.1"),
        ("d > -0.1", "-d < 0.1"), ("abs(d) > 0.1", "abs(d) >= 0.10000000000000002"),
        ("d != 0.1", "coalesce(d, 0.1) != 0.1 AND coalesce(d, 0.1) != 0.10000000000000002"),
        ("d > 0.1", "d >= 0.10000000000000001 AND d > 0.1"), ("d >= 0.1", "d > 0.10000000000000001"),
        ("d < 0.10000000000000002", "d < 0.10000000000000001"),
        ("d >= 1e-30", "d > 1e-30 OR d = 1e-30"), ("d <= 1e-30", "d < 1.0000000000000002e-30"),
        ("d <= 1e300", "d < 1.0000000000000002e300"),
        ("d >= 1e308", "d + 2.5D = 1e308"),
    ],
)  # fmt: skip
def test_covered(a: str, b: str) -> None:
    assert covers(a, b)


@pytest.mark.parametrize("type_", ["int", "float"])
def test_declared_numbers_are_no_decimals(type_: str) -> None:
    schema = {"d": type_}
    assert covers("d >= 0.10000000000000002", "d > 0.1", schema=schema)
    assert reduce("d > 0.1 AND d < 0.10000000000000002", schema=schema) == parse("FALSE")
    assert witness("d >= 0.10000000000000002", "d > 0.1", schema=schema) is None
    assert covers("d >= 0.10000000000000002", "coalesce(d, 0) > 0.1", schema=schema)


def test_what_is_left_shows_the_difference() -> None:
    left = uncovered("d >= 0.10000000000000002", "d > 0.1", exact=True)
    assert left is not None
    assert example(left["d"]) == Decimal("0.10000000000000001")
    found = witness("d >= 9007199254740993", "d > 9007199254740992")
    assert found is not None
    assert found.read["d"].value == Decimal("9007199254740992.5")
    assert repr(found) == "Message({'d': Decimal('9007199254740992.5')})"
    assert found.shown() == '{"d": 9007199254740992.5}'


def test_an_advertisement_allows_decimals() -> None:
    wide = Advertisement((Constraint("d", ">=", _NEXT),))
    narrow = Advertisement((Constraint("d", ">", 0.1),))
    between = Message({"d": Decimal("0.10000000000000001")})
    assert narrow.matches(between)
    assert not wide.matches(between)
    assert not covers(wide, narrow)
    assert covers(narrow, wide)
    assert intersects(narrow, "d < 0.10000000000000002")
    assert not intersects(wide, "d < 0.10000000000000002")


# ---- random relations over small pools of neighbours

_POOLS: list[list[Any]] = [
    [0.1, _NEXT, math.nextafter(_NEXT, 1), Decimal("0.10000000000000001"), Decimal("0.10000000000000000000000000000000000001")],
    [0, 0.0, -0.0, 5e-324, -5e-324, Decimal("1E-38"), Decimal("-1E-38"), Decimal("1E-23"), 1e-38],
    [1e-23, math.nextafter(1e-23, 1), math.nextafter(1e-23, 0), Decimal("1.000000000000001E-23"), 1e-22,
     math.nextafter(1e-22, 1), Decimal("1.0000000000000001E-22"), Decimal("-1.0000000000000001E-22"), -1e-22],
    [2**53, 2**53 + 1, 2**53 + 2, 2.0**53, Decimal("9007199254740992.5"), Decimal("9007199254740993.5"), 2**53 - 1,
     Decimal("9007199254740991.5"), Decimal(2**53 + 1)],
    [2**63 - 1, 2**63 - 2, 2.0**63, math.nextafter(2.0**63, 0), Decimal("9223372036854775806.5"), Decimal(2**63),
     Decimal("9223372036854775807.25"), Decimal(9223372036854776000), Decimal(9223372036854776001)],
    [-(2**63), 1 - 2**63, -(2.0**63), math.nextafter(-(2.0**63), -math.inf), Decimal(-(2**63) - 1),
     Decimal("-9223372036854775808.5"), Decimal("-9223372036854775807.5"), Decimal(-9223372036854778000)],
    [1e37, math.nextafter(1e37, 1e38), Decimal(10**37 + 1), Decimal(10**38 - 1), 1e38, math.nextafter(1e38, 0), 1e300,
     math.nextafter(1e300, math.inf), math.inf, math.nan, Decimal("1E+38")],
    [-0.3, math.nextafter(-0.3, 0), Decimal("-0.29999999999999999"), Decimal("-0.30000000000000000000000000000000000001"),
     -math.inf, "a", True],
]  # fmt: skip
_OPS = ["=", "!=", "<", "<=", ">", ">=", "in", "any"]


class NumberDrawing:
    """Draws constraints and messages around the same numbers."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def pool(self) -> tuple[list[Message], list[float]]:
        values = [*self.chance.choice(_POOLS), *self.chance.sample(self.chance.choice(_POOLS), 2)]
        numbers = [
            v for v in values if type(v) in (int, float) and v == v and not isinstance(v, bool)
        ]
        return [Message({}), *(Message({"d": value}) for value in values)], numbers

    def constraint(self, numbers: list[float]) -> Constraint:
        op = self.chance.choice(_OPS)
        if op == "any":
            return Constraint("d", op, type=self.chance.choice(["float", "float", "int"]))
        value = self.chance.choice(numbers)
        return Constraint("d", op, [value, self.chance.choice(numbers)] if op == "in" else value)

    def filter(self, numbers: list[float]) -> Filter:
        return Filter(
            tuple(self.constraint(numbers) for _ in range(self.chance.choice([1, 1, 2, 2, 3])))
        )

    def predicate(self, numbers: list[float]) -> Predicate:
        return Predicate(
            tuple(self.filter(numbers) for _ in range(self.chance.choice([1, 1, 2, 3])))
        )


@sizes(3_000, 200_000)
def test_relations_hold_for_decimals(size: int) -> None:
    drawing = NumberDrawing(5)
    covered = 0
    for _ in range(size):
        messages, numbers = drawing.pool()
        a, b = drawing.predicate(numbers), drawing.predicate(numbers)
        of_a, of_b = ([p.matches(m) for m in messages] for p in (a, b))
        pairs = list(zip(of_a, of_b, messages, strict=True))
        if covers(a, b):
            covered += 1
            assert all(in_a or not in_b for in_a, in_b, _ in pairs), (a, b)
        elif (found := witness(a, b)) is not None:
            assert b.matches(found)
            assert not a.matches(found)
        if not intersects(a, b):
            assert not any(in_a and in_b for in_a, in_b, _ in pairs), (a, b)
        reduced = reduce(b)
        assert [reduced.matches(m) for m in messages] == of_b, (b, reduced)
        for f in b.filters:
            if is_contradiction(box(f)):
                assert not any(map(f.matches, messages)), f
    assert covered > size / 20


@sizes(1_500, 100_000)
def test_advertisements_hold_for_decimals(size: int) -> None:
    drawing = NumberDrawing(6)
    for _ in range(size):
        messages, numbers = drawing.pool()
        a, b = (Advertisement(drawing.filter(numbers).constraints) for _ in range(2))
        wanted = drawing.predicate(numbers)
        if covers(a, b):
            assert all(a.matches(m) for m in messages if b.matches(m)), (a, b)
        if not intersects(a, wanted):
            assert not any(a.matches(m) and wanted.matches(m) for m in messages), (a, wanted)


@sizes(1_500, 100_000)
def test_with_a_schema_doubles_are_discrete(size: int) -> None:
    """Yes wherever it is so: the doubles between the operands are all in the pool."""
    pool = [0.1]
    for _ in range(6):
        pool.append(math.nextafter(pool[-1], 1))
    messages = [
        Message({"d": value}) for value in [*pool, -1.0, 1.0, math.inf, -math.inf, math.nan]
    ]
    drawing = NumberDrawing(7)
    schema = {"d": "float"}
    for _ in range(size):
        a, b = drawing.predicate(pool), drawing.predicate(pool)
        expected = all(a.matches(m) for m in messages if b.matches(m))
        assert covers(a, b, schema=schema) is expected, (a, b)


@sizes(1_500, 100_000)
def test_numbers_are_complete(size: int) -> None:
    """Without a schema too, where a decimal of each gap is in the pool."""
    drawing = NumberDrawing(8)
    for start in (0.1, 2.0**53 - 2, 1e30, -7.3):
        doubles = [start]
        for _ in range(5):
            doubles.append(math.nextafter(doubles[-1], math.inf))
        numbers: list[float] = [*doubles, *(range(2**53 - 2, 2**53 + 4) if start > 1e15 else ())]
        numbers = [n for n in numbers if n < 2**53 + 4 or start > 1e20]
        ends = sorted(set(map(written, numbers)))
        gaps = [(a + b) / 2 for a, b in itertools.pairwise(ends)]
        values: list[Any] = [int(n) for n in numbers if n == int(n) and abs(n) < 2**63] + [
            float(n) for n in numbers
        ]
        values += [
            *numbers,
            *gaps,
            -math.inf,
            -8.0,
            -9,
            0.05,
            1e16,
            10**16,
            math.inf,
            math.nan,
            1e31,
            Decimal("1.5") * 10**31,
        ]
        values += [
            Decimal(10**18) + Decimal("0.5"),
            Decimal(-(10**18)) - Decimal("0.5"),
            True,
            None,
        ]
        values += [Decimal("-7.40000000000000000001"), Decimal("0.00500000000000000000001"), 3]
        messages = [Message({"d": value}) for value in values]
        for _ in range(size // 4):
            a, b = drawing.predicate(numbers), drawing.predicate(numbers)
            expected = all(a.matches(m) for m in messages if b.matches(m))
            assert covers(a, b) is expected, (a, b)
