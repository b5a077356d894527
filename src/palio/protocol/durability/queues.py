"""The queue of a durable subscription: its messages at the home broker until they are acknowledged.

      first               sent          safe      next
        │                   │             │         │
        4  5* 6  7* 8  9*   │ 10 11 12 13 │ 14 15   │       * acknowledged, in any order
        └─ in flight ───────┘ └ may go ───┘ └ not yet committed
      returned [ 6 ]      sent to a consumer that left: redelivered before all others (returned.py)
      dead [ 8 ]          delivered too often, or rejected: they leave as dead letters (republishing.py)

Entries are positions of the journal under numbers of the queue's own, which clients acknowledge.
Several consumers share a queue: each entry goes to one that has credit, in turn. Credit is taken by
a delivery and given back by its acknowledgement. A single consumer gets the entries in order.
A consumer takes part in one queue (consumers.py).

A queue is bounded. When it is full, `block` accepts no more (nothing is lost, and in the end
publishers wait), `drop` drops the oldest, `end` ends the subscription. A paused queue delivers nothing.

Entries that were dropped or purged are back after a crash before the commit that says so. Until that
commit a queue delivers nothing: else a consumer would get them after newer ones. The oldest are dropped
when a commit begins, not at each push, so that a queue that is always too full delivers after each commit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from itertools import islice, repeat, takewhile
from typing import Any

from palio.protocol.durability import keys
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.destination import Departures
from palio.protocol.durability.expiry import EXPIRED_AT_ONCE, ExpiringEntries
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.losses import Losses
from palio.protocol.durability.outgoing import QueueDelivery
from palio.protocol.durability.queue_consumers import (
    QueueBatch,
    QueueConsumer,
    QueueConsumers,
    QueueShare,
)
from palio.protocol.durability.returned import ReturnedEntries
from palio.protocol.durability.sequence import EntrySequence, Labels
from palio.protocol.wire.codes import Full as Full

DELIVERED_BYTES_MAX = 4 << 20
"""What a queue delivers in a turn, besides one message: credit counts messages, whatever their size, and
only after the turn is it known whether the consumers read."""
_SMALL_BYTES = 256 << 10
"""The bytes of a queue that is delivered without a look at the sizes of its messages."""
SHARE_WORK = 20
"""What a delivery to a consumer takes besides its messages, in messages (Departures.work)."""


class Queue:
    """`name` is that of its subscription, `label` also has the version (subscriptions.py). Entries
    before `safe` are committed."""

    def __init__(
        self,
        name: str,
        label: str,
        full: Full,
        sequence: EntrySequence,
        journal: Journal,
        bounds: Bounds,
        deliveries_max: int = 0,
    ) -> None:
        self.name = name
        self.head_key = keys.QUEUES + label
        self.full = full
        self.sequence = sequence
        self.safe = sequence.next
        self.bytes = 0
        self.dropped = 0
        self._losses = Losses()
        self._journal = journal
        self._bounds = bounds
        self._sent = sequence.lowest()
        self.returned = ReturnedEntries(sequence, deliveries_max)
        self._in_flight: dict[int, QueueConsumer] = {}
        self.consumers = QueueConsumers()
        self.expiring = ExpiringEntries(journal.expiring)
        self.expiring.add(sequence.entries.items())
        for position in sequence.entries.values():
            self.bytes += journal.retain(position)

    def __len__(self) -> int:
        return len(self.sequence)

    @property
    def is_over(self) -> bool:
        """Whether it holds more than its bound."""
        return (
            len(self.sequence.entries) > self._bounds.queue or self.bytes > self._bounds.queue_bytes
        )

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be added."""
        return self.full is Full.BLOCK and (
            len(self.sequence.entries) >= self._bounds.queue
            or self.bytes >= self._bounds.queue_bytes
        )

    @property
    def has_room(self) -> bool:
        """Whether waiting publishers and streams may continue."""
        return (
            len(self.sequence.entries) < self._bounds.queue * 7 / 8
            and self.bytes < self._bounds.queue_bytes * 7 / 8
        )

    def fits(self, count: int, size: int) -> bool:
        """Whether there is room for `count` messages of `size` bytes in total."""
        return (
            len(self.sequence.entries) + count <= self._bounds.queue
            and self.bytes + size <= self._bounds.queue_bytes
        )

    def push(self, positions: Sequence[int], labels: Sequence[Labels], size: int) -> None:
        """Add messages of `size` bytes; the journal has counted their references already."""
        if self._journal.expiring:
            self.expiring.pushed(self.sequence.next, positions)
        self.sequence.extend(positions)
        self.bytes += size

    def shrink(self) -> None:
        """A commit begins: drop the oldest entries, if there are too many and it is that kind of queue."""
        if self.full is Full.DROP:
            while len(self.sequence.entries) > 1 and self.is_over:
                self.remove(self.sequence.lowest())
                self.dropped += 1

    # ---- consumers

    def attach(self, key: Hashable, credit: int) -> None:
        self.detach(key)
        self.consumers.add(key, credit)

    def detach(self, key: Hashable) -> int:
        """Remove a consumer; what it did not acknowledge goes to the next consumers. Returns how many
        entries these are."""
        consumer = self.consumers.remove(key)
        if consumer is None:
            return 0
        entries = self.sequence.entries
        for n in consumer.in_flight:
            del self._in_flight[n]
        numbers = [n for n in consumer.in_flight if n in entries]
        self.expiring.add((n, entries[n]) for n in numbers)
        self.returned.add(numbers)
        return len(numbers)

    def nack(
        self, key: Hashable, numbers: Sequence[int], due_us: int = 0, rejection: str | None = None
    ) -> int:
        """A consumer gives entries back, to be sent at this instant or later, to any consumer; or to
        nobody, if there is a `rejection`. Returns how many it had."""
        own, entries = self._in_flight, self.sequence.entries
        held = [n for n in dict.fromkeys(numbers) if n in own and own[n].key == key]
        for n in held:
            del own.pop(n).in_flight[n]
        if held:
            self.consumers.grant_credit(key, len(held))
        back = [n for n in held if n in entries]
        self.expiring.add((n, entries[n]) for n in back)
        if rejection is None:
            self.returned.add(back, due_us)
        else:
            self.returned.reject(back, rejection)
        return len(held)

    def acknowledge(self, numbers: Sequence[int]) -> int:
        """Remove acknowledged entries. Returns how many of them were in the queue."""
        holders: list[Any] = list(map(self._in_flight.pop, numbers, repeat(None)))
        holder = holders[0] if holders else None
        if holder is not None and holders.count(holder) == len(holders):
            deque(map(holder.in_flight.pop, numbers), maxlen=0)
            self.consumers.grant_credit(holder.key, len(holders))
        else:
            for n, holder in zip(numbers, holders, strict=True):
                if holder is not None:
                    del holder.in_flight[n]
                    self.consumers.grant_credit(holder.key, 1)
        positions: list[Any] = list(map(self.sequence.entries.pop, numbers, repeat(None)))
        if None in positions:
            numbers = [n for n, p in zip(numbers, positions, strict=True) if p is not None]
            positions = [position for position in positions if position is not None]
        self.sequence.gone += numbers
        self.bytes -= self._journal.release(positions)
        return len(positions)

    @property
    def can_depart(self) -> bool:
        """Whether something can be sent to a consumer."""
        is_waiting = self._sent < self.safe or self.returned.waiting
        is_held = self.consumers.is_paused or self._losses.are_uncommitted
        return bool(is_waiting and self.consumers.turn and not is_held)

    def collect(self, departures: Departures, now_us: int) -> None:
        """Add what can be sent to consumers."""
        for share in self.deliver(departures, now_us):
            at = 0
            for batch in self._journal.pick(share.positions):
                end = at + batch.count
                numbers, deliveries = share.numbers[at:end], share.deliveries[at:end]
                at = end
                departures.deliveries.append(
                    QueueDelivery(share.consumer, self.name, numbers, batch, deliveries)
                )

    def deliver(self, departures: Departures, now_us: int = 0) -> list[QueueShare]:
        """Assign entries to consumers, in turn, as far as their credit and this turn allow."""
        shares: list[QueueShare] = []
        if self.consumers.is_paused or self._losses.are_uncommitted:
            return shares
        if self.expiring.heap and self.expire(now_us) == EXPIRED_AT_ONCE:
            departures.left[self] = None
            return shares
        if self.returned.delayed:
            self.returned.release(now_us)
        turn = self.consumers.turn
        room = min(DELIVERED_BYTES_MAX, departures.room)
        size_all = 0
        is_small = self.bytes <= _SMALL_BYTES
        while turn and (self.returned.waiting or self._sent < self.safe):
            if room <= 0 or departures.work <= 0:
                departures.left[self] = None
                break
            credit = sum([one.credit for one in turn])
            batch = self._next(min(credit, departures.work))
            if batch is None:
                break
            if not is_small:
                batch, size = self._shortened(batch, room)
                room -= size
                size_all += size
            dealt = self._deal(batch)
            shares += dealt
            departures.work -= len(batch.numbers) + SHARE_WORK * len(dealt)
        if shares:
            departures.room -= self.bytes if is_small else size_all
        return shares

    def _deal(self, batch: QueueBatch) -> list[QueueShare]:
        """Give each entry to the next consumer that has credit; they have enough."""
        turn = self.consumers.turn
        dealt: dict[QueueConsumer, QueueShare] = {}
        if len(turn) == 1:
            consumer = next(iter(turn))
            dealt[consumer] = QueueShare(
                consumer.key, batch.numbers, batch.positions, batch.deliveries
            )
            consumer.credit -= len(batch.numbers)
            if not consumer.credit:
                del turn[consumer]
        else:
            for at, number in enumerate(batch.numbers):
                consumer = next(iter(turn))
                share = dealt.get(consumer)
                if share is None:
                    share = dealt[consumer] = QueueShare(consumer.key, [], [], [])
                share.numbers.append(number)
                share.positions.append(batch.positions[at])
                share.deliveries.extend(batch.deliveries[at : at + 1])
                consumer.credit -= 1
                if consumer.credit:
                    turn.move_to_end(consumer)
                else:
                    del turn[consumer]
        for consumer, share in dealt.items():
            consumer.in_flight.update(dict.fromkeys(share.numbers))
            self._in_flight.update(dict.fromkeys(share.numbers, consumer))
        return list(dealt.values())

    def _shortened(self, batch: QueueBatch, size_max: int) -> tuple[QueueBatch, int]:
        """The first entries of a batch that have these bytes, at least one, and their size."""
        count, size = self._journal.fitting(batch.positions, size_max)
        if count == len(batch.numbers):
            return batch, size
        if batch.returned:
            self.returned.put_back(batch.numbers[count:])
        else:
            self._sent = batch.numbers[count]
        numbers, positions = batch.numbers[:count], batch.positions[:count]
        return QueueBatch(numbers, positions, batch.deliveries[:count], batch.returned), size

    def _next(self, count: int) -> QueueBatch | None:
        """The next entries to send, at most `count`; None: there are none."""
        entries = self.sequence.entries
        returned = self.returned.take(count) if self.returned.waiting else []
        if returned:
            positions = [entries[n] for n in returned]
            return QueueBatch(returned, positions, self.returned.deliveries(returned), True)
        while self._sent < self.safe:
            redelivered = self._sent < self.returned.restored
            end = min(
                self.returned.restored if redelivered else self.safe, self.safe, self._sent + count
            )
            numbers = list(range(self._sent, end))
            self._sent = end
            found: list[Any] = list(map(entries.get, numbers))
            dead = self.returned.dead if redelivered else ()
            if None in found or dead:
                numbers = [n for n in numbers if n in entries and n not in dead]
                found = [entries[n] for n in numbers]
            if numbers:
                told = self.returned.deliveries(numbers) if redelivered else []
                return QueueBatch(numbers, found, told)
        return None

    def oldest(self) -> int | None:
        """The position of its oldest entry in the journal."""
        return self.sequence.entries.get(self.sequence.lowest())

    def expire(self, now_us: int) -> int:
        """Remove some of what has expired. What is in flight may still be acknowledged, and what is not
        committed waits for that. Returns how many were looked at; EXPIRED_AT_ONCE: there may be more."""
        entries, in_flight = self.sequence.entries, self._in_flight
        looked_at = self.expiring.due(now_us)
        due = [n for n in looked_at if n in entries and n not in in_flight]
        self.expiring.add((n, entries[n]) for n in due if n >= self.safe)
        numbers = [n for n in due if n < self.safe]
        self.bytes -= self._journal.release([entries.pop(n) for n in numbers])
        self.sequence.gone += numbers
        self.expiring.removed(len(numbers))
        return len(looked_at)

    def purge(self, last: int, most: int) -> int:
        """Drop entries up to the number `last`, the lowest first, at most so many. Returns how many.
        What is in flight goes too: its acknowledgement only gives the credit back."""
        entries = self.sequence.entries
        numbers = list(islice(takewhile(last.__ge__, entries), most))  # they ascend
        self.bytes -= self._journal.release([entries.pop(n) for n in numbers])
        self.sequence.gone += numbers
        self._sent = max(self._sent, self.sequence.lowest())
        if numbers:
            self._losses.happened()
        return len(numbers)

    def clear(self) -> None:
        """Drop all entries: the subscription is over."""
        self._journal.releases.add(list(self.sequence.entries.values()))
        self.sequence.entries.clear()
        self.bytes = 0

    def sealed(self) -> None:
        """A commit begins that says what was dropped or purged."""
        self._losses.changed(1)

    def committed(self) -> None:
        """Such a commit is done."""
        self._losses.changed(-1)

    def remove(self, number: int) -> None:
        """Remove an entry that leaves in another way than by an acknowledgement."""
        self.bytes -= self._journal.release((self.sequence.entries.pop(number),))
        self.sequence.gone.append(number)
