"""Sets of ordered values as ranges of integers, so that set operations are exact.

Every ordered type maps to a finite range of integers that keeps its order:

    bool   0, 1
    int    the number itself
    float  its bits, with the sign folded: -inf < ... < -0.0 = 0.0 < ... < inf < NaN
    time   microseconds since 1970

so all of them are discrete, and the complement, intersection and difference of sets of ranges are
sets of ranges too. A set is a tuple of (first, last) pairs, inclusive, ascending, with a gap between
any two. Decimals between two neighbouring doubles have ranges of their own (`decimal_ranges`).
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_right
from datetime import datetime
from operator import itemgetter
from typing import TypeAlias

from palio.model.operators import Op
from palio.model.predicate import Constraint
from palio.model.values import (
    INT_MAX,
    INT_MIN,
    TIME_MAX,
    TIME_MIN,
    Type,
    Value,
    instant_from_micros,
    instant_micros,
)

Ranges: TypeAlias = tuple[tuple[int, int], ...]

_INFINITY = 0x7FF0_0000_0000_0000
UNIVERSE: dict[Type, tuple[int, int]] = {
    Type.BOOL: (0, 1),
    Type.INT: (INT_MIN, INT_MAX),
    Type.FLOAT: (-_INFINITY, _INFINITY + 1),
    Type.TIME: (TIME_MIN, TIME_MAX),
}


def float_key(value: float) -> int:
    """The place of a double in the order of all doubles."""
    if math.isnan(value):
        return _INFINITY + 1
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF)


def float_from_key(key: int) -> float:
    if key > _INFINITY:
        return math.nan
    (value,) = struct.unpack("<d", struct.pack("<q", abs(key)))
    return -value if key < 0 else float(value)


def value_from_key(type: Type, key: int) -> Value:
    """The value that a member of a range stands for."""
    if type is Type.FLOAT:
        return float_from_key(key)
    if type is Type.TIME:
        return instant_from_micros(key)
    return bool(key) if type is Type.BOOL else key


def _neighbours(type: Type, value: Value) -> tuple[int, int]:
    """The last key below `value` and the first above it; the key between them is `value`."""
    if isinstance(value, datetime):
        key = instant_micros(value)
    elif isinstance(value, float) and type is Type.INT:
        if not math.isfinite(value):
            return (INT_MIN - 1, INT_MIN) if value < 0 else (INT_MAX, INT_MAX + 1)
        key = math.floor(value)
        if key != value:
            return key, key + 1
    elif isinstance(value, int) and type is Type.FLOAT:
        nearest = float(value)
        key = float_key(nearest)
        if nearest != value:
            return (key - 1, key) if nearest > value else (key, key + 1)
    else:
        key = float_key(value) if isinstance(value, float) else int(value)
    return key - 1, key + 1


def selected(type: Type, constraint: Constraint) -> Ranges:
    """The values of `type` that the constraint selects; its own type is comparable with it."""
    first, last = UNIVERSE[type]
    operand, op = constraint.value, constraint.op
    if op is Op.ANY:
        return ((first, last),)
    if isinstance(operand, tuple):
        points = (_neighbours(type, member) for member in operand)
        return _normal([(low + 1, high - 1) for low, high in points], first, last)
    assert operand is not None
    low, high = _neighbours(type, operand)
    if op is Op.NE:
        return _normal([(first, low), (high, last)], first, last)
    if op is Op.EQ or op is Op.GE or op is Op.GT:
        first = max(first, high if op is Op.GT else low + 1)
    if op is Op.EQ or op is Op.LE or op is Op.LT:
        last = min(last, low if op is Op.LT else high - 1)
    return ((first, last),) if first <= last else ()


def between(type: Type, low: float, high: float) -> Ranges:
    """All numbers of a type from low to high; NaN is the highest."""
    first, last = UNIVERSE[type]
    first = max(first, _neighbours(type, low)[0] + 1)
    last = min(last, _neighbours(type, high)[1] - 1)
    return ((first, last),) if first <= last else ()


def excluding(type: Type, values: list[Value]) -> Ranges:
    """All values of `type` but these."""
    first, last = UNIVERSE[type]
    points = [(low + 1, high - 1) for low, high in (_neighbours(type, v) for v in values)]
    return difference(((first, last),), _normal(points, first, last))


def _normal(ranges: list[tuple[int, int]], first: int, last: int) -> Ranges:
    out: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        low, high = max(low, first), min(high, last)
        if low > high:
            continue
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(high, out[-1][1]))
        else:
            out.append((low, high))
    return tuple(out)


def union(a: Ranges, b: Ranges) -> Ranges:
    if not a or not b:
        return a or b
    return _normal([*a, *b], min(a[0][0], b[0][0]), max(a[-1][1], b[-1][1]))


def intersection(a: Ranges, b: Ranges) -> Ranges:
    out: list[tuple[int, int]] = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low <= high:
            out.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return tuple(out)


def difference(a: Ranges, b: Ranges) -> Ranges:
    if not a or not b:
        return a
    first, last = a[0][0], a[-1][1]
    gaps: list[tuple[int, int]] = []
    at = first
    for low, high in b:
        if low > at:
            gaps.append((at, low - 1))
        at = max(at, high + 1)
    gaps.append((at, last))
    return intersection(a, tuple(gap for gap in gaps if gap[0] <= gap[1]))


def is_subset(a: Ranges, b: Ranges) -> bool:
    if not a or a is b:
        return True
    if not b:
        return False
    if len(b) == 1:
        return b[0][0] <= a[0][0] and a[-1][1] <= b[0][1]
    for low, high in a:  # each lies in one of b: between any two of b there is a gap
        at = bisect_right(b, low, key=_first) - 1
        if at < 0 or b[at][1] < high:
            return False
    return True


_first = itemgetter(0)
