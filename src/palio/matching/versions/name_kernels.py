"""The kernels that find an interface by its name: a hash table over names that lie in one blob.

    blob      a n n b o b c y          begin   0 3 6 8
    slots     open addressing: hash -> position + 1; 0 is free
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.encode.constraint_kernels import same
from palio.matching.encode.text_kernels import ONE, hash_bytes
from palio.matching.jit import borrowing

SHIFT = np.uint64(29)


@borrowing
def fill_slots(blob: Any, begin: Any, slots: Any) -> None:
    """File all names; there are more slots than names, a power of two."""
    mask = np.uint64(len(slots) - 1)
    for position in range(len(begin) - 1):
        h = hash_bytes(blob, begin[position], begin[position + 1])
        at = (h ^ (h >> SHIFT)) & mask
        while slots[at] != 0:
            at = (at + ONE) & mask
        slots[at] = position + 1


@borrowing
def find_name(blob: Any, begin: Any, slots: Any, text: Any, length: int) -> int:
    """The position of the name text[:length], -1 when there is none."""
    mask = np.uint64(len(slots) - 1)
    h = hash_bytes(text, 0, length)
    at = (h ^ (h >> SHIFT)) & mask
    while slots[at] != 0:
        position = slots[at] - 1
        start = begin[position]
        if begin[position + 1] - start == length and same(blob, start, text, 0, length):
            return position
        at = (at + ONE) & mask
    return -1
