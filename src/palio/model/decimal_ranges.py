"""Sets of decimals that no double stands for, as ranges of integers.

All doubles and all integers of 64 bits, which are the numbers of constraints, have a rank in their common order.
A LongDecimal lies in the gap above one of them, and a constraint selects whole gaps:

    rank       ... 7               8                     9 ...
    number         0.1             0.10000000000000002   0.10000000000000003
    step       ... 14      15      16      17            18 ...
    gap                     7               8                         d > 0.1 selects 7, 8, ...

Integers beyond 2^53 have ranks of their own, doubles or not: x > 9007199254740993 selects 9007199254740993.5 and
not 9007199254740992.5. Decimals have at most 38 digits, so there are none around zero, where gaps are not
counted, nor from 10^38 on. A few gaps up to 10^-21 count and have none, so that covering says "no" there
where it could say "yes". A step is a number or a gap, in the order of both.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

from palio.model import ranges
from palio.model.long_decimals import DIGITS_MAX, written
from palio.model.operators import Op
from palio.model.predicate import Constraint
from palio.model.ranges import Ranges, float_from_key, float_key
from palio.model.values import INT_MIN, Type

_DOUBLES_MAX, _INTS_MAX = 2**53, 2**63
_DOUBLES_RANK = float_key(float(_DOUBLES_MAX))
_INTS_RANK = _DOUBLES_RANK + _INTS_MAX - _DOUBLES_MAX
_SHIFT = _INTS_RANK - float_key(float(_INTS_MAX))
_INTS_KEY = float_key(float(_INTS_MAX))


def rank(number: float) -> int:
    """The place of a double or an integer of 64 bits in the order of all of them."""
    size = abs(number)
    if size <= _DOUBLES_MAX:
        return float_key(float(number))
    if size < _INTS_MAX:
        found = _DOUBLES_RANK + int(size) - _DOUBLES_MAX
    else:
        found = float_key(float(size)) + _SHIFT
    return -found if number < 0 else found


def rank_of_key(key: int) -> int:
    """The rank of a double, from its `float_key`."""
    size = abs(key)
    if size <= _DOUBLES_RANK:
        return key
    found = rank(float_from_key(size)) if size < _INTS_KEY else size + _SHIFT
    return -found if key < 0 else found


def number_of(rank: int) -> float:
    """The number of a rank: an integer where it is above 2^53 and below 2^63."""
    size = abs(rank)
    if size <= _DOUBLES_RANK:
        return float_from_key(rank)
    if size < _INTS_RANK:
        found: float = _DOUBLES_MAX + size - _DOUBLES_RANK
    else:
        found = float_from_key(size - _SHIFT)
    return -found if rank < 0 else found


_NEAR_ZERO = rank(1e-23)
"""A decimal that is nearer to zero has so few digits that it is the text of a double."""


def _gap(rank: int) -> int:
    """The gap above a number, or the next one that counts."""
    if -_NEAR_ZERO <= rank <= _NEAR_ZERO:
        return 0
    return rank - _NEAR_ZERO if rank > 0 else rank + _NEAR_ZERO


def rank_below(gap: int) -> int:
    """The rank of the number below a gap."""
    return gap + _NEAR_ZERO if gap >= 0 else gap - _NEAR_ZERO


GAPS = _gap(rank(-1e38)), _gap(rank(1e38)) - 1
"""The first and the last gap."""


def selected(constraint: Constraint) -> Ranges:
    """The gaps that a constraint on numbers selects."""
    first, last = GAPS
    op, operand = constraint.op, constraint.value
    if op is Op.EQ or op is Op.IN:
        return ()
    if op is not Op.ANY and op is not Op.NE:
        assert isinstance(operand, int | float)
        if op is Op.GT or op is Op.GE:
            first = max(first, _gap(rank(operand)))
        else:
            last = min(last, _gap(rank(operand)) - 1)
    return ((first, last),) if first <= last else ()


def between(low: int, high: int) -> tuple[Ranges, Ranges, Ranges]:
    """The integers, doubles and gaps from one step to another."""
    ends = number_of((low + 1) // 2), number_of(high // 2)
    first, last = max(GAPS[0], _gap(low // 2)), min(GAPS[1], _gap((high + 1) // 2) - 1)
    gaps = ((first, last),) if first <= last else ()
    return ranges.between(Type.INT, *ends), ranges.between(Type.FLOAT, *ends), gaps


def hull(ints: Ranges, floats: Ranges, gaps: Ranges) -> tuple[int, int]:
    """The first and the last step of these numbers; there are some."""
    ends = [2 * rank_of_key(floats[0][0]), 2 * rank_of_key(floats[-1][1])] if floats else []
    if ints:
        ends += [2 * rank(ints[0][0]), 2 * rank(ints[-1][1])]
    if gaps:
        ends += [2 * rank_below(gaps[0][0]) + 1, 2 * rank_below(gaps[-1][1]) + 1]
    return min(ends), max(ends)


def step_of(value: Fraction) -> int:
    """The step of a decimal: the number that stands for it, or the gap that it lies in."""
    if abs(value) > _DOUBLES_MAX and INT_MIN <= value < _INTS_MAX:
        whole = math.floor(value)
        return 2 * rank(whole) + (whole != value)
    number = float(value)
    exact = text_of(number)
    if exact == value:
        return 2 * rank(number)
    if exact < value:
        return 2 * rank(number) + 1
    return 2 * rank(number) - 1  # the gap below it


def text_of(number: float) -> Fraction:
    """The decimal that a finite number stands for."""
    return Fraction(written(number))


def example(gap: int) -> Decimal:
    """A short decimal that lies in a gap."""
    low, high = (written(number_of(rank_below(gap) + i)) for i in (0, 1))
    middle = _EXACT.divide(_EXACT.add(low, high), Decimal(2))
    for digits in range(1, DIGITS_MAX):
        found = Context(prec=digits).plus(middle)
        if low < found < high:
            return found
    return middle


_EXACT = Context(prec=100)
