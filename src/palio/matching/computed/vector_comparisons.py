"""Comparisons by columns, and what chooses among values by comparing.

Two columns become two arrays of numbers in the same order: doubles with NaN their keys, an integer and what
is no integer the order of the pair and 0, and so do strings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from palio.matching.computed import string_kernels
from palio.matching.computed.columns import ABSENT, ARRAY, DECIMAL, NULL, ValueColumn, merged
from palio.matching.computed.outcomes import (
    NUMBERS,
    REFUSED,
    WHOLE,
    Compute,
    Outcome,
    Vector,
    doubles,
    magnitude,
    of_bools,
)
from palio.matching.encode.attribute_kernels import MAGNITUDE, NAN_KEY, SAFE
from palio.matching.encode.codes import BOOL, STRING
from palio.matching.encode.columns import Ints
from palio.model.expressions import logic
from palio.model.values import INT_MAX, INT_MIN

_TWO63 = 2.0**63
_ZERO = np.zeros(1, np.int64)


def _are_comparable(a: ValueColumn, b: ValueColumn) -> bool:
    return a.kind == b.kind or {a.kind, b.kind} <= NUMBERS


def comparands(a: ValueColumn, b: ValueColumn) -> tuple[Ints, Ints] | None:
    """Two arrays that compare as these comparable columns do; None: the Python function compares them."""
    kinds = {a.kind, b.kind}
    if ARRAY in kinds:
        return None
    if kinds == {DECIMAL}:
        return _unscaled(a, b)
    if STRING in kinds:
        return _order_of_texts(a, b), _ZERO
    if not kinds <= NUMBERS or kinds <= WHOLE:
        return a.raw, b.raw
    if kinds & WHOLE:
        if a.kind not in WHOLE:
            other_way = comparands(b, a)
            return other_way and (other_way[1], other_way[0])
        if DECIMAL in kinds:
            floor, place = b.decimals.floors
            return _order(a.raw, floor[b.raw], place[b.raw]), _ZERO
        if magnitude(a.raw) > SAFE:
            return _order(a.raw, *_floors(doubles(b))), _ZERO
    return _keys(doubles(a), doubles(b))


def _unscaled(a: ValueColumn, b: ValueColumn) -> tuple[Ints, Ints] | None:
    """Of decimals with the same digits behind the point."""
    of_a, of_b = (one.decimals.type[one.raw] for one in (a, b))
    scales = [one.decimals.scales[one.raw] for one in (a, b)]
    if of_a.min() < 0 or of_b.min() < 0 or (scales[0] != scales[1]).any():
        return None
    return a.decimals.unscaled[a.raw], b.decimals.unscaled[b.raw]


def _keys(x: Ints, y: Ints) -> tuple[Ints, Ints]:
    """NaN lies above all, and equals itself."""
    if not (np.isnan(x).any() or np.isnan(y).any()):
        return x, y
    return _key(x), _key(y)


def _key(x: Ints) -> Ints:
    bits = x.view(np.int64)
    return np.where(np.isnan(x), NAN_KEY, np.where(bits < 0, -(bits & MAGNITUDE), bits))


def _floors(x: Ints) -> tuple[Ints, Ints]:
    """The greatest integers not above doubles, and whether these lie above (1) or below (-1) them."""
    floor = np.floor(x)
    is_inside = np.abs(floor) < _TWO63
    whole = np.where(is_inside, floor, 0.0).astype(np.int64)
    place = (floor != x).astype(np.int8)
    low = x < -_TWO63
    whole[~is_inside] = np.where(x < 0, INT_MIN, INT_MAX)[~is_inside]
    place[~is_inside] = np.where(low, -1, x != -_TWO63)[~is_inside]
    return whole, place


def _order(x: Ints, floor: Ints, place: Ints) -> Ints:
    """Integers against floors and places: below, equal or above."""
    return np.where(x == floor, -place, np.where(x > floor, np.int8(1), np.int8(-1)))


def _order_of_texts(a: ValueColumn, b: ValueColumn) -> Ints:
    found = np.empty(max(len(a), len(b)), np.int8)
    string_kernels.order_texts(
        *a.texts.bytes_at(a.raw),
        *b.texts.bytes_at(b.raw),
        min(1, len(a) - 1),
        min(1, len(b) - 1),
        found,
    )
    return found


# ---- functions


def _comparison(compare: Callable[[Ints, Ints], Ints]) -> Vector:
    def computed(arguments: Sequence[ValueColumn]) -> Outcome | None:
        a, b = arguments
        if not _are_comparable(a, b):
            return None if ARRAY in (a.kind, b.kind) else Outcome(NULL)
        pair = comparands(a, b)
        if pair is not None:
            return Outcome(of_bools(compare(*pair)))
        if ARRAY in (a.kind, b.kind):
            return None
        x, y = doubles(a), doubles(b)  # decimals: one is above the other if its double is
        return Outcome(of_bools(compare(x, y)), None, x == y)

    return computed


def _same(arguments: Sequence[ValueColumn]) -> Outcome | None:
    a, b = arguments
    if ABSENT in (a.kind, b.kind):
        return Outcome(of_bools(np.full(1, a.kind == b.kind)))
    if ARRAY in (a.kind, b.kind):
        return None
    return _EQUAL(arguments) if _are_comparable(a, b) else Outcome(of_bools(np.zeros(1, np.bool_)))


def _nullif(arguments: Sequence[ValueColumn]) -> Outcome | None:
    a, b = arguments
    if ABSENT in (a.kind, b.kind):
        return Outcome(a)
    if not _are_comparable(a, b):
        return None if ARRAY in (a.kind, b.kind) else Outcome(a)
    pair = comparands(a, b)
    if pair is None:
        return None
    equal = pair[0] == pair[1]
    return Outcome(
        ValueColumn(
            np.where(equal, np.uint8(ABSENT), a.type),
            a.repeated(len(equal)).raw,
            a.texts,
            a.decimals,
        )
    )


_FALSE, _NULL, _TRUE = np.uint8(0), np.uint8(1), np.uint8(2)


def _truths(vector: Vector, a: ValueColumn, b: ValueColumn) -> Ints | None:
    """Of a comparison; a NULL makes it NULL."""
    if ABSENT in (a.kind, b.kind):
        return np.full(1, _NULL)
    found = vector((a, b))
    if found is None or found.left is not None:
        return None
    return np.where(found.column.type == ABSENT, _NULL, _TRUE * (found.column.raw != 0))


def _of_truths(truths: Ints) -> Outcome:
    raw = (truths == _TRUE).astype(np.int64)
    return Outcome(ValueColumn(np.where(truths == _NULL, np.uint8(ABSENT), np.uint8(BOOL)), raw))


_MEMBERS_MAX = 16


def _in(arguments: Sequence[ValueColumn]) -> Outcome | None:
    value, *members = arguments
    if value.kind == ABSENT:
        return Outcome(NULL)
    if len(members) > _MEMBERS_MAX:
        return None
    result = np.full(1, _FALSE)
    for member in members:
        found = _truths(_EQUAL, value, member)
        if found is None:
            return None
        result = np.maximum(result, found)
    return _of_truths(result)


def _between(arguments: Sequence[ValueColumn]) -> Outcome | None:
    value, low, high = arguments
    if value.kind == ABSENT:
        return Outcome(NULL)
    above = _truths(_AT_LEAST, value, low)
    below = _truths(_AT_MOST, value, high)
    return None if above is None or below is None else _of_truths(np.minimum(above, below))


def _extreme(is_better: Callable[[Ints, Ints], Ints]) -> Vector:
    def computed(arguments: Sequence[ValueColumn]) -> Outcome | None:
        present = [argument for argument in arguments if argument.kind != ABSENT]
        if not present:
            return Outcome(NULL)
        kinds = {argument.kind for argument in present}
        if ARRAY in kinds:
            return None
        if len(kinds) > 1 and not kinds <= NUMBERS:
            return REFUSED
        is_whole = kinds <= WHOLE
        if len(kinds) > 1 and len(present) > 2 and not is_whole:
            return None
        best = present[0]
        for value in present[1:]:
            pair = (value.raw, best.raw) if is_whole else comparands(value, best)
            if pair is None:
                return None
            best = _chosen(is_better(*pair), value, best)
        return Outcome(best)

    return computed


def _chosen(holds: Ints, value: ValueColumn, otherwise: ValueColumn) -> ValueColumn:
    count = len(holds)
    rows = np.flatnonzero(holds)
    return merged(count, [(np.arange(count), otherwise), (rows, value.among(rows))])


_EQUAL = _comparison(np.equal)
_AT_LEAST, _AT_MOST = _comparison(np.greater_equal), _comparison(np.less_equal)

COMPARISON_VECTORS: dict[Compute, Vector] = {
    logic.equal: _EQUAL,
    logic.not_equal: _comparison(np.not_equal),
    logic.less: _comparison(np.less),
    logic.less_or_equal: _AT_MOST,
    logic.greater: _comparison(np.greater),
    logic.greater_or_equal: _AT_LEAST,
    logic.same: _same,
    logic.among: _in,
    logic.between: _between,
    logic.nullif: _nullif,
    logic.least: _extreme(np.less),
    logic.greatest: _extreme(np.greater),
}
