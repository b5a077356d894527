"""The kernels that take columns out of a batch and put columns into one: plain loops, nothing else.

types[k, r], raws[k, r]     the value of column k in row r; see `columns`
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.computed.columns import ARRAY
from palio.matching.encode.attribute_kernels import INT_MIN, MAGNITUDE, NAN_KEY
from palio.matching.encode.codes import FLOAT, NEGATIVE_ZERO, STRING
from palio.matching.jit import borrowing

NAN_BITS = np.int64(0x7FF8_0000_0000_0000)


@borrowing
def collect(batch: Any, column_of: Any, types: Any, raws: Any) -> None:
    """The values of the names that have a column; `types` comes filled with ABSENT."""
    for row in range(len(batch.row_at) - 1):
        for j in range(batch.row_at[row], batch.row_at[row + 1]):
            k = column_of[batch.name[j]]
            if k < 0:
                continue
            kind = batch.type[j]
            types[k, row] = kind
            if kind == FLOAT:
                key = batch.float_floor[j]
                if key == NAN_KEY:
                    key = NAN_BITS
                elif batch.text[j] == NEGATIVE_ZERO:
                    key = INT_MIN
                elif key < 0:
                    key = -(key + MAGNITUDE) - 1
                raws[k, row] = key
            elif kind == STRING or kind == ARRAY:
                raws[k, row] = batch.text[j]
            else:
                raws[k, row] = batch.floor[j]


@borrowing
def spread(begin: Any, to: Any, values: Any, made: Any) -> None:
    """Row r of `values`, from begin[r] to begin[r + 1], goes to made[to[r]] and behind it.

    Unsigned positions: numba takes others from the end, and then copies one by one.
    """
    for row in range(len(begin) - 1):
        first, there = np.uint64(begin[row]), np.uint64(to[row])
        for j in range(np.uint64(begin[row + 1] - begin[row])):
            made[there + j] = values[first + j]
