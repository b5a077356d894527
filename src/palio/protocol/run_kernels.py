"""The kernels of runs: messages are read out of frames, and written into others, without Python.

`scan` fills a row for each PUBLISH frame, `scan_forwards` for each FORWARD frame; `gather` copies the
attributes together, as the matching kernels take them; `weigh` and `write` make one piece of bytes
for each connection out of what was matched, `write_entries` and `write_forwards` one for a durable
subscription, and for a neighbour.

    rows      number  time  text  body  end  name  name end  trail     text, body, end: in the data;
              name, name end: the publisher in msgpack, in `names`; trail (of FORWARD): until name
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
    FORWARD,
    ID,
    LINK,
    NAME,
    NAME_END,
    NO,
    NOBODY,
    NONE,
    NUMBER,
    PREFIX,
    PUBLISH,
    TEXT,
    TIME,
    TRAIL,
)


@borrowing
def scan(data: Any, at: int, limits: Any, rows: Any) -> int:
    """The frames from `at` on, as long as they are PUBLISH frames like the first: all durable or
    none. Whatever else there is ends the run; so does a frame that is not whole or too large."""
    count = first = 0
    while count < len(rows):
        begin = enter(data, at, PUBLISH, 0x93, limits, rows, count)
        if begin < 0:
            break
        flag = read_numbers(data, begin, rows, count)
        if flag < 0 or (count and flag != first):
            break
        first, at = flag, rows[count, END]
        count += 1
    return count


@borrowing
def scan_forwards(data: Any, at: int, limits: Any, rows: Any) -> int:
    """The same for FORWARD frames."""
    count = first = 0
    while count < len(rows):
        begin = enter(data, at, FORWARD, 0x95, limits, rows, count)
        if begin < 0:
            break
        middle = rows[count, TEXT]
        end = skip(data, begin, middle)
        if end < 0 or end >= middle or (not 0xA0 <= data[end] < 0xC0 and data[end] != 0xD9):
            break
        name_end = skip(data, end, middle)
        if name_end < 0:
            break
        flag = read_numbers(data, name_end, rows, count)
        if flag < 0 or (count and flag != first):
            break
        rows[count, NAME] = end
        rows[count, NAME_END] = name_end
        rows[count, TRAIL] = begin
        first, at = flag, rows[count, END]
        count += 1
    return count


@borrowing
def enter(data: Any, at: int, kind: int, first: int, limits: Any, rows: Any, r: int) -> int:
    """Where the parts of the frame at `at` lie, into row r; where the fields of its header begin,
    or NONE: it is none of this kind, or not whole, or too large."""
    stop = len(data)
    if stop - at < PREFIX + 4:
        return NONE
    size, head, text = word(data, at), word(data, at + 5), word(data, at + 9)
    begin, end = at + PREFIX, at + 4 + size
    body = begin + head + text
    if data[at + 4] != kind or end > stop or body > end or data[begin] != first:
        return NONE
    if head > limits[0] or text > limits[1] or end - body > limits[2]:
        return NONE
    rows[r, TEXT] = begin + head
    rows[r, BODY] = body
    rows[r, END] = end
    return begin + 1


@borrowing
def read_numbers(data: Any, at: int, rows: Any, r: int) -> int:
    """The last fields of a header, number, time and a flag, into row r; the flag, or NONE."""
    middle = rows[r, TEXT]
    number = number_at(data, at, middle)
    if number < 0:
        return NONE
    at += number_size(data[at])
    time = number_at(data, at, middle)
    if time < 0:
        return NONE
    at += number_size(data[at])
    if at + 1 != middle or data[at] & 0xFE != NO:
        return NONE
    rows[r, NUMBER] = number
    rows[r, TIME] = time
    return int(data[at])


@borrowing
def skip(data: Any, at: int, end: int) -> int:
    """Where the msgpack value at `at` ends: nil, numbers, short strings, and arrays of such; NONE:
    it is another one, or not whole."""
    left = 1
    while left:
        left -= 1
        if at >= end:
            return NONE
        first = data[at]
        if first < 0x80 or first == 0xC0:
            at += 1
        elif first < 0x90:
            return NONE
        elif first < 0xA0:
            left += first & 0x0F
            at += 1
        elif first < 0xC0:
            at += 1 + (first & 0x1F)
        elif 0xCC <= first <= 0xCF:
            at += number_size(first)
        elif first == 0xD9 and at + 1 < end:
            at += 2 + data[at + 1]
        elif first == 0xDC and at + 2 < end:
            left += int(data[at + 1]) << 8 | int(data[at + 2])
            at += 3
        else:
            return NONE
    return at if at <= end else NONE


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
def head_size(rows: Any, r: int, id: int, position: int) -> int:
    """[[id], position, publisher, number, time, again] in msgpack."""
    return (
        3 + written_size(id) + written_size(position) + rows[r, NAME_END] - rows[r, NAME]
        + written_size(rows[r, NUMBER]) + written_size(rows[r, TIME])
    )


@borrowing
def put_lengths(out: Any, at: int, kind: int, head: int, rows: Any, r: int) -> int:
    """The beginning of a frame, up to its header."""
    put_word(out, at, PREFIX - 4 + head + rows[r, END] - rows[r, TEXT])
    out[at + 4] = kind
    put_word(out, at + 5, head)
    put_word(out, at + 9, rows[r, BODY] - rows[r, TEXT])
    return at + PREFIX


@borrowing
def put_rest(data: Any, names: Any, rows: Any, r: int, flag: int, out: Any, at: int) -> int:
    """Publisher, number, time and a flag, attributes and body: the end of a frame."""
    at = copy(names, rows[r, NAME], rows[r, NAME_END], out, at)
    at = put_number(out, at, rows[r, NUMBER])
    at = put_number(out, at, rows[r, TIME])
    out[at] = flag
    return copy(data, rows[r, TEXT], rows[r, END], out, at + 1)


@borrowing
def put_frame(
    data: Any, names: Any, rows: Any, r: int, id: int, position: int, again: int, out: Any, at: int
) -> int:
    """Write a row as a DELIVER frame; where it ends."""
    at = put_lengths(out, at, DELIVER, head_size(rows, r, id, position), rows, r)
    out[at] = 0x96
    out[at + 1] = 0x91
    at = put_number(out, at + 2, id)
    at = put_number(out, at, position)
    return put_rest(data, names, rows, r, again, out, at)


@borrowing
def weigh_entries(rows: Any, places: Any, positions: Any, id: int) -> int:
    """The bytes of these rows as frames of a durable subscription."""
    size = 0
    for k in range(len(places)):
        r = places[k]
        size += PREFIX + head_size(rows, r, id, positions[k])
        size += rows[r, END] - rows[r, TEXT]
    return size


@borrowing
def write_entries(
    data: Any, names: Any, rows: Any, places: Any, positions: Any, id: int, again: int, out: Any
) -> None:
    """Write these rows, each with its position in the queue."""
    at = 0
    for k in range(len(places)):
        at = put_frame(data, names, rows, places[k], id, positions[k], again, out, at)


@borrowing
def weigh_forwards(rows: Any, places: Any, which: Any, trail_at: Any, ends: Any) -> None:
    """Where each of these rows ends as a FORWARD frame, one after the other."""
    at = 0
    for k in range(len(places)):
        r = places[k]
        head = (
            2 + trail_at[which[k] + 1] - trail_at[which[k]] + rows[r, NAME_END] - rows[r, NAME]
            + written_size(rows[r, NUMBER]) + written_size(rows[r, TIME])
        )
        at += PREFIX + head + rows[r, END] - rows[r, TEXT]
        ends[k] = at


@borrowing
def write_forwards(
    data: Any, names: Any, rows: Any, places: Any, which: Any, trails: Any, trail_at: Any, flag: int,
    ends: Any, out: Any,
) -> None:
    """Write these rows, each with its trail."""
    at = 0
    for k in range(len(places)):
        r = places[k]
        head = ends[k] - at - PREFIX - (rows[r, END] - rows[r, TEXT])
        at = put_lengths(out, at, FORWARD, head, rows, r)
        out[at] = 0x95
        at = copy(trails, trail_at[which[k]], trail_at[which[k] + 1], out, at + 1)
        at = put_rest(data, names, rows, r, flag, out, at)


@borrowing
def weigh(
    rows: Any, ends: Any, found: Any, lines: Any, credits: Any, sizes: Any, slow: Any
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
            head = head_size(rows, r, lines[i, ID], 0)
            sizes[link] += PREFIX + head + rows[r, END] - rows[r, TEXT]
    for i in range(left):
        found[slow[i]] = -1 - found[slow[i]]
    return left


@borrowing
def write(
    data: Any, names: Any, rows: Any, ends: Any, found: Any, lines: Any, places: Any, out: Any
) -> None:
    """Write the frames that `weigh` has paid for, each where its connection's bytes go on."""
    for r in range(len(rows)):
        for k in range(ends[r], ends[r + 1]):
            i = found[k]
            if i < 0:
                continue
            link = lines[i, LINK]
            places[link] = put_frame(
                data, names, rows, r, lines[i, ID], 0, NO, out, places[link]
            )
