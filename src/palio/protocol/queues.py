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
from collections.abc import Hashable, Iterable
from enum import StrEnum

from palio.protocol.bounds import Bounds
from palio.protocol.journal import Journal
from palio.protocol.ledger import Line


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

    def push(self, position: int, size: int) -> None:
        """Take a message; its reference is counted already."""
        line = self.line
        line.entries[line.next] = position
        line.next += 1
        self.bytes += size
        if self.full is Full.DROP:
            while len(line.entries) > 1 and self.is_over:
                self._remove(line.lowest())
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

    def acknowledge(self, numbers: Iterable[int]) -> int:
        """These are dealt with; how many of them were in the queue."""
        out, entries, gone = self._out, self.line.entries, self.line.gone
        count = size = 0
        for n in numbers:
            consumer = out.pop(n, None)
            if consumer is not None:
                consumer.credit += 1
                if consumer.credit == 1:
                    self._turn.append(consumer)
            position = entries.pop(n, None)
            if position is not None:
                size += self._journal.release(position)
                gone.append(n)
                count += 1
        self.bytes -= size
        return count

    def deliver(self) -> list[tuple[Hashable, int, bool, int]]:
        """What goes to whom: consumer, number, whether it may have been sent before, position."""
        found: list[tuple[Hashable, int, bool, int]] = []
        entries, out, turn, back = self.line.entries, self._out, self._turn, self._back
        sent, safe, restored = self._sent, self._safe, self._restored
        while turn:
            if back:
                n, again = back.popleft(), True
            elif sent < safe:
                n, again = sent, sent < restored
                sent += 1
            else:
                break
            position = entries.get(n)
            if position is None:  # acknowledged or dropped meanwhile
                continue
            consumer = turn[0]
            consumer.credit -= 1
            if not consumer.credit:
                turn.popleft()
            elif len(turn) > 1:
                turn.rotate(-1)
            out[n] = consumer
            found.append((consumer.key, n, again, position))
        self._sent = sent
        return found

    def empty(self) -> None:
        """The subscription is gone, and so is what waits."""
        for n in list(self.line.entries):
            self._remove(n)

    def _remove(self, number: int) -> None:
        self.bytes -= self._journal.release(self.line.entries.pop(number))
        self.line.gone.append(number)
