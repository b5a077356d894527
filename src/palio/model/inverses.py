"""What the argument of an arithmetic operation was, given what came out: sets of numbers, backwards.

    x + 1 > 5           int     x >= 5
                        double  the doubles x for which x + 1.0 is above 5.0: found by search, since
                                rounding keeps the order
                        decimal x > 4 - 0.0000005: Spark rounds what has more than 38 digits
    abs(x - 3) < 2      x - 3 between -2 and 2, so x between 1 and 5

The sets are never too small; where a constant may be added, they are exact for integers (but for overflows)
and doubles. Decimals are intervals of fractions with both ends inside: they have at most 38 digits behind the
point, so "above 0.1" is "from 0.1 + 10^-38 on".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

from palio.model import decimal_ranges, ranges
from palio.model.decimal_ranges import number_of, rank_below, step_of, text_of
from palio.model.expressions.decimals import Exact
from palio.model.operators import Op
from palio.model.ranges import UNIVERSE, Ranges, float_from_key, float_key
from palio.model.values import INT_MAX, INT_MIN, Type

Interval: TypeAlias = tuple[Fraction, Fraction]

RANGES_MAX = 16
"""Of a set; one with more counts as all from the least to the greatest."""
_ROUNDING = Fraction(1, 2_000_000)
"""Of a decimal: at least six digits are kept behind the point."""
_LARGEST = Fraction(10) ** 40
"""Above all decimals, and above sums of two."""
_LAST = Fraction(10**38 - 1)
_NAN = UNIVERSE[Type.FLOAT][1]


class Numbers(NamedTuple):
    """A set of numbers, by their types."""

    ints: Ranges
    floats: Ranges
    decimals: tuple[Interval, ...]


ALL_NUMBERS = Numbers((UNIVERSE[Type.INT],), (UNIVERSE[Type.FLOAT],), ((-_LARGEST, _LARGEST),))


def numbers(ints: Ranges, floats: Ranges, gaps: Ranges) -> Numbers:
    """The numbers that these values stand for: a decimal is an int, the text of a double, or in a gap."""
    found = [(Fraction(low), Fraction(high)) for low, high in ints]
    for low, high in floats:
        if low < _NAN:
            found.append((_text(low), _text(min(high, _NAN - 1))))
    for low, high in gaps:
        begin, end = number_of(rank_below(low)), number_of(rank_below(high) + 1)
        found.append((_above(text_of(begin)), _below(text_of(end))))
    return Numbers(ints, floats, _without(_holes(ints, floats), _merged(found)))


def values(found: Numbers, has_decimals: bool) -> tuple[Ranges, Ranges, Ranges]:
    """The integers, doubles and gaps of attributes with such numbers; inverse to `numbers`."""
    kept: tuple[Ranges, Ranges, Ranges] = found.ints, found.floats, ()
    for low, high in found.decimals if has_decimals else ():
        low, high = max(low, -_LAST), min(high, _LAST)
        if low <= high:
            inside = decimal_ranges.between(step_of(low), step_of(high))
            ints, floats, gaps = map(ranges.union, kept, inside)
            kept = ints, floats, gaps
    return kept


def compared(op: Op, value: Decimal | int) -> tuple[Interval, ...]:
    """The decimals that compare so with an exact number."""
    exact = Fraction(value)
    if op is Op.EQ:
        return ((exact, exact),)
    if op in (Op.GT, Op.GE):
        return ((_above(exact) if op is Op.GT else exact, _LARGEST),)
    return ((-_LARGEST, _below(exact) if op is Op.LT else exact),)


def few(spans: Ranges) -> Ranges:
    """The set, or one around it that has few ranges."""
    return spans if len(spans) <= RANGES_MAX else ((spans[0][0], spans[-1][1]),)


def few_intervals(found: tuple[Interval, ...]) -> tuple[Interval, ...]:
    """As `few`, of decimals."""
    if len(found) <= RANGES_MAX:
        return found
    return ((min(low for low, _ in found), max(high for _, high in found)),)


_STEPS = 10**38
"""Of decimals, between two integers."""


def _above(value: Fraction) -> Fraction:
    """The least decimal above."""
    return Fraction(math.floor(value * _STEPS) + 1, _STEPS)


def _below(value: Fraction) -> Fraction:
    return -_above(-value)


def _text(key: int) -> Fraction:
    """What a double stands for; without those beyond all decimals."""
    value = float_from_key(key)
    if abs(value) > _LARGEST:
        return -_LARGEST if key < 0 else _LARGEST
    return text_of(value)


def _holes(ints: Ranges, floats: Ranges) -> list[Fraction]:
    """Numbers that are missing beside others, ascending: x != 5."""
    missing = ranges.difference((UNIVERSE[Type.FLOAT],), floats)
    few = (range(low, high + 1) for low, high in missing if high - low < RANGES_MAX)
    found = (_text(key) for keys in few for key in keys if key < _NAN)
    return [one for one in found if not ranges.intersection(_whole_number(one), ints)]


def _whole_number(value: Fraction) -> Ranges:
    return _clamped(math.ceil(value), math.floor(value))


def _without(holes: list[Fraction], found: Iterable[Interval]) -> tuple[Interval, ...]:
    kept = []
    for low, high in found:
        for hole in holes:
            if low <= hole <= high:
                kept.append((low, _below(hole)))
                low = _above(hole)
        kept.append((low, high))
    return tuple(span for span in kept if span[0] <= span[1])


def _merged(found: Iterable[Interval]) -> tuple[Interval, ...]:
    """The same decimals in intervals that do not overlap, ascending."""
    merged: list[Interval] = []
    for low, high in sorted(found):
        if merged and low <= _above(merged[-1][1]):
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        elif low <= high:
            merged.append((low, high))
    return tuple(merged)


def rounded_to(floats: Ranges) -> tuple[Interval, ...]:
    """The decimals for which the nearest double is one of these: up to half the way to the next, and there if
    the last digit of its bits is even."""
    found = []
    for low, high in floats:
        if low < _NAN:
            begin, end = _middle(low - 1, low), _middle(high, high + 1)
            begin += _apart(begin) if low % 2 else 0
            end -= _apart(end) if high % 2 else 0
            found.append((begin, end))
    return tuple(found)


def _middle(low: int, high: int) -> Fraction:
    return (_fraction(low) + _fraction(high)) / 2


def _apart(middle: Fraction) -> Fraction:
    """Less than between it and any decimal, which has at most 38 digits behind the point."""
    return Fraction(1, middle.denominator * 10**39)


def _fraction(key: int) -> Fraction:
    value = float_from_key(max(-_NAN, min(key, _NAN)))
    if not math.isfinite(value):
        return -_LARGEST if key < 0 else _LARGEST
    return max(-_LARGEST, min(Fraction(value), _LARGEST))


def _clamped(low: int, high: int) -> Ranges:
    low, high = max(low, INT_MIN), min(high, INT_MAX)
    return ((low, high),) if low <= high else ()


# ---- without a constant


def negated(found: Numbers) -> Numbers:
    """The numbers whose opposites are these."""
    nan = ((_NAN, _NAN),) if _has_nan(found.floats) else ()
    return Numbers(
        _mirrored(found.ints, INT_MAX),
        ranges.union(_mirrored(found.floats, _NAN - 1), nan),
        tuple((-high, -low) for low, high in found.decimals),
    )


def _mirrored(spans: Ranges, last: int) -> Ranges:
    kept = [(max(low, -last), min(high, last)) for low, high in spans]
    return tuple((-high, -low) for low, high in reversed(kept) if low <= high)


def _has_nan(floats: Ranges) -> bool:
    return bool(floats) and floats[-1][1] == _NAN


def unsigned(found: Numbers) -> Numbers:
    """The numbers whose absolute values are these."""
    above = Numbers(
        ranges.intersection(found.ints, ((0, INT_MAX),)),
        ranges.intersection(found.floats, ((0, _NAN),)),
        tuple((max(low, Fraction(0)), high) for low, high in found.decimals if high >= 0),
    )
    below = negated(above)
    return Numbers(
        ranges.union(above.ints, below.ints),
        ranges.union(above.floats, below.floats),
        (*above.decimals, *below.decimals),
    )


# ---- with a constant


class _WithConstant(NamedTuple):
    """Of an argument and a constant: what it computes, what comes out for an argument, and which
    argument gives it; in doubles and in fractions alike."""

    forwards: Callable[..., float]
    backwards: Callable[..., Any]
    is_falling: bool = (
        False  # a larger argument gives a smaller number, where the constant is positive
    )
    has_sign: bool = False  # and the other way round where it is negative


_OPERATIONS = {
    ("add", 0): _WithConstant(lambda x, c: x + c, lambda r, c: r - c),
    ("add", 1): _WithConstant(lambda x, c: c + x, lambda r, c: r - c),
    ("subtract", 0): _WithConstant(lambda x, c: x - c, lambda r, c: r + c),
    ("subtract", 1): _WithConstant(lambda x, c: c - x, lambda r, c: c - r, is_falling=True),
    ("multiply", 0): _WithConstant(lambda x, c: x * c, lambda r, c: r / c, has_sign=True),
    ("multiply", 1): _WithConstant(lambda x, c: c * x, lambda r, c: r / c, has_sign=True),
    ("divide", 0): _WithConstant(lambda x, c: x / c, lambda r, c: r * c, has_sign=True),
}
"""By the function, and which of its arguments is not the constant."""


def argument(function: str, place: int, constant: object, found: Numbers) -> Numbers:
    """The numbers for which the function gives one of these; all where that is not known."""
    operation = _OPERATIONS.get((function, place))
    if operation is None or isinstance(constant, bool):
        return ALL_NUMBERS
    if not isinstance(constant, int | float | Exact) or not math.isfinite(float(constant)):
        return ALL_NUMBERS
    if operation.has_sign and float(constant) == 0:
        return ALL_NUMBERS
    is_falling = operation.is_falling ^ (operation.has_sign and float(constant) < 0)
    search = _Inversion(operation, float(constant), is_falling)
    floats = search.floats(found.floats)
    if isinstance(constant, float):
        return Numbers(search.ints(found.floats), floats, rounded_to(floats))
    exact = Fraction(constant.value if isinstance(constant, Exact) else constant)
    rounded = [(low - _ROUNDING, high + _ROUNDING) for low, high in found.decimals]
    decimals = _backwards(operation, exact, is_falling, rounded)
    if isinstance(constant, Exact):
        ints = whole(decimals)
    elif function == "divide":  # of integers is a double
        ints = search.ints(found.floats)
    else:
        of_ints = [(Fraction(low), Fraction(high)) for low, high in found.ints]
        ints = whole(_backwards(operation, exact, is_falling, of_ints))
    return Numbers(ints, floats, decimals)


def _backwards(
    operation: _WithConstant, constant: Fraction, is_falling: bool, found: list[Interval]
) -> tuple[Interval, ...]:
    ends = [[operation.backwards(end, constant) for end in span] for span in found]
    return tuple((high, low) if is_falling else (low, high) for low, high in ends)


def whole(found: tuple[Interval, ...]) -> Ranges:
    """The integers in these intervals."""
    spans: Ranges = ()
    for low, high in found:
        spans = ranges.union(spans, _clamped(math.ceil(low), math.floor(high)))
    return spans


class _Inversion:
    """Arguments of an operation on doubles, by search around what fractions say: rounding keeps the order."""

    def __init__(self, operation: _WithConstant, constant: float, is_falling: bool) -> None:
        self._operation, self._constant, self._is_falling = operation, constant, is_falling

    def floats(self, wanted: Ranges) -> Ranges:
        nan = ((_NAN, _NAN),) if _has_nan(wanted) else ()
        found = self._arguments(wanted, float_from_key, float_key, (1 - _NAN, _NAN - 1))
        return ranges.union(found, nan)

    def ints(self, wanted: Ranges) -> Ranges:
        return self._arguments(wanted, float, _nearest, (INT_MIN, INT_MAX))

    def _arguments(
        self,
        wanted: Ranges,
        value: Callable[[int], float],
        place: Callable[[float], int],
        ends: tuple[int, int],
    ) -> Ranges:
        """The places of the arguments; `value` is what stands at one, `place` where one stands."""
        sign = -1 if self._is_falling else 1
        first, last = sorted((sign * ends[0], sign * ends[1]))

        def outcome(at: int) -> int:
            return float_key(self._operation.forwards(value(sign * at), self._constant))

        def guess(key: int) -> int:
            near = self._operation.backwards(float_from_key(key), self._constant)
            return max(first, min(sign * place(near), last))

        found: Ranges = ()
        for low, high in wanted:
            if low >= _NAN:
                continue
            high = min(high, _NAN - 1)
            begin = _first(outcome, low, guess(low), first, last)
            after = _first(outcome, high + 1, guess(high), first, last)
            span = (begin, after - 1) if sign > 0 else (1 - after, -begin)
            found = ranges.union(found, (span,) if span[0] <= span[1] else ())
        return found


def _nearest(value: float) -> int:
    return int(max(float(INT_MIN), min(value, float(INT_MAX))))


def _first(outcome: Callable[[int], int], wanted: int, guess: int, first: int, last: int) -> int:
    """The first place whose outcome is not below the wanted one; behind the last where there is none."""
    step, low, high = 1, guess, guess
    while low >= first and outcome(low) >= wanted:
        high, low, step = low, low - step, 2 * step
    if low < first:
        low = first - 1
    if low == guess:  # its outcome is below
        high, step = guess + 1, 1
        while high <= last and outcome(high) < wanted:
            low, high, step = high, high + step, 2 * step
        high = min(high, last + 1)
    while high - low > 1:
        middle = (low + high) // 2
        if outcome(middle) < wanted:
            low = middle
        else:
            high = middle
    return high
