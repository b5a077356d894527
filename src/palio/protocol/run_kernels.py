"""The kernels of runs: PUBLISH frames are read, and DELIVER frames written, without Python.

`scan` fills a row for each frame; `gather` copies the attributes together, as the matching kernels
take them; `weigh` and `write` make one piece of bytes for each connection out of what was matched.

    rows      number  time  text  body  end        text, body, end: places in the data
    found     interfaces, those of row r at ends[r] to ends[r + 1]
    lines     of each interface: its connection (NONE: not for kernels; NOBODY: gets nothing), its id,
              its place in credits
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.jit import borrowing
from palio.protocol.run_codes import (
    BODY,
    CREDIT,
    DELIVER,
    END,
    ID,
    LINK,
    NO,
    NOBODY,
    NONE,
    NUMBER,
    PREFIX,
    PUBLISH,
    TEXT,
    TIME,
)


@borrowing
def scan(data: Any, at: int, limits: Any, rows: Any) -> int:
    """The frames from `at` on, as long as they are PUBLISH frames like the first: all durable or
    none. Whatever else there is ends the run; so does a frame that is not whole or too large."""
    stop, count, first = len(data), 0, 0
    while count < len(rows) and stop - at >= PREFIX + 4:
        size, head, text = word(data, at), word(data, at + 5), word(data, at + 9)
        begin = at + PREFIX
        end, middle = at + 4 + size, begin + head
        body = middle + text
        if data[at + 4] != PUBLISH or end > stop or body > end or data[begin] != 0x93:
            break
        if head > limits[0] or text > limits[1] or end - body > limits[2]:
            break
        number = number_at(data, begin + 1, middle)
        if number < 0:
            break
        begin += 1 + number_size(data[begin + 1])
        time = number_at(data, begin, middle)
        if time < 0:
            break
        begin += number_size(data[begin])
        if begin + 1 != middle or data[begin] & 0xFE != 0xC2:
            break
        if count == 0:
            first = data[begin]
        elif data[begin] != first:
            break
        rows[count, NUMBER] = number
        rows[count, TIME] = time
        rows[count, TEXT] = middle
        rows[count, BODY] = body
        rows[count, END] = end
        count += 1
        at = end
    return count


@borrowing
def word(data: Any, at: int) -> int:
    """The little-endian u32 at a place."""
    return (
        int(data[at]) | int(data[at + 1]) << 8 | int(data[at + 2]) << 16 | int(data[at + 3]) << 24
    )


@borrowing
def number_size(first: int) -> int:
    """The bytes of a msgpack number that begins so."""
    return 1 if first < 0x80 else 1 + (1 << (first & 3))


@borrowing
def number_at(data: Any, at: int, end: int) -> int:
    """A msgpack number from 0 to 2**63 - 1, or NONE."""
    if at >= end:
        return NONE
    first = data[at]
    if first < 0x80:
        return int(first)
    if first < 0xCC or first > 0xCF or at + number_size(first) > end:
        return NONE
    value = 0
    for i in range(at + 1, at + number_size(first)):
        value = value << 8 | int(data[i])
    return value  # of 2**63 and more: negative


@borrowing
def copy(data: Any, begin: int, end: int, out: Any, at: int) -> int:
    """data[begin:end] to out[at:]; where that ends."""
    for i in range(np.uint64(end - begin)):  # unsigned: many at once
        out[np.uint64(at) + i] = data[np.uint64(begin) + i]
    return at + end - begin


@borrowing
def gather(data: Any, rows: Any, blob: Any, begin: Any) -> None:
    """The attributes of all rows: blob[begin[r]:begin[r + 1]]."""
    at = 0
    for r in range(len(rows)):
        begin[r] = at
        at = copy(data, rows[r, TEXT], rows[r, BODY], blob, at)
    begin[len(rows)] = at


@borrowing
def written_size(value: int) -> int:
    """The bytes of a number in msgpack."""
    if value < 0x80:
        return 1
    if value < 0x100:
        return 2
    if value < 0x10000:
        return 3
    return 5 if value < 0x100000000 else 9


@borrowing
def put_number(out: Any, at: int, value: int) -> int:
    """Write a number in msgpack; where it ends."""
    size = written_size(value)
    if size == 1:
        out[at] = value
        return at + 1
    out[at] = 0xCC if size == 2 else 0xCD if size == 3 else 0xCE if size == 5 else 0xCF
    for i in range(size - 1):
        out[at + 1 + i] = value >> 8 * (size - 2 - i) & 0xFF
    return at + size


@borrowing
def put_word(out: Any, at: int, value: int) -> None:
    for i in range(4):
        out[at + i] = value >> 8 * i & 0xFF


@borrowing
def head_size(rows: Any, r: int, id: int, position: int, publisher: Any) -> int:
    """[[id], position, publisher, number, time, again] in msgpack."""
    return (
        3 + written_size(id) + written_size(position) + len(publisher)
        + written_size(rows[r, NUMBER]) + written_size(rows[r, TIME])
    )


@borrowing
def put_frame(
    data: Any, rows: Any, r: int, id: int, position: int, publisher: Any, again: int, out: Any,
    at: int,
) -> int:
    """Write a row as a DELIVER frame; where it ends."""
    begin, end = rows[r, TEXT], rows[r, END]
    head = head_size(rows, r, id, position, publisher)
    put_word(out, at, PREFIX - 4 + head + end - begin)
    out[at + 4] = DELIVER
    put_word(out, at + 5, head)
    put_word(out, at + 9, rows[r, BODY] - begin)
    out[at + 13] = 0x96
    out[at + 14] = 0x91
    at = put_number(out, at + 15, id)
    at = put_number(out, at, position)
    at = copy(publisher, 0, len(publisher), out, at)
    at = put_number(out, at, rows[r, NUMBER])
    at = put_number(out, at, rows[r, TIME])
    out[at] = again
    return copy(data, begin, end, out, at + 1)


@borrowing
def weigh_entries(rows: Any, places: Any, positions: Any, id: int, publisher: Any) -> int:
    """The bytes of these rows as frames of a durable subscription."""
    size = 0
    for k in range(len(places)):
        r = places[k]
        size += PREFIX + head_size(rows, r, id, positions[k], publisher)
        size += rows[r, END] - rows[r, TEXT]
    return size


@borrowing
def write_entries(
    data: Any, rows: Any, places: Any, positions: Any, id: int, publisher: Any, again: int,
    out: Any,
) -> None:
    """Write these rows, each with its position in the queue."""
    at = 0
    for k in range(len(places)):
        at = put_frame(data, rows, places[k], id, positions[k], publisher, again, out, at)


@borrowing
def weigh(
    rows: Any, ends: Any, found: Any, lines: Any, credits: Any, publisher: Any, sizes: Any,
    slow: Any,
) -> int:
    """Pay for what can be delivered at once, and add up the bytes for each connection; the rest is
    left to Python: places in `found`, as many as are returned. Its interfaces become NONE."""
    left = 0
    for r in range(len(rows)):
        for k in range(ends[r], ends[r + 1]):
            i = found[k]
            link = lines[i, LINK]
            if link == NOBODY:
                found[k] = NONE
                continue
            if link < 0 or credits[lines[i, CREDIT]] <= 0:
                slow[left] = k
                left += 1
                continue
            credits[lines[i, CREDIT]] -= 1
            head = head_size(rows, r, lines[i, ID], 0, publisher)
            sizes[link] += PREFIX + head + rows[r, END] - rows[r, TEXT]
    for i in range(left):
        found[slow[i]] = -1 - found[slow[i]]
    return left


@borrowing
def write(
    data: Any, rows: Any, ends: Any, found: Any, lines: Any, publisher: Any, places: Any, out: Any
) -> None:
    """Write the frames that `weigh` has paid for, each where its connection's bytes go on."""
    for r in range(len(rows)):
        for k in range(ends[r], ends[r + 1]):
            i = found[k]
            if i < 0:
                continue
            link = lines[i, LINK]
            places[link] = put_frame(
                data, rows, r, lines[i, ID], 0, publisher, NO, out, places[link]
            )
