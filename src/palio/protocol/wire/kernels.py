"""The kernels of message batches: messages are read from frames, and written into others, without
Python.

`scan_publish` and `scan_forward` fill a row for each frame; `gather` copies the attributes together,
as the matching kernels take them; `reserve` and `write_deliver` make the bytes for each connection
out of what was matched; `write_entries` makes those of a durable subscription, `write_forward` those
for a neighbour.

    rows          number  time  text  payload  end  route  name  name end
                                └ in `data` ──┘     └ in `names` ───────┘
    found         interfaces; those of row r are found[ends[r]:ends[r + 1]]
    destinations  of each interface: its link (NONE: not for kernels; NOBODY: gets nothing), its id,
                  its place in `credits`
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.jit import borrowing
from palio.protocol.wire.layout import (
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
    PAYLOAD,
    PREFIX,
    PUBLISH,
    ROUTE,
    TEXT,
    TIME,
)

ARRAYS_MAX = 64  # of a routing header that kernels read


@borrowing
def scan_publish(data: Any, at: int, limits: Any, rows: Any) -> int:
    """Read frames from `at` on, as long as they are PUBLISH frames like the first: all durable or
    none. Anything else ends the batch, also a frame that is incomplete or too large."""
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
def scan_forward(data: Any, at: int, limits: Any, rows: Any) -> int:
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
        rows[count, ROUTE] = begin
        first, at = flag, rows[count, END]
        count += 1
    return count


@borrowing
def enter(data: Any, at: int, kind: int, first: int, limits: Any, rows: Any, r: int) -> int:
    """Write where the parts of the frame at `at` lie into row r. Returns where the fields of its
    header begin, or NONE if the frame is of another kind, incomplete or too large."""
    stop = len(data)
    if stop - at < PREFIX + 4:
        return NONE
    size, head, text = read_u32(data, at), read_u32(data, at + 5), read_u32(data, at + 9)
    begin, end = at + PREFIX, at + 4 + size
    payload = begin + head + text
    if data[at + 4] != kind or end > stop or payload > end or data[begin] != first:
        return NONE
    if head > limits[0] or text > limits[1] or end - payload > limits[2]:
        return NONE
    rows[r, TEXT] = begin + head
    rows[r, PAYLOAD] = payload
    rows[r, END] = end
    return begin + 1


@borrowing
def read_numbers(data: Any, at: int, rows: Any, r: int) -> int:
    """Read the last fields of a header (number, time, flag) into row r. Returns the flag or NONE."""
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
    """Where the msgpack value at `at` ends: nil, a number, a short string, or an array of such.
    NONE for any other value, for one that is cut off, and for one with many arrays: these may be
    nested more deeply than Python can read."""
    left, arrays = 1, 0
    while left:
        left -= 1
        if at >= end or arrays > ARRAYS_MAX:
            return NONE
        first = data[at]
        if first < 0x80 or first == 0xC0:
            at += 1
        elif first < 0x90:
            return NONE
        elif first < 0xA0:
            left += first & 0x0F
            arrays += 1
            at += 1
        elif first < 0xC0:
            at += 1 + (first & 0x1F)
        elif 0xCC <= first <= 0xCF:
            at += number_size(first)
        elif first == 0xD9 and at + 1 < end:
            at += 2 + data[at + 1]
        elif first == 0xDC and at + 2 < end:
            left += int(data[at + 1]) << 8 | int(data[at + 2])
            arrays += 1
            at += 3
        else:
            return NONE
    return at if at <= end else NONE


@borrowing
def read_u32(data: Any, at: int) -> int:
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
    """Copy the attributes of all rows: those of row r to blob[begin[r]:begin[r + 1]]."""
    at = 0
    for r in range(len(rows)):
        begin[r] = at
        at = copy(data, rows[r, TEXT], rows[r, PAYLOAD], blob, at)
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
def put_u32(out: Any, at: int, value: int) -> None:
    for i in range(4):
        out[at + i] = value >> 8 * i & 0xFF


@borrowing
def deliver_head_size(rows: Any, r: int, id: int, position: int) -> int:
    """[[id], position, publisher, number, time, deliveries] in msgpack."""
    return (
        3 + written_size(id) + written_size(position) + rows[r, NAME_END] - rows[r, NAME]
        + written_size(rows[r, NUMBER]) + written_size(rows[r, TIME])
    )


@borrowing
def put_lengths(out: Any, at: int, kind: int, head: int, rows: Any, r: int) -> int:
    """Write the beginning of a frame, up to its header."""
    put_u32(out, at, PREFIX - 4 + head + rows[r, END] - rows[r, TEXT])
    out[at + 4] = kind
    put_u32(out, at + 5, head)
    put_u32(out, at + 9, rows[r, PAYLOAD] - rows[r, TEXT])
    return at + PREFIX


@borrowing
def put_rest(batch: Any, r: int, flag: int, out: Any, at: int) -> int:
    """Write the end of a frame: publisher, number, time, a flag, attributes, payload."""
    rows = batch.rows
    at = copy(batch.names, rows[r, NAME], rows[r, NAME_END], out, at)
    at = put_number(out, at, rows[r, NUMBER])
    at = put_number(out, at, rows[r, TIME])
    out[at] = flag
    return copy(batch.data, rows[r, TEXT], rows[r, END], out, at + 1)


@borrowing
def put_deliver(
    batch: Any, r: int, id: int, position: int, deliveries: int, out: Any, at: int
) -> int:
    """Write a row as a DELIVER frame. Returns where it ends."""
    rows = batch.rows
    at = put_lengths(out, at, DELIVER, deliver_head_size(rows, r, id, position), rows, r)
    out[at] = 0x96
    out[at + 1] = 0x91
    at = put_number(out, at + 2, id)
    at = put_number(out, at, position)
    return put_rest(batch, r, deliveries, out, at)


@borrowing
def entries_size(rows: Any, positions: Any, id: int) -> int:
    """The bytes of all rows as DELIVER frames of a durable subscription."""
    size = 0
    for r in range(len(rows)):
        size += PREFIX + deliver_head_size(rows, r, id, positions[r])
        size += rows[r, END] - rows[r, TEXT]
    return size


@borrowing
def write_entries(batch: Any, positions: Any, id: int, deliveries: Any, out: Any) -> None:
    """Write all rows, each with its position in the queue."""
    at = 0
    for r in range(len(batch.rows)):
        at = put_deliver(batch, r, id, positions[r], deliveries[r], out, at)


@borrowing
def forward_ends(rows: Any, places: Any, which: Any, route_at: Any, ends: Any) -> None:
    """Where each of these rows ends as a FORWARD frame, one after the other."""
    at = 0
    for k in range(len(places)):
        r = places[k]
        head = (
            2 + route_at[which[k] + 1] - route_at[which[k]] + rows[r, NAME_END] - rows[r, NAME]
            + written_size(rows[r, NUMBER]) + written_size(rows[r, TIME])
        )
        at += PREFIX + head + rows[r, END] - rows[r, TEXT]
        ends[k] = at


@borrowing
def write_forward(
    batch: Any, places: Any, which: Any, routes: Any, route_at: Any, flag: int, ends: Any, out: Any
) -> None:
    """Write these rows, each with its routing header: routes[route_at[i]:route_at[i + 1]]."""
    rows = batch.rows
    at = 0
    for k in range(len(places)):
        r = places[k]
        head = ends[k] - at - PREFIX - (rows[r, END] - rows[r, TEXT])
        at = put_lengths(out, at, FORWARD, head, rows, r)
        out[at] = 0x95
        at = copy(routes, route_at[which[k]], route_at[which[k] + 1], out, at + 1)
        at = put_rest(batch, r, flag, out, at)


@borrowing
def reserve(
    rows: Any, matches: Any, destinations: Any, credits: Any, sizes: Any, left: Any
) -> int:
    """Take credit for what can be delivered at once, and add up the bytes for each link. What is
    left to Python goes into `left`, as places in `found`; returns how many these are.

    Interfaces in `found` that are not to be written become negative: NONE, or -1 - the interface
    for those in `left`.
    """
    ends, found = matches.ends, matches.found
    count = 0
    for r in range(len(rows)):
        for k in range(ends[r], ends[r + 1]):
            i = found[k]
            link = destinations[i, LINK]
            if link == NOBODY:
                found[k] = NONE
                continue
            if link < 0 or credits[destinations[i, CREDIT]] <= 0:
                left[count] = k
                count += 1
                continue
            credits[destinations[i, CREDIT]] -= 1
            head = deliver_head_size(rows, r, destinations[i, ID], 0)
            sizes[link] += PREFIX + head + rows[r, END] - rows[r, TEXT]
    for i in range(count):
        found[left[i]] = -1 - found[left[i]]
    return count


@borrowing
def write_deliver(batch: Any, matches: Any, destinations: Any, places: Any, out: Any) -> None:
    """Write the frames that `reserve` has taken credit for, each at its link's place in `out`."""
    ends, found = matches.ends, matches.found
    for r in range(len(batch.rows)):
        for k in range(ends[r], ends[r + 1]):
            i = found[k]
            if i < 0:
                continue
            link = destinations[i, LINK]
            places[link] = put_deliver(batch, r, destinations[i, ID], 0, 1, out, places[link])
