"""What a vector function gets, columns of one type each, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from palio.matching.computed.columns import DECIMAL, LITERAL, NULL, ValueColumn
from palio.matching.encode.codes import BOOL, FLOAT, INT, TIME
from palio.matching.encode.columns import Ints


class Outcome(NamedTuple):
    """Values; the rows that have none because the function fails; those left to the Python function."""

    column: ValueColumn
    bad: Ints | None = None
    left: Ints | None = None


Vector: TypeAlias = Callable[[Sequence[ValueColumn]], Outcome | None]
"""A function of columns, each of one type; None: it does not know these types."""

Compute: TypeAlias = Callable[..., Any]
"""The Python function of which it is the vector: whatever it is called in SQL."""

REFUSED = Outcome(NULL, np.ones(1, np.bool_))
"""The function takes no values of these types."""

WHOLE = frozenset({INT, LITERAL})
NUMBERS = WHOLE | {FLOAT, DECIMAL}


def doubles(column: ValueColumn) -> Ints:
    """Numbers as doubles, each the nearest."""
    if column.kind == FLOAT:
        return column.raw.view(np.float64)
    if column.kind == DECIMAL:
        return column.decimals.doubles[column.raw]
    return column.raw.astype(np.float64)


def of_doubles(values: Ints) -> ValueColumn:
    return ValueColumn.of_kind(FLOAT, values.view(np.int64))


def of_ints(values: Ints) -> ValueColumn:
    return ValueColumn.of_kind(INT, values)


def of_bools(holds: Ints) -> ValueColumn:
    return ValueColumn.of_kind(BOOL, holds.astype(np.int64))


def of_times(micros: Ints) -> ValueColumn:
    return ValueColumn.of_kind(TIME, micros)


def magnitude(values: Ints) -> int:
    """The greatest distance of an integer from 0."""
    return max(int(values.max()), -int(values.min())) if len(values) else 0
