"""Repairing a message store of which some values are lost: the rest is made to fit together.

    segments without messages or metadata ──▶ gone
    entries whose record or message is gone ──▶ gone
    all other entries, last numbers ──▶ one new record, new heads, rows

It works on what could be read, and puts what a checkpoint would have put. Numbers that others have
seen must not be used for something else: since nobody knows how far they had come, those of queues and
outgoing streams go on much later. A destination learns that from `first` in what is carried to it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

import msgspec

from palio.protocol.durability import keys
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.publishers import PublisherTable
from palio.protocol.durability.segments import Segment
from palio.protocol.durability.sequence import (
    CommitRecord,
    CommitRecords,
    EntrySequence,
    SequenceHead,
    record_decoder,
)
from palio.protocol.durability.storage import DamagedStore, Store, decoded
from palio.protocol.durability.streams import IncomingStreams
from palio.protocol.durability.subscriptions import StoredSubscription, subscription_decoder

_QUEUE_SKIP = 1 << 16
"""Twice what a client's dedup window remembers."""
_STREAM_SKIP = 1 << 32


class RepairReport(msgspec.Struct):
    """What is lost, and what is saved, by name."""

    segments: list[tuple[int, int | None]] = []
    """Lost: the first and the last position of each; None: nobody knows."""
    queues: dict[str, int] = {}
    """Messages that waited for a subscription here, or elsewhere, and are lost."""
    subscriptions: list[str] = []
    """Lost, with all that waited for them."""
    publishers: list[str] = []
    """Their last numbers are lost."""
    others: list[str] = []
    """Other keys whose values are lost."""
    saved: dict[str, int] = {}
    """Messages that wait for a subscription here, or elsewhere."""

    def lines(self) -> Iterator[str]:
        for name in self.subscriptions:
            yield f"lost: the durable subscription {name}, with all that waited for it"
        for name, count in self.queues.items():
            yield f"lost: {_messages(count)} of {name}"
        for first, last in self.segments:
            yield (
                f"lost: the journal from position {first}"
                f"{'' if last is None else f' to {last}'} (some of it may have been delivered)"
            )
        for name in self.publishers:
            yield (
                f"lost: the last number of publisher {name}; what it sends again may be stored twice"
            )
        for key in self.others:
            yield f"lost: {key}"
        for name, count in self.saved.items():
            yield f"saved: {_messages(count)} of {name}"


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count:,} messages"


def repair(store: Store, broker: str, lost_keys: Iterable[str]) -> RepairReport:
    """Make what is left of a message store fit together. `lost_keys` have no value any more."""
    report = RepairReport()
    lost = sorted(lost_keys)
    subscriptions = _subscriptions(store, lost, report)
    journal = _SavedJournal(store, lost, report)
    records = CommitRecords(store)
    publishers, incoming = PublisherTable(store, 1 << 60), IncomingStreams(store, Bounds())
    sequences = _sequences(store, records, broker, subscriptions)
    position, time_us = journal.next, 0
    for ticket, record in _records(store, lost, records):
        position, time_us = max(position, record.position), record.time_us
        for head_key, spans in record.entries.items():
            if head_key.startswith(keys.STREAMS) and head_key not in sequences:
                sequences[head_key] = EntrySequence()
            if head_key in sequences:
                sequences[head_key].restore(ticket, spans)
        for name, number in record.publishers.items():
            publishers.restore(name, number, record.time_us)
        for origin, epoch, number in record.arrived:
            incoming.restore(origin, epoch, number, record.time_us)
    ticket = records.ticket + 1
    new = CommitRecord(time_us, position)
    own = [one for one in subscriptions if one.broker == broker]
    names = {one.head_key: f"the queue {one.name}" for one in own}
    names[keys.DELAYED] = "what is delayed"
    for head_key, sequence in sequences.items():
        is_stream = head_key.startswith(keys.STREAMS)
        broker_name = head_key.removeprefix(keys.STREAMS)
        name = f"the stream to {broker_name}" if is_stream else names[head_key]
        if head_key in lost:  # nobody knows what was acknowledged before the first that is left
            sequence.lowest()
        report.queues.update(_counted(name, _drop_lost(sequence, journal)))
        report.saved.update(_counted(name, len(sequence)))
        saved = _renumbered(sequence) if is_stream else sequence
        saved.next += 0 if is_stream else _QUEUE_SKIP
        saved.lowest()
        if saved.entries:
            new.entries[head_key], _ = saved.rewrite(ticket)
        records.put_head(head_key, saved)
    for key in [key for key, _ in store.scan(keys.RECORDS)]:
        store.delete(key)
    records.put(ticket, new)
    keys.put_format(store)
    publishers.put(publishers.rows.values(), 0)
    for stream in incoming.all():
        incoming.put(stream)
    _name_the_rest(lost, report)
    return report


def _counted(name: str, count: int) -> dict[str, int]:
    return {name: count} if count else {}


# ---- what is left


