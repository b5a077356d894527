"""A subscriber: one subscription of one client, its credit, and the messages that wait for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import Any

import numpy as np

from palio.protocol.wire.batch import OVERHEAD_BYTES, Entry
from palio.protocol.wire.encode import deliver_pieces
from palio.protocol.wire.message_headers import expiry

WITHHELD = 1 << 40
"""Credit that is withheld while a subscriber gets no messages: larger than any credit."""
_NO_LINK = -1


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
        self.place = credits.take(link)
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
    """A message that waits for one or many subscribers, or the frame of an occurrence or of a last value. It is
    in memory once."""

    __slots__ = ("_entry", "_frame", "expires_us", "holders", "size")

    def __init__(self, entry: Entry | None, frame: bytes = b"", expires_us: int = 0) -> None:
        self._entry, self._frame = entry, frame
        self.size = len(frame) + OVERHEAD_BYTES
        self.expires_us = expires_us if entry is None else expiry(entry.payload)
        if entry is not None:
            self.size += len(entry.attributes) + len(entry.payload) + len(entry.publisher)
        self.holders: dict[str, dict[Subscriber, None]] = {}
        """Whom it waits for, by identity."""

    def pieces(self, id: int) -> list[bytes]:
        """The frame for a subscription, in pieces."""
        return [self._frame] if self._entry is None else deliver_pieces(self._entry, (id,))


class Credits:
    """The credit of each subscriber: an array, because kernels take credit too. While that of a link is
    withheld, each of its subscribers has `WITHHELD` less."""

    def __init__(self) -> None:
        self.array = np.zeros(64, np.int64)
        self._links = np.full(64, _NO_LINK, np.int64)
        """Of the subscriber at each place."""
        self._free = list(range(64))
        self._withheld: set[int] = set()

    def take(self, link: int) -> int:
        """A place for a subscriber of a link."""
        if not self._free:
            size = len(self.array)
            self.array = np.concatenate([self.array, np.zeros(size, np.int64)])
            self._links = np.concatenate([self._links, np.full(size, _NO_LINK, np.int64)])
            self._free = list(range(size, 2 * size))
        place = self._free.pop()
        self._links[place] = link
        self.array[place] = -self.withheld(link)
        return place

    def give_back(self, place: int) -> None:
        self.array[place] = 0
        self._links[place] = _NO_LINK
        self._free.append(place)

    def withheld(self, link: int) -> int:
        """What each subscriber of a link has less now."""
        return WITHHELD if link in self._withheld else 0

    def withhold(self, links: Collection[int]) -> None:
        """Take the credit of all subscribers of these links, which have theirs."""
        self._withheld.update(links)
        self.array[self._of(links)] -= WITHHELD

    def release(self, links: Collection[int]) -> None:
        """Give it back."""
        self._withheld.difference_update(links)
        self.array[self._of(links)] += WITHHELD

    def forget(self, link: int) -> None:
        """A link is gone, or will have no subscribers any more."""
        self._withheld.discard(link)

    def _of(self, links: Collection[int]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which places belong to these links."""
        return np.isin(self._links, list(links))
