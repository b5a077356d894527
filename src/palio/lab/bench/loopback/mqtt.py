"""As much of MQTT 3.1.1 as a benchmark needs: connect, subscribe and publish at quality 0."""

from __future__ import annotations

import struct

_SHORT = struct.Struct(">H")


def connect(name: str) -> bytes:
    return _packet(0x10, _text("MQTT") + bytes([4, 2]) + _SHORT.pack(0) + _text(name))


def subscribe(topics: list[str]) -> bytes:
    wanted = b"".join(_text(topic) + b"\0" for topic in topics)
    return _packet(0x82, _SHORT.pack(1) + wanted)


def publish(topic: str, payload: bytes) -> bytes:
    return _packet(0x30, _text(topic) + payload)


def cut_packets(data: bytes) -> tuple[list[int], int]:
    """Where packets end, and where the first that is not whole begins."""
    ends, at, size = [], 0, len(data)
    while True:
        length, shift, place = 0, 0, at + 1
        while place < size and data[place] & 0x80:
            length |= (data[place] & 0x7F) << shift
            shift += 7
            place += 1
        if place >= size:
            break
        end = place + 1 + (length | data[place] << shift)
        if end > size:
            break
        ends.append(end)
        at = end
    return ends, at


def _packet(kind: int, content: bytes) -> bytes:
    length, head = len(content), bytearray([kind])
    while True:
        length, low = divmod(length, 128)
        head.append(low | (0x80 if length else 0))
        if not length:
            return bytes(head) + content


def _text(text: str) -> bytes:
    data = text.encode()
    return _SHORT.pack(len(data)) + data
