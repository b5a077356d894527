"""The kernels that look strings up among the operands: plain loops over `arrays.Strings`.

A value's running sums give the hash of any piece of it, so every prefix, suffix and substring
whose length occurs among the operands is one probe of a hash table, verified on the bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.encode.codes import BETWEEN, EXACT
from palio.matching.encode.constraint_kernels import compare, same
from palio.matching.jit import borrowing

BASE = np.uint64(0x9E3779B97F4A7C15)
ONE = np.uint64(1)
ZERO = np.uint64(0)


@borrowing
def hash_bytes(blob: Any, begin: int, end: int) -> Any:
    """The polynomial of the bytes; the empty string hashes to 0."""
    h = ZERO
    for i in range(begin, end):
        h = h * BASE + np.uint64(blob[i]) + ONE
    return h


@borrowing
def build_hash(blob: Any, begin: Any, hashes: Any, slots: Any) -> None:
    """Fill the hashes and the open-addressing table of the operands."""
    mask = np.uint64(len(slots) - 1)
    for rank in range(len(begin) - 1):
        h = hash_bytes(blob, begin[rank], begin[rank + 1])
        hashes[rank] = h
        at = (h ^ (h >> np.uint64(29))) & mask
        while slots[at] != 0:
            at = (at + ONE) & mask
        slots[at] = rank + 1


@borrowing
def find(strings: Any, h: Any, blob: Any, begin: int, length: int) -> int:
    """The rank of the operand with these bytes, -1 when there is none."""
    mask = np.uint64(len(strings.slots) - 1)
    at = (h ^ (h >> np.uint64(29))) & mask
    while True:
        found = strings.slots[at]
        if found == 0:
            return -1
        rank = found - 1
        if strings.hash[rank] == h:
            start = strings.begin[rank]
            if strings.begin[rank + 1] - start == length and same(
                strings.blob, start, blob, begin, length
            ):
                return rank
        at = (at + ONE) & mask


@borrowing
def resolve_text(
    strings: Any, blob: Any, begin: int, end: int, sums: Any, powers: Any, hits: Any, ends: Any
) -> tuple[int, int]:
    """Look one value up. hits[:ends[0]] are its prefixes, then suffixes, then parts.

    Returns its floor rank and place. `sums` and `powers` have room for the value's bytes, `hits`
    for all that can be found.
    """
    length = end - begin
    sums[0] = ZERO
    for i in range(length):
        sums[i + 1] = sums[i] * BASE + np.uint64(blob[begin + i]) + ONE
    count = 0
    for i in range(len(strings.prefix_lengths)):
        size = strings.prefix_lengths[i]
        if size > length:
            break
        rank = find(strings, sums[size], blob, begin, size)
        if rank >= 0 and strings.uses[rank] & 1:
            hits[count] = rank
            count += 1
    ends[0] = count
    for i in range(len(strings.suffix_lengths)):
        size = strings.suffix_lengths[i]
        if size > length:
            break
        h = sums[length] - sums[length - size] * powers[size]
        rank = find(strings, h, blob, end - size, size)
        if rank >= 0 and strings.uses[rank] & 2:
            hits[count] = rank
            count += 1
    ends[1] = count
    for i in range(len(strings.part_lengths)):
        size = strings.part_lengths[i]
        if size > length:
            break
        for start in range(length - size + 1 if size > 0 else 1):
            h = sums[start + size] - sums[start] * powers[size]
            rank = find(strings, h, blob, begin + start, size)
            if rank >= 0 and strings.uses[rank] & 4:
                known = False
                for j in range(ends[1], count):
                    if hits[j] == rank:
                        known = True
                        break
                if not known:
                    hits[count] = rank
                    count += 1
    ends[2] = count
    return place_text(strings, blob, begin, end, sums[length])


@borrowing
def place_text(strings: Any, blob: Any, begin: int, end: int, h: Any) -> tuple[int, int]:
    """The floor rank and place of a value with this hash."""
    exact = find(strings, h, blob, begin, end - begin)
    if exact >= 0:  # no search: it would miss the cache at each step
        return exact, EXACT
    low, high = 0, len(strings.begin) - 1
    while low < high:
        middle = (low + high) >> 1
        if (
            compare(
                strings.blob, strings.begin[middle], strings.begin[middle + 1], blob, begin, end
            )
            <= 0
        ):
            low = middle + 1
        else:
            high = middle
    return low - 1, BETWEEN


@borrowing
def hits_max(strings: Any, length: int) -> int:
    """How many operands a value of so many bytes can begin with, end with and contain."""
    parts = 0
    for i in range(len(strings.part_lengths)):
        size = strings.part_lengths[i]
        if size <= length:
            parts += length - size + 1
    parts = min(parts, len(strings.uses))
    return len(strings.prefix_lengths) + len(strings.suffix_lengths) + parts


@borrowing
def put_in_place(strings: Any, texts: Any, blob: Any, begin: int, end: int, t: int) -> None:
    """Look up only where text t lies among the operands, not which it holds: a fraction of all."""
    h = hash_bytes(blob, begin, end)
    texts.floor[t], texts.place[t] = place_text(strings, blob, begin, end, h)


@borrowing
def settle(strings: Any, texts: Any, blob: Any, begin: int, end: int, t: int) -> None:
    """Look text t up, which lies in blob[begin:end]; `texts.hits` has room for what is found."""
    used = texts.limits[0]
    at = texts.at[4 * t : 4 * t + 4]
    texts.floor[t], texts.place[t] = resolve_text(
        strings, blob, begin, end, texts.sums, texts.powers, texts.hits[used:], at[1:]
    )
    at[0] = used
    for i in range(1, 4):
        at[i] += used
    texts.limits[0] = at[3]


@borrowing
def settle_all(strings: Any, texts: Any, blob: Any, begin: Any, first: int) -> int:
    """Look all texts up from the first on, as far as there is room; returns the next."""
    for t in range(first, len(begin) - 1):
        if texts.limits[0] + texts.limits[1] > len(texts.hits):
            return t
        settle(strings, texts, blob, begin[t], begin[t + 1], t)
    return len(begin) - 1


@borrowing
def has_room(texts: Any, text: Any, first: int, last: int) -> bool:
    """Is there room for the hits of attributes [first, last), whatever they are?"""
    needed = (last - first) * texts.limits[1]
    if texts.limits[0] + needed <= len(texts.hits):
        return True
    needed = 0
    for j in range(first, last):
        if text[j] >= 0 and texts.at[4 * text[j]] < 0:
            needed += texts.limits[1]
    return texts.limits[0] + needed <= len(texts.hits)
