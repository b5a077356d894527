"""The entries of a queue that come back from consumers: those that left, and those that said nack.

    waiting    a heap of numbers: redelivered before all others, each in its order
    delayed    a heap of (instant, number): they wait from that instant on
    counts     how often an entry has been delivered; only of those that came back
    dead       delivered as often as may be, or rejected: they go to nobody, and are published as dead
               letters (republishing.py)

Counts are stored with the head of the queue; instants are not: after a restart, what was delayed is
delivered at once.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from palio.protocol.durability.sequence import EntrySequence

_POPPED_MAX = 1000
"""Beyond that a look at the whole heap is faster."""


class ReturnedEntries:
    """`restored`: entries before this number may have been sent before a restart. `deliveries_max`: of
    one entry; 0: any number."""

    __slots__ = ("_sequence", "dead", "delayed", "deliveries_max", "restored", "waiting")

    def __init__(self, sequence: EntrySequence, deliveries_max: int = 0) -> None:
        self.restored = sequence.next
        self.deliveries_max = deliveries_max
        self._sequence = sequence
        self.waiting: list[int] = []
        """A heap of those that may go."""
        self.delayed: list[tuple[int, int]] = []
        """A heap of the others, each with its instant."""
        self.dead: dict[int, str | None] = {}
        """Why a consumer has rejected it; None: it was delivered too often."""
        if deliveries_max:
            worn = [n for n, count in sequence.counts.items() if count >= deliveries_max]
            self.dead = dict.fromkeys([n for n in worn if n in sequence.entries])

    def add(self, numbers: list[int], due_us: int = 0) -> None:
        """These were delivered and come next, at an instant. Many consumers may leave at once, each with a
        few."""
        counts = self._sequence.counts
        for n in numbers:
            counts[n] = counts.get(n, n < self.restored) + 1
        if self.deliveries_max:
            worn = [n for n in numbers if counts[n] >= self.deliveries_max]
            if worn:
                self.dead.update(dict.fromkeys(worn))
                numbers = [n for n in numbers if n not in self.dead]
        if due_us:
            for n in numbers:
                heappush(self.delayed, (due_us, n))
        else:
            self.put_back(numbers)

    def reject(self, numbers: list[int], text: str) -> None:
        """These were delivered, and go to nobody any more."""
        counts = self._sequence.counts
        for n in numbers:
            counts[n] = counts.get(n, n < self.restored) + 1
            self.dead[n] = text

    def put_back(self, numbers: list[int]) -> None:
        """These come next after all; they were not delivered."""
        if len(numbers) < len(self.waiting) // 16:
            for n in numbers:
                heappush(self.waiting, n)
        else:
            self.waiting = sorted([*self.waiting, *numbers])  # which is a heap

    def release(self, now_us: int) -> None:
        """The time of some may have come."""
        delayed, count = self.delayed, 0
        while delayed and delayed[0][0] <= now_us:
            heappush(self.waiting, heappop(delayed)[1])
            count += 1
            if count == _POPPED_MAX:
                self.put_back([n for due_us, n in delayed if due_us <= now_us])
                self.delayed = [one for one in delayed if one[0] > now_us]
                heapify(self.delayed)
                return

    def take(self, count: int) -> list[int]:
        """The first ones that are still in the queue, at most `count`."""
        entries, found = self._sequence.entries, list[int]()
        while self.waiting and len(found) < count:
            n = heappop(self.waiting)
            if n in entries:  # else it was acknowledged or dropped
                found.append(n)
        return found

    def deliveries(self, numbers: list[int]) -> list[int]:
        """Of these, which are delivered once more, or were perhaps before a restart."""
        counts = self._sequence.counts
        return [counts.get(n, 1) + 1 for n in numbers]
