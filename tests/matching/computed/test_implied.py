"""What a residual implies holds wherever the residual does."""

from __future__ import annotations

import random

import pytest

from palio.matching.computed.implied import implied
from palio.model.language import parse
from palio.model.predicate import Constraint, Filter
from tests.seeds import sizes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name LIKE 'ab%c'", "name LIKE 'ab%'"),
        ("name LIKE '%b_c'", "name LIKE '%c'"),
        ("name LIKE '%b_c%'", "name LIKE '%b%'"),
        ("name RLIKE '^ab+c'", "name LIKE 'a%'"),
        ("name RLIKE '^ab|c'", "name IS NOT NULL"),
        ("NOT (name LIKE 'ab%c')", "name IS NOT NULL"),
        ("x + y > 3", "x IS NOT NULL AND y IS NOT NULL"),
        ("coalesce(x, 0) > 3", "x > 3.0"),
        ("coalesce(x, 5) > 3", "TRUE"),
        ("x * 2 > 3 AND TRUE", "x > 1.49999975"),
        (
            "year(t) <= 2026",
            "t >= TIMESTAMP '0001-01-01T00:00:00Z' AND t <= TIMESTAMP '2026-12-31T23:59:59.999999Z'",
        ),
        ("left(s, 2) = 'ab'", "s LIKE 'ab%'"),
        ("left(s, 3) = 'ab'", "s = 'ab'"),
        ("x / y IS NULL", "TRUE"),
        ("x > 12345678901234567.88", "x > 12345678901234567"),
        ("x <= 12345678901234569.2", "x <= 12345678901234570"),
        ("x = 0.10000000000000000001", "x >= 0.1 AND x < 0.10000000000000002"),
        ("x < 9223372036854775807.5", "x < 9.223372036854776e+18"),
    ],
)
def test_constraints(text: str, expected: str) -> None:
    (residual,) = parse(text).filters[0]
    assert str(Filter(tuple(implied(residual)))) == expected


@sizes(60, 1_000)
def test_distances_are_bounds_with_a_margin(size: int) -> None:
    chance = random.Random(3)
    for _ in range(size):
        center, radius = round(chance.uniform(-90, 90), 3), round(chance.uniform(0, 2), 3)
        text = chance.choice(
            [
                f"abs(lat - {center})",
                f"abs(lat + {-center})",
                f"abs({center} - lat)",
                f"abs(lat - ({center} + 0.0))",
            ]
        )
        (residual,) = parse(f"{text} <= {radius}").filters[0]
        bounds = [one for one in implied(residual) if one.op != "any"]
        assert len(bounds) == 2
        for value in (center - radius, center + radius, center):
            if Filter((residual,)).matches({"lat": value}):
                assert all(Filter((bound,)).matches({"lat": value}) for bound in bounds)


def test_what_is_absent_implies_nothing() -> None:
    assert implied(Constraint("=x + y", "absent")) == []
