"""Cuts the bytes of a connection into packets, with a bound that is checked before anything is kept.

Many packets that are alike can be one run (runs.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from palio.protocol.mqtt.packets.codes import PacketError, ReasonCode, malformed
from palio.protocol.mqtt.packets.decoding import decode
from palio.protocol.mqtt.packets.values import ConnectPacket, Packet, Version

_LENGTH_BYTES_MAX = 4
RUN_MIN = 16
"""Fewer packets are quicker one by one."""


class PacketRun(Protocol):
    """Packets that are taken at once."""

    @property
    def end(self) -> int:
        """Where they end in the data."""
        ...


class PacketReader:
    """`version` is that of CONNECT from then on.

    >>> reader = PacketReader(1 << 20)
    >>> list(reader.feed(bytes([0xC0]))), list(reader.feed(bytes([0x00])))
    ([], [PingRequest()])
    """

    def __init__(self, packet_bytes_max: int, version: Version = Version.V5) -> None:
        self.packet_bytes_max = packet_bytes_max
        """May be replaced after any packet."""
        self.version = version
        self.runs: Callable[[bytes, int], PacketRun | None] | None = None
        """Finds the run that begins at a place in the data; None: packets come one by one."""
        self._rest = bytearray()
        self._needed = 2

    @property
    def waiting(self) -> int:
        """How many bytes wait for the rest of their packet."""
        return len(self._rest)

    def feed(self, data: bytes) -> Iterator[Packet | PacketRun]:
        """The packets that are complete now. Consume them before the next call."""
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return
            data = bytes(self._rest)
            self._rest.clear()
        at, end = 0, len(data)
        self._needed, alone = 2, 0  # so many packets before it is worth to look for a run again
        while end - at >= 2:
            if self.runs is not None and not alone:
                run = self.runs(data, at)
                if run is not None:
                    yield run
                    at = run.end
                    continue
                alone = RUN_MIN
            alone = max(0, alone - 1)
            start, size = self._length(data, at)
            if start < 0:
                break
            stop = start + size
            if stop - at > self.packet_bytes_max:
                raise PacketError(
                    ReasonCode.PACKET_TOO_LARGE,
                    f"a packet of {stop - at:,} bytes; the most are {self.packet_bytes_max:,}",
                )
            if stop > end:
                self._needed = stop - at
                break
            packet = decode(data[at], data[start:stop], self.version)
            at = stop
            if type(packet) is ConnectPacket:
                self.version = packet.version
            yield packet
        self._rest += data[at:]

    @staticmethod
    def _length(data: bytes, at: int) -> tuple[int, int]:
        """Where the packet goes on after its length, and its length; -1: the length is not complete."""
        size = shift = 0
        place = at + 1
        for byte in data[place : place + _LENGTH_BYTES_MAX]:
            place += 1
            size |= (byte & 0x7F) << shift
            if byte < 0x80:
                if shift and not byte:
                    raise malformed("the length of a packet is longer than it needs to be")
                return place, size
            shift += 7
        if place - at > _LENGTH_BYTES_MAX:
            raise malformed("the length of a packet has more than four bytes")
        return -1, 0
