"""Adds and removes subscriptions: here (create, remove, end) and at other brokers (learn, unlearn).

A new subscription is replayed (replay.py). One whose queue is over its bound is ended, if that is its
policy. Creations and ends are announced after their commit.
"""

from __future__ import annotations

import msgspec

from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.commits import DirtySet
from palio.protocol.durability.consumers import Consumers
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.outgoing import QueueEnded
from palio.protocol.durability.queues import Full, Queue
from palio.protocol.durability.replay import Replays
from palio.protocol.durability.sequence import CommitRecords
from palio.protocol.durability.statistics import StoreCounters
from palio.protocol.durability.subscriptions import (
    Matching,
    StoredSubscription,
    SubscriptionIndex,
    TrackedSubscription,
)
from palio.protocol.wire.codes import EndCode


class SubscriptionLifecycle:
    def __init__(
        self,
        subscriptions: SubscriptionIndex,
        consumers: Consumers,
        replays: Replays,
        journal: Journal,
        records: CommitRecords,
        dirty: DirtySet,
        counters: StoreCounters,
        bounds: Bounds,
    ) -> None:
        self._subscriptions = subscriptions
        self._consumers = consumers
        self._replays = replays
        self._journal = journal
        self._records = records
        self._dirty = dirty
        self._counters = counters
        self._bounds = bounds

    def add(self, stored: StoredSubscription, matching: Matching, since: int) -> bool:
        """Track a subscription and start its replay from that time on. False: it is known already."""
        tracked = self._find(stored)
        if tracked is not None and tracked.stored.durable.version >= stored.durable.version:
            tracked.matching = matching
            return False
        if tracked is not None and tracked.queue is not None:
            self.end(tracked, "it was made anew")
        elif tracked is not None:
            self.forget(tracked)
        cursor = self._journal.since(since)
        tracked = self._subscriptions.add(msgspec.structs.replace(stored, cursor=cursor))
        tracked.matching = matching
        self._dirty.note_subscription(tracked)
        self._replays.add(tracked)
        self._replay(tracked)
        return True

    def create(self, stored: StoredSubscription, matching: Matching) -> None:
        """Create a subscription here. It may end at once, if its replay exceeds its bound."""
        if self.add(stored, matching, stored.durable.since):
            tracked = self._find(stored)
            if tracked is not None:
                self._dirty.note_created(tracked)

    def _find(self, stored: StoredSubscription) -> TrackedSubscription | None:
        return self._subscriptions.find(stored.broker, stored.name)

    @property
    def can_replay(self) -> bool:
        """Whether a replay can continue."""
        return self._replays.is_any_ready

    def replay(self) -> None:
        """Advance the replays that can continue, until the units of this time are spent."""
        self._replays.begin()
        for tracked in self._replays.ready():
            if not self._replays.may_go_on:
                break
            if not tracked.is_forgotten:
                self._replay(tracked)

    def _replay(self, tracked: TrackedSubscription) -> None:
        if self._replays.step(tracked):
            self._subscriptions.changed()  # from now on messages go to it directly
        if tracked.queue is not None and tracked.queue.full is not Full.BLOCK:
            self.check(tracked.queue)

    def check(self, queue: Queue) -> None:
        """Check a queue after a push: have the oldest entries dropped, or end the subscription."""
        if not queue.is_over:
            return
        if queue.full is Full.DROP:
            self._dirty.note_overflowed(queue)
        elif queue.full is Full.END:
            tracked = self._subscriptions.find(self._subscriptions.broker, queue.name)
            assert tracked is not None
            self._counters.ended += 1
            self.end(tracked, f"more than {self._bounds.queue} messages or their bytes waited")

    @property
    def is_releasing(self) -> bool:
        """Whether messages of ended subscriptions are not released yet."""
        return bool(self._journal.releases)

    def release(self) -> None:
        """Release a part of the messages of ended subscriptions. A checkpoint follows the last."""
        self._journal.releases.release_some()
        if not self._journal.releases:
            self._dirty.request_checkpoint()

    def forget(self, tracked: TrackedSubscription) -> None:
        """Remove a subscription, and release what only it needed."""
        is_cleared = self._subscriptions.remove(tracked)
        self._replays.remove(tracked)
        self._dirty.note_forgotten(tracked, is_cleared)
        if tracked.queue is not None:
            self._records.release(tracked.queue.sequence.release())

    def end(self, tracked: TrackedSubscription, reason: str, code: EndCode = EndCode.FULL) -> None:
        """End a subscription of this broker for good; `reason` and `code` tell its consumers why."""
        queue = tracked.queue
        assert queue is not None
        consumers = self._consumers.release(queue)
        self.forget(tracked)
        self._counters.dropped += queue.dropped
        self._counters.expired += queue.expiring.expired
        version = tracked.stored.durable.version
        ended = QueueEnded(queue.name, reason, consumers, version, code)
        self._dirty.note_ended(tracked, queue, ended)
