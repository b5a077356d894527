"""Stored messages that this broker publishes anew: dead letters, and delayed messages at their time.

    queue ── dead ──▶ take ──▶ the core: what does it match? ──▶ publish: journal, queues, streams
                                                                 └─ and out of the queue, in one commit

An entry of a queue is dead when it was delivered as often as its subscription allows, or when a consumer
has rejected it. It stays where it is until its dead letter is stored, so a crash neither loses nor
doubles it. While there is no room for the dead letter, it waits in the queue. Queues do not wait for each
other, and dead letters not for delayed messages: what would make room may be behind what waits for it.

Delayed messages (delayed.py) leave the place where they wait in the same way, as they were published.

The publisher of a dead letter is the broker (wire/publishers.py). A dead letter that dies again is
dropped, and no dead letter goes to the subscription in whose queue it died: there are no circles.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import islice

import msgspec

from palio.protocol.durability.commits import DirtySet, ReadySet
from palio.protocol.durability.consumers import Consumers
from palio.protocol.durability.delayed import DelayedMessages
from palio.protocol.durability.intake import Publishing
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.queues import Queue
from palio.protocol.durability.statistics import RepublishedCounters
from palio.protocol.durability.subscriptions import SubscriptionIndex
from palio.protocol.interfaces import DurableSubscription
from palio.protocol.wire.batch import Entry, MessageBatch
from palio.protocol.wire.publishers import is_broker

TAKEN_AT_ONCE, TAKEN_BYTES = 32, 4 << 20
"""In a turn: each message is parsed and looked up alone. The last one may be larger."""
LOOKED_AT_ONCE = 1000
"""Entries of which some become nothing: what a broker published, or what has been purged."""


class DeadEntry(msgspec.Struct, frozen=True, eq=False):
    """An entry of a queue that goes to nobody any more."""

    name: str
    """Of its subscription."""
    number: int
    deliveries: int
    rejection: str | None
    """What the consumer said that rejected it; None: it was delivered too often."""
    message: Entry


class Republishing:
    def __init__(
        self,
        subscriptions: SubscriptionIndex,
        consumers: Consumers,
        journal: Journal,
        publishing: Publishing,
        dirty: DirtySet,
        ready: ReadySet,
        delayed: DelayedMessages,
    ) -> None:
        self.delayed = delayed
        self._subscriptions = subscriptions
        self._consumers = consumers
        self._journal = journal
        self._publishing = publishing
        self._dirty = dirty
        self._ready = ready
        self.counters = RepublishedCounters()
        self.dying: dict[Queue, None] = {}
        """Queues of which some entries are dead."""
        self._blocked: set[Queue] = set()
        """Those of which a dead letter had no room."""
        self._has_no_room = False
        """For the delayed message that is next."""
        for queue in subscriptions.queues.values():
            self.note(queue)

    def has_work(self, now_us: int) -> bool:
        due_us = self.deadline_us
        return due_us is not None and due_us <= now_us

    @property
    def deadline_us(self) -> int | None:
        """When there is something to publish; None: nobody knows."""
        if len(self._blocked) < len(self.dying):
            return 1
        return None if self._has_no_room else self.delayed.due_us

    def note(self, queue: Queue) -> None:
        """Entries of a queue may have died."""
        if queue.returned.dead:
            self.dying[queue] = None
            self._blocked.discard(queue)

    def reject(self, consumer: Hashable, positions: Sequence[int], text: str) -> None:
        """A client will never process these positions of its subscription."""
        queue = self._consumers.nack(consumer, positions, 0, text)
        if queue is not None:
            self.counters.rejected += len(positions)
            self._dirty.note_acknowledged(queue)
            self._ready.note_destination(queue)  # the consumer has credit again
            self.note(queue)

    def retry(self) -> None:
        """There may be room again."""
        self._blocked.clear()
        self._has_no_room = False

    def take(self) -> list[DeadEntry]:
        """Some dead entries, of which the core makes dead letters; `publish` follows for each,
        unless there is no room."""
        found: list[DeadEntry] = []
        size = looked = 0
        for queue in [queue for queue in self.dying if queue not in self._blocked]:
            entries, dead = queue.sequence.entries, queue.returned.dead
            if self._subscriptions.queue(queue.name) is not queue:
                dead.clear()  # the subscription has ended
            for number, rejection in list(islice(dead.items(), LOOKED_AT_ONCE)):
                looked += 1
                if len(found) >= TAKEN_AT_ONCE or size >= TAKEN_BYTES or looked > LOOKED_AT_ONCE:
                    return found
                if number not in entries:  # purged, or expired
                    del dead[number]
                    continue
                size += self._journal.size(entries[number])
                ((batch, row),) = self._journal.locate([entries[number]])
                message, count = batch.entry(row), queue.sequence.counts.get(number, 1)
                if is_broker(message.publisher):
                    self.counters.dead_dropped += 1
                    self._remove(queue, number)
                else:
                    found.append(DeadEntry(queue.name, number, count, rejection, message))
            if not dead:
                self._forget(queue)
        return found

    def publish(
        self,
        dead: DeadEntry,
        dead_letter: MessageBatch,
        matches: Sequence[DurableSubscription],
        now_us: int,
    ) -> bool:
        """Store the dead letter of an entry for the subscriptions that it matches, and remove the entry.
        False: there is no room now."""
        queue = self._subscriptions.queue(dead.name)
        if queue is None or dead.number not in queue.returned.dead:  # it has ended meanwhile
            return True
        own = DurableSubscription(self._subscriptions.broker, dead.name)
        others = tuple([one for one in matches if one != own])
        if not self._publishing.publish_own(dead_letter, others, now_us):
            self._blocked.add(queue)
            return False
        self.counters.dead += 1
        self._remove(queue, dead.number)
        return True

    def drop(self, dead: DeadEntry) -> None:
        """Remove an entry without a dead letter: no broker could read it."""
        queue = self._subscriptions.queue(dead.name)
        if queue is not None and dead.number in queue.returned.dead:
            self.counters.dead_dropped += 1
            self._remove(queue, dead.number)

    def take_due(self, now_us: int) -> Iterator[MessageBatch]:
        """Delayed messages whose time has come, some of them; `release` follows for each."""
        size = 0
        for _ in range(TAKEN_AT_ONCE):
            due = self.delayed.due(now_us)
            if due is None or self._has_no_room or size >= TAKEN_BYTES:
                return
            size += self._journal.size(due[1])
            ((batch, row),) = self._journal.locate([due[1]])
            yield batch.slice(row, row + 1)

    def release(
        self, message: MessageBatch, matches: tuple[DurableSubscription, ...], now_us: int
    ) -> bool:
        """Store the delayed message that is next for the subscriptions that it matches. False: there is
        no room now."""
        due = self.delayed.due(now_us)
        assert due is not None
        if not self._publishing.store_own(message, matches, now_us):
            self._has_no_room = True
            return False
        self.counters.delayed += 1
        self.drop_due(now_us)
        return True

    def drop_due(self, now_us: int) -> None:
        """The delayed message that is next does not wait any more."""
        due = self.delayed.due(now_us)
        if due is not None:
            self.delayed.remove(due[0])
            self._dirty.note_moved(self.delayed)

    def backlog(self, broker: str) -> int:
        """How many messages wait for another broker."""
        stream = self._subscriptions.streams.get(broker)
        return 0 if stream is None else len(stream.sequence)

    def is_followed(self, interface: DurableSubscription) -> bool:
        """Whether new messages go to a subscription: its replay is done."""
        tracked = self._subscriptions.get(interface)
        return tracked is not None and tracked.cursor is None

    def hand_over(self, message: MessageBatch, interface: DurableSubscription, now_us: int) -> bool:
        """Store a message that is not new for one subscription of another broker. False: not now."""
        if not self.is_followed(interface):
            return False
        return self._publishing.store_own(message, (interface,), now_us, is_new=False)

    def number(self, publisher: str, now_us: int) -> int:
        """The next number of a publisher that is this broker. It grows also where the store has forgotten
        the last one."""
        return max(self._publishing.publishers.row(publisher).number + 1, now_us)

    def _forget(self, queue: Queue) -> None:
        """Nothing of it is dead any more."""
        self.dying.pop(queue, None)
        self._blocked.discard(queue)

    def _remove(self, queue: Queue, number: int) -> None:
        queue.remove(number)
        del queue.returned.dead[number]
        if not queue.returned.dead:
            self._forget(queue)
        self._dirty.note_moved(queue)
