"""Delayed messages: they wait at their origin, and are published when their time has come.

    publish ──▶ journal, an entry here ──(its instant, by the clock of the origin)──▶ the core: what does it
                                                                                     match now?
             fan-out, and out of here, in one commit (republishing.py)

An entry has its instant as label, in the records of commits, so a restart reads no messages. What waits is
bounded in number, bytes and time; a message beyond that is refused before it is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush

from palio.errors import InvalidValue
from palio.protocol.durability import keys
from palio.protocol.durability.bounds import DelayBounds
from palio.protocol.durability.destination import Departures
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.sequence import EntrySequence, Labels
from palio.protocol.wire.batch import MessageBatch


class DelayedMessages:
    """A destination (destination.py) of messages that no subscription gets yet."""

    head_key = keys.DELAYED
    can_depart = False

    def __init__(self, sequence: EntrySequence, journal: Journal, bounds: DelayBounds) -> None:
        self.sequence = sequence
        self.safe = sequence.next
        self.bytes = 0
        self.rows: dict[int, int] = {}
        """Of the batch that was published last: those that wait here, with their instants."""
        self._journal = journal
        self._bounds = bounds
        self.heap: list[tuple[int, int]] = [
            (int(sequence.labels[n][0]), n) for n in sequence.entries
        ]
        """A heap of instants and numbers."""
        heapify(self.heap)
        for position in sequence.entries.values():
            self.bytes += journal.retain(position)

    def __len__(self) -> int:
        return len(self.sequence)

    @property
    def is_full(self) -> bool:
        """Whether nothing more is accepted."""
        return len(self.sequence) >= self._bounds.messages or self.bytes >= self._bounds.bytes

    @property
    def has_room(self) -> bool:
        return not self.is_full

    def fits(self, count: int, size: int) -> bool:
        return True  # what is too much was refused

    def check(self, due_us: int, now_us: int, *, durable: bool) -> None:
        """Raise InvalidValue for a message that may not wait here until that instant."""
        if not durable:
            raise InvalidValue(
                "a message that is not durable cannot wait for its time",
                remedy="publish it with durable=True, or without a delay",
            )
        longest_us = self._bounds.longest_us
        if due_us - now_us > longest_us:
            raise InvalidValue(
                f"it is delayed by {(due_us - now_us) / 1e6:,.0f} s; the most are "
                f"{longest_us / 1e6:,.0f} s",
                remedy="publish it later, or ask the operator for a larger [limits] delay",
            )
        if self.is_full:
            raise InvalidValue(
                f"{len(self):,} delayed messages of {self.bytes:,} bytes wait here; this broker takes "
                "no more",
                remedy="publish it when some of them have been published, or ask the operator for a "
                "larger [limits] delayed or delayed_bytes",
            )

    def store(self, batch: MessageBatch, last: int, stored_us: int) -> int:
        """Store a whole batch that is delayed. `last`: the number of its publisher before. 0: some are not
        delayed or may be duplicates, or there may be no room."""
        sizes, count, bounds = batch.sizes(), batch.count, self._bounds
        size = sum(sizes)
        is_within = len(self) + count <= bounds.messages and self.bytes + size <= bounds.bytes
        is_whole = len(self.rows) == count and batch.ascends(last)
        if not is_whole or not is_within or not self._journal.fits(size):
            return 0
        first = self._journal.append(batch, sizes, [1] * count, stored_us, False)
        instants = [(str(self.rows[row]),) for row in range(count)]
        self.push(range(first, first + count), instants, size)
        return count

    def push(self, positions: Sequence[int], labels: Sequence[Labels], size: int) -> None:
        """Add messages; each has its instant as label."""
        for number, (instant,) in enumerate(labels, self.sequence.next):
            heappush(self.heap, (int(instant), number))
        self.sequence.extend(positions, labels)
        self.bytes += size

    @property
    def due_us(self) -> int | None:
        """When the next one is to be published; None: there is none that is committed."""
        while self.heap and self.heap[0][1] not in self.sequence.entries:
            heappop(self.heap)
        is_any = self.heap and self.heap[0][1] < self.safe
        return self.heap[0][0] if is_any else None

    def due(self, now_us: int) -> tuple[int, int] | None:
        """Number and position of the next one, if its time has come."""
        due_us = self.due_us
        if due_us is None or due_us > now_us:
            return None
        number = self.heap[0][1]
        return number, self.sequence.entries[number]

    def remove(self, number: int) -> None:
        """It is published now."""
        position = self.sequence.entries.pop(number)
        del self.sequence.labels[number]
        self.sequence.gone.append(number)
        self.bytes -= self._journal.release((position,))

    # ---- as a destination

    def collect(self, departures: Departures, now_us: int) -> None:
        """Nothing is sent from here."""

    def clear(self) -> None:
        """It is never cleared."""

    def shrink(self) -> None: ...

    def sealed(self) -> None: ...

    def committed(self) -> None: ...
