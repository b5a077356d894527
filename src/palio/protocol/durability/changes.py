"""What changed in a message store since the last seal, and since the last checkpoint."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from palio.protocol.durability.destination import Destination
from palio.protocol.durability.outgoing import QueueEnded
from palio.protocol.durability.publishers import PublisherRow
from palio.protocol.durability.queues import Queue
from palio.protocol.durability.streams import IncomingStream
from palio.protocol.durability.subscriptions import TrackedSubscription
from palio.protocol.interfaces import DurableSubscription


class SealChanges(msgspec.Struct, eq=False):
    """What changed since the last seal. The dictionaries are ordered sets; the seal sets their values:
    the numbers up to which its commit covers everything."""

    pushed: dict[Destination, int] = {}
    published: dict[PublisherRow, int] = {}
    arrived: dict[IncomingStream, int] = {}
    subscriptions: dict[DurableSubscription, TrackedSubscription | None] = {}
    """None: it was removed."""
    overflowed: dict[Destination, None] = {}
    """They lost entries that were not acknowledged. Their heads are in this commit, because a crash
    must not bring these entries back out of order."""
    settled: dict[Destination, None] = {}
    """Entries have left them for another place in the journal, in this commit: so have their heads."""
    created: list[TrackedSubscription] = []
    """Of this broker."""
    ended: list[QueueEnded] = []
    removed: list[Queue] = []
    acts: list[Hashable] = []
    """Of operators, who are answered after the commit."""


class CheckpointChanges(msgspec.Struct, eq=False):
    """What changed since the last checkpoint."""

    acknowledged: dict[Destination, None] = {}
    published: dict[PublisherRow, None] = {}
    arrived: dict[IncomingStream, None] = {}
