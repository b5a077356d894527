"""Intake: puts new messages into the journal, and into the queues and streams that they match.

    Publishing: is the number new? is there room? ──┐
                                                    ├──▶ FanOut ──▶ journal, queues, streams
    Arrivals: is it its turn in the stream? ────────┘               (arrived: journal, queues)

Fan-out takes many messages at a time:

    messages   0  1  2  3  4         matches of each ──▶ Recipients, cached by their matches
    parts      [(Recipients(x), [0, 2, 3]), (Recipients(x, y), [1]), (Recipients(), [4])]
    store      journal: all, one after the other     x: 0 1 2 3     y: 1

A queue or stream gets its messages in the order of the journal. If there is no room, the messages of
the publisher wait; so does a stream whose next message is for a full queue.
"""

from __future__ import annotations

from collections.abc import Sequence

from palio.protocol.durability.commits import DirtySet, ReadySet
from palio.protocol.durability.delayed import DelayedMessages
from palio.protocol.durability.destination import Bounded, Destination
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.last_values import LastValues, value_of
from palio.protocol.durability.lifecycle import SubscriptionLifecycle
from palio.protocol.durability.publishers import PublisherRow, PublisherTable
from palio.protocol.durability.queues import Queue
from palio.protocol.durability.recipients import Recipients
from palio.protocol.durability.sequence import Labels
from palio.protocol.durability.statistics import StoreCounters
from palio.protocol.durability.streams import CarriedArrival, IncomingStream, IncomingStreams
from palio.protocol.durability.subscriptions import SubscriptionIndex
from palio.protocol.interfaces import DurableSubscription
from palio.protocol.wire.batch import Entry, MessageBatch, delays
from palio.protocol.wire.headers import CarryHeader, CarryTarget
from palio.routing.matches import Grouped

_RECIPIENTS_MAX = 10_000


class FanOut:
    def __init__(
        self,
        journal: Journal,
        subscriptions: SubscriptionIndex,
        lifecycle: SubscriptionLifecycle,
        dirty: DirtySet,
    ) -> None:
        self._journal = journal
        self._subscriptions = subscriptions
        self._lifecycle = lifecycle
        self._dirty = dirty
        self._recipients: dict[tuple[DurableSubscription, ...], Recipients] = {}
        self._version = subscriptions.version

    def recipients(self, interfaces: tuple[DurableSubscription, ...]) -> Recipients:
        """Destinations of these subscriptions, except those still replaying."""
        if self._version != self._subscriptions.version:
            self._recipients.clear()
            self._version = self._subscriptions.version
        recipients = self._recipients.get(interfaces)
        if recipients is None:
            if len(self._recipients) >= _RECIPIENTS_MAX:
                self._recipients.clear()
            recipients = self._recipients[interfaces] = self._recipients_of(interfaces)
        return recipients

    def _recipients_of(self, interfaces: tuple[DurableSubscription, ...]) -> Recipients:
        destinations: dict[Destination, Labels] = {}
        queues: list[Queue] = []
        for interface in interfaces:
            tracked = self._subscriptions.get(interface)
            if tracked is None or tracked.cursor is not None:
                continue
            if tracked.queue is not None:
                queues.append(tracked.queue)
            before = destinations.get(tracked.destination, ())
            destinations[tracked.destination] = before + tracked.labels
        return Recipients(destinations, queues)

    def store(
        self,
        batch: MessageBatch,
        sizes: list[int],
        parts: list[tuple[Recipients, list[int]]],
        stored_us: int,
        published_here: bool,
    ) -> None:
        """Put messages into the journal, queues and streams."""
        count = len(sizes)
        references = [0] * count
        shares: dict[Destination, list[tuple[list[int], Labels]]] = {}
        limited: dict[Queue, None] = {}
        for recipients, rows in parts:
            if len(rows) == count:
                references = [len(recipients.destinations)] * count
            else:
                for row in rows:
                    references[row] = len(recipients.destinations)
            for destination, labels in recipients.destinations:
                shares.setdefault(destination, []).append((rows, labels))
            limited.update(dict.fromkeys(recipients.limited))
        first = self._journal.append(batch, sizes, references, stored_us, published_here)
        for destination, share in shares.items():
            labelled: Sequence[Labels]
            if count == 1:  # only one message alone has recipients that are split
                for _, labels in share:
                    destination.push((first,), (labels,), sizes[0])
                self._dirty.note_pushed(destination)
                continue
            if len(share) == 1:
                rows, labels = share[0]
                labelled = [labels] * len(rows)
            else:
                rows, labelled = _merge(share)
            if len(rows) == count:
                destination.push(range(first, first + count), labelled, sum(sizes))
            else:
                size = sum([sizes[row] for row in rows])
                destination.push([first + row for row in rows], labelled, size)
            self._dirty.note_pushed(destination)
        for queue in limited:
            self._lifecycle.check(queue)


