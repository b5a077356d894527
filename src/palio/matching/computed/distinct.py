"""The distinct values of an array, so that what costs much is done once for each."""

from __future__ import annotations

import numpy as np

from palio.matching.encode.columns import Ints
from palio.matching.encode.plain_arrays import int64_array

_DENSE = 4


def distinct(values: Ints) -> tuple[Ints, int]:
    """For each value a number from 0, equal for equal ones; and how many there are."""
    if not len(values):
        return values, 0
    low = int(values.min())
    span = int(values.max()) - low + 1
    if span > _DENSE * len(values) + 1024:
        indices = int64_array(values).dictionary_encode()
        places = np.frombuffer(indices.indices.buffers()[1], np.int32, len(values))
        return places.astype(np.int64), len(indices.dictionary)
    places = values - low
    number = np.zeros(span, np.int64)
    number[places] = 1
    used = np.flatnonzero(number)
    number[used] = np.arange(len(used))
    return number[places], len(used)


def distinct_with_samples(values: Ints) -> tuple[Ints, Ints]:
    """For each value the number of its like, and the distinct values by these numbers."""
    number, count = distinct(values)
    found = np.empty(count, values.dtype)
    found[number] = values
    return number, found
