"""Casts by columns, between numbers, booleans and times; those of strings go by distinct string."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from palio.matching.computed.columns import DECIMAL, ValueColumn
from palio.matching.computed.outcomes import (
    REFUSED,
    WHOLE,
    Compute,
    Outcome,
    Vector,
    doubles,
    of_bools,
    of_doubles,
    of_ints,
    of_times,
)
from palio.matching.computed.vector_numbers import whole_of
from palio.matching.computed.vector_times import DAY, SECOND
from palio.matching.encode.attribute_kernels import SAFE
from palio.matching.encode.codes import BOOL, FLOAT, STRING, TIME
from palio.matching.encode.columns import Ints
from palio.model.expressions.casts import CASTS
from palio.model.values import TIME_MAX, TIME_MIN


def _to_integer(bits: int) -> Vector:
    limit = 1 << (bits - 1)

    def computed(arguments: Sequence[ValueColumn]) -> Outcome | None:
        (a,) = arguments
        if a.kind == FLOAT:
            column, bad, _ = whole_of(np.trunc(doubles(a)), float(-limit), float(limit))
            return Outcome(column, bad | np.isnan(doubles(a)))
        if a.kind == TIME:
            found = a.raw // SECOND
        elif a.kind in WHOLE or a.kind == BOOL:
            found = a.raw
        else:
            return None
        return Outcome(of_ints(found), (found < -limit) | (found > limit - 1))

    return computed


def _to_double(arguments: Sequence[ValueColumn]) -> Outcome | None:
    (a,) = arguments
    if a.kind in (FLOAT, DECIMAL, BOOL) or a.kind in WHOLE:
        return Outcome(of_doubles(doubles(a)))
    if a.kind != TIME:
        return None
    left = np.abs(a.raw) > SAFE  # as doubles they would be rounded before the division
    return Outcome(of_doubles(a.raw / float(SECOND)), None, left)


def _to_float(arguments: Sequence[ValueColumn]) -> Outcome | None:
    found = _to_double(arguments)
    if found is None:
        return None
    with np.errstate(over="ignore"):
        narrow = found.column.raw.view(np.float64).astype(np.float32)
    return Outcome(of_doubles(narrow.astype(np.float64)), None, found.left)


def _to_boolean(arguments: Sequence[ValueColumn]) -> Outcome | None:
    (a,) = arguments
    if a.kind == TIME:
        return REFUSED
    if a.kind in (FLOAT, DECIMAL):
        return Outcome(of_bools(doubles(a) != 0))
    return Outcome(of_bools(a.raw != 0)) if a.kind == BOOL or a.kind in WHOLE else None


def _to_string(arguments: Sequence[ValueColumn]) -> Outcome | None:
    (a,) = arguments
    return Outcome(a) if a.kind == STRING else None


def _to_time(arguments: Sequence[ValueColumn]) -> Outcome | None:
    (a,) = arguments
    if a.kind == TIME:
        return Outcome(a)
    if a.kind == BOOL:
        return REFUSED
    if a.kind in WHOLE:
        bad: Ints = (a.raw < -(-TIME_MIN // SECOND)) | (a.raw > TIME_MAX // SECOND)
        return Outcome(of_times(np.where(bad, 0, a.raw) * SECOND), bad)
    if a.kind != FLOAT:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.trunc(doubles(a) * SECOND)
    bad = ~((found >= TIME_MIN) & (found <= TIME_MAX))
    return Outcome(of_times(np.where(bad, 0.0, found).astype(np.int64)), bad)


def _to_date(arguments: Sequence[ValueColumn]) -> Outcome | None:
    (a,) = arguments
    if a.kind == TIME:
        return Outcome(of_times(a.raw // DAY * DAY))
    return None if a.kind == STRING else REFUSED


CAST_VECTORS: dict[Compute, Vector] = {
    CASTS["BIGINT"]: _to_integer(64),
    CASTS["INT"]: _to_integer(32),
    CASTS["SMALLINT"]: _to_integer(16),
    CASTS["TINYINT"]: _to_integer(8),
    CASTS["DOUBLE"]: _to_double,
    CASTS["FLOAT"]: _to_float,
    CASTS["BOOLEAN"]: _to_boolean,
    CASTS["STRING"]: _to_string,
    CASTS["TIMESTAMP"]: _to_time,
    CASTS["DATE"]: _to_date,
}
