"""Restores a message store from the disk when a broker starts.

subscriptions, heads ──▶ sequences ◀── records ──▶ last numbers of publishers and streams
                             │
journal (metadata only) ◀────┘ references are counted again
"""

from __future__ import annotations

from typing import NamedTuple

from palio.protocol.durability import keys
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.commits import DirtySet
from palio.protocol.durability.delayed import DelayedMessages
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.publishers import PublisherTable
from palio.protocol.durability.queues import Full
from palio.protocol.durability.sequence import CommitRecords, EntrySequence
from palio.protocol.durability.storage import DamagedStore, Store, decoded
from palio.protocol.durability.streams import IncomingStreams
from palio.protocol.durability.subscriptions import (
    StoredSubscription,
    SubscriptionIndex,
    subscription_decoder,
)


class RestoredState(NamedTuple):
    records: CommitRecords
    journal: Journal
    publishers: PublisherTable
    incoming: IncomingStreams
    subscriptions: SubscriptionIndex
    delayed: DelayedMessages


def restore(
    store: Store, broker: str, bounds: Bounds, dirty: DirtySet, ceiling: Full = Full.BLOCK,
    deliveries_max: int = 0,
) -> RestoredState:  # fmt: skip
    """Read everything that is stored. Raises UnknownFormat if another version wrote it, DamagedStore
    if it cannot be read or does not fit together."""
    keys.check_format(store)
    try:
        return _restored(store, broker, bounds, dirty, ceiling, deliveries_max)
    except _MISFITS as error:
        raise DamagedStore(
            f"the message store does not fit together ({type(error).__name__}: {error})"
        ) from error


_MISFITS = (LookupError, ValueError, TypeError, OverflowError)
"""What values raise that can be decoded, and that no version of this program wrote together."""


def _restored(
    store: Store, broker: str, bounds: Bounds, dirty: DirtySet, ceiling: Full, deliveries_max: int
) -> RestoredState:
    stored = [
        decoded(subscription_decoder, key, value) for key, value in store.scan(keys.SUBSCRIPTIONS)
    ]
    records = CommitRecords(store)
    publishers = PublisherTable(store, bounds.publisher_us)
    incoming = IncomingStreams(store, bounds)
    sequences = _Sequences.of(store, records, broker, stored)
    by_head_key = sequences.by_head_key()
    position = 1
    for ticket, record in records.read():
        position = record.position
        for head_key, spans in record.entries.items():
            if head_key in by_head_key and by_head_key[head_key].restore(ticket, spans):
                records.need(ticket)
        for name, number in record.publishers.items():
            dirty.note_restored(publisher=publishers.restore(name, number, record.time_us))
        for origin, epoch, number in record.arrived:
            dirty.note_restored(stream=incoming.restore(origin, epoch, number, record.time_us))
    journal = Journal(store, bounds, position)
    subscriptions = SubscriptionIndex(broker, journal, bounds, ceiling, deliveries_max)
    for destination, sequence in sequences.streams.items():
        subscriptions.stream(destination, sequence)
    for one in stored:
        subscriptions.add(one, sequences.queues.get(one.head_key))
    for stream in subscriptions.streams.values():
        if not stream.subscriptions and stream.sequence.entries:
            stream.clear()
            dirty.note_acknowledged(stream)
    delayed = DelayedMessages(sequences.delayed, journal, bounds.delays)
    return RestoredState(records, journal, publishers, incoming, subscriptions, delayed)


class _Sequences(NamedTuple):
    """Those of all queues, by the keys of their heads, and of all outgoing streams, by broker."""

    queues: dict[str, EntrySequence]
    streams: dict[str, EntrySequence]
    delayed: EntrySequence

    @classmethod
    def of(
        cls, store: Store, records: CommitRecords, broker: str, stored: list[StoredSubscription]
    ) -> _Sequences:
        """A stream that no subscription needs has a head, with which its numbers go on."""
        head_keys = [one.head_key for one in stored if one.broker == broker]
        others = [one.broker for one in stored if one.broker != broker]
        brokers = dict.fromkeys([*others, *keys.stream_brokers(store)])
        return cls(
            {key: records.sequence(key) for key in head_keys},
            {name: records.sequence(keys.stream(name)) for name in brokers},
            records.sequence(keys.DELAYED),
        )

    def by_head_key(self) -> dict[str, EntrySequence]:
        """All, as commit records name them."""
        streams = {keys.stream(name): one for name, one in self.streams.items()}
        return self.queues | streams | {keys.DELAYED: self.delayed}
