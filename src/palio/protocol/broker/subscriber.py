"""A subscriber: one subscription of one client, its credit, and the messages that wait for it."""

from __future__ import annotations

from collections import deque

import numpy as np

from palio.protocol.wire.batch import OVERHEAD_BYTES, Entry
from palio.protocol.wire.encode import deliver_pieces


class Subscriber:
    """One subscription of one client."""

    __slots__ = (
        "credits", "ends", "id", "identity", "is_over", "link", "place", "waiting", "waiting_bytes",
    )  # fmt: skip

    def __init__(self, link: int, id: int, identity: str, credits: Credits, ends: bool) -> None:
        self.link = link
        self.id = id
        self.identity = identity
        self.credits = credits
        self.place = credits.take()
        self.ends = ends
        """When too many messages wait: end the subscription, or else drop the oldest."""
        self.is_over = False
        self.waiting: deque[WaitingMessage] = deque()
        """The oldest first; only `WaitingMessages` changes it, and `waiting_bytes`."""
        self.waiting_bytes = 0

    @property
    def credit(self) -> int:
        return int(self.credits.array[self.place])

    def add_credit(self, count: int) -> None:
        self.credits.array[self.place] += count


class WaitingMessage:
    """A message that waits for one or many subscribers, or the frame of an occurrence. It is in memory
    once."""

    __slots__ = ("_entry", "_frame", "holders", "size")

    def __init__(self, entry: Entry | None, frame: bytes = b"") -> None:
        self._entry, self._frame = entry, frame
        self.size = len(frame) + OVERHEAD_BYTES
        if entry is not None:
            self.size += len(entry.attributes) + len(entry.body) + len(entry.publisher)
        self.holders: dict[str, dict[Subscriber, None]] = {}
        """Whom it waits for, by identity."""

    def pieces(self, id: int) -> list[bytes]:
        """The frame for a subscription, in pieces."""
        return [self._frame] if self._entry is None else deliver_pieces(self._entry, (id,))


class Credits:
    """The credit of each subscriber: an array, because kernels take credit too."""

    def __init__(self) -> None:
        self.array = np.zeros(64, np.int64)
        self._free = list(range(64))

    def take(self) -> int:
        if not self._free:
            size = len(self.array)
            self.array = np.concatenate([self.array, np.zeros(size, np.int64)])
            self._free = list(range(size, 2 * size))
        return self._free.pop()

    def give_back(self, place: int) -> None:
        self.array[place] = 0
        self._free.append(place)
