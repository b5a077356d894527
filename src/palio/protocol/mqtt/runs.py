"""Runs: many packets, or many frames, that are taken at once. This is the fast path of MQTT.

    client ─▶ PUBLISH PUBLISH PUBLISH ... ─▶ PublishRun ─▶ PUBLISH frames ─▶ core      kernels do what is
    core ──▶ DELIVER DELIVER DELIVER ... ──▶ DeliveryRun ─▶ PUBLISH packets ─▶ client   drawn as one arrow:
    client ─▶ PUBACK PUBACK PUBACK ... ────▶ PubackRun ──▶ credit for the core          no Python a message

                                 plain, and so in a run                          anything else
    PUBLISH of a client          quality 0 or 1, not retained, no properties,    packets/decoding.py, one by one
                                 no content in the payload; a topic that is
                                 printable ASCII without a quote and a backslash
    DELIVER                      live, for one subscription, its attributes      wire/frames.py, delivering.py
                                 those of such a topic and no others, no
                                 headers but that of quality 1

The general path decides what is right. A run is taken only as far as that path would do the same with
each of its members, and what is wrong is never plain: so errors are the general path's.
`tests/protocol/mqtt/test_runs.py` compares the two. Runs are bounded in number and in bytes, and few packets
are not worth a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from struct import Struct, pack, unpack_from
from types import ModuleType
from typing import Any

import numpy as np

from palio.protocol.mqtt.content import QOS as QOS_HEADER
from palio.protocol.mqtt.packets.reader import RUN_MIN
from palio.protocol.mqtt.packets.values import Version
from palio.protocol.mqtt.run_layout import (
    END,
    FRAME_COLUMNS,
    ID,
    PACKET_COLUMNS,
    PACKET_ID,
    PAYLOAD,
    QOS,
    RUN_MAX,
    TEXT_BYTES,
    TOPIC,
    TOPIC_END,
)
from palio.protocol.mqtt.settings import MqttSettings, PayloadContent
from palio.protocol.wire.encode import entry_frames
from palio.protocol.wire.frames import FrameKind, Limits, scan_publish
from palio.protocol.wire.layout import NO, YES
from palio.protocol.wire.message_headers import NO_HEADERS, SIZE_MAX, packed

RUN_BYTES_MIN = 512
"""In fewer bytes there are too few of them."""
_PUBLISH, _PUBACK = 0x30, 0x4002
_PREFIX = Struct("<IB")
_HEADERS = (NO_HEADERS, packed({QOS_HEADER: 1}, SIZE_MAX))
"""Of messages of quality 0 and 1."""
_FRAME_BYTES = 33
"""Of a PUBLISH frame, beside its attributes and its payload; at most."""
_PACKET_BYTES = 10
"""Of a PUBLISH packet, beside its topic and its payload; at most."""


@cache
def _inbound() -> ModuleType:
    """The kernels, loaded when they are first needed."""
    from palio.protocol.mqtt import inbound_kernels

    return inbound_kernels


@cache
def _outbound() -> ModuleType:
    from palio.protocol.mqtt import outbound_kernels

    return outbound_kernels


class PublishRun:
    """PUBLISH packets of one quality of service, `data[begin:end]`."""

    __slots__ = ("_rows", "begin", "data", "end", "qos")

    def __init__(self, data: bytes, begin: int, rows: Any) -> None:
        self.data, self.begin, self.end = data, begin, int(rows[-1, END])
        self.qos = data[begin] >> 1 & 1
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def packets(self) -> bytes:
        return self.data[self.begin : self.end]

    @property
    def packet_ids(self) -> list[int]:
        found: list[int] = self._rows[:, PACKET_ID].tolist()
        return found

    def frames(self, number: int, time_us: int) -> bytes:
        """The messages as PUBLISH frames for the core, the first with this number."""
        rows, headers = self._rows, _HEADERS[self.qos]
        size = int((rows[:, END] - rows[:, PAYLOAD] + rows[:, TEXT_BYTES]).sum())
        out = np.empty(size + len(rows) * (_FRAME_BYTES + len(headers)), np.uint8)
        end = _inbound().write_frames(
            np.frombuffer(self.data, np.uint8), rows, number, time_us, YES if self.qos else NO,
            np.frombuffer(headers, np.uint8), out,
        )  # fmt: skip
        return out[:end].tobytes()


class PubackRun:
    """PUBACKs without reason codes, `data[begin:end]`."""

    __slots__ = ("end", "packet_ids")

    def __init__(self, packet_ids: Sequence[int], end: int) -> None:
        self.packet_ids, self.end = packet_ids, end


class RunScan:
    """Finds runs in what a client sends. `limits` are those of the core's frames."""

    def __init__(self, settings: MqttSettings, limits: Limits, version: Version) -> None:
        self._bounds = np.array(
            [
                settings.levels_max,
                settings.packet_bytes_max,
                limits.attributes,
                version is Version.V5,
                settings.payload is PayloadContent.JSON,
            ],
            np.int64,
        )

    def __call__(self, data: bytes, at: int) -> PublishRun | PubackRun | None:
        """The run that begins there; None: there is none that is worth it."""
        if data[at] >> 4 == _PUBLISH >> 4:
            return self._publishes(data, at)
        return _pubacks(data, at) if data[at] == _PUBACK >> 8 else None

    def _publishes(self, data: bytes, at: int) -> PublishRun | None:
        if len(data) - at < RUN_BYTES_MIN:
            return None
        rows = np.empty((RUN_MAX, PACKET_COLUMNS), np.int64)
        array = np.frombuffer(data, np.uint8)
        count = _inbound().scan_packets(array, at, self._bounds, rows)
        return PublishRun(data, at, rows[:count]) if count >= RUN_MIN else None


