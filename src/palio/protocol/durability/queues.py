"""The queue of a durable subscription: its messages at the home broker until they are acknowledged.

      first               sent          safe      next
        │                   │             │         │
        4  5* 6  7* 8  9*   │ 10 11 12 13 │ 14 15   │       * acknowledged, in any order
        └─ in flight ───────┘ └ may go ───┘ └ not yet committed
      returned [ 6 ]      sent to a consumer that left: redelivered before all others

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

from collections import OrderedDict, deque
from collections.abc import Hashable, Sequence
from heapq import heappop, heappush
from itertools import islice, repeat, takewhile
from typing import Any

import msgspec

from palio.protocol.durability import keys
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.destination import Departures
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.losses import Losses
from palio.protocol.durability.outgoing import QueueDelivery
from palio.protocol.durability.sequence import EntrySequence, Labels
from palio.protocol.wire.codes import Full as Full

DELIVERED_BYTES_MAX = 4 << 20
"""What a queue delivers in a turn, besides one message: credit counts messages, whatever their size, and
only after the turn is it known whether the consumers read."""
_SMALL_BYTES = 256 << 10
"""The bytes of a queue that is delivered without a look at the sizes of its messages."""
SHARE_WORK = 20
"""What a delivery to a consumer takes besides its messages, in messages (Departures.work)."""


class QueueConsumer:
    __slots__ = ("credit", "in_flight", "key")

    def __init__(self, key: Hashable, credit: int) -> None:
        self.key = key
        self.credit = credit
        self.in_flight: dict[int, None] = {}
        """Numbers of the entries that it has and did not acknowledge."""


class QueueConsumers:
    """The consumers of a queue. `turn` has those with credit, the next one first. While they are
    paused, they get nothing."""

    __slots__ = ("_by_key", "is_paused", "turn")

    def __init__(self) -> None:
        self._by_key: dict[Hashable, QueueConsumer] = {}
        self.turn: OrderedDict[QueueConsumer, None] = OrderedDict()
        self.is_paused = False

    def keys(self) -> list[Hashable]:
        return list(self._by_key)

    def credit(self, key: Hashable) -> int:
        """Of a consumer; 0: it is none."""
        consumer = self._by_key.get(key)
        return 0 if consumer is None else consumer.credit

    def add(self, key: Hashable, credit: int) -> None:
        self._by_key[key] = QueueConsumer(key, 0)
        self.grant_credit(key, credit)

    def remove(self, key: Hashable) -> QueueConsumer | None:
        consumer = self._by_key.pop(key, None)
        if consumer is not None and consumer.credit > 0:
            del self.turn[consumer]
        return consumer

    def grant_credit(self, key: Hashable, credit: int) -> None:
        """Change the credit of a consumer, also by a negative count."""
        consumer = self._by_key[key]
        before, after = consumer.credit, consumer.credit + credit
        consumer.credit = after
        if before <= 0 < after:
            self.turn[consumer] = None
        elif after <= 0 < before:
            del self.turn[consumer]


class QueueBatch(msgspec.Struct, frozen=True, gc=False):
    """Entries that are next."""

    numbers: list[int]
    positions: list[int]
    """Of the journal."""
    redelivered: bool
    """They may have been sent before."""
    returned: bool = False
    """They come from consumers that left."""


class QueueShare(msgspec.Struct, frozen=True, gc=False):
    """Entries for one consumer."""

    consumer: Hashable
    redelivered: bool
    numbers: list[int]
    positions: list[int]


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
        self._restored = sequence.next  # entries before this may have been sent before a restart
        self._returned: list[int] = []  # a heap
        self._in_flight: dict[int, QueueConsumer] = {}
        self.consumers = QueueConsumers()
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
        self.sequence.extend(positions)
        self.bytes += size

    def shrink(self) -> None:
        """A commit begins: drop the oldest entries, if there are too many and it is that kind of queue."""
        if self.full is Full.DROP:
            while len(self.sequence.entries) > 1 and self.is_over:
                self._remove(self.sequence.lowest())
                self.dropped += 1

    # ---- consumers

    def attach(self, key: Hashable, credit: int) -> None:
        self.detach(key)
        self.consumers.add(key, credit)

    def detach(self, key: Hashable) -> None:
        """Remove a consumer; what it did not acknowledge goes to the next consumers."""
        consumer = self.consumers.remove(key)
        if consumer is None:
            return
        entries = self.sequence.entries
        for n in consumer.in_flight:
            del self._in_flight[n]
        self._return([n for n in consumer.in_flight if n in entries])

    def _return(self, numbers: list[int]) -> None:
        """These come next, each in its order. Many consumers may leave at once, each with a few."""
        if len(numbers) < len(self._returned) // 16:
            for n in numbers:
                heappush(self._returned, n)
        else:
            self._returned = sorted([*self._returned, *numbers])  # which is a heap

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
        is_waiting = self._sent < self.safe or self._returned
        is_held = self.consumers.is_paused or self._losses.are_uncommitted
        return bool(is_waiting and self.consumers.turn and not is_held)

    def collect(self, departures: Departures, now_us: int) -> None:
        """Add what can be sent to consumers."""
        for share in self.deliver(departures):
            batches, at = self._journal.pick(share.positions), 0
            for batch in batches:
                numbers = (
                    share.numbers if len(batches) == 1 else share.numbers[at : at + batch.count]
                )
                at += len(numbers)
                departures.deliveries.append(
                    QueueDelivery(share.consumer, self.name, share.redelivered, numbers, batch)
                )

    def deliver(self, departures: Departures) -> list[QueueShare]:
        """Assign entries to consumers, in turn, as far as their credit and this turn allow."""
        shares: list[QueueShare] = []
        if self.consumers.is_paused or self._losses.are_uncommitted:
            return shares
        turn = self.consumers.turn
        room = min(DELIVERED_BYTES_MAX, departures.room)
        size_all = 0
        is_small = self.bytes <= _SMALL_BYTES
        while turn and (self._returned or self._sent < self.safe):
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
                consumer.key, batch.redelivered, batch.numbers, batch.positions
            )
            consumer.credit -= len(batch.numbers)
            if not consumer.credit:
                del turn[consumer]
        else:
            for number, position in zip(batch.numbers, batch.positions, strict=True):
                consumer = next(iter(turn))
                share = dealt.get(consumer)
                if share is None:
                    share = dealt[consumer] = QueueShare(consumer.key, batch.redelivered, [], [])
                share.numbers.append(number)
                share.positions.append(position)
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
            self._return(batch.numbers[count:])
        else:
            self._sent = batch.numbers[count]
        numbers, positions = batch.numbers[:count], batch.positions[:count]
        return QueueBatch(numbers, positions, batch.redelivered, batch.returned), size

    def _next(self, count: int) -> QueueBatch | None:
        """The next entries to send, at most `count`; None: there are none."""
        entries = self.sequence.entries
        returned: list[int] = []
        while self._returned and len(returned) < count:
            n = heappop(self._returned)
            if n in entries:  # else it was acknowledged or dropped
                returned.append(n)
        if returned:
            return QueueBatch(returned, [entries[n] for n in returned], True, True)
        while self._sent < self.safe:
            redelivered = self._sent < self._restored
            end = min(self._restored if redelivered else self.safe, self.safe, self._sent + count)
            numbers = list(range(self._sent, end))
            self._sent = end
            positions: list[Any] = list(map(entries.get, numbers))
            if None in positions:
                numbers = [n for n in numbers if n in entries]
                positions = [entries[n] for n in numbers]
            if numbers:
                return QueueBatch(numbers, positions, redelivered)
        return None

    def oldest(self) -> int | None:
        """The position of its oldest entry in the journal."""
        return self.sequence.entries.get(self.sequence.lowest())

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

    def _remove(self, number: int) -> None:
        self.bytes -= self._journal.release((self.sequence.entries.pop(number),))
        self.sequence.gone.append(number)
