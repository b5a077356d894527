"""The kernels of runs that go to a client (runs.py): `scan_frames` fills a row for each DELIVER frame, and
`write_packets` makes PUBLISH packets of them. Whatever is not plain ends a run; nothing is refused.
"""

from __future__ import annotations

from typing import Any

from palio.matching.jit import borrowing
from palio.protocol.mqtt.inbound_kernels import (
    CLOSING,
    LEVEL_TEXT,
    LEVELS_TEXT,
    QUOTE,
    SLASH,
    TOPIC_TEXT,
    VALUE_TEXT,
    digits,
    levels_of,
    text_size,
)
from palio.protocol.mqtt.run_layout import (
    END,
    ID,
    PAYLOAD,
    QOS,
    RUN_BYTES_MAX,
    TOPIC,
    TOPIC_END,
)
from palio.protocol.wire.kernels import copy, number_at, number_size, read_u32
from palio.protocol.wire.layout import DELIVER, NONE, PREFIX


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
    rows[r, TOPIC] = text + len(TOPIC_TEXT)
    rows[r, TOPIC_END] = topic_end
    rows[r, PAYLOAD] = payload
    rows[r, END] = end
    rows[r, QOS] = qos
    return True


@borrowing
def read_text(data: Any, begin: int, end: int) -> int:
    """Where the topic ends in attributes that are those of a topic, as `put_text` writes them, or NONE."""
    topic = begin + len(TOPIC_TEXT)
    if not has(data, begin, end, TOPIC_TEXT):
        return NONE
    topic_end = topic
    while topic_end < end and data[topic_end] != QUOTE:
        topic_end += 1
    levels = levels_of(data, topic, topic_end)
    if levels < 0 or end - begin != text_size(topic_end - topic, levels):
        return NONE
    if topic_end - topic > 0xFFFF or not has(data, topic_end, end, LEVELS_TEXT):
        return NONE
    at = read_digits(data, topic_end + len(LEVELS_TEXT), levels)
    level_begin = topic
    for level in range(1, levels + 1):
        if at < 0 or not has(data, at, end, LEVEL_TEXT):
            return NONE
        at = read_digits(data, at + len(LEVEL_TEXT), level)
        if at < 0 or not has(data, at, end, VALUE_TEXT):
            return NONE
        at += len(VALUE_TEXT)
        while level_begin < topic_end and data[level_begin] != SLASH:
            if at >= end or data[at] != data[level_begin]:
                return NONE
            at += 1
            level_begin += 1
        if at >= end or data[at] != QUOTE:
            return NONE
        at += 1
        level_begin += 1
    return topic_end if at + 1 == end and data[at] == CLOSING else NONE


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
