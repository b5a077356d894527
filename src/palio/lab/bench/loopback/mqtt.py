"""As much of MQTT 3.1.1 as a benchmark needs: a source that publishes, and sinks that subscribe and acknowledge."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import ExitStack
from random import Random

from palio.lab.bench.loopback.load import STAMP_BYTES, Load, Sink, stamp
from palio.lab.bench.loopback.processes import connected

_SHORT = struct.Struct(">H")


def connect(name: str) -> bytes:
    return _packet(0x10, _text("MQTT") + bytes([4, 2]) + _SHORT.pack(0) + _text(name))


def subscribe(topics: list[str], qos: int) -> bytes:
    wanted = b"".join(_text(topic) + bytes([qos]) for topic in topics)
    return _packet(0x82, _SHORT.pack(1) + wanted)


def publish(topic: str, payload: bytes, packet_id: int = 0) -> bytes:
    """At quality 1, if it has a packet id."""
    if not packet_id:
        return _packet(0x30, _text(topic) + payload)
    return _packet(0x32, _text(topic) + _SHORT.pack(packet_id) + payload)


def acknowledgements(data: bytes, ends: list[int]) -> bytes:
    """PUBACKs of the packets that end there."""
    found = bytearray()
    at = 0
    for end in ends:
        if data[at] & 0xF0 == 0x30:
            place = at + 2 if data[at + 1] < 0x80 else at + 3
            place += 2 + _SHORT.unpack_from(data, place)[0]
            found += b"\x40\x02" + data[place : place + 2]
        at = end
    return bytes(found)


def topics(
    port: int, count: int, sinks: int, body: bytes, qos: int, stack: ExitStack
) -> tuple[Load, Callable[[int, bool], bytes]]:
    """A load on so many topics, each with one subscription, and what makes its messages."""
    made = []
    for i in range(sinks):
        connection = stack.enter_context(connected(port))
        names = [f"s{k}" for k in range(i, count, sinks)]
        connection.sendall(connect(f"sink {i}") + subscribe(names, qos))
        data = b""
        while len(cut_packets(data)[0]) < 2:  # CONNACK and SUBACK
            data += connection.recv(1 << 16)
        made.append(Sink(connection, cut_packets))
    source = stack.enter_context(connected(port))
    source.sendall(connect("source"))
    load, random = Load(source, made, cut_packets), Random(1)
    if qos:
        load.heard = lambda sink, data, ends: sink.connection.sendall(acknowledgements(data, ends))

    def make(number: int, timed: bool) -> bytes:
        end = stamp() if timed else bytes(STAMP_BYTES)
        packet_id = 1 + number % 60_000 if qos else 0
        return publish(f"s{random.randrange(count)}", body + end, packet_id)

    return load, make


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
