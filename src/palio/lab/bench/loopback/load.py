"""Load for brokers: frames that are made beforehand, a source that sends them, sinks that count.

    source ──(a thread, blocking sendall)──▶ contestant ──▶ sinks ──(selectors)──▶ counted frame by
                                             relay, broker or Mosquitto            frame

Source and sinks are the same for every contestant and do little per message, so that the contestant
is what is timed. A message ends with the time at which it was made, so that its age can be told.
"""

from __future__ import annotations

import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from palio.errors import PalioError

_SIZE = struct.Struct("<I")
_STAMP = struct.Struct("<d")
STAMP_BYTES = _STAMP.size
_READ_BYTES = 1 << 18
_SILENT_S = 20.0
WINDOW = 10_000

Cut = Callable[[bytes], tuple[list[int], int]]
"""Where the frames of a piece of data end, and where the first that is not whole begins."""


def cut_frames(data: bytes) -> tuple[list[int], int]:
    """Palio's frames (protocol/frames.py)."""
    ends, at, size = [], 0, len(data)
    unpack = _SIZE.unpack_from
    while size - at >= 4:
        end = at + 4 + unpack(data, at)[0]
        if end > size:
            break
        ends.append(end)
        at = end
    return ends, at


def stamp() -> bytes:
    return _STAMP.pack(time.perf_counter())


class Sink:
    """A connection on which messages arrive."""

    def __init__(self, connection: socket.socket, cut: Cut) -> None:
        self.connection = connection
        self._cut = cut
        self._rest = b""
        self.count = 0
        self.ages_s: list[float] = []

    def read(self, *, ages: bool) -> tuple[bytes, list[int]]:
        """What has come, and where its frames end."""
        data = self.connection.recv(_READ_BYTES)
        if not data:
            raise PalioError("the contestant has closed a connection; run it by itself to see why")
        data = self._rest + data
        ends, at = self._cut(data)
        self._rest = data[at:]
        self.count += len(ends)
        if ages:
            now = time.perf_counter()
            for end in ends:
                self.ages_s.append(now - _STAMP.unpack_from(data, end - STAMP_BYTES)[0])
        return data, ends


class Load:
    """One source and some sinks, connected to a contestant."""

    def __init__(self, source: socket.socket, sinks: Sequence[Sink], answers: Cut) -> None:
        self._source = source
        self._sinks = sinks
        self._answers = Sink(source, answers)
        self.heard: Callable[[Sink, bytes, list[int]], None] | None = None
        """Called with what came in and where its frames end, when they are to be answered."""

    def push(self, pieces: Sequence[bytes], each: int) -> float:
        """Send pieces of `each` messages as fast as they arrive, at most WINDOW messages ahead;
        seconds until all have arrived."""
        before = self.arrived
        begin = time.perf_counter()
        with self._sending(self._within_window(pieces, each, before)):
            self._read_until(before + len(pieces) * each, ages=False)
        return time.perf_counter() - begin

    def _within_window(self, pieces: Sequence[bytes], each: int, before: int) -> Iterator[bytes]:
        sent = 0
        for piece in pieces:
            while before + sent - self.arrived > WINDOW:
                time.sleep(0.0002)
            sent += each
            yield piece

    def pace(self, make: Callable[[int], bytes], count: int, per_second: float) -> list[float]:
        """Send messages one by one at this rate; their ages at the sinks, in seconds."""
        for sink in self._sinks:
            sink.ages_s.clear()
        pieces = _paced(make, count, per_second)
        wanted = self.arrived + count
        with self._sending(pieces):
            self._read_until(wanted, ages=True)
        return [age for sink in self._sinks for age in sink.ages_s]

    @property
    def arrived(self) -> int:
        return sum(sink.count for sink in self._sinks)

    @contextmanager
    def _sending(self, pieces: Iterator[bytes]) -> Iterator[None]:
        def send() -> None:
            for piece in pieces:
                self._source.sendall(piece)

        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        yield
        thread.join()

    def _read_until(self, count: int, *, ages: bool) -> None:
        with selectors.DefaultSelector() as selector:
            for sink in (*self._sinks, self._answers):
                selector.register(sink.connection, selectors.EVENT_READ, sink)
            last = time.monotonic()
            while self.arrived < count:
                ready = selector.select(1.0)
                for key, _ in ready:
                    sink = key.data
                    if sink is self._answers:
                        sink.read(ages=False)
                        continue
                    data, ends = sink.read(ages=ages)
                    if ends and self.heard is not None:
                        self.heard(sink, data, ends)
                if ready:
                    last = time.monotonic()
                elif time.monotonic() - last > _SILENT_S:
                    raise PalioError(
                        f"{self.arrived:,} messages have arrived, and then nothing for "
                        f"{_SILENT_S:g} s; the contestant hangs or drops"
                    )


def _paced(make: Callable[[int], bytes], count: int, per_second: float) -> Iterator[bytes]:
    begin = time.perf_counter()
    for i in range(count):
        wait_s = begin + i / per_second - time.perf_counter()
        if wait_s > 0:
            time.sleep(wait_s)
        yield make(i)
