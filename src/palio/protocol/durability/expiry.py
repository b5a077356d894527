"""Messages that expire: each has an instant in its headers, from which on no queue delivers it.

    journal.expiring   position -> instant         kept with the metadata of segments
    queue              heap of (instant, number)   entries that expire

A queue looks at its heap before it delivers; all queues look at theirs every few seconds, so that what
has expired is freed where nobody consumes. A crash before the next checkpoint brings such entries back,
and they expire again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush

EXPIRED_AT_ONCE = 10_000
"""Of all queues in a turn."""


class ExpiringEntries:
    """The entries of one queue that expire. `instants`: those of the journal, in the order of positions."""

    __slots__ = ("_instants", "expired", "has_news", "heap")

    def __init__(self, instants: Mapping[int, int]) -> None:
        self.expired = 0
        self.has_news = False
        """Some have been removed that the head of the queue still has."""
        self._instants = instants
        self.heap: list[tuple[int, int]] = []

    def pushed(self, first: int, positions: Sequence[int]) -> None:
        """Entries are new, under numbers from `first` on."""
        instants = self._instants
        if instants and next(reversed(instants)) >= positions[0]:  # else none of them expires
            self.add(enumerate(positions, first))

    def add(self, entries: Iterable[tuple[int, int]]) -> None:
        """Numbers and positions, of which some may expire; they may be here already."""
        instants = self._instants
        if instants:
            for number, position in entries:
                instant = instants.get(position)
                if instant is not None:
                    heappush(self.heap, (instant, number))

    def due(self, now_us: int) -> dict[int, None]:
        """Take the numbers whose instant has come, at most EXPIRED_AT_ONCE."""
        heap, found = self.heap, dict[int, None]()
        while heap and heap[0][0] <= now_us and len(found) < EXPIRED_AT_ONCE:
            found[heappop(heap)[1]] = None
        return found

    def removed(self, count: int) -> None:
        """So many have been removed from the queue."""
        if count:
            self.expired += count
            self.has_news = True
