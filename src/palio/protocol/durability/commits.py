"""Commits: a seal puts all changes; after the commit, what depends on them may go out.

    DirtySet                                    Commits.seal                            ReadySet
    since the last seal: pushed, published,  ──▶ segments, one record, ──host commits──▶ what may
      arrived, subscriptions, overflowed         subscriptions                           go out
    since the last checkpoint: acknowledged, ──▶ Checkpoints, now and then:
      published, arrived                         heads of sequences, rows of numbers;
                                                 journal and records are swept

Every change is noted in the dirty set. `seal` is the only place that puts and deletes keys of the
message store (`store/`), so each commit is whole: messages, their entries, and the last numbers of
publishers and streams. Changes during a commit belong to the next one. A checkpoint may be late: a
crash before it only brings back entries that were acknowledged a moment ago.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable

from palio.protocol.durability import keys
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.changes import CheckpointChanges, SealChanges
from palio.protocol.durability.clock import StoreClock
from palio.protocol.durability.destination import Departures, Destination
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.outgoing import Outgoing, QueueEnded
from palio.protocol.durability.publishers import PublisherRow, PublisherTable
from palio.protocol.durability.queues import Queue
from palio.protocol.durability.sequence import CommitRecord, CommitRecords, encode
from palio.protocol.durability.statistics import StoreCounters
from palio.protocol.durability.storage import Store
from palio.protocol.durability.streams import IncomingStream, IncomingStreams
from palio.protocol.durability.subscriptions import TrackedSubscription


class DirtySet:
    """The changes since the last seal and checkpoint. `is_dirty`: there is something to seal.
    `checkpoint_us`: when the next checkpoint is due; None: it has nothing to write."""

    def __init__(self, clock: StoreClock, lazy_us: int) -> None:
        self.is_dirty = False
        self.checkpoint_us: int | None = clock.now_us + lazy_us
        self._clock = clock
        self._lazy_us = lazy_us
        self._seal = SealChanges()
        self._checkpoint = CheckpointChanges()

    def request_checkpoint(self) -> None:
        """Schedule a checkpoint, unless one is scheduled."""
        if self.checkpoint_us is None:
            self.checkpoint_us = self._clock.now_us + self._lazy_us

    # ---- changes

    def note_pushed(self, destination: Destination) -> None:
        """A destination has new entries."""
        self.is_dirty = True
        self._seal.pushed[destination] = 0

    def note_published(self, row: PublisherRow) -> None:
        """A publisher has a new last number."""
        self.is_dirty = True
        self._seal.published[row] = 0
        self._checkpoint.published[row] = None
        if self.checkpoint_us is None:
            self.request_checkpoint()

    def note_arrived(self, stream: IncomingStream) -> None:
        """A stream expects another number."""
        self.is_dirty = True
        self._seal.arrived[stream] = 0
        self._checkpoint.arrived[stream] = None
        if self.checkpoint_us is None:
            self.request_checkpoint()

    def note_acknowledged(self, destination: Destination) -> None:
        self._checkpoint.acknowledged[destination] = None
        if self.checkpoint_us is None:
            self.request_checkpoint()

    def note_overflowed(self, destination: Destination) -> None:
        """A destination has lost entries that were not acknowledged, or will when this is sealed."""
        self._seal.overflowed[destination] = None

    def note_moved(self, destination: Destination) -> None:
        """An entry was published anew, and has left this destination for that."""
        self.is_dirty = True
        self._seal.settled[destination] = None
        self.request_checkpoint()

    def note_purged(self, queue: Queue) -> None:
        """An operator has deleted entries of a queue."""
        self.is_dirty = True
        self.note_overflowed(queue)
        self.request_checkpoint()

    def note_act(self, act: Hashable) -> None:
        """Something was done that is answered after the commit."""
        self.is_dirty = True
        self._seal.acts.append(act)

    def note_subscription(self, tracked: TrackedSubscription) -> None:
        """A subscription is new, or its replay has advanced."""
        self.is_dirty = True
        self._seal.subscriptions[tracked.interface] = tracked

    def note_created(self, tracked: TrackedSubscription) -> None:
        """A subscription of this broker is new; it is announced after the commit."""
        self._seal.created.append(tracked)

    def note_forgotten(self, tracked: TrackedSubscription, is_cleared: bool) -> None:
        """A subscription was removed; `is_cleared`: so were all entries of its destination."""
        self.is_dirty = True
        self._seal.subscriptions[tracked.interface] = None
        self.request_checkpoint()
        if tracked.queue is None and is_cleared:
            self.note_overflowed(tracked.destination)

    def note_ended(self, tracked: TrackedSubscription, queue: Queue, ended: QueueEnded) -> None:
        """A subscription of this broker has ended, with its queue."""
        changes = self._seal
        changes.pushed.pop(queue, None)
        changes.overflowed.pop(queue, None)
        changes.settled.pop(queue, None)
        self._checkpoint.acknowledged.pop(queue, None)
        if tracked in changes.created:
            changes.created.remove(tracked)
        changes.removed.append(queue)
        changes.ended.append(ended)

    def note_restored(
        self, publisher: PublisherRow | None = None, stream: IncomingStream | None = None
    ) -> None:
        """The record is newer than the row; write the row before deleting the record."""
        if publisher is not None:
            self._checkpoint.published[publisher] = None
        if stream is not None:
            self._checkpoint.arrived[stream] = None

    # ---- writing

    def seal(self) -> SealChanges:
        """Take the changes since the last seal."""
        self.is_dirty = False
        changes, self._seal = self._seal, SealChanges()
        return changes

    def checkpoint(self) -> CheckpointChanges:
        """Take the changes since the last checkpoint."""
        changes, self._checkpoint = self._checkpoint, CheckpointChanges()
        self.checkpoint_us = None
        return changes


class Checkpoints:
    """Writes heads and rows. `is_due`: the next seal includes a checkpoint. `first_needed` returns
    the first position of the journal that a replay needs; `expire` removes what has expired, and says if
    there is more; `thinned` returns the queues that have lost entries so."""

    def __init__(
        self,
        records: CommitRecords,
        journal: Journal,
        publishers: PublisherTable,
        incoming: IncomingStreams,
        first_needed: Callable[[], int],
        expire: Callable[[int], bool],
        thinned: Callable[[], Iterable[Queue]],
        dirty: DirtySet,
        bounds: Bounds,
        now_us: int,
    ) -> None:
        self.is_due = False
        self._records = records
        self._journal = journal
        self._publishers = publishers
        self._incoming = incoming
        self._first_needed = first_needed
        self._expire, self._thinned = expire, thinned
        self._dirty = dirty
        self._every_us = bounds.sweep_us
        self._sweep_us = now_us + bounds.sweep_us

    @property
    def deadline_us(self) -> int:
        due_us = self._dirty.checkpoint_us
        return self._sweep_us if due_us is None else min(self._sweep_us, due_us)

    def wake(self, now_us: int) -> None:
        due_us = self._dirty.checkpoint_us
        if due_us is not None and now_us >= due_us:
            self._dirty.checkpoint_us = None  # done by the next seal, perhaps after a commit
            self.is_due = True
        if now_us >= self._sweep_us:
            has_more = self._expire(now_us)
            self._note_expired()
            if has_more:
                return  # the next turn goes on
            self._sweep_us = now_us + self._every_us
            self.is_due = self.is_due or self._has_waste(now_us)

    def _note_expired(self) -> None:
        for queue in self._thinned():
            self._dirty.note_acknowledged(queue)

    def _has_waste(self, now_us: int) -> bool:
        """Whether a checkpoint would free something that has expired."""
        return self._publishers.can_expire(now_us) or self._journal.has_waste(
            now_us, self._first_needed()
        )

    def write(self, ticket: int, record: CommitRecord, now_us: int) -> None:
        """Put the changes since the last checkpoint, and sweep the journal. No head may name what the sweep
        frees, not even an entry that was found expired when it was to be delivered."""
        self._note_expired()
        changes = self._dirty.checkpoint()
        for destination in changes.acknowledged:
            self.settle(destination, ticket, record)
        for stream in changes.arrived:
            self._incoming.put(stream)
        self._incoming.forget_epochs(now_us)
        self._publishers.put(changes.published, now_us)
        self._journal.sweep(now_us, self._first_needed())
        self.is_due = False

    def settle(self, destination: Destination, ticket: int, record: CommitRecord) -> None:
        """Put the head of a queue or stream."""
        sequence = destination.sequence
        self._records.release(sequence.settle())
        if sequence.is_sparse:
            spans, released = sequence.rewrite(ticket)
            self._records.release(released)
            if spans:
                record.entries[destination.head_key] = spans
        self._records.put_head(destination.head_key, sequence)


class ReadySet:
    """What is committed and goes out at the next `take`; `is_empty`: nothing does."""

    def __init__(self, broker: str, journal: Journal, counters: StoreCounters) -> None:
        self.is_empty = True
        self._broker = broker
        self._journal = journal
        self._counters = counters
        self._destinations: dict[Destination, None] = {}
        self._published: dict[str, int] = {}
        self._acks: dict[IncomingStream, None] = {}
        self._created: list[TrackedSubscription] = []
        self._ended: list[QueueEnded] = []
        self._acts: list[Hashable] = []

    def note_destination(self, destination: Destination) -> None:
        """A destination may have something to send."""
        self.is_empty = False
        self._destinations[destination] = None

    def note_published(self, publisher: str, number: int) -> None:
        """The messages of a publisher up to this number are committed."""
        self.is_empty = False
        self._published[publisher] = number

    def note_ack(self, stream: IncomingStream) -> None:
        """Acknowledge a stream to its origin."""
        self.is_empty = False
        self._acks[stream] = None

    def note_committed(self, changes: SealChanges) -> None:
        """The changes of a seal are committed."""
        self.is_empty = False
        for destination, next in changes.pushed.items():
            destination.safe = next
            self._destinations[destination] = None
        for destination in changes.overflowed:
            destination.committed()
            self._destinations[destination] = None
        for stream, number in changes.arrived.items():
            stream.stored = number
            self._acks[stream] = None
        for row, number in changes.published.items():
            row.safe = number
            self._published[row.name] = number
        self._created += changes.created
        self._ended += changes.ended
        self._acts += changes.acts

    def take(self, now_us: int) -> Outgoing:
        """Take everything that may go out now."""
        self.is_empty = True
        departures = Departures()
        for destination in self._destinations:
            destination.collect(departures, now_us)
        left = self._destinations = departures.left
        outgoing = Outgoing(deliveries=departures.deliveries)
        if left:
            self.is_empty, outgoing.has_more = False, True
        for delivery in departures.deliveries:
            self._counters.delivered += len(delivery.positions)
            if delivery.deliveries:
                self._counters.redelivered += len(delivery.positions)
        if departures.carries:
            self._counters.carried += len(departures.carries)
            located = self._journal.locate(list(departures.carries))
            for (batch, row), targets in zip(located, departures.carries.values(), strict=True):
                outgoing.carries.append((batch, row, tuple(targets)))
        if self._published:
            outgoing.published = list(self._published.items())
            self._published.clear()
        for stream in self._acks:
            if stream.stored:
                outgoing.acks.append(stream.ack(self._broker))
        self._acks.clear()
        if self._created or self._ended:
            # skip subscriptions ended or recreated since the seal
            created = [tracked for tracked in self._created if not tracked.is_forgotten]
            outgoing.created = [tracked.stored.name for tracked in created]
            outgoing.ended = self._ended
            self._created, self._ended = [], []
        if self._acts:
            outgoing.acts, self._acts = self._acts, []
        return outgoing


class Commits:
    def __init__(
        self,
        store: Store,
        records: CommitRecords,
        journal: Journal,
        checkpoints: Checkpoints,
        dirty: DirtySet,
        ready: ReadySet,
    ) -> None:
        self._store = store
        self._records = records
        self._journal = journal
        self._checkpoints = checkpoints
        self._dirty = dirty
        self._ready = ready
        self._pending: deque[tuple[int, SealChanges]] = deque()

    def __len__(self) -> int:
        """The number of commits in flight."""
        return len(self._pending)

    def seal(self, now_us: int) -> int:
        """Put all changes. Returns the ticket to commit."""
        dirty, records, is_checkpoint = self._dirty, self._records, self._checkpoints.is_due
        ticket, changes = records.ticket + 1, dirty.seal()
        record = CommitRecord(now_us, self._journal.next)
        for row in changes.published:
            record.publishers[row.name] = changes.published[row] = row.number
        for stream in changes.arrived:
            changes.arrived[stream] = number = stream.expected - 1
            record.arrived.append((stream.origin, stream.epoch, number))
        for destination in changes.overflowed:
            destination.shrink()
            destination.sealed()
            self._checkpoints.settle(destination, ticket, record)
        for destination in changes.settled:
            self._checkpoints.settle(destination, ticket, record)
        if is_checkpoint:
            self._checkpoints.write(ticket, record, now_us)
        elif dirty.checkpoint_us is None:
            dirty.request_checkpoint()
        for destination in changes.pushed:
            sequence = destination.sequence
            changes.pushed[destination] = sequence.next
            spans = sequence.chunk(ticket)
            if spans:
                record.entries[destination.head_key] = spans
        self._journal.seal()
        if changes.subscriptions:
            self._put_subscriptions(changes)
        records.put(ticket, record)
        if is_checkpoint:
            records.sweep()
        self._pending.append((ticket, changes))
        return ticket

    def _put_subscriptions(self, changes: SealChanges) -> None:
        for interface, tracked in changes.subscriptions.items():
            key = keys.paired(keys.SUBSCRIPTIONS, interface.broker, interface.name)
            if tracked is None:
                self._store.delete(key)
            else:
                self._store.put(key, encode(tracked.facts()))
        for queue in changes.removed:
            self._records.delete_head(queue.head_key)

    def committed(self, ticket: int) -> None:
        """The host has committed the seals up to this ticket."""
        while self._pending and self._pending[0][0] <= ticket:
            _, changes = self._pending.popleft()
            self._ready.note_committed(changes)
