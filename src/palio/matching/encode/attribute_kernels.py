"""The kernels that place and fill attributes: plain loops over flat arrays, nothing else.

    items      v0  v1  --  v3          a column, or the entries of lists, some of them NULL
    at         12   3  -1  40          where each item goes among the attributes of the batch

`place_column` and `place_entries` decide `at`; the `fill` kernels write raw values there: an int,
the bits of a double, 0 or 1, microseconds; `settle` turns raw values into floor keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.encode.codes import (
    ABOVE_FLOAT,
    ABOVE_INT,
    ARRAY,
    BELOW,
    BETWEEN,
    EXACT,
    FLOAT,
    INT,
    NEGATIVE_ZERO,
    STRING,
)
from palio.matching.jit import borrowing

INT_MAX = np.int64(2**63 - 1)
INT_MIN = np.int64(-(2**63))
SAFE = np.int64(2**53)  # up to here every integer is a double
TWO63 = 2.0**63
NAN_KEY = np.int64(0x7FF0_0000_0000_0001)
MAGNITUDE = np.int64(0x7FFF_FFFF_FFFF_FFFF)

GOOD = -1  # of place_entries: no bad entry


@borrowing
def is_set(bitmap: Any, position: int) -> bool:
    return (bitmap[position >> 3] >> (position & 7)) & 1 != 0


@borrowing
def count_valid(bitmap: Any, shift: int, counts: Any) -> None:
    """Add one to the count of each row whose value is there."""
    for i in range(len(counts)):
        if is_set(bitmap, i + shift):
            counts[i] += 1


@borrowing
def place_column(
    bitmap: Any, shift: int, nullable: bool, number: int, cursor: Any, at: Any, name: Any
) -> None:
    """The next place of each row for the values of a column, -1 for NULL; names are written."""
    for i in range(len(at)):
        if nullable and not is_set(bitmap, i + shift):
            at[i] = -1
        else:
            to = cursor[i]
            at[i] = to
            name[to] = number
            cursor[i] = to + 1


@borrowing
def place_entries(
    begin: Any, rows: Any, code: Any, valid: Any, number: Any, last: Any, row_at: Any, at: Any
) -> int:
    """Places for the entries of lists: row r has entries begin[r] to begin[r + 1].

    `rows` tells which lists are there, `code` the entry's distinct name (-1: none), `valid`
    whether it has a value, `number` the table's number of a distinct name, `last` (of zeros) is
    for finding repeats. Returns the first entry whose name is missing or repeated, or GOOD.
    """
    total = 0
    for r in range(len(rows)):
        if rows[r]:
            for e in range(begin[r], begin[r + 1]):
                distinct = code[e]
                if distinct < 0:
                    if valid[e]:
                        return e
                    continue
                if last[distinct] == r + 1:
                    return e
                last[distinct] = r + 1
                if valid[e] and number[distinct] >= 0:
                    at[e] = total
                    total += 1
        row_at[r + 1] = total
    return GOOD


@borrowing
def fill_names(at: Any, code: Any, number: Any, name: Any) -> None:
    for i in range(len(at)):
        if at[i] >= 0:
            name[at[i]] = number[code[i]]


@borrowing
def fill_values(at: Any, raw: Any, kind: int, type: Any, floor: Any, text: Any) -> None:
    """Bools, ints and doubles."""
    for i in range(len(at)):
        to = at[i]
        if to >= 0:
            type[to] = kind
            floor[to] = raw[i]
            text[to] = -1


@borrowing
def fill_typed(at: Any, raw: Any, kinds: Any, type: Any, floor: Any, text: Any) -> None:
    """The same, each of its own type."""
    for i in range(len(at)):
        to = at[i]
        if to >= 0:
            type[to] = kinds[i]
            floor[to] = raw[i]
            text[to] = -1


@borrowing
def fill_texts(
    at: Any, raw: Any, base: int, kind: int, type: Any, floor: Any, text: Any
) -> None:
    """Strings, or arrays: positions among distinct texts that begin at `base` in the batch."""
    for i in range(len(at)):
        to = at[i]
        if to >= 0:
            type[to] = kind
            floor[to] = 0
            text[to] = base + raw[i]


@borrowing
def fill_mixed(at: Any, code: Any, kind: Any, raw: Any, type: Any, floor: Any, text: Any) -> None:
    """Values of several types: raw[kind, code] is what a distinct text is as that type."""
    for i in range(len(at)):
        to = at[i]
        if to >= 0:
            found = raw[kind[i], code[i]]
            type[to] = kind[i]
            floor[to] = 0 if kind[i] == STRING else found
            text[to] = found if kind[i] == STRING else -1


@borrowing
def mark_used(at: Any, code: Any, kind: Any, used: Any) -> None:
    """Which distinct texts are read as which type."""
    for i in range(len(at)):
        if at[i] >= 0:
            used[kind[i], code[i]] = True


@borrowing
def first_negative(at: Any, raw: Any) -> int:
    """The first item that is there and below 0, or -1: of an unsigned column it is too large."""
    for i in range(len(at)):
        if at[i] >= 0 and raw[i] < 0:
            return i
    return -1


@borrowing
def first_bad_time(at: Any, raw: Any, divide: int, exact: bool, low: int, high: int) -> int:
    """The first item that is there and whose quotient is not whole or out of bounds, or -1."""
    for i in range(len(at)):
        if at[i] >= 0:
            quotient = raw[i] // divide
            if quotient < low or quotient > high or (exact and quotient * divide != raw[i]):
                return i
    return -1


@borrowing
def scale_times(raw: Any, divide: int, multiply: int, micros: Any) -> None:
    """Microseconds; what overflows is a value that is not there."""
    for i in range(len(raw)):
        micros[i] = raw[i] // divide * multiply


@borrowing
def settle(
    begin: int, end: int, type: Any, floor: Any, place: Any, float_floor: Any, float_place: Any,
    text: Any,
) -> None:
    """Turn the raw values of attributes begin to end, in `floor`, into floor keys and places."""
    for i in range(begin, end):
        raw = floor[i]
        kind = type[i]
        place[i] = EXACT
        float_floor[i] = 0
        float_place[i] = 0
        if kind == INT or kind == ABOVE_INT:
            nearest = np.float64(raw)
            key = nearest.view(np.int64)
            if key < 0:
                key = -(key & MAGNITUDE)
            float_place[i] = EXACT
            if raw > SAFE or raw < -SAFE:
                above = nearest >= TWO63 or np.int64(nearest) > raw
                if above or np.int64(nearest) != raw:
                    float_place[i] = BETWEEN
                key -= np.int64(above)
            float_floor[i] = key
        elif kind == FLOAT or kind == ABOVE_FLOAT:
            value = np.int64(raw).view(np.float64)
            float_place[i] = EXACT
            float_floor[i] = raw if raw >= 0 else -(raw & MAGNITUDE)
            if raw == INT_MIN:
                text[i] = NEGATIVE_ZERO
            if value != value:
                float_floor[i] = NAN_KEY
                floor[i], place[i] = INT_MAX, BETWEEN
            elif value >= TWO63:
                floor[i], place[i] = INT_MAX, BETWEEN
            elif value < -TWO63:
                floor[i], place[i] = INT_MIN, BELOW
            else:
                whole = np.floor(value)
                floor[i] = np.int64(whole)
                if whole != value:
                    place[i] = BETWEEN
        elif kind == STRING or kind == ARRAY:
            place[i] = 0
        if kind == ABOVE_INT or kind == ABOVE_FLOAT:
            type[i] = FLOAT
            float_place[i] = BETWEEN
            if place[i] == EXACT:
                place[i] = BETWEEN
