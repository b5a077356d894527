"""A network of connections: reliable, ordered streams of bytes, until a fault hits them.

write ──▶ pieces, split anywhere ──(each after a delay, in order)──▶ received
close ──▶ the other end notices after it has received everything written before

cut         both ends notice after a while; bytes in transit are lost
silence     neither end receives anything any more; bytes in transit are lost
partition   bytes in transit wait until the partition heals
freeze      an end that is frozen receives nothing until it thaws
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Protocol

from palio.sim.kernel.clock import VirtualClock
from palio.sim.kernel.network import SimulatedNetwork

DELAY_US = (100, 6_000)
NOTICE_US = (500, 200_000)
"""How long it takes to notice a cut."""
_END = b""


class StreamEnd(Protocol):
    """A process at an end of a connection."""

    @property
    def place(self) -> str: ...

    @property
    def is_awake(self) -> bool: ...

    def received(self, stream: ByteStream, data: bytes) -> None: ...

    def disconnected(self, stream: ByteStream) -> None:
        """The other end has closed, or the connection was cut."""
        ...


class ByteStream:
    """A connection of two ends; side 0 is the one that dialled."""

    def __init__(
        self, network: StreamNetwork, number: int, ends: tuple[StreamEnd, StreamEnd]
    ) -> None:
        self.number = number
        self.ends = ends
        self._network = network
        self._is_broken = False
        self._is_open = [True, True]
        self._under_way: tuple[deque[tuple[int, bytes, int]], ...] = (deque(), deque())
        """To each end: when it arrives, the piece, and when its sender made it."""
        self.made_us = 0
        """When the sender of the piece that is being received made it."""

    @property
    def places(self) -> frozenset[str]:
        return frozenset(end.place for end in self.ends)

    @property
    def is_gone(self) -> bool:
        """Whether both ends have closed it."""
        return not any(self._is_open)

    def write(self, end: StreamEnd, data: bytes, made_us: int = 0) -> None:
        """Send data, which may have been made before this moment."""
        if self._is_open[self._side(end)] and data:
            for piece in self._network.pieces(data):
                self._send(1 - self._side(end), piece, DELAY_US, made_us)

    def close(self, end: StreamEnd) -> None:
        """Close one end."""
        side = self._side(end)
        if self._is_open[side]:
            self._drop(side)
            self._send(1 - side, _END, DELAY_US)

    def unread_bytes(self, end: StreamEnd) -> int:
        """Bytes that this end has written and that the other has not read."""
        return sum(len(piece) for _, piece, _ in self._under_way[1 - self._side(end)])

    def cut(self, is_silent: bool) -> None:
        if self._is_broken:
            return
        for side in (0, 1):
            self._under_way[side].clear()
            if not is_silent:
                self._send(side, _END, NOTICE_US)
        self._is_broken = True

    def deliver(self, side: int) -> None:
        """Hand over what has arrived, as far as the end can receive it."""
        end, waiting = self.ends[side], self._under_way[side]
        while waiting and waiting[0][0] <= self._network.clock.now_us and self._is_open[side]:
            if not end.is_awake or self._network.is_partitioned(self.places):
                return
            _, piece, self.made_us = waiting.popleft()
            self._network.on_piece(self.number, side, piece)
            if piece:
                end.received(self, piece)
            else:
                self._drop(side)
                end.disconnected(self)

    def _send(self, side: int, piece: bytes, span_us: tuple[int, int], made_us: int = 0) -> None:
        if self._is_broken or not self._is_open[side]:
            return
        clock, waiting = self._network.clock, self._under_way[side]
        at_us = clock.now_us + self._network.random.randint(*span_us)
        if waiting:
            at_us = max(at_us, waiting[-1][0])
        waiting.append((at_us, piece, made_us))
        clock.after(at_us - clock.now_us, self.deliver, side)

    def _drop(self, side: int) -> None:
        self._is_open[side] = False
        self._under_way[side].clear()
        self._network.forget_if_gone(self)

    def _side(self, end: StreamEnd) -> int:
        return 0 if end is self.ends[0] else 1


class StreamNetwork(SimulatedNetwork):
    """All connections. `on_piece` gets every piece that is handed over."""

    def __init__(
        self, clock: VirtualClock, random: Random, on_piece: Callable[[int, int, bytes], None]
    ) -> None:
        super().__init__(clock, random)
        self.on_piece = on_piece
        self._streams: dict[int, ByteStream] = {}
        self._made = 0

    def connect(self, dialler: StreamEnd, other: StreamEnd) -> ByteStream:
        self._made += 1
        stream = self._streams[self._made] = ByteStream(self, self._made, (dialler, other))
        return stream

    def between(self, places: frozenset[str]) -> list[ByteStream]:
        return [stream for stream in self._streams.values() if stream.places == places]

    def forget_if_gone(self, stream: ByteStream) -> None:
        if stream.is_gone:
            self._streams.pop(stream.number, None)

    def heal(self, a: str, b: str) -> None:
        super().heal(a, b)
        for stream in self.between(frozenset((a, b))):
            self._resume(stream)

    def break_connections(self, a: str, b: str, *, is_silent: bool) -> None:
        for stream in self.between(frozenset((a, b))):
            stream.cut(is_silent)

    def resumed(self, place: str) -> None:
        for stream in list(self._streams.values()):
            if place in stream.places:
                self._resume(stream)

    def _resume(self, stream: ByteStream) -> None:
        for side in (0, 1):
            self.clock.after(self.random.randint(*DELAY_US), stream.deliver, side)

    def pieces(self, data: bytes) -> list[bytes]:
        """Split the data somewhere, or nowhere."""
        random = self.random
        places = random.choice((0, 0, 0, 1, 2, 5))
        cuts = (
            sorted({random.randrange(1, len(data)) for _ in range(places)}) if len(data) > 1 else []
        )
        return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
