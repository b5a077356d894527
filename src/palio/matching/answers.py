"""Answers as Arrow: the interfaces of each row as lists, or flat pairs of row and interface.

    offsets  0 2 2 3          lists   [a c] [] [b]
    found    0 2 1            pairs   (0 a) (0 c) (2 b)

Pairs carry names as a dictionary: the codes are the answer itself, and no name is copied. A row's
list of names copies them, so beyond two gigabytes of names or two thousand million pairs the
types are the large ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from palio.matching.encode.columns import Ints

SMALL_MAX = 2**31 - 1  # the largest offset that Arrow's small types hold


def lists(offsets: Ints, found: Ints, names: Any) -> Any:
    """A list a row: names, or the numbers found when there are no names."""
    values = pa.array(found, pa.int32()) if names is None else _named(found, names)
    small = offsets[-1] <= SMALL_MAX
    kind, width = (pa.ListArray, np.int32) if small else (pa.LargeListArray, np.int64)
    return kind.from_arrays(pa.array(offsets.astype(width)), values)


def pairs(offsets: Ints, found: Ints, names: Any) -> pa.Table:
    """Columns `row` and `interface`: a dictionary of names, or int32 when there are no names."""
    count = len(offsets) - 1
    width = np.int32 if count <= SMALL_MAX else np.int64
    rows = np.repeat(np.arange(count, dtype=width), np.diff(offsets))
    values = pa.array(found, pa.int32())
    if names is not None:
        values = pa.DictionaryArray.from_arrays(values, whole(names))
    return pa.table({"row": pa.array(rows), "interface": values})


def _named(found: Ints, names: Any) -> Any:
    """The names at these positions, in one array, wide enough for all their bytes."""
    may_burst = len(found) * names.nbytes > SMALL_MAX  # cheap to ask, and seldom so
    if may_burst and names.type == pa.string():
        longest = pc.max(pc.binary_length(names)).as_py() or 0
        if len(found) * longest > SMALL_MAX:
            names = names.cast(pa.large_string())
    return whole(names.take(pa.array(found, pa.int32())))


def whole(array: Any) -> Any:
    """The array without chunks."""
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
