"""The outbox of a client: durable messages that the broker has not yet said to be stored.

    numbers grow by one:  │ stored, forgotten │ in the outbox │ next
                                              ▲ Published, or Welcome after a reconnect

The frames are kept as they were sent, so that what is sent again is the same to the byte.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator


class Outbox:
    """Frames in the order of their numbers, bounded by count and bytes."""

    __slots__ = ("_bytes", "_bytes_max", "_frames", "_messages_max", "stored")

    def __init__(self, messages_max: int, bytes_max: int) -> None:
        self._messages_max = messages_max
        self._bytes_max = bytes_max
        self._frames: deque[tuple[int, bytes]] = deque()
        self._bytes = 0
        self.stored = 0
        """The last number that is known to be stored."""

    def __len__(self) -> int:
        return len(self._frames)

    def __iter__(self) -> Iterator[bytes]:
        return (frame for _number, frame in self._frames)

    @property
    def has_room(self) -> bool:
        """One more may come, however large it is."""
        return len(self._frames) < self._messages_max and self._bytes < self._bytes_max

    def add(self, number: int, frame: bytes) -> None:
        self._frames.append((number, frame))
        self._bytes += len(frame)

    def store(self, number: int) -> bool:
        """All up to this number are stored. True: one of them was here."""
        self.stored = max(self.stored, number)
        frames = self._frames
        before = len(frames)
        while frames and frames[0][0] <= number:
            self._bytes -= len(frames.popleft()[1])
        return len(frames) < before
