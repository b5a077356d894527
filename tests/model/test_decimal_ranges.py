"""Ranks of numbers and the gaps between them, compared with numbers as constraints compare them."""

from __future__ import annotations

import itertools
import math
import random
from decimal import Decimal
from fractions import Fraction

from palio.model.decimal_ranges import (
    GAPS,
    example,
    number_of,
    rank,
    rank_below,
    rank_of_key,
    step_of,
)
from palio.model.long_decimals import LongDecimal, compared, written
from palio.model.ranges import float_key

_DOUBLES = [
    0.0, 5e-324, 1e-300, 1e-38, 1e-23, 1e-22, 0.1, 1.0, 2.0**52, 2.0**53, 2.0**53 + 2, 1e18, 2.0**63, 1e38, 1e308,
    math.nextafter(2.0**63, 0), math.nextafter(1e-23, 1), math.inf,
]  # fmt: skip
_INTS = [0, 1, 2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, 2**62, 2**62 + 1, 2**63 - 2, 2**63 - 1]
_NUMBERS: list[float] = [s * n for n in (*_DOUBLES, *_INTS) for s in (1, -1)] + [-(2**63)]


def test_ranks_have_the_order_of_the_numbers() -> None:
    for a, b in itertools.product(_NUMBERS, repeat=2):
        assert (rank(a) < rank(b)) is (a < b), (a, b)
        assert (rank(a) == rank(b)) is (a == b), (a, b)
    for number in _NUMBERS:
        assert number_of(rank(number)) == number
        if isinstance(number, float):
            assert rank_of_key(float_key(number)) == rank(number)
    assert rank(math.nan) == rank(math.inf) + 1 == rank_of_key(float_key(math.nan))
    assert math.isnan(number_of(rank(math.nan)))


def test_neighbouring_ranks_are_neighbouring_numbers() -> None:
    for number in (2.0**53, 2.0**63, -(2.0**53), -(2.0**63)):
        near = [number_of(rank(number) + i) for i in range(-3, 4)]
        assert near == sorted(near)
        assert len(set(map(written, near))) == 7
    assert [number_of(rank(2.0**53) + i) for i in range(-1, 3)] == [
        2**53 - 1,
        2**53,
        2**53 + 1,
        2**53 + 2,
    ]
    assert number_of(rank(2.0**63) - 1) == 2**63 - 1
    assert number_of(rank(-(2.0**63)) + 1) == 1 - 2**63


def test_a_decimal_has_the_step_of_its_number_or_of_the_gap_above_it() -> None:
    chance = random.Random(1)
    for _ in range(3_000):
        number = chance.choice([n for n in _NUMBERS if abs(n) < 1e38])
        digits = Decimal(chance.randrange(-(10**6), 10**6)).scaleb(chance.randrange(-38, 0))
        decimal = written(number) + digits if chance.random() < 0.9 else written(number)
        found = (
            LongDecimal(decimal)
            if -(2**63) <= decimal < 2**63 and decimal == int(decimal)
            else compared(decimal)
        )
        step = step_of(Fraction(decimal))
        if decimal == written(number):
            assert step == 2 * rank(number)
        elif isinstance(found, LongDecimal) and decimal != int(decimal):
            assert step == 2 * rank(found.below) + 1
        below, above = number_of(step // 2), number_of((step + 1) // 2)
        assert written(below) <= decimal <= written(above)
        assert (step % 2 == 0) is (written(below) == decimal)


def test_a_gap_has_an_example() -> None:
    chance = random.Random(2)
    gaps = [chance.randint(*GAPS) for _ in range(1_000)] + list(GAPS)
    for gap in gaps:
        found = example(gap)
        number = compared(found)
        assert isinstance(number, LongDecimal), (gap, found)
        assert written(number_of(rank_below(gap))) < found < written(number_of(rank_below(gap) + 1))
        assert rank(number.below) == rank_below(gap)