def _merge(share: list[tuple[list[int], Labels]]) -> tuple[list[int], Sequence[Labels]]:
    """The rows of a destination in order, and the labels of each."""
    _, labels = share[0]
    if all(others == labels for _, others in share):
        rows = sorted([row for rows, _ in share for row in rows])
        return rows, [labels] * len(rows)
    found = {row: labels for rows, labels in share for row in rows}
    rows = sorted(found)
    return rows, [found[row] for row in rows]


class Publishing:
    """Stores new messages of publishers at this broker, as far as there is room."""

    def __init__(
        self,
        publishers: PublisherTable,
        journal: Journal,
        fanout: FanOut,
        dirty: DirtySet,
        ready: ReadySet,
        counters: StoreCounters,
        delayed: DelayedMessages,
    ) -> None:
        self._delayed = delayed
        self.publishers = publishers
        self._journal = journal
        self._fanout = fanout
        self._dirty = dirty
        self._ready = ready
        self._counters = counters
        self.blocking: dict[Bounded, None] = {}
        """What was full when a publisher had a message for it."""

    def publish(
        self, batch: MessageBatch, matches: Grouped[DurableSubscription], now_us: int
    ) -> int:
        """Store messages of one publisher. Returns how many were processed; the rest waits."""
        publisher = batch.publishers()[0]
        row = self.publishers.rows.get(publisher) or self.publishers.row(publisher)
        stored_us, before = self._journal.stored_us(now_us), row.number
        later = self._delayed.rows = delays(batch, now_us)
        if not later:
            taken = self._store_all(row, batch, matches, stored_us)
        elif taken := self._delayed.store(batch, row.number, stored_us):
            row.number = batch.number(taken - 1)
            self._counters.published += taken
            self._dirty.note_pushed(self._delayed)
        if not taken:
            taken = self._store_some(row, batch, matches, stored_us, later)
        if row.number > before:
            row.heard_us = now_us
            self._dirty.note_published(row)
        if taken and row.safe == row.number:
            self._ready.note_published(row.name, row.safe)
        return taken

    def publish_own(
        self, message: MessageBatch, interfaces: tuple[DurableSubscription, ...], now_us: int
    ) -> bool:
        """Store one message of this broker's own, under its next number. False: there is no room."""
        if not self.store_own(message, interfaces, now_us):
            return False
        row = self.publishers.row(message.publisher(0))
        row.number, row.heard_us = message.number(0), now_us
        self._dirty.note_published(row)
        self._counters.published += 1
        return True

    def store_own(
        self, message: MessageBatch, interfaces: tuple[DurableSubscription, ...], now_us: int,
        *, is_new: bool = True,
    ) -> bool:  # fmt: skip
        """Store one message whatever its number is; one that is not new is in no replay. False: there is
        no room."""
        recipients = self._fanout.recipients(interfaces)
        if self._is_blocked(recipients):
            return False
        stored_us = self._journal.stored_us(now_us)
        self._fanout.store(message, message.sizes(), [(recipients, [0])], stored_us, is_new)
        return True

    def _store_all(
        self,
        row: PublisherRow,
        batch: MessageBatch,
        matches: Grouped[DurableSubscription],
        stored_us: int,
    ) -> int:
        """Store all messages at once. 0: some may be duplicates, or there may be no room."""
        if not batch.ascends(row.number):
            return 0
        sizes = batch.sizes()
        count, size = len(sizes), sum(sizes)
        if not self._journal.fits(size):
            return 0
        parts: list[tuple[Recipients, list[int]]] = []
        for interfaces, rows in matches.parts():
            recipients = self._fanout.recipients(interfaces)
            if recipients.is_split and count > 1:
                return 0
            for destination, _ in recipients.destinations:
                if not destination.fits(count, size):
                    return 0
            parts.append((recipients, rows))
        self._fanout.store(batch, sizes, parts, stored_us, True)
        row.number = batch.number(count - 1)
        self._counters.published += count
        return count

    def _store_some(
        self,
        row: PublisherRow,
        batch: MessageBatch,
        matches: Grouped[DurableSubscription],
        stored_us: int,
        later: dict[int, int],
    ) -> int:
        """Store messages one by one while there is room. Returns how many were processed."""
        sizes = batch.sizes()
        for taken, (number, interfaces) in enumerate(zip(batch.numbers(), matches, strict=True)):
            if number <= row.number:
                self._counters.duplicates += 1
                continue
            recipients = self._fanout.recipients(interfaces)
            if taken in later:
                recipients = Recipients({self._delayed: (str(later[taken]),)}, ())
            if self._is_blocked(recipients):
                return taken
            message, size = batch.slice(taken, taken + 1), [sizes[taken]]
            is_new = taken not in later  # else it is published later
            self._fanout.store(message, size, [(recipients, [0])], stored_us, is_new)
            row.number = number
            self._counters.published += 1
        return batch.count

    def _is_blocked(self, recipients: Recipients) -> bool:
        """Whether a destination or the journal is full; remembers which, for `has_room`."""
        blocking: list[Bounded] = [*recipients.full()]
        if self._journal.is_full:
            blocking.append(self._journal)
            self._dirty.request_checkpoint()  # it sweeps the journal
        self.blocking.update(dict.fromkeys(blocking))
        return bool(blocking)

    def has_room(self) -> bool:
        """Whether something that blocked a publisher has room; True once, then forgotten."""
        has_room = any(bounded.has_room for bounded in self.blocking)
        if has_room:
            self.blocking.clear()
        return has_room


