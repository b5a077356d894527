"""What a client sends, a turn's worth at a time: one read can hold 100,000 packets, and one packet 1,000 filters.

arrived ─▶ bytes ─▶ packets, until the turn is over ─▶ `has_more`: the listener goes on in a later turn
           slices of what a packet asks for ─▲          and reads nothing meanwhile
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeAlias

from palio.protocol.mqtt.packets.codes import PacketError, ReasonCode
from palio.protocol.mqtt.packets.reader import PacketReader, PacketRun
from palio.protocol.mqtt.packets.values import Packet

Slices: TypeAlias = Iterator[None]
AHEAD_BYTES_MAX = 8 << 20
"""That may arrive although nothing is read: what was on its way, and what TLS had decrypted."""


class PacketTurns:
    """`is_over` says whether the turn is, which other connections share; without it a turn has no end."""

    def __init__(self, reader: PacketReader, is_over: Callable[[], bool] | None) -> None:
        self._reader, self._is_over = reader, is_over or _never
        self._arrived: list[bytes] = []
        self._bytes = 0
        self._packets: Iterator[Packet | PacketRun] | None = None
        self.slices: deque[Slices] = deque()
        """What is done before the next packet is read."""

    @property
    def has_more(self) -> bool:
        return bool(self.slices or self._arrived) or self._packets is not None

    def arrived(self, data: bytes) -> None:
        self._bytes += len(data)
        if self._bytes > self._reader.packet_bytes_max + AHEAD_BYTES_MAX:
            raise PacketError(ReasonCode.QUOTA_EXCEEDED, "too much came that could not be read yet")
        self._arrived.append(data)

    def clear(self) -> None:
        self._arrived.clear()
        self.slices.clear()
        self._packets = None

    def packets(self) -> Iterator[Packet | PacketRun]:
        """Those of one turn."""
        while not self._is_over():
            if self.slices:
                if next(self.slices[0], self) is self and self.slices:
                    self.slices.popleft()
                continue
            if self._packets is None:
                if not self._arrived:
                    return
                data = self._arrived[0] if len(self._arrived) == 1 else b"".join(self._arrived)
                self._arrived, self._bytes = [], 0
                self._packets = self._reader.feed(data)
            packet = next(self._packets, None)
            if packet is None:
                self._packets = None
                continue
            yield packet


def _never() -> bool:
    return False
