"""The kernels that every engine shares: does a value satisfy a constraint?

A value is its floor key and its place (`codes`); an operand is a key. Strings are ranges of bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.encode.codes import (
    BELOW,
    BETWEEN,
    CONTAINS,
    EQ,
    EXACT,
    FLOAT,
    GT,
    INT,
    LE,
    LT,
    NE,
    NOT_PREFIX,
    NOT_SUFFIX,
    PREFIX,
    SUFFIX,
)
from palio.matching.jit import borrowing

NEAR = 16  # keys: two cache lines

@borrowing
def upper_bound(keys: Any, low: int, high: int, key: int) -> int:
    """The first position in keys[low:high], sorted, whose key is above `key`.

    The steps of a search go wrong every other time, so there are no branches; and comparing all that
    is left at last, several keys at once, is quicker. Unsigned positions make that possible: numba
    takes others from the end.
    """
    size = high - low
    while size > NEAR:
        half = size >> 1
        low += half * (keys[np.uint64(low + half - 1)] <= key)
        size -= half
    count = 0
    for i in range(np.uint64(size)):
        count += keys[np.uint64(low) + i] <= key
    return low + count


@borrowing
def unpack(low: int, high: int) -> int:
    """A key from its two halves."""
    return (np.int64(high) << 32) | (np.int64(low) & 0xFFFFFFFF)


@borrowing
def span(kind: int, keys: Any, low: int, high: int, floor: int, place: int) -> tuple[int, int]:
    """The keys of an ordered directory that a value satisfies: always one range."""
    at = low if place == BELOW else upper_bound(keys, low, high, floor)
    hit = 1 if place == EXACT and at > low and keys[at - 1] == floor else 0
    if kind == EQ:
        return at - hit, at
    if kind == LT:
        return at, high
    if kind == LE:
        return at - hit, high
    if kind == GT:
        return low, at - hit
    return low, at


@borrowing
def same(a: Any, a_from: int, b: Any, b_from: int, length: int) -> bool:
    for i in range(length):
        if a[a_from + i] != b[b_from + i]:
            return False
    return True


@borrowing
def compare(a: Any, a_from: int, a_to: int, b: Any, b_from: int, b_to: int) -> int:
    """The order of two byte strings: -1, 0 or 1."""
    length = min(a_to - a_from, b_to - b_from)
    for i in range(length):
        x, y = a[a_from + i], b[b_from + i]
        if x != y:
            return -1 if x < y else 1
    rest = (a_to - a_from) - (b_to - b_from)
    return 0 if rest == 0 else (-1 if rest < 0 else 1)


@borrowing
def can_compare(type: int, domain: int) -> bool:
    """A value of this type and an operand of this domain: the same, or both numbers."""
    return type == domain or ((type == INT or type == FLOAT) and (domain == INT or domain == FLOAT))


@borrowing
def holds_ordered(op: int, key: int, floor: int, place: int) -> bool:
    """=, !=, <, <=, >, >= of a value, given by its floor key and place, with a key."""
    if op == EQ:
        return place == EXACT and key == floor
    if op == NE:
        return not (place == EXACT and key == floor)
    if place == BELOW:
        return op == LT or op == LE
    if op == LT:
        return key > floor
    if op == LE:
        return key > floor or (key == floor and place == EXACT)
    if op == GT:
        return key < floor or (key == floor and place == BETWEEN)
    return key <= floor


@borrowing
def is_member(keys: Any, low: int, high: int, floor: int, place: int) -> bool:
    """Is the value one of keys[low:high], sorted?"""
    if place != EXACT:
        return False
    at = upper_bound(keys, low, high, floor)
    return at > low and keys[at - 1] == floor


@borrowing
def holds_text(op: int, blob: Any, start: int, size: int, text: Any, begin: int, end: int) -> bool:
    """prefix, suffix, contains and their negations, on bytes."""
    found = False
    if size <= end - begin:
        if op == PREFIX or op == NOT_PREFIX:
            found = same(blob, start, text, begin, size)
        elif op == SUFFIX or op == NOT_SUFFIX:
            found = same(blob, start, text, end - size, size)
        else:
            for at in range(begin, end - size + 1):
                if same(blob, start, text, at, size):
                    found = True
                    break
    return found if op <= CONTAINS else not found
