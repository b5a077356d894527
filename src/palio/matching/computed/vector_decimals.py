"""Exact arithmetic of decimals, and of decimals and integers, by columns of integers of 64 bits.

Rows are grouped by precision and scale, which decide those of the result. What does not fit in 64 bits on the
way, or has more digits than a decimal, is left to the Python functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from palio.matching.computed.columns import DECIMAL, ValueColumn
from palio.matching.computed.decimal_pools import DIGITS, POWERS, DecimalPool
from palio.matching.computed.outcomes import Outcome, of_ints
from palio.matching.encode.codes import INT
from palio.matching.encode.columns import Ints
from palio.model.long_decimals import DIGITS_MAX

_LIMIT = (1 << 62) - 1
"""Twice this fits in 64 bits."""
_GROUPS_MAX = 16
_INT_TYPE = (20, 0)
_SCALE_LEAST = 6
_DecimalType: TypeAlias = tuple[int, int]


class _Unscaled(NamedTuple):
    """The numbers of a column as integers, and their types: -1 for what does not fit."""

    values: Ints
    type: Ints
    types: list[_DecimalType]


class _Found(NamedTuple):
    """Integers of a type; the rows that fail, and those left to Python."""

    values: Ints
    type: _DecimalType
    bad: Ints | None
    left: Ints


Operation: TypeAlias = Callable[[Ints, Ints, _DecimalType, _DecimalType], _Found | None]


def _unscaled(column: ValueColumn) -> _Unscaled:
    if column.kind == DECIMAL:
        pool = column.decimals
        return _Unscaled(pool.unscaled[column.raw], pool.type[column.raw], [*pool.types])
    if column.kind == INT:
        return _Unscaled(column.raw, np.zeros(len(column), np.int64), [_INT_TYPE])
    size = np.abs(column.raw)
    digits = np.maximum(np.searchsorted(POWERS, size, "right"), 1)
    return _Unscaled(
        column.raw,
        np.where(size < 0, -1, digits - 1),
        [(count + 1, 0) for count in range(DIGITS + 1)],
    )


def exactly(operation: Operation, a: ValueColumn, b: ValueColumn) -> Outcome | None:
    """The operation in each row; at least one column is of decimals."""
    x, y = _unscaled(a), _unscaled(b)
    count = max(len(a), len(b))
    is_odd = np.broadcast_to((x.type < 0) | (y.type < 0), count)
    signature = np.broadcast_to(x.type * len(y.types) + y.type, count)
    signatures = np.unique(signature[~is_odd]).tolist()
    if len(signatures) > _GROUPS_MAX:
        return None
    values, type_ = np.zeros(count, np.int64), np.zeros(count, np.int64)
    types: list[_DecimalType] = []
    bad, left = np.zeros(count, np.bool_), is_odd.copy()
    for number in signatures:
        rows = (
            slice(None) if len(signatures) == 1 else np.flatnonzero((signature == number) & ~is_odd)
        )
        own = [one if len(one) == 1 else one[rows] for one in (x.values, y.values)]
        of_x, of_y = divmod(number, len(y.types))
        found = operation(own[0], own[1], x.types[of_x], y.types[of_y])
        if found is None or found.type[0] > DIGITS_MAX:
            left[rows] = True
            continue
        values[rows], type_[rows] = found.values, len(types)
        left[rows] |= found.left
        if found.bad is not None:
            bad[rows] |= found.bad
        types.append(found.type)
    pool = DecimalPool(values, type_, types or [_INT_TYPE])
    column = ValueColumn.of_kind(DECIMAL, np.arange(count), decimals=pool)
    return Outcome(column, bad & ~left, left)


def _moved(values: Ints, places: int) -> tuple[Ints, Ints] | None:
    """Times a power of ten, and what does not fit then."""
    if places > DIGITS:
        return None
    power = int(POWERS[places])
    limit = _LIMIT // power
    return values * power, (values > limit) | (values < -limit)


def _aligned(x: Ints, y: Ints, of_x: int, of_y: int) -> tuple[Ints, Ints, Ints] | None:
    """Both with so many digits more; and what does not fit."""
    one, other = _moved(x, of_x), _moved(y, of_y)
    return None if one is None or other is None else (one[0], other[0], one[1] | other[1])


def _sum(combine: Callable[[Ints, Ints], Ints]) -> Operation:
    def operation(x: Ints, y: Ints, of_x: _DecimalType, of_y: _DecimalType) -> _Found | None:
        scale = max(of_x[1], of_y[1])
        digits = max(of_x[0] - of_x[1], of_y[0] - of_y[1])
        aligned = _aligned(x, y, scale - of_x[1], scale - of_y[1])
        if aligned is None:
            return None
        return _Found(
            combine(aligned[0], aligned[1]), (digits + scale + 1, scale), None, aligned[2]
        )

    return operation


def multiply(x: Ints, y: Ints, of_x: _DecimalType, of_y: _DecimalType) -> _Found:
    nearly = np.abs(x.astype(np.float64) * y.astype(np.float64))
    return _Found(x * y, (of_x[0] + of_y[0] + 1, of_x[1] + of_y[1]), None, nearly > _LIMIT)


def divide(x: Ints, y: Ints, of_x: _DecimalType, of_y: _DecimalType) -> _Found | None:
    """Half up, away from zero."""
    scale = max(_SCALE_LEAST, of_x[1] + of_y[0] + 1)
    moved = _moved(x, scale + of_y[1] - of_x[1])
    if moved is None:
        return None
    size, divisor = np.abs(moved[0]), np.abs(np.where(y == 0, 1, y))
    quotient = size // divisor
    rest = size - quotient * divisor
    quotient += rest >= divisor - rest
    values = np.where((x < 0) == (y < 0), quotient, -quotient)
    return _Found(
        values, (of_x[0] - of_x[1] + of_y[1] + scale, scale), y == 0, moved[1] | (y < -_LIMIT)
    )


def mod(x: Ints, y: Ints, of_x: _DecimalType, of_y: _DecimalType) -> _Found | None:
    scale = max(of_x[1], of_y[1])
    digits = min(of_x[0] - of_x[1], of_y[0] - of_y[1])
    aligned = _aligned(x, y, scale - of_x[1], scale - of_y[1])
    if aligned is None:
        return None
    values = np.fmod(aligned[0], np.where(aligned[1] == 0, 1, aligned[1]))
    return _Found(values, (digits + scale, scale), y == 0, aligned[2])


add, subtract = _sum(np.add), _sum(np.subtract)


# ---- of one decimal


def changed(column: ValueColumn, change: Callable[[Ints], Ints]) -> Outcome:
    """Another sign."""
    pool = column.decimals
    type_ = pool.type[column.raw]
    made = DecimalPool(
        change(pool.unscaled[column.raw]), np.maximum(type_, 0), pool.types or [_INT_TYPE]
    )
    return Outcome(
        ValueColumn.of_kind(DECIMAL, np.arange(len(column)), decimals=made), None, type_ < 0
    )


def floors(column: ValueColumn, above: int) -> Outcome:
    """The integers that are not above, and those after them where a decimal is."""
    floor, place = column.decimals.floors
    found = floor[column.raw] + above * (place[column.raw] == 1)
    return Outcome(of_ints(found), None, column.decimals.type[column.raw] < 0)
