"""The kernels of runs (runs.py): packets are read and written, many at a time, without Python.

`scan_packets` fills a row for each PUBLISH packet and `write_frames` makes PUBLISH frames of them;
`scan_frames` fills a row for each DELIVER frame and `write_packets` makes PUBLISH packets of them. Whatever
is not as plain as these expect ends a run; they refuse nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.jit import borrowing
from palio.protocol.mqtt.run_layout import (
    ATTRIBUTES,
    END,
    ID,
    IS_V5,
    LEVELS,
    PACKET_BYTES,
    PACKET_ID,
    PAYLOAD,
    QOS,
    READS_JSON,
    RUN_BYTES_MAX,
    TEXT_BYTES,
    TOPIC,
    TOPIC_END,
)
from palio.protocol.wire.kernels import (
    copy,
    number_at,
    number_size,
    put_number,
    put_u32,
    read_u32,
    written_size,
)
from palio.protocol.wire.layout import DELIVER, NONE, PREFIX, PUBLISH

_TOPIC = np.frombuffer(b'{"topic":"', np.uint8)
_LEVELS = np.frombuffer(b'","topic_levels":', np.uint8)
_LEVEL = np.frombuffer(b',"topic_', np.uint8)
_VALUE = np.frombuffer(b'":"', np.uint8)
_QUOTE, _BACKSLASH, _SLASH, _PLUS, _HASH, _BRACE = 0x22, 0x5C, 0x2F, 0x2B, 0x23, 0x7B


# ---- packets to frames


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
    if bounds[READS_JSON] and at < end and (data[at] == _BRACE or data[at] <= 0x20):
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
        if byte < 0x20 or byte > 0x7E or byte == _QUOTE or byte == _BACKSLASH:
            return NONE
        if byte == _PLUS or byte == _HASH:
            return NONE
        levels += byte == _SLASH
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
    size = len(_TOPIC) + topic + len(_LEVELS) + digits(levels) + 1
    size += topic - (levels - 1) + levels * (len(_LEVEL) + len(_VALUE) + 1)
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
        levels += data[i] == _SLASH
    at = copy(_TOPIC, 0, len(_TOPIC), out, at)
    at = copy(data, topic, end, out, at)
    at = copy(_LEVELS, 0, len(_LEVELS), out, at)
    at = put_digits(out, at, levels)
    begin = topic
    for level in range(1, levels + 1):
        stop = begin
        while stop < end and data[stop] != _SLASH:
            stop += 1
        at = copy(_LEVEL, 0, len(_LEVEL), out, at)
        at = put_digits(out, at, level)
        at = copy(_VALUE, 0, len(_VALUE), out, at)
        at = copy(data, begin, stop, out, at)
        out[at] = _QUOTE
        at += 1
        begin = stop + 1
    out[at] = _BRACE + 2
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


# ---- frames to packets


@borrowing
def scan_frames(
    data: Any, before: int, at: int, packet_bytes_max: int, quality: Any, rows: Any
) -> int:
    """Read DELIVER frames from `at` on, as long as they are plain. A message that comes for several
    subscriptions, one after the other, is not: `before` is where the message before begins, or NONE.

    `quality` are the headers of a message of quality 1.
    """
    begin, count, last, last_end = at, 0, 0, 0
    if before >= 0:
        last, last_end, _ = read_header(data, before)
        if last < 0:
            return 0
    while len(data) - at >= PREFIX + 4:
        if data[at + 4] != DELIVER:
            return count
        who, who_end, id = read_header(data, at)
        if who < 0 or is_same(data, last, last_end, who, who_end):
            return max(0, count - 1)  # the one before may be for that subscription, too
        end = at + 4 + read_u32(data, at)
        if count == len(rows) or end - begin > RUN_BYTES_MAX:
            return count
        if not read_frame(data, at, end, packet_bytes_max, quality, rows, count):
            return count
        rows[count, ID] = id
        last, last_end, at = who, who_end, end
        count += 1
    return count


@borrowing
def is_same(data: Any, a: int, a_end: int, b: int, b_end: int) -> bool:
    if a_end - a != b_end - b:
        return False
    for i in range(a_end - a):
        if data[a + i] != data[b + i]:
            return False
    return True


@borrowing
def read_header(data: Any, at: int) -> tuple[int, int, int]:
    """Of a live message for one subscription: where its publisher and number begin and end, and the id of
    the subscription. (NONE, NONE, NONE): it is another one."""
    other = (NONE, NONE, NONE)
    if len(data) - at < PREFIX + 4:
        return other
    begin, end = at + PREFIX, at + PREFIX + read_u32(data, at + 5)
    if data[at + 4] != DELIVER or end > len(data) or end - begin < 7:
        return other
    if data[begin] != 0x96 or data[begin + 1] != 0x91:
        return other
    id = number_at(data, begin + 2, end)
    if id < 0:
        return other
    place = begin + 2 + number_size(data[begin + 2])
    if place + 1 >= end or data[place] != 0:
        return other
    who, first = place + 1, data[place + 1]
    if 0xA0 <= first < 0xC0:
        place = who + 1 + (first & 0x1F)
    elif first == 0xD9 and who + 1 < end:
        place = who + 2 + int(data[who + 1])
    else:
        return other
    if number_at(data, place, end) < 0:
        return other
    place += number_size(data[place])
    who_end = place
    if number_at(data, place, end) < 0:
        return other
    place += number_size(data[place])
    if place + 1 != end or data[place] >= 0x80:
        return other
    return who, who_end, id


@borrowing
def read_frame(
    data: Any, at: int, end: int, packet_bytes_max: int, quality: Any, rows: Any, r: int
) -> bool:
    """Write where the parts of a DELIVER frame lie into row r. False: it is not plain."""
    text = at + PREFIX + read_u32(data, at + 5)
    payload = text + read_u32(data, at + 9)
    if end > len(data) or payload + 2 > end:
        return False
    topic_end = read_text(data, text, payload)
    if topic_end < 0:
        return False
    qos = 0
    if data[payload] | data[payload + 1]:
        if end - payload < len(quality):
            return False
        for i in range(len(quality)):
            if data[payload + i] != quality[i]:
                return False
        payload += len(quality)
        qos = 1
    else:
        payload += 2
    if topic_end - text + end - payload + 16 > packet_bytes_max:
        return False
    rows[r, TOPIC] = text + len(_TOPIC)
    rows[r, TOPIC_END] = topic_end
    rows[r, PAYLOAD] = payload
    rows[r, END] = end
    rows[r, QOS] = qos
    return True


@borrowing
def read_text(data: Any, begin: int, end: int) -> int:
    """Where the topic ends in attributes that are those of a topic, as `put_text` writes them, or NONE."""
    topic = begin + len(_TOPIC)
    if not has(data, begin, end, _TOPIC):
        return NONE
    topic_end = topic
    while topic_end < end and data[topic_end] != _QUOTE:
        topic_end += 1
    levels = levels_of(data, topic, topic_end)
    if levels < 0 or end - begin != text_size(topic_end - topic, levels):
        return NONE
    if topic_end - topic > 0xFFFF or not has(data, topic_end, end, _LEVELS):
        return NONE
    at = read_digits(data, topic_end + len(_LEVELS), levels)
    level_begin = topic
    for level in range(1, levels + 1):
        if at < 0 or not has(data, at, end, _LEVEL):
            return NONE
        at = read_digits(data, at + len(_LEVEL), level)
        if at < 0 or not has(data, at, end, _VALUE):
            return NONE
        at += len(_VALUE)
        while level_begin < topic_end and data[level_begin] != _SLASH:
            if at >= end or data[at] != data[level_begin]:
                return NONE
            at += 1
            level_begin += 1
        if at >= end or data[at] != _QUOTE:
            return NONE
        at += 1
        level_begin += 1
    return topic_end if at + 1 == end and data[at] == _BRACE + 2 else NONE


@borrowing
def has(data: Any, at: int, end: int, text: Any) -> bool:
    if at + len(text) > end:
        return False
    for i in range(len(text)):
        if data[at + i] != text[i]:
            return False
    return True


@borrowing
def read_digits(data: Any, at: int, value: int) -> int:
    """Where a number ends that is to stand there, or NONE."""
    count = digits(value)
    if at + count > len(data):
        return NONE
    for i in range(count):
        if data[at + count - 1 - i] != 0x30 + value % 10:
            return NONE
        value //= 10
    return at + count


@borrowing
def write_packets(
    data: Any, rows: Any, packet_id: int, has_properties: bool, out: Any
) -> int:
    """Write the rows of frames as PUBLISH packets; where they end. `packet_id` is that of the first message
    of quality 1."""
    at = 0
    for r in range(len(rows)):
        topic, payload = rows[r, TOPIC_END] - rows[r, TOPIC], rows[r, END] - rows[r, PAYLOAD]
        qos = rows[r, QOS]
        size = 2 + topic + 2 * qos + has_properties + payload
        out[at] = 0x30 | qos << 1
        at += 1
        while size > 0x7F:
            out[at] = size & 0x7F | 0x80
            size >>= 7
            at += 1
        out[at] = size
        out[at + 1] = topic >> 8
        out[at + 2] = topic & 0xFF
        at = copy(data, rows[r, TOPIC], rows[r, TOPIC_END], out, at + 3)
        if qos:
            out[at] = packet_id >> 8
            out[at + 1] = packet_id & 0xFF
            at += 2
            packet_id += 1
        if has_properties:
            out[at] = 0
            at += 1
        at = copy(data, rows[r, PAYLOAD], rows[r, END], out, at)
    return at
