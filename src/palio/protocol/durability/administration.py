"""What operators see of the queues of durable subscriptions, and do with them.

    pause, purge, assign, assign_group, confirm_full ──▶ DirtySet ──▶ (commit) ──▶ Outgoing.acts: what `note_act` was given

Every change is part of the next seal. Whoever asked is answered when the commit is there: `note_act` takes
any value, which comes back with the output of the store after the commit.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import nlargest

import msgspec

from palio.errors import PalioError
from palio.protocol.durability.commits import DirtySet, ReadySet
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.queues import Full, Queue
from palio.protocol.durability.subscriptions import SubscriptionIndex, TrackedSubscription


class QueueStatus(msgspec.Struct, frozen=True):
    """The state of a queue at one moment."""

    name: str
    """Of its subscription."""
    messages: int
    bytes: int
    stored_us: int | None
    """When its oldest message was stored; None: there is none."""
    consumers: list[Hashable]
    full: Full
    is_paused: bool
    deliveries_max: int
    """After so many deliveries a message is a dead letter; 0: never."""


class QueueAdministration:
    def __init__(
        self,
        subscriptions: SubscriptionIndex,
        journal: Journal,
        dirty: DirtySet,
        ready: ReadySet,
    ) -> None:
        self._subscriptions = subscriptions
        self._journal = journal
        self._dirty = dirty
        self._ready = ready

    # ---- what is there

    def status(self, name: str) -> QueueStatus | None:
        """The state of a queue; None: there is no such subscription here."""
        queue = self._subscriptions.queue(name)
        return None if queue is None else self._status(queue)

    def largest(self, most: int) -> list[QueueStatus]:
        """The queues with the most messages, at most so many."""
        queues = self._subscriptions.queues.values()
        found = nlargest(most, queues, key=lambda queue: len(queue.sequence.entries))
        return [self._status(queue) for queue in found]

    def _status(self, queue: Queue) -> QueueStatus:
        oldest = queue.oldest()
        return QueueStatus(
            queue.name,
            len(queue),
            queue.bytes,
            None if oldest is None else self._journal.stored_at_us(oldest),
            queue.consumers.keys(),
            queue.full,
            queue.consumers.is_paused,
            queue.returned.deliveries_max,
        )

    def waiting(self, name: str) -> int:
        """How many messages are in a queue."""
        queue = self._subscriptions.queue(name)
        return 0 if queue is None else len(queue)

    def journal_size(self) -> tuple[int, int]:
        """Messages and bytes of the journal."""
        return len(self._journal), self._journal.bytes

    def consumers(self, name: str) -> list[Hashable]:
        """The consumers of a queue."""
        queue = self._subscriptions.queue(name)
        return [] if queue is None else queue.consumers.keys()

    def credit(self, name: str, consumer: Hashable) -> int:
        """The credit of a consumer of a queue; 0: it is none."""
        queue = self._subscriptions.queue(name)
        return 0 if queue is None else queue.consumers.credit(consumer)

    def last_number(self, name: str) -> int:
        """Of the newest message that is or was in a queue."""
        return self._find(name).destination.sequence.next - 1

    # ---- changes

    def pause(self, name: str, is_paused: bool) -> None:
        """Stop the delivery of a queue, or go on with it."""
        tracked = self._find(name)
        queue = tracked.queue
        assert queue is not None
        queue.consumers.is_paused = is_paused
        self._change(tracked, is_paused=is_paused)
        self._ready.note_destination(queue)

    def purge(self, name: str, last: int, most: int) -> int:
        """Delete at most so many messages of a queue, the oldest first, up to the number `last`.
        Returns how many were deleted."""
        queue = self._find(name).queue
        assert queue is not None
        count = queue.purge(last, most)
        if count:
            self._dirty.note_purged(queue)
        return count

    def assign(self, name: str, owner: str) -> None:
        """Store another owner of a subscription."""
        self._change(self._find(name), owner=owner)

    def assign_group(self, name: str, group: str) -> None:
        """Store the group of a subscription."""
        self._change(self._find(name), group=group)

    def confirm_full(self, name: str, full: Full) -> None:
        """The owner wants what its full queue does because of the operator: it stays so, also when the
        operator allows more again."""
        tracked = self._find(name)
        if tracked.stored.full is not full:
            self._change(tracked, full=full)

    def note_act(self, act: Hashable) -> None:
        """Commit soon, and give this back after the commit (`Outgoing.acts`)."""
        self._dirty.note_act(act)

    def _change(self, tracked: TrackedSubscription, **fields: object) -> None:
        tracked.stored = msgspec.structs.replace(tracked.stored, **fields)
        self._dirty.note_subscription(tracked)

    def _find(self, name: str) -> TrackedSubscription:
        tracked = self._subscriptions.find(self._subscriptions.broker, name)
        if tracked is None:
            raise PalioError(f"there is no durable subscription {name!r} here")
        return tracked
