"""The outbox of a client: durable messages that the broker has neither stored nor rejected yet.

    numbers grow:  │ settled: stored or rejected │ in the outbox, except those rejected │ next
                                                 ▲ moved by Published, or by Welcome on a reconnect

Frames are kept as they were sent, so a message that is sent twice has the same bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator


class Outbox:
    """Frames in the order of their numbers, bounded by count and bytes."""

    __slots__ = ("_bytes", "_bytes_max", "_frames", "_last", "_messages_max", "settled")

    def __init__(self, messages_max: int, bytes_max: int) -> None:
        self._messages_max = messages_max
        self._bytes_max = bytes_max
        self._frames: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self._last = 0
        self.settled = 0
        """Every message up to this number is stored or rejected."""

    def __iter__(self) -> Iterator[bytes]:
        return (frame for _number, frame in self._frames)

    @property
    def unstored(self) -> int:
        """How many durable messages are not known to be stored."""
        return len(self._frames)

    def is_unstored(self, number: int) -> bool:
        """Is the durable message with this number not known to be stored?"""
        return number > self.settled

    @property
    def has_room(self) -> bool:
        """May another message be added, whatever its size?"""
        return len(self._frames) < self._messages_max and self._bytes < self._bytes_max

    def add(self, number: int, frame: bytes) -> None:
        self._frames.append((number, frame))
        self._bytes += len(frame)
        self._last = number

    def store(self, number: int) -> bool:
        """All messages up to this number are stored. True: at least one of them was here."""
        frames = self._frames
        before = len(frames)
        while frames and frames[0][0] <= number:
            self._bytes -= len(frames.popleft()[1])
        self._settle(number)
        return len(frames) < before

    def reject(self, number: int) -> bool:
        """The broker will never store this message. True: it was here, and all before it are settled."""
        for i, (found, frame) in enumerate(self._frames):
            if found == number:
                del self._frames[i]
                self._bytes -= len(frame)
                self._settle(0)
                return self.settled >= number
            if found > number:
                break
        return False

    def _settle(self, number: int) -> None:
        known = self._frames[0][0] - 1 if self._frames else self._last
        self.settled = max(self.settled, known, number)
