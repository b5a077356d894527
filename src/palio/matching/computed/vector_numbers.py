"""Arithmetic and functions of numbers, by columns.

Results are those of `model/expressions/number_functions.py` to the last bit: a row for which that takes more
than one rounding is left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from palio.matching.computed import number_kernels, vector_decimals
from palio.matching.computed.columns import DECIMAL, ValueColumn
from palio.matching.computed.outcomes import (
    NUMBERS,
    REFUSED,
    WHOLE,
    Compute,
    Outcome,
    Vector,
    doubles,
    magnitude,
    of_doubles,
    of_ints,
)
from palio.matching.encode.codes import FLOAT
from palio.matching.encode.columns import Ints
from palio.model.expressions import number_functions as numbers
from palio.model.values import INT_MAX, INT_MIN

_TWO63 = 2.0**63
_PLACES_MAX = 15
_SAFE = 1e15
"""Below it every integer is a double, with room for a rounding."""


# ---- arithmetic


def _add(x: Ints, y: Ints) -> Outcome:
    found = x + y
    if magnitude(x) + magnitude(y) <= INT_MAX:
        return Outcome(of_ints(found))
    return Outcome(of_ints(found), ((x ^ found) & (y ^ found)) < 0)


def _subtract(x: Ints, y: Ints) -> Outcome:
    found = x - y
    if magnitude(x) + magnitude(y) <= INT_MAX:
        return Outcome(of_ints(found))
    return Outcome(of_ints(found), ((x ^ y) & (x ^ found)) < 0)


def _multiply(x: Ints, y: Ints) -> Outcome:
    found = x * y
    if magnitude(x) * magnitude(y) <= INT_MAX:
        return Outcome(of_ints(found))
    nearly = np.abs(x.astype(np.float64) * y.astype(np.float64))
    return Outcome(
        of_ints(found), nearly > 1.01 * _TWO63, (nearly > 0.99 * _TWO63) & (nearly <= 1.01 * _TWO63)
    )


def _arithmetic(
    of_integers: Callable[[Ints, Ints], Outcome],
    of_decimals: vector_decimals.Operation,
    of_floats: Callable[[Ints, Ints], Ints],
) -> Vector:
    def computed(arguments: Sequence[ValueColumn]) -> Outcome | None:
        a, b = arguments
        kinds = {a.kind, b.kind}
        if not kinds <= NUMBERS:
            return REFUSED
        if FLOAT in kinds:
            with np.errstate(all="ignore"):
                return Outcome(of_doubles(of_floats(doubles(a), doubles(b))))
        if DECIMAL in kinds:
            return vector_decimals.exactly(of_decimals, a, b)
        return of_integers(a.raw, b.raw)

    return computed


def _divide(arguments: Sequence[ValueColumn]) -> Outcome | None:
    a, b = arguments
    kinds = {a.kind, b.kind}
    if not kinds <= NUMBERS:
        return REFUSED
    if DECIMAL in kinds and FLOAT not in kinds:
        return vector_decimals.exactly(vector_decimals.divide, a, b)
    divisor = doubles(b)
    with np.errstate(all="ignore"):
        found = doubles(a) / divisor
    return Outcome(of_doubles(found), _everywhere(divisor == 0, found))


def _everywhere(bad: Ints, found: Ints) -> Ints:
    """For each row of the result; a constant is one for all."""
    return bad if len(bad) == len(found) else np.broadcast_to(bad, found.shape)


def _mod(arguments: Sequence[ValueColumn]) -> Outcome | None:
    a, b = arguments
    kinds = {a.kind, b.kind}
    if not kinds <= NUMBERS:
        return REFUSED
    if FLOAT in kinds:
        divisor = doubles(b)
        with np.errstate(all="ignore"):
            found = np.fmod(doubles(a), divisor)
        return Outcome(of_doubles(found), _everywhere(divisor == 0, found))
    if DECIMAL in kinds:
        return vector_decimals.exactly(vector_decimals.mod, a, b)
    zero = b.raw == 0
    with np.errstate(all="ignore"):  # of INT_MIN and -1 too, which is 0
        found = np.fmod(a.raw, np.where(zero | (b.raw == -1), 1, b.raw))
    return Outcome(of_ints(found), _everywhere(zero, found))


def _div(arguments: Sequence[ValueColumn]) -> Outcome | None:
    a, b = arguments
    if a.kind not in WHOLE or b.kind not in WHOLE:
        return REFUSED
    x, y = a.raw, b.raw
    bad = (y == 0) | ((x == INT_MIN) & (y == -1))
    divisor = np.where((y == 0) | (y == -1), 1, y)
    floor = x // divisor
    found = floor + ((floor < 0) & (floor * divisor != x))
    return Outcome(of_ints(np.where(y == -1, -x, found)), bad)


# ---- of one number


def _negative(arguments: Sequence[ValueColumn]) -> Outcome | None:
    (a,) = arguments
    if a.kind in WHOLE:
        return Outcome(of_ints(-a.raw), a.raw == INT_MIN)
    if a.kind == FLOAT:
        return Outcome(of_doubles(-doubles(a)))
    return vector_decimals.changed(a, np.negative) if a.kind == DECIMAL else REFUSED


def _absolute(arguments: Sequence[ValueColumn]) -> Outcome | None:
    (a,) = arguments
    if a.kind in WHOLE:
        return Outcome(of_ints(np.abs(a.raw)), a.raw == INT_MIN)
    if a.kind == FLOAT:
        return Outcome(of_doubles(np.abs(doubles(a))))
    return vector_decimals.changed(a, np.abs) if a.kind == DECIMAL else REFUSED


def _sqrt(arguments: Sequence[ValueColumn]) -> Outcome | None:
    (a,) = arguments
    if a.kind not in NUMBERS:
        return REFUSED
    x = doubles(a)
    with np.errstate(all="ignore"):
        return Outcome(of_doubles(np.sqrt(x)))


def _sign(arguments: Sequence[ValueColumn]) -> Outcome | None:
    (a,) = arguments
    return Outcome(of_doubles(np.sign(doubles(a)) + 0.0)) if a.kind in NUMBERS else REFUSED


def _power(arguments: Sequence[ValueColumn]) -> Outcome | None:
    a, b = arguments
    if not {a.kind, b.kind} <= NUMBERS:
        return REFUSED
    x, y = doubles(a), doubles(b)
    count = max(len(x), len(y))
    found = np.empty(count, np.float64)
    number_kernels.powers(x, y, min(1, len(x) - 1), min(1, len(y) - 1), found)
    return Outcome(of_doubles(found))


def _as_long(round_to_whole: Callable[[Ints], Ints], above: int) -> Vector:
    def computed(arguments: Sequence[ValueColumn]) -> Outcome | None:
        (a,) = arguments
        if a.kind in WHOLE:
            return Outcome(of_ints(a.raw))
        if a.kind == FLOAT:
            return whole_of(round_to_whole(doubles(a)))
        return vector_decimals.floors(a, above) if a.kind == DECIMAL else REFUSED

    return computed


def whole_of(whole: Ints, low: float = -_TWO63, high: float = _TWO63) -> Outcome:
    """Doubles without fractions as integers: NaN is 0, and what is below low or not below high fails."""
    bad = (whole < low) | (whole >= high)
    is_plain = np.abs(whole) < _TWO63
    with np.errstate(all="ignore"):
        if is_plain.all():
            return Outcome(of_ints(whole.astype(np.int64)), bad)
        inside = np.where(is_plain, whole, 0.0).astype(np.int64)
        inside[whole == -_TWO63] = INT_MIN
    return Outcome(of_ints(inside), bad)


# ---- round


def _round(arguments: Sequence[ValueColumn]) -> Outcome | None:
    a = arguments[0]
    places = 0
    if len(arguments) == 2:
        if arguments[1].kind not in WHOLE:
            return REFUSED
        if len(arguments[1]) > 1:
            return None
        places = int(arguments[1].raw[0])
    if a.kind in WHOLE:
        return _rounded_ints(a.raw, places)
    if a.kind == FLOAT:
        return _rounded_doubles(doubles(a), places)
    return None if a.kind == DECIMAL else REFUSED


def _rounded_ints(x: Ints, places: int) -> Outcome | None:
    if places >= 0:
        return Outcome(of_ints(x))
    if places < -_PLACES_MAX:
        return None
    unit = 10**-places
    size = np.abs(x)
    rest = size % unit
    found = np.where(2 * rest >= unit, size - rest + unit, size - rest)
    left = (size > INT_MAX // 2) | (size < 0)
    return Outcome(of_ints(np.where(x < 0, -found, found)), None, left)


def _rounded_doubles(x: Ints, places: int) -> Outcome | None:
    """Half away from zero, of the digits that a double is printed with: what lies near a half is left."""
    if abs(places) > _PLACES_MAX:
        return None
    size = np.abs(x)
    with np.errstate(all="ignore"):
        moved = size * 10.0**places if places >= 0 else size / 10.0**-places
        whole = np.floor(moved)
        rest = moved - whole
        whole += rest >= 0.5
        found = whole / 10.0**places if places >= 0 else whole * 10.0**-places
        left = ~(moved < _SAFE)  # and NaN
        if places:
            left |= np.abs(rest - 0.5) <= moved * 2.0**-49
    return Outcome(of_doubles(np.copysign(found, x) + 0.0), None, left)


NUMBER_VECTORS: dict[Compute, Vector] = {
    numbers.add: _arithmetic(_add, vector_decimals.add, np.add),
    numbers.subtract: _arithmetic(_subtract, vector_decimals.subtract, np.subtract),
    numbers.multiply: _arithmetic(_multiply, vector_decimals.multiply, np.multiply),
    numbers.divide: _divide,
    numbers.mod: _mod,
    numbers.div: _div,
    numbers.negative: _negative,
    numbers.absolute: _absolute,
    numbers.sqrt: _sqrt,
    numbers.sign: _sign,
    numbers.power: _power,
    numbers.floor: _as_long(np.floor, 0),
    numbers.ceil: _as_long(np.ceil, 1),
    numbers.rounded: _round,
}