def _pubacks(data: bytes, at: int) -> PubackRun | None:
    count = min(RUN_MAX, (len(data) - at) // 4)
    words = unpack_from(f">{2 * count}H", data, at)
    heads, ids = words[::2], words[1::2]
    if heads.count(_PUBACK) < count or 0 in ids:
        ends = (i for i in range(count) if heads[i] != _PUBACK or not ids[i])
        count = next(ends, count)
    return PubackRun(ids[:count], at + 4 * count) if count > 1 else None


def encode_pubacks(packet_ids: Sequence[int]) -> bytes:
    """PUBACKs that say success.

    >>> encode_pubacks([1, 258]).hex(" ", 4)
    '40020001 40020102'
    """
    words = [_PUBACK] * (2 * len(packet_ids))
    words[1::2] = packet_ids
    return pack(f">{len(words)}H", *words)


class DeliveryRun:
    """DELIVER frames of live messages, each for one subscription; they begin at `begin`."""

    __slots__ = ("_begin", "_data", "_rows")

    def __init__(self, data: bytes, begin: int, rows: Any) -> None:
        self._data, self._begin, self._rows = data, begin, rows

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def ids(self) -> list[int]:
        """The subscription of each."""
        found: list[int] = self._rows[:, ID].tolist()
        return found

    @property
    def qualities(self) -> list[int]:
        """With which each was published."""
        found: list[int] = self._rows[:, QOS].tolist()
        return found

    def rest(self, count: int) -> bytes:
        """The frames without the first ones."""
        begin = self._rows[count - 1, END] if count else self._begin
        return self._data[begin : self._rows[-1, END]]

    def packets(self, qualities: Sequence[int], packet_id: int, version: Version) -> bytes:
        """The first messages as PUBLISH packets, as many as there are qualities; `packet_id` is that of the
        first message of quality 1."""
        rows = self._rows[: len(qualities)]
        rows[:, QOS] = qualities
        size = rows[:, END] - rows[:, PAYLOAD] + rows[:, TOPIC_END] - rows[:, TOPIC]
        out = np.empty(int(size.sum()) + len(rows) * _PACKET_BYTES, np.uint8)
        array = np.frombuffer(self._data, np.uint8)
        end = _outbound().write_packets(array, rows, packet_id, version is Version.V5, out)
        return out[:end].tobytes()


def delivery_runs(data: bytes, packet_bytes_max: int) -> Iterator[DeliveryRun | bytes]:
    """Whole frames of the core as runs, and between them those that are in none, in their order."""
    at = begin = 0
    before = -1
    array, quality = np.frombuffer(data, np.uint8), np.frombuffer(_HEADERS[1], np.uint8)
    while len(data) - at >= RUN_BYTES_MIN:
        rows = np.empty((RUN_MAX, FRAME_COLUMNS), np.int64)
        count = _outbound().scan_frames(array, before, at, packet_bytes_max, quality, rows)
        if count >= RUN_MIN:
            if begin < at:
                yield data[begin:at]
            yield DeliveryRun(data, at, rows[:count])
            at = begin = int(rows[count - 1, END])
            before = -1
            continue
        for _ in range(RUN_MIN):  # these are looked at one by one
            if at < len(data):
                size, kind = _PREFIX.unpack_from(data, at)
                before = at if kind == FrameKind.DELIVER else -1
                at += size + 4
    if begin < len(data):
        yield data[begin:] if begin else data


def warm() -> None:
    """Load or compile these kernels by one use of each. Later this would block the broker."""
    packets = RUN_MIN * (b"\x32" + bytes([40]) + b"\0\1t\0\1\0" + bytes(34))
    run = RunScan(MqttSettings(), Limits(), Version.V5)(packets, 0)
    assert isinstance(run, PublishRun)
    batch = scan_publish(run.frames(1, 1), 0, Limits())[0]
    batch.sign("publisher", 1)
    for part in delivery_runs(entry_frames(batch, [0] * RUN_MIN, 1), SIZE_MAX):
        assert isinstance(part, DeliveryRun)
        part.packets(part.qualities, 1, Version.V5)