def _subscriptions(store: Store, lost: list[str], report: RepairReport) -> list[StoredSubscription]:
    found: list[StoredSubscription] = []
    for key, value in list(store.scan(keys.SUBSCRIPTIONS)):
        try:
            found.append(decoded(subscription_decoder, key, value))
        except DamagedStore:
            store.delete(key)
            lost.append(key)
    for key in lost:
        if key.startswith(keys.SUBSCRIPTIONS):
            length, _, names = key.removeprefix(keys.SUBSCRIPTIONS).partition(":")
            at = int(length) if length.isdigit() else 0
            report.subscriptions.append(f"{names[at + 1 :]} at {names[:at]}")
    labels = {one.head_key for one in found}
    for key in [key for key, _ in store.scan(keys.QUEUES)]:
        if key not in labels:  # its subscription is lost, named by the label
            store.delete(key)
            name = key.removeprefix(keys.QUEUES).partition("@")[2]
            if not any(told.startswith(f"{name} at ") for told in report.subscriptions):
                report.subscriptions.append(name)
    return found


class _SavedJournal:
    """The segments of which metadata and messages are there. `next` is the position after all."""

    def __init__(self, store: Store, lost: list[str], report: RepairReport) -> None:
        self.next = 1
        self._segments: list[Segment] = []
        numbers: set[int] = set()
        for prefix in (keys.SEGMENTS, keys.SEGMENT_METADATA):
            numbers |= {keys.number_of(key) for key, _ in store.scan(prefix)}
        for first in sorted({_number(key) for key in lost if _is_of_journal(key)} - numbers):
            if first:  # it is lost altogether
                report.segments.append((first, None))
        for first in sorted(numbers):
            segment = _segment(store, first)
            if segment is not None and segment.batches:
                segment.unload()
                self._segments.append(segment)
            else:
                store.delete(keys.numbered(keys.SEGMENTS, first))
                store.delete(keys.numbered(keys.SEGMENT_METADATA, first))
                report.segments.append((first, segment.end - 1 if segment is not None else None))
            self.next = max(self.next, first + 1 if segment is None else segment.end)
        self._firsts = [segment.first for segment in self._segments]

    def has(self, position: int) -> bool:
        at = bisect_right(self._firsts, position) - 1
        if at < 0:
            return False
        place = position - self._firsts[at]
        sizes = self._segments[at].sizes
        return place < len(sizes) and sizes[place] > 0


def _number(key: str) -> int:
    """Of a key that may be damaged itself; 0: it has none."""
    try:
        return keys.number_of(key)
    except ValueError:
        return 0


def _is_of_journal(key: str) -> bool:
    return key.startswith((keys.SEGMENTS, keys.SEGMENT_METADATA))


def _segment(store: Store, first: int) -> Segment | None:
    """A segment, without messages if these are lost; None: its metadata is lost."""
    metadata = store.get(keys.numbered(keys.SEGMENT_METADATA, first))
    messages = store.get(keys.numbered(keys.SEGMENTS, first))
    if metadata is None:
        return None
    try:
        segment = Segment.restored(first, metadata)
        if messages is not None:
            segment.load(messages)
    except DamagedStore as error:
        return segment if error.key.startswith(keys.SEGMENTS) else None
    return segment


def _records(
    store: Store, lost: list[str], records: CommitRecords
) -> Iterator[tuple[int, CommitRecord]]:
    for key, value in list(store.scan(keys.RECORDS)):
        records.ticket = max(records.ticket, keys.number_of(key))
        try:
            yield keys.number_of(key), decoded(record_decoder, key, value)
        except DamagedStore:
            lost.append(key)


def _sequences(
    store: Store, records: CommitRecords, broker: str, stored: list[StoredSubscription]
) -> dict[str, EntrySequence]:
    head_keys = [
        one.head_key if one.broker == broker else keys.STREAMS + one.broker for one in stored
    ]
    head_keys += [*[key for key, _ in store.scan(keys.STREAMS)], keys.DELAYED]
    return {head_key: records.sequence(head_key) for head_key in head_keys}


# ---- what is put


def _drop_lost(sequence: EntrySequence, journal: _SavedJournal) -> int:
    """Take entries out whose messages are lost: how many, with those whose records are."""
    missing = sequence.missing()
    gone = [n for n, position in sequence.entries.items() if not journal.has(position)]
    for n in gone:
        del sequence.entries[n]
        sequence.labels.pop(n, None)
    return missing + len(gone)


def _renumbered(sequence: EntrySequence) -> EntrySequence:
    """The same entries, under numbers that the destination has not seen, without gaps."""
    first = sequence.next + _STREAM_SKIP
    made = EntrySequence(SequenceHead(first, first))
    entries = sorted(sequence.entries.items())
    if entries:
        positions = [position for _, position in entries]
        made.extend(positions, [sequence.labels.get(n, ()) for n, _ in entries])
    return made


def _name_the_rest(lost: list[str], report: RepairReport) -> None:
    for key in lost:
        if key.startswith(keys.PUBLISHERS):
            report.publishers.append(key.removeprefix(keys.PUBLISHERS))
        elif key.startswith(keys.RECORDS):
            report.others.append(f"the record of commit {_number(key)}: who gets its messages")
        elif key.startswith((keys.QUEUES, keys.STREAMS)):
            name = key.removeprefix(keys.QUEUES).removeprefix(keys.STREAMS)
            report.others.append(f"what {name} had acknowledged: some of it comes again")
        elif not _is_of_journal(key) and not key.startswith(keys.SUBSCRIPTIONS):
            report.others.append(f"the value of {key}")
