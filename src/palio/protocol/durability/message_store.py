"""The message store: the durable messages of one broker.

    publish ──┐              ┌─▶ queues ──▶ deliveries            (subscriptions here)
              ├──▶ journal ──┤
    arrive ───┘              └─▶ streams ─▶ carries ... CarryAck  (subscriptions elsewhere; only
                                                                   what was published here)
        seal ──▶ storage: segments, a record     the host commits
        committed ──▶ take: what may go out

Nothing is sent before the commit that holds it: answers to publishers, acknowledgements to other
brokers, carried messages, deliveries, announcements of subscriptions (commits.py).

The constructor reads everything from the disk. Then the core calls `create` or `learn` for each of
`subscriptions`: a restored one only gets its matching function back.

No message is lost or duplicated. A number of a publisher is stored once. An origin matches each of
its messages once for each subscription (replay.py), and numbers the messages to each broker. A home
broker stores each number of a stream once, in order. A client gets each entry of a queue under one
position, until it acknowledges it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

import msgspec

from palio.errors import PalioError
from palio.protocol.durability.administration import QueueAdministration
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.clock import StoreClock
from palio.protocol.durability.commits import Checkpoints, Commits, DirtySet, ReadySet
from palio.protocol.durability.consumers import Consumers
from palio.protocol.durability.intake import Arrivals, FanOut, Publishing
from palio.protocol.durability.last_values import LastValues
from palio.protocol.durability.lifecycle import SubscriptionLifecycle
from palio.protocol.durability.outgoing import Outgoing
from palio.protocol.durability.queues import Full
from palio.protocol.durability.replay import Replays
from palio.protocol.durability.republishing import Republishing
from palio.protocol.durability.restore import restore
from palio.protocol.durability.statistics import StoreCounters, StoreStatistics
from palio.protocol.durability.storage import Store
from palio.protocol.durability.subscriptions import Matching, StoredSubscription
from palio.protocol.interfaces import DurableSubscription
from palio.protocol.wire.batch import MessageBatch
from palio.protocol.wire.codes import EndCode
from palio.protocol.wire.control import CarryAck, Durable
from palio.protocol.wire.headers import CarryHeader, CarryTarget
from palio.routing.matches import Grouped

CLOCK_SLACK_US: Final = 1_000_000
"""More than a link state takes to be flooded."""


class MessageStore:
    """The store of the broker `broker`. `epoch` was created with it and never changes."""

    def __init__(
        self, store: Store, broker: str, epoch: str, now_us: int, bounds: Bounds | None = None,
        ceiling: Full = Full.BLOCK, deliveries_max: int = 0, last_values: LastValues | None = None,
    ) -> None:  # fmt: skip
        """`ceiling`: what the operator allows a full queue to do; `deliveries_max`: of a message in any
        queue (0: any number)."""
        bounds = bounds or Bounds()
        self.broker = broker
        self.epoch = epoch
        self._clock = StoreClock(now_us)
        self._counters = counters = StoreCounters()
        self._dirty = dirty = DirtySet(self._clock, bounds.lazy_us)
        restored = restore(store, broker, bounds, dirty, ceiling, deliveries_max)
        records, journal = restored.records, restored.journal
        subscriptions = restored.subscriptions
        replays = Replays(journal, dirty, counters)
        for tracked in subscriptions.all():
            if tracked.cursor is not None:
                replays.add(tracked)
        self._subscriptions = subscriptions
        self._ready = ReadySet(broker, journal, counters)
        self._consumers = Consumers()
        self._lifecycle = SubscriptionLifecycle(
            subscriptions, self._consumers, replays, journal, records, dirty, counters, bounds
        )
        fanout = FanOut(journal, subscriptions, self._lifecycle, dirty)
        self._publishing = Publishing(
            restored.publishers, journal, fanout, dirty, self._ready, counters, restored.delayed
        )
        self._arrivals = Arrivals(
            restored.incoming, subscriptions, journal, fanout, dirty, self._ready, counters,
            last_values,
        )  # fmt: skip
        self._checkpoints = Checkpoints(
            records,
            journal,
            restored.publishers,
            restored.incoming,
            replays.first_needed,
            subscriptions.expire,
            subscriptions.thinned,
            dirty,
            bounds,
            now_us,
        )
        self._commits = Commits(store, records, journal, self._checkpoints, dirty, self._ready)
        self.republishing = Republishing(
            subscriptions,
            self._consumers,
            journal,
            self._publishing,
            dirty,
            self._ready,
            restored.delayed,
        )
        """For the core: dead letters and delayed messages."""
        self.administration = QueueAdministration(subscriptions, journal, dirty, self._ready)
        """For operators."""

    # ---- messages

    def last_number(self, publisher: str) -> int:
        """The last committed number: the publisher need not resend it."""
        return self._publishing.publishers.safe(publisher)

    def taken_number(self, publisher: str) -> int:
        """The last accepted number, which may not be committed yet."""
        row = self._publishing.publishers.rows.get(publisher)
        return row.number if row else 0

    def publish(
        self, batch: MessageBatch, matches: Grouped[DurableSubscription], now_us: int
    ) -> int:
        """Store new messages of one publisher, each for the subscriptions that it matches.

        Returns how many were processed. Offer the rest again, with new matches, when
        `Outgoing.has_room` is set; until then offer nothing else of this publisher.
        """
        self._clock.now_us = now_us
        return self._publishing.publish(batch, matches, now_us)

    def arrive(
        self,
        header: CarryHeader,
        target: CarryTarget,
        attributes: bytes,
        payload: bytes,
        now_us: int,
    ) -> None:
        """Take a carried message; `target` is the one of its targets that names this broker."""
        self._clock.now_us = now_us
        self._arrivals.arrive(header, target, attributes, payload, now_us)

    def acknowledged(self, ack: CarryAck, now_us: int) -> None:
        """Another broker has stored what was carried to it."""
        self._clock.now_us = now_us
        stream = self._subscriptions.streams.get(ack.broker)
        is_ours = ack.origin == self.broker and ack.epoch == self.epoch
        if not is_ours or stream is None:
            return
        if (ack.window, ack.window_bytes) != stream.window_told:
            stream.set_window(ack.window, ack.window_bytes)
        if stream.acknowledge(ack.number, now_us):
            self._dirty.note_acknowledged(stream)
            if stream.can_depart:
                self._ready.note_destination(stream)

    # ---- subscriptions

    def subscriptions(self) -> list[StoredSubscription]:
        """All known subscriptions, here and at other brokers; the core matches messages with them."""
        return [tracked.facts() for tracked in self._subscriptions.all()]

    def learn(
        self, broker: str, name: str, durable: Durable, matching: Matching, now_us: int
    ) -> None:
        """Add a subscription at another broker: from now on the core matches messages with it.

        Replays what was published here since its start time. If that is in the future, the clock of
        its home broker is ahead: the replay begins CLOCK_SLACK_US ago. A repeated call does nothing.
        """
        self._clock.now_us = now_us
        if broker != self.broker:
            since = durable.since if durable.since <= now_us else now_us - CLOCK_SLACK_US
            stored = StoredSubscription(broker, name, durable, Full.BLOCK)
            self._lifecycle.add(stored, matching, since)

    def unlearn(self, broker: str, name: str, now_us: int) -> None:
        """Remove a subscription at another broker."""
        self._clock.now_us = now_us
        tracked = self._subscriptions.find(broker, name)
        if tracked is not None and broker != self.broker:
            self._lifecycle.forget(tracked)

    def create(
        self, name: str, durable: Durable, full: Full, matching: Matching, now_us: int,
        owner: str = "", called: str = "", group: str | None = "", deliveries_max: int = 0,
    ) -> None:  # fmt: skip
        """Create a subscription here; announce it when `take` returns it.

        It may have ended at once (`has`), if its replay exceeds its bound.
        """
        self._clock.now_us = now_us
        stored = StoredSubscription(
            self.broker, name, durable, full, owner=owner, called=called, group=group,
            deliveries_max=deliveries_max,
        )  # fmt: skip
        self._lifecycle.create(stored, matching)

    def remove(
        self, name: str, now_us: int, reason: str = "", code: EndCode = EndCode.FORGOTTEN
    ) -> None:
        """End a subscription here for good; its consumers are told why after the commit."""
        self._clock.now_us = now_us
        tracked = self._subscriptions.find(self.broker, name)
        if tracked is not None:
            self._lifecycle.end(tracked, reason, code)

    def has(self, name: str) -> bool:
        """Whether there is such a subscription here."""
        return self._subscriptions.queue(name) is not None

    # ---- consumers

    def attach(self, name: str, consumer: Hashable, credit: int) -> int:
        """Add a consumer to a subscription here. Returns the last acknowledged position."""
        queue = self._subscriptions.queue(name)
        if queue is None:
            raise PalioError(f"there is no durable subscription {name!r} here: make it first")
        self.detach(consumer)
        self._consumers.attach(queue, consumer, credit)
        self._ready.note_destination(queue)
        return queue.sequence.lowest() - 1

    def last_position(self, name: str) -> int:
        """Of the newest message in the queue of a subscription here."""
        queue = self._subscriptions.queue(name)
        return 0 if queue is None else queue.sequence.next - 1

    def detach(self, consumer: Hashable) -> None:
        """Remove a consumer; what it has not acknowledged goes to others, or waits."""
        queue, count = self._consumers.detach(consumer)
        if queue is not None:
            self._ready.note_destination(queue)
            if count:  # how often they were delivered is stored with the head
                self._dirty.note_acknowledged(queue)
                self.republishing.note(queue)

    def acknowledge(self, consumer: Hashable, positions: Sequence[int], now_us: int) -> None:
        """A client has acknowledged these positions of its subscription."""
        self._clock.now_us = now_us
        queue = self._consumers.queues.get(consumer)
        if queue is None:
            return
        count = queue.acknowledge(positions)
        if count:
            self._counters.acknowledged += count
            self._dirty.note_acknowledged(queue)
        if queue.can_depart:
            self._ready.note_destination(queue)

    def nack(
        self, consumer: Hashable, positions: Sequence[int], delay_us: int, now_us: int
    ) -> None:
        """A client gives these positions of its subscription back, to be sent after a delay."""
        self._clock.now_us = now_us
        queue = self._consumers.nack(consumer, positions, now_us + delay_us if delay_us else 0)
        if queue is not None:
            self._counters.returned += len(positions)
            self._dirty.note_acknowledged(queue)
            self._ready.note_destination(queue)
            self.republishing.note(queue)

    def grant_credit(self, consumer: Hashable, credit: int) -> None:
        """Change the credit of a consumer by this much."""
        queue = self._consumers.queues.get(consumer)
        if queue is not None:
            queue.consumers.grant_credit(consumer, credit)
            self._ready.note_destination(queue)

    # ---- commits

    def seal(self) -> int | None:
        """Put all changes since the last seal. Returns a ticket to commit; None: no changes."""
        now_us = self._clock.now_us
        if self._arrivals.waiting:
            self._arrivals.store(now_us)
        if self._dirty.is_dirty or self._checkpoints.is_due:
            return self._commits.seal(now_us)
        return None

    def committed(self, ticket: int, now_us: int) -> None:
        """The host has committed this seal and all before it."""
        self._clock.now_us = now_us
        self._commits.committed(ticket)

    def take(self, now_us: int) -> Outgoing:
        """Take everything that may be sent now."""
        self._clock.now_us = now_us
        outgoing = Outgoing() if self._ready.is_empty else self._ready.take(now_us)
        if self._publishing.blocking:
            outgoing.has_room = self._publishing.has_room()
            if outgoing.has_room:
                self.republishing.retry()
        if self.republishing.dying or self.republishing.delayed.heap:
            outgoing.is_republishing = self.republishing.has_work(now_us)
        return outgoing

    # ---- time

    @property
    def deadline_us(self) -> int:
        """When to call `wake` next."""
        if self._lifecycle.can_replay or self._lifecycle.is_releasing:
            return self._clock.now_us
        deadline_us = self._checkpoints.deadline_us
        if self._consumers.deadline_us is not None:
            deadline_us = min(deadline_us, self._consumers.deadline_us)
        if self.republishing.dying or self.republishing.delayed.heap:
            deadline_us = min(deadline_us, self.republishing.deadline_us or deadline_us)
        for stream in self._subscriptions.streams.values():
            if stream.deadline_us is not None:
                deadline_us = min(deadline_us, stream.deadline_us)
        return deadline_us

    def wake(self, now_us: int) -> None:
        """Do what is due: replays, releases, resends, checkpoints."""
        self._clock.now_us = now_us
        self._lifecycle.replay()
        if self._lifecycle.is_releasing:
            self._lifecycle.release()
        for stream in self._subscriptions.streams.values():
            if stream.wake(now_us):
                self._counters.retries += 1
                self._ready.note_destination(stream)
        for queue in self._consumers.due(now_us):
            self._ready.note_destination(queue)
        self._checkpoints.wake(now_us)

    def reachable(self, brokers: Iterable[str], now_us: int) -> None:
        """The topology changed: resend what the reachable brokers have not acknowledged."""
        self._clock.now_us = now_us
        self._subscriptions.reach(frozenset(brokers))
        for stream in self._subscriptions.streams.values():
            self._ready.note_destination(stream)

    def statistics(self) -> StoreStatistics:
        """Totals since start, and current sizes."""
        streams, queues = self._subscriptions.streams, self._subscriptions.queues.values()
        dropped = self._counters.dropped + sum(queue.dropped for queue in queues)
        expired = self._counters.expired + sum(queue.expiring.expired for queue in queues)
        return StoreStatistics(
            msgspec.structs.replace(self._counters, dropped=dropped, expired=expired),
            *self.administration.journal_size(),
            len(self._publishing.publishers),
            {broker: len(stream.sequence) for broker, stream in streams.items()},
            {queue.name: len(queue.sequence.entries) for queue in queues},
            len(self._consumers.queues),
            len(self._commits),
        )
