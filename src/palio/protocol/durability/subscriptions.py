"""The durable subscriptions that a message store knows, here and at other brokers.

    store/k/<broker, name>    predicate, since, version, policy, cursor

A subscription here has a queue of its own; those at another broker share the stream to it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeAlias

import msgspec

from palio.protocol.durability import keys
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.destination import Destination
from palio.protocol.durability.expiry import EXPIRED_AT_ONCE
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.queues import Full, Queue
from palio.protocol.durability.sequence import EntrySequence
from palio.protocol.durability.streams import OutgoingStream
from palio.protocol.interfaces import DurableSubscription
from palio.protocol.wire.control import Durable

Verdict: TypeAlias = Generator[int, None, bool]
"""Decides in parts whether a message matches: it yields the units that each part has cost."""
Matching: TypeAlias = Callable[[bytes], Verdict]
"""Whether a subscription matches these attributes (JSON)."""


class StoredSubscription(msgspec.Struct, frozen=True, array_like=True):
    """A subscription as it is stored."""

    broker: str
    name: str
    durable: Durable
    full: Full
    cursor: int | None = None
    """Where its replay goes on; None: it is done."""
    is_paused: bool = False
    """Whether an operator has stopped its delivery."""
    owner: str = ""
    """The identity that owns it now; empty: as `name` says, which never changes."""
    called: str = ""
    """What its owner calls it; empty: as `name` says."""
    group: str | None = None
    """Empty: it has none. None: not known, because an older version stored it, or another broker has it."""
    deliveries_max: int = 0
    """After so many deliveries a message leaves as a dead letter; 0: never."""

    @property
    def label(self) -> str:
        """Its name between brokers. The version tells subscriptions apart that reuse a name."""
        return f"{self.durable.version}@{self.name}"

    @property
    def head_key(self) -> str:
        """Where the head of its queue is stored."""
        return keys.QUEUES + self.label


subscription_decoder = msgspec.msgpack.Decoder(StoredSubscription)


class TrackedSubscription:
    """A subscription in memory: `destination` is its queue, or the stream to its home broker."""

    __slots__ = (
        "cursor",
        "destination",
        "interface",
        "is_forgotten",
        "labels",
        "matching",
        "queue",
        "stored",
    )

    def __init__(
        self, stored: StoredSubscription, destination: Destination, queue: Queue | None
    ) -> None:
        self.stored = stored
        self.interface = DurableSubscription(stored.broker, stored.name)
        self.labels = (stored.label,)
        self.cursor = stored.cursor
        self.matching: Matching | None = None
        self.destination = destination
        self.queue = queue
        """None: it is at another broker."""
        self.is_forgotten = False

    def facts(self) -> StoredSubscription:
        """Its current state, as it is stored."""
        return msgspec.structs.replace(self.stored, cursor=self.cursor)


class SubscriptionIndex:
    """All known subscriptions and their destinations. `version` grows with every change."""

    def __init__(
        self, broker: str, journal: Journal, bounds: Bounds, ceiling: Full = Full.BLOCK,
        deliveries_max: int = 0,
    ) -> None:  # fmt: skip
        """`ceiling`: what the operator allows a full queue to do; `deliveries_max`: how often a message
        may be delivered (0: any number)."""
        self.broker = broker
        self.version = 0
        self.queues: dict[str, Queue] = {}
        """By label."""
        self.streams: dict[str, OutgoingStream] = {}
        """By broker."""
        self._tracked: dict[DurableSubscription, TrackedSubscription] = {}
        self._journal = journal
        self._bounds = bounds
        self._ceiling, self._deliveries_max = ceiling, deliveries_max
        self._reachable: frozenset[str] = frozenset()

    def changed(self) -> None:
        """The destinations of messages have changed."""
        self.version += 1

    def all(self) -> list[TrackedSubscription]:
        return list(self._tracked.values())

    def get(self, interface: DurableSubscription) -> TrackedSubscription | None:
        return self._tracked.get(interface)

    def find(self, broker: str, name: str) -> TrackedSubscription | None:
        return self._tracked.get(DurableSubscription(broker, name))

    def queue(self, name: str) -> Queue | None:
        """The queue of a subscription here."""
        tracked = self.find(self.broker, name)
        return tracked.queue if tracked else None

    def allowed(self, full: Full) -> Full:
        """What a full queue does that was made with this."""
        return full.within(self._ceiling)

    def allowed_deliveries(self, asked: int) -> int:
        """How often messages are delivered to a subscription that asks for this; 0: it does not."""
        most = self._deliveries_max
        return min(asked, most) if asked and most else asked or most

    def add(
        self, stored: StoredSubscription, sequence: EntrySequence | None = None
    ) -> TrackedSubscription:
        """Track a subscription; `sequence` has what its queue held before a restart."""
        if stored.broker == self.broker:
            sequence = EntrySequence() if sequence is None else sequence
            full = self.allowed(stored.full)
            queue = Queue(
                stored.name, stored.label, full, sequence, self._journal, self._bounds,
                self.allowed_deliveries(stored.deliveries_max),
            )  # fmt: skip
            queue.consumers.is_paused = stored.is_paused
            self.queues[stored.label] = queue
            tracked = TrackedSubscription(stored, queue, queue)
        else:
            stream = self.stream(stored.broker)
            stream.subscriptions += 1
            tracked = TrackedSubscription(stored, stream, None)
        self._tracked[tracked.interface] = tracked
        self.changed()
        return tracked

    def remove(self, tracked: TrackedSubscription) -> bool:
        """Remove a subscription. True: its destination had no other one and dropped its entries."""
        del self._tracked[tracked.interface]
        tracked.is_forgotten = True
        self.changed()
        if tracked.queue is not None:
            del self.queues[tracked.stored.label]
            tracked.queue.clear()
            return True
        stream = self.streams[tracked.stored.broker]
        stream.subscriptions -= 1
        if stream.subscriptions:
            return False
        stream.clear()
        return True

    def expire(self, now_us: int) -> bool:
        """Let the queues remove what has expired, as much as one turn allows. True: there may be more."""
        count = 0
        if self._journal.expiring:
            for queue in self.queues.values():
                if queue.expiring.heap:
                    count += queue.expire(now_us)
                    if count >= EXPIRED_AT_ONCE:
                        return True
        return False

    def thinned(self) -> list[Queue]:
        """Those from which something that had expired was removed, since the last call."""
        found = [queue for queue in self.queues.values() if queue.expiring.has_news]
        for queue in found:
            queue.expiring.has_news = False
        return found

    def stream(self, broker: str, sequence: EntrySequence | None = None) -> OutgoingStream:
        """The stream to a broker; opens it if there is none."""
        stream = self.streams.get(broker)
        if stream is None:
            sequence = EntrySequence() if sequence is None else sequence
            stream = OutgoingStream(broker, sequence, self._journal, self._bounds)
            stream.reach(broker in self._reachable)
            self.streams[broker] = stream
        return stream

    def reach(self, brokers: frozenset[str]) -> None:
        """Set the reachable brokers; resend what they have not acknowledged."""
        self._reachable = brokers
        for broker, stream in self.streams.items():
            stream.reach(broker in brokers)
