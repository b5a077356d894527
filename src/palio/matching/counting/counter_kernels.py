"""The kernels of the counters: filters counted down, interfaces decided and eliminated.

`arrays` draws the cells, and the bits of interfaces.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.bits import population, prefetch, trailing_zeros
from palio.matching.jit import borrowing

ZERO, ONE = np.uint64(0), np.uint64(1)
BLOCK = 256  # postings


@borrowing
def mark(matched: Any, summary: Any, ignored: Any, interface: int) -> int:
    """Decide an interface: it matches. 1 when it was undecided before."""
    word = interface >> 6
    bit = ONE << np.uint64(interface & 63)
    if ignored[word] & bit:
        return 0
    ignored[word] |= bit
    matched[word] |= bit
    summary[word >> 6] |= ONE << np.uint64(word & 63)
    return 1


@borrowing
def count_down(cells: Any, filter: int, width: int, current: int) -> Any:
    """One more constraint of a filter holds: how many are left? `current`: the stamp, in place."""
    mask = (1 << width) - 1
    cell = np.int64(cells[filter])
    if cell < current:
        size = (cell >> width) & mask
        cell = current | (size << width) | size
    cell -= 1
    cells[filter] = cell
    return cell & mask


@borrowing
def count_filters(
    network: Any, scratch: Any, found: int, current: int, undecided: int
) -> tuple[int, int]:
    """Count the filters of the found constraints down: the hot spot.

    The cells of postings that are `ahead` are asked for early. Returns how many interfaces are still
    undecided, and the increments.
    """
    filters_at, filters, owners = network.filters_at, network.filters, network.owners
    cells, runs, ignored = scratch.cells, scratch.runs, scratch.ignored
    ahead = np.uint64(network.ahead)
    increments = 0
    for i in range(found):
        low, high = np.uint64(filters_at[runs[i, 0]]), np.uint64(filters_at[runs[i, 1]])
        for e in range(low, high):
            if e + ahead < high:
                prefetch(cells, filters[e + ahead])
            owner = owners[e]
            if ignored[owner >> 6] & (ONE << np.uint64(owner & 63)):
                continue  # the short circuit
            increments += 1
            if count_down(cells, filters[e], network.width, current) == 0:
                undecided -= mark(scratch.matched, scratch.summary, ignored, owner)
                if undecided == 0:
                    return 0, increments
    return undecided, increments


@borrowing
def count_survivors(
    network: Any, scratch: Any, found: int, current: int, undecided: int
) -> tuple[int, int]:
    """The same, after pre-processing: the short circuit is taken so often and at random that its
    branch costs more than counting. Undecided postings are gathered in blocks without one."""
    filters_at, filters, owners = network.filters_at, network.filters, network.owners
    runs, ignored, block = scratch.runs, scratch.ignored, scratch.block
    increments = 0
    for i in range(found):
        high = filters_at[runs[i, 1]]
        for low in range(filters_at[runs[i, 0]], high, BLOCK):
            size = 0
            for e in range(low, min(low + BLOCK, high)):
                owner = owners[e]
                block[size] = e
                size += int(ONE - ((ignored[owner >> 6] >> np.uint64(owner & 63)) & ONE))
            for k in range(size):
                e = block[k]
                owner = owners[e]
                if ignored[owner >> 6] & (ONE << np.uint64(owner & 63)):
                    continue  # decided within this block
                increments += 1
                if count_down(scratch.cells, filters[e], network.width, current) == 0:
                    undecided -= mark(scratch.matched, scratch.summary, ignored, owner)
                    if undecided == 0:
                        return 0, increments
    return undecided, increments


@borrowing
def eliminate(required: Any, required_name: Any, present: Any, ignored: Any, outside: int) -> int:
    """Pre-processing (2003, figure 7): a name that is not there rules out all who need it.

    `ignored` has the bits of `outside` interfaces before. Returns how many were eliminated: they are
    counted once, after all rounds, since the union of bits costs less than asking each time whether
    to go on.
    """
    if len(required_name) == 0:
        return 0
    for i in range(len(required_name)):
        if not present[required_name[i]]:
            for word in range(len(ignored)):
                ignored[word] |= required[i, word]
    eliminated = -outside
    for word in range(len(ignored)):
        eliminated += population(ignored[word])
    return eliminated


@borrowing
def next_stamp(clock: Any, cells: Any, width: int) -> int:
    """The stamp of a new row. When stamps run out, all cells are put back to 0 once."""
    clock[0] += 1
    if clock[0] >> (8 * cells.itemsize - 1 - 2 * width):
        clock[0] = 1
        for i in range(len(cells)):
            cells[i] &= (1 << (2 * width)) - 1
    return int(clock[0])


@borrowing
def drain(matched: Any, summary: Any, ignored: Any, out: Any, count: int) -> int:
    """Write the matched interfaces, ascending, and clear their bits."""
    for group in range(len(summary)):
        words = summary[group]
        summary[group] = ZERO
        while words != ZERO:
            word = (group << 6) + trailing_zeros(words)
            words &= words - ONE
            left = matched[word]
            matched[word] = ZERO
            ignored[word] = ZERO
            while left != ZERO:
                out[count] = (word << 6) + trailing_zeros(left)
                count += 1
                left &= left - ONE
    return count
