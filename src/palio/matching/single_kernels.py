"""The kernel of a single message: its strings are looked up, then it is a batch of one row."""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.arrays import Batch, Texts
from palio.matching.jit import allocating
from palio.matching.pivot_kernels import forward, ranges_max
from palio.matching.text_kernels import BASE, ONE, hits_max, resolve_text


@allocating
def forward_one(
    pivots: Any, strings: Any, attributes: Any, text: Any, interfaces: int, slot: Any, bits: Any,
    summary: Any, out: Any,
) -> int:
    """Forward one message; returns how many interfaces are in `out`, ascending.

    Columns of `attributes`: name, type, floor, place, float floor, float place, begin and end of
    its string in `text`, or -1.
    """
    count = len(attributes)
    floors, places = attributes[:, 2].copy(), attributes[:, 3].astype(np.uint8)
    texts = np.full(count, -1, np.int32)
    text_begin = np.zeros(count + 1, np.int64)
    found, longest = 0, 0
    for j in range(count):
        if attributes[j, 6] >= 0:
            texts[j] = found
            found += 1
            text_begin[found] = attributes[j, 7]
            longest = max(longest, attributes[j, 7] - attributes[j, 6])
    room = hits_max(strings, longest)
    hits = np.empty(found * room + 1, np.int32)
    at = np.zeros(3 * found + 1, np.int64)
    sums, powers = np.empty(longest + 1, np.uint64), np.empty(longest + 1, np.uint64)
    powers[0] = ONE
    for i in range(longest):
        powers[i + 1] = powers[i] * BASE
    ends = np.zeros(3, np.int64)
    used = 0
    for j in range(count):
        t = texts[j]
        if t >= 0:
            floors[j], places[j] = resolve_text(
                strings, text, attributes[j, 6], attributes[j, 7], sums, powers, hits[used:], ends
            )
            at[3 * t + 1] = used + ends[0]
            at[3 * t + 2] = used + ends[1]
            at[3 * t + 3] = used + ends[2]
            used += ends[2]
    batch = Batch(
        np.array([0, count]), attributes[:, 0].astype(np.int32), attributes[:, 1].astype(np.uint8),
        floors, places, attributes[:, 4].copy(), attributes[:, 5].astype(np.uint8), texts, text,
        text_begin,
    )
    resolved = Texts(at, hits)
    ranges = np.empty((ranges_max(pivots, batch, resolved), 2), np.int64)
    row_ends = np.zeros(1, np.int64)
    forward(
        pivots, strings, batch, resolved, 0, interfaces, False, slot, bits, summary, ranges,
        row_ends, out,
    )
    return row_ends[0]