class Arrivals:
    """Stores messages that other brokers carry here, in order and once.

    `waiting` has the streams whose next message has arrived. It is stored with the next seal, or when
    its queues have room.
    """

    def __init__(
        self,
        streams: IncomingStreams,
        subscriptions: SubscriptionIndex,
        journal: Journal,
        fanout: FanOut,
        dirty: DirtySet,
        ready: ReadySet,
        counters: StoreCounters,
        last_values: LastValues | None = None,
    ) -> None:
        self._last_values = last_values
        self._streams = streams
        self._subscriptions = subscriptions
        self._journal = journal
        self._fanout = fanout
        self._dirty = dirty
        self._ready = ready
        self._counters = counters
        self.waiting: dict[IncomingStream, None] = {}

    def arrive(
        self,
        header: CarryHeader,
        target: CarryTarget,
        attributes: bytes,
        payload: bytes,
        now_us: int,
    ) -> None:
        """Take a carried message; `store` stores it when it is next in its stream."""
        stream = self._streams.get(header.origin, header.epoch)
        expected = stream.expected
        size = len(attributes) + len(payload)
        arrival = CarriedArrival(header, target.names, attributes, payload, size)
        if not stream.offer(target, arrival, now_us):
            self._counters.duplicates += 1
            self._ready.note_ack(stream)
        if stream.expected != expected:
            self._dirty.note_arrived(stream)
        if stream.expected in stream.early:
            self.waiting[stream] = None

    def store(self, now_us: int) -> None:
        """Store the next messages of each waiting stream, as far as there is room."""
        for stream in list(self.waiting):
            while self._store_next(stream, now_us):
                pass

    def _store_next(self, stream: IncomingStream, now_us: int) -> bool:
        """Store as many messages as the queues have room for at once. True: there may be more."""
        queues, parts = self._subscriptions.queues, dict[tuple[Queue, ...], list[int]]()
        entries: list[Entry] = []
        taken: dict[Queue, tuple[int, int]] = {}  # messages and bytes
        while (arrival := stream.early.get(stream.expected)) is not None:
            found = tuple([queues[label] for label in arrival.labels if label in queues])
            for queue in found:
                if queue.is_full:
                    self._put(entries, parts, now_us)
                    return False
                count, size = taken.get(queue, (0, 0))
                if count and not queue.fits(count + 1, size + arrival.size):
                    self._put(entries, parts, now_us)
                    return True
                taken[queue] = count + 1, size + arrival.size
            stream.accept()
            self._dirty.note_arrived(stream)
            self._counters.arrived += 1
            if self._last_values is not None and self._last_values.label in arrival.labels:
                value = value_of(arrival.entry(), stream.origin)
                if value is not None:
                    self._last_values.offer(value)
            if found:
                parts.setdefault(found, []).append(len(entries))
                entries.append(arrival.entry())
        del self.waiting[stream]
        self._put(entries, parts, now_us)
        return False

    def _put(
        self, entries: list[Entry], parts: dict[tuple[Queue, ...], list[int]], now_us: int
    ) -> None:
        if not entries:
            return
        batch = MessageBatch.of(entries, durable=True)
        shares = [(Recipients(dict.fromkeys(to, ()), to), rows) for to, rows in parts.items()]
        stored_us = self._journal.stored_us(now_us)
        self._fanout.store(batch, batch.sizes(), shares, stored_us, False)
