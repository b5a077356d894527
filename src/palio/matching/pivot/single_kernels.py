"""The kernel of a single message: a batch of one row, in one call.

A message comes as 64-bit words, written by `encode/single_message.py`:

    words   [head value] [head value] ...  doubles ...  the bytes of all strings, one after the other
    head    name << 3 | type
    value   an int, 0 or 1, microseconds; the position of a double; the length of a string or of the
            JSON text of an array

The table comes as the places of its arrays: two words each, address and length. To unbox some
thirty arrays takes numba longer than to match a message. For the same reason a call that leaves
interfaces out gives their bits twice in one array:

    bits    interfaces matched so far, or left out  |  0  |  those left out, if any
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.np.numpy_support import carray

from palio.matching.bits import pointer, population, read_only
from palio.matching.encode.arrays import EncodedMessages, Strings, Texts
from palio.matching.encode.attribute_kernels import settle
from palio.matching.encode.codes import ABOVE_FLOAT, ARRAY, FLOAT, STRING, TYPE_BITS
from palio.matching.encode.text_kernels import BASE, ONE, hits_max
from palio.matching.jit import allocating
from palio.matching.pivot.arrays import CoveredRows, HotKeys, Pivots, PivotScratch
from palio.matching.pivot.forward_kernels import forward, ranges_max


@allocating
def pivots_at(p: Any) -> Any:
    """The arrays of `Pivots`, from their places."""
    return Pivots(
        carray(pointer(p[0, 0]), p[0, 1], np.int32),
        carray(pointer(p[1, 0]), p[1, 1], np.uint8),
        carray(pointer(p[2, 0]), p[2, 1], np.uint8),
        carray(pointer(p[3, 0]), p[3, 1], np.int32),
        carray(pointer(p[4, 0]), p[4, 1], np.int64),
        carray(pointer(p[5, 0]), p[5, 1], np.int32),
        carray(pointer(p[6, 0]), p[6, 1], np.int32),
        carray(pointer(p[7, 0]), p[7, 1], np.int32),
        carray(pointer(p[8, 0]), (p[8, 1], 5), np.int32),
        carray(pointer(p[9, 0]), (p[9, 1], 3), np.int32),
        carray(pointer(p[10, 0]), p[10, 1], np.int32),
        carray(pointer(p[11, 0]), p[11, 1], np.int32),
        carray(pointer(p[12, 0]), p[12, 1], np.int32),
        carray(pointer(p[13, 0]), p[13, 1], np.int64),
        carray(pointer(p[14, 0]), p[14, 1], np.int64),
        carray(pointer(p[15, 0]), p[15, 1], np.int64),
        carray(pointer(p[16, 0]), p[16, 1], np.uint8),
    )


@allocating
def hot_keys_at(p: Any) -> Any:
    """The arrays of `HotKeys`, from their places."""
    return HotKeys(
        carray(pointer(p[0, 0]), p[0, 1], np.int32),
        carray(pointer(p[1, 0]), p[1, 1], np.int32),
        carray(pointer(p[2, 0]), p[2, 1], np.int32),
        carray(pointer(p[3, 0]), p[3, 1], np.int32),
        carray(pointer(p[4, 0]), p[4, 1], np.int32),
        carray(pointer(p[5, 0]), p[5, 1], np.int64),
        carray(pointer(p[6, 0]), p[6, 1], np.uint64),
        carray(pointer(p[7, 0]), p[7, 1], np.int32),
        carray(pointer(p[8, 0]), p[8, 1], np.int32),
    )


@allocating
def strings_at(p: Any) -> Any:
    """The arrays of `Strings`, from their places."""
    return Strings(
        carray(pointer(p[0, 0]), p[0, 1], np.uint8),
        carray(pointer(p[1, 0]), p[1, 1], np.int64),
        carray(pointer(p[2, 0]), p[2, 1], np.uint64),
        carray(pointer(p[3, 0]), p[3, 1], np.int32),
        carray(pointer(p[4, 0]), p[4, 1], np.uint8),
        carray(pointer(p[5, 0]), p[5, 1], np.int32),
        carray(pointer(p[6, 0]), p[6, 1], np.int32),
        carray(pointer(p[7, 0]), p[7, 1], np.int32),
    )


@allocating
def unresolved(strings: Any, text_begin: Any) -> Any:
    """The strings of one message, of which nothing is known yet, with room for all hits."""
    found = len(text_begin) - 1
    longest = 0
    for t in range(found):
        longest = max(longest, text_begin[t + 1] - text_begin[t])
    room = hits_max(strings, longest)
    powers = np.empty(longest + 1, np.uint64)
    powers[0] = ONE
    for i in range(longest):
        powers[i + 1] = powers[i] * BASE
    return Texts(
        np.full(4 * found, -1, np.int64), np.empty(found * room + 1, np.int32),
        np.zeros(found, np.int64), np.zeros(found, np.uint8), np.array([0, room]),
        np.empty(longest + 1, np.uint64), powers,
    )


@allocating
def forward_one(
    pivot_places: Any, hot_places: Any, string_places: Any, words: Any, count: int, doubles: int, found: int,
    interfaces: int, slot: Any, bits: Any, summary: Any, out: Any,
) -> int:
    """Forward one message; returns how many interfaces are in `out`, ascending.

    The message has `count` attributes, of which so many are doubles, and `found` strings.
    """
    pivots, strings = pivots_at(pivot_places), strings_at(string_places)
    batch = EncodedMessages(
        np.array([0, count]), np.empty(count, np.int32), np.empty(count, np.uint8),
        np.empty(count, np.int64), np.empty(count, np.uint8), np.empty(count, np.int64),
        np.empty(count, np.uint8), np.full(count, -1, np.int32),
        read_only(words.view(np.uint8)[8 * (2 * count + doubles) :]), np.zeros(found + 1, np.int64),
    )
    found = 0
    for j in range(count):
        head, value = words[2 * j], words[2 * j + 1]
        type = head & ((1 << TYPE_BITS) - 1)
        batch.name[j], batch.type[j] = head >> TYPE_BITS, type
        if type == STRING or type == ARRAY:
            batch.text[j] = found
            batch.text_begin[found + 1] = batch.text_begin[found] + value
            found += 1
        is_double = type == FLOAT or type == ABOVE_FLOAT
        batch.floor[j] = words[2 * count + value] if is_double else value
    settle(
        0, count, batch.type, batch.floor, batch.place, batch.float_floor, batch.float_place,
        batch.text,
    )
    texts = unresolved(strings, batch.text_begin)
    hot_keys = hot_keys_at(hot_places)
    room = ranges_max(pivots, hot_keys, batch, 0, count, texts.limits[1])
    scratch = PivotScratch(
        slot, bits, summary, np.empty((room, 2), np.int64), np.empty(room, np.int32)
    )
    ends = np.zeros(1, np.int64)
    # No literals in this call: numba would compile the kernel of batches once more for them.
    first, last, copying = batch.row_at[0], np.int64(len(ends)), count < 0
    reach, excluded = interfaces, bits[(interfaces + 63) // 64 + 1 :]
    for w in range(len(excluded)):
        reach -= population(excluded[w])
    covered = CoveredRows(
        first, reach, excluded, np.empty((1, 0), np.uint64), np.zeros(1, np.uint8)
    )
    forward(
        pivots, hot_keys, strings, batch, texts, covered, scratch, first, last, interfaces,
        copying, ends, out,
    )
    return ends[0]
