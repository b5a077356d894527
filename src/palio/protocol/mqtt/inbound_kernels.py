"""The kernels of runs that come from a client (runs.py): `scan_packets` fills a row for each PUBLISH packet, and
`write_frames` makes PUBLISH frames of them.

A topic is its own JSON text, so its attributes are written without a look at what they mean. Whatever is not
as plain as that ends a run; nothing is refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.jit import borrowing
from palio.protocol.mqtt.run_layout import (
    ATTRIBUTES,
    END,
    IS_V5,
    LEVELS,
    PACKET_BYTES,
    PACKET_ID,
    PAYLOAD,
    READS_JSON,
    RUN_BYTES_MAX,
    TEXT_BYTES,
    TOPIC,
    TOPIC_END,
)
from palio.protocol.wire.kernels import (
    copy,
    put_number,
    put_u32,
    written_size,
)
from palio.protocol.wire.layout import NONE, PREFIX, PUBLISH

TOPIC_TEXT = np.frombuffer(b'{"topic":"', np.uint8)
LEVELS_TEXT = np.frombuffer(b'","topic_levels":', np.uint8)
LEVEL_TEXT = np.frombuffer(b',"topic_', np.uint8)
VALUE_TEXT = np.frombuffer(b'":"', np.uint8)
QUOTE, SLASH, CLOSING = 0x22, 0x2F, 0x7D
_BACKSLASH, _PLUS, _HASH, _OPENING = 0x5C, 0x2B, 0x23, 0x7B


@borrowing
def scan_packets(data: Any, at: int, bounds: Any, rows: Any) -> int:
    """Read PUBLISH packets from `at` on, as long as they are plain and have the quality of the first."""
    first, begin, count = data[at], at, 0
    if first != 0x30 and first != 0x32:
        return 0
    while count < len(rows) and at + 1 < len(data) and data[at] == first:
        place, size, shift = at + 1, 0, 0
        while place < len(data) and shift < 28 and data[place] >= 0x80:
            size |= int(data[place] & 0x7F) << shift
            shift += 7
            place += 1
        if place >= len(data) or shift >= 28 or (shift and not data[place]):
            break
        end = place + 1 + (size | int(data[place]) << shift)
        if end > len(data) or end - at > bounds[PACKET_BYTES] or end - begin > RUN_BYTES_MAX:
            break
        if not read_packet(data, place + 1, end, first == 0x32, bounds, rows, count):
            break
        at = end
        count += 1
    return count


@borrowing
def read_packet(
    data: Any, at: int, end: int, has_id: bool, bounds: Any, rows: Any, r: int
) -> bool:
    """Write where the parts of a packet lie into row r. False: it is not plain."""
    if at + 2 > end:
        return False
    topic = at + 2
    topic_end = topic + (int(data[at]) << 8 | int(data[at + 1]))
    if topic_end > end:
        return False
    levels = levels_of(data, topic, topic_end)
    if levels < 0 or levels > bounds[LEVELS]:
        return False
    at, packet_id = topic_end, 0
    if has_id:
        if at + 2 > end:
            return False
        packet_id = int(data[at]) << 8 | int(data[at + 1])
        if not packet_id:
            return False
        at += 2
    if bounds[IS_V5]:
        if at >= end or data[at]:
            return False  # it has properties
        at += 1
    if bounds[READS_JSON] and at < end and (data[at] == _OPENING or data[at] <= 0x20):
        return False
    size = text_size(topic_end - topic, levels)
    if size > bounds[ATTRIBUTES]:
        return False
    rows[r, TOPIC] = topic
    rows[r, TOPIC_END] = topic_end
    rows[r, PACKET_ID] = packet_id
    rows[r, PAYLOAD] = at
    rows[r, END] = end
    rows[r, TEXT_BYTES] = size
    return True


@borrowing
def levels_of(data: Any, begin: int, end: int) -> int:
    """The levels of a topic that is its own JSON text: printable ASCII. NONE: it is not, or no topic."""
    if begin >= end:
        return NONE
    levels = 1
    for i in range(begin, end):
        byte = data[i]
        if byte < 0x20 or byte > 0x7E or byte == QUOTE or byte == _BACKSLASH:
            return NONE
        if byte == _PLUS or byte == _HASH:
            return NONE
        levels += byte == SLASH
    return levels


@borrowing
def digits(value: int) -> int:
    count = 1
    while value > 9:
        value //= 10
        count += 1
    return count


@borrowing
def text_size(topic: int, levels: int) -> int:
    """The bytes of the attributes of a topic, as JSON."""
    size = len(TOPIC_TEXT) + topic + len(LEVELS_TEXT) + digits(levels) + 1
    size += topic - (levels - 1) + levels * (len(LEVEL_TEXT) + len(VALUE_TEXT) + 1)
    for level in range(1, levels + 1):
        size += digits(level)
    return size


@borrowing
def put_digits(out: Any, at: int, value: int) -> int:
    end = at + digits(value)
    for i in range(end - at):
        out[end - 1 - i] = 0x30 + value % 10
        value //= 10
    return end


@borrowing
def put_text(data: Any, topic: int, end: int, out: Any, at: int) -> int:
    """Write the attributes of a topic; where they end."""
    levels = 1
    for i in range(topic, end):
        levels += data[i] == SLASH
    at = copy(TOPIC_TEXT, 0, len(TOPIC_TEXT), out, at)
    at = copy(data, topic, end, out, at)
    at = copy(LEVELS_TEXT, 0, len(LEVELS_TEXT), out, at)
    at = put_digits(out, at, levels)
    begin = topic
    for level in range(1, levels + 1):
        stop = begin
        while stop < end and data[stop] != SLASH:
            stop += 1
        at = copy(LEVEL_TEXT, 0, len(LEVEL_TEXT), out, at)
        at = put_digits(out, at, level)
        at = copy(VALUE_TEXT, 0, len(VALUE_TEXT), out, at)
        at = copy(data, begin, stop, out, at)
        out[at] = QUOTE
        at += 1
        begin = stop + 1
    out[at] = CLOSING
    return at + 1


@borrowing
def write_frames(
    data: Any, rows: Any, number: int, time: int, flag: int, headers: Any, out: Any
) -> int:
    """Write the rows of packets as PUBLISH frames with growing numbers; where they end."""
    at = 0
    for r in range(len(rows)):
        head = 2 + written_size(number) + written_size(time)
        text, payload = rows[r, TEXT_BYTES], rows[r, END] - rows[r, PAYLOAD]
        put_u32(out, at, PREFIX - 4 + head + text + len(headers) + payload)
        out[at + 4] = PUBLISH
        put_u32(out, at + 5, head)
        put_u32(out, at + 9, text)
        out[at + PREFIX] = 0x93
        at = put_number(out, at + PREFIX + 1, number)
        at = put_number(out, at, time)
        out[at] = flag
        at = put_text(data, rows[r, TOPIC], rows[r, TOPIC_END], out, at + 1)
        at = copy(headers, 0, len(headers), out, at)
        at = copy(data, rows[r, PAYLOAD], rows[r, END], out, at)
        number += 1
    return at
