"""The queue of a durable subscription: what waits at its home until a client has dealt with it.

      first               sent          safe      next
        │                   │             │         │
        4  5* 6  7* 8  9*   │ 10 11 12 13 │ 14 15   │       * acknowledged, in any order
        └─ out: at whom ────┘ └ may go ───┘ └ not yet committed
      back [ 6 ]      was at a consumer that left: goes again, before all others

Entries are positions of the journal under numbers of the queue's own, which clients acknowledge.
Several consumers share a queue: each entry goes to one that has credit, in turn. Credit is taken by
a delivery and given back by its acknowledgement. A single consumer gets the entries in order.

A queue is bounded. When it is full, `block` takes no more (nothing is lost, and publishers wait in
the end), `drop` lets the oldest go, `end` ends the subscription.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from enum import StrEnum
from itertools import repeat
from typing import NamedTuple

from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.ledger import Line


class Full(StrEnum):
    """What happens when a queue is full."""

    BLOCK = "block"
    DROP = "drop"
    END = "end"


class Consumer:
    __slots__ = ("credit", "key")

    def __init__(self, key: Hashable, credit: int) -> None:
        self.key = key
        self.credit = credit


class Share(NamedTuple):
    """Entries that go to one consumer."""

    consumer: Hashable
    again: bool
    """They may have been sent before."""
    numbers: list[int]
    positions: list[int]
    """Of the journal."""


class Queue:
    def __init__(
        self,
        name: str,
        label: str,
        full: Full,
        line: Line[int],
        journal: Journal,
        bounds: Bounds,
    ) -> None:
        self.name = name
        self.label = label
        self.full = full
        self.line = line
        self.bytes = 0
        self.dropped = 0
        self.has_dropped = False  # since its head was put
        self._journal = journal
        self._bounds = bounds
        self._safe = line.next
        self._sent = line.lowest()
        self._restored = line.next  # what is before may have been sent before a restart
        self._back: deque[int] = deque()
        self._out: dict[int, Consumer] = {}
        self._consumers: dict[Hashable, Consumer] = {}
        self._turn: deque[Consumer] = deque()  # those with credit
        for position in line.entries.values():
            self.bytes += journal.retain(position)

    def __len__(self) -> int:
        return len(self.line.entries)

    @property
    def consumers(self) -> list[Hashable]:
        return list(self._consumers)

    @property
    def is_over(self) -> bool:
        """There is more in it than may be."""
        return len(self.line.entries) > self._bounds.queue or self.bytes > self._bounds.queue_bytes

    @property
    def is_full(self) -> bool:
        """It must get no more."""
        return self.full is Full.BLOCK and (
            len(self.line.entries) >= self._bounds.queue or self.bytes >= self._bounds.queue_bytes
        )

    @property
    def has_room(self) -> bool:
        """Enough for those who wait to begin again."""
        return (
            len(self.line.entries) < self._bounds.queue * 7 / 8
            and self.bytes < self._bounds.queue_bytes * 7 / 8
        )

    def fits(self, count: int, size: int) -> bool:
        """There is room for so many messages of so many bytes together."""
        return (
            len(self.line.entries) + count <= self._bounds.queue
            and self.bytes + size <= self._bounds.queue_bytes
        )

    def push(self, positions: Sequence[int], size: int) -> None:
        """Take messages of so many bytes; their references are counted already."""
        self.line.extend(positions)
        self.bytes += size
        if self.full is Full.DROP:
            while len(self.line.entries) > 1 and self.is_over:
                self._remove(self.line.lowest())
                self.dropped += 1
                self.has_dropped = True

    def commit(self, next: int) -> None:
        """Entries before this number are safe."""
        self._safe = next

    # ---- consumers

    def attach(self, key: Hashable, credit: int) -> None:
        self.detach(key)
        self._consumers[key] = Consumer(key, 0)
        self.pay(key, credit)

    def pay(self, key: Hashable, credit: int) -> None:
        """More messages for a consumer; negative: fewer."""
        consumer = self._consumers[key]
        before, after = consumer.credit, consumer.credit + credit
        consumer.credit = after
        if before <= 0 < after:
            self._turn.append(consumer)
        elif after <= 0 < before:
            self._turn.remove(consumer)

    def detach(self, key: Hashable) -> None:
        """A consumer left: what it did not acknowledge goes to others, or to it when it is back."""
        consumer = self._consumers.pop(key, None)
        if consumer is None:
            return
        if consumer.credit > 0:
            self._turn.remove(consumer)
        left = [n for n, holder in self._out.items() if holder is consumer]
        for n in left:
            del self._out[n]
        self._back = deque(sorted({*self._back, *(n for n in left if n in self.line.entries)}))

    def acknowledge(self, numbers: Sequence[int]) -> int:
        """These are dealt with; how many of them were in the queue."""
        holders = [h for h in map(self._out.pop, numbers, repeat(None)) if h is not None]
        if holders and holders.count(holders[0]) == len(holders):
            self.pay(holders[0].key, len(holders))
        else:
            for holder in holders:
                self.pay(holder.key, 1)
        found = list(map(self.line.entries.pop, numbers, repeat(None)))
        positions = [position for position in found if position is not None]
        if len(positions) == len(found):
            self.line.gone += numbers
        else:
            self.line.gone += [n for n, position in zip(numbers, found, strict=True) if position]
        self.bytes -= self._journal.release(positions)
        return len(positions)

    def deliver(self) -> list[Share]:
        """What goes to whom: entries one by one in turn, or as many as a single consumer takes."""
        shares: list[Share] = []
        turn = self._turn
        while turn:
            consumer = turn[0]
            share = self._next(consumer, 1 if len(turn) > 1 else consumer.credit)
            if share is None:
                break
            shares.append(share)
            consumer.credit -= len(share.numbers)
            if not consumer.credit:
                turn.popleft()
            else:
                turn.rotate(-1)
            self._out.update(dict.fromkeys(share.numbers, consumer))
        return shares

    def _next(self, consumer: Consumer, count: int) -> Share | None:
        """The next entries that may go, at most so many; None: there are none."""
        entries = self.line.entries
        while self._back:  # some may be acknowledged or dropped meanwhile
            n = self._back.popleft()
            if n in entries:
                return Share(consumer.key, True, [n], [entries[n]])
        while self._sent < self._safe:
            again = self._sent < self._restored
            end = min(self._restored if again else self._safe, self._safe, self._sent + count)
            numbers = [n for n in range(self._sent, end) if n in entries]
            self._sent = end
            if numbers:
                return Share(consumer.key, again, numbers, [entries[n] for n in numbers])
        return None

    def empty(self) -> None:
        """The subscription is gone, and so is what waits."""
        for n in list(self.line.entries):
            self._remove(n)

    def _remove(self, number: int) -> None:
        self.bytes -= self._journal.release((self.line.entries.pop(number),))
        self.line.gone.append(number)
