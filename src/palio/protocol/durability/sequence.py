"""Sequences of entries, and the commit records that their entries are written to.

An entry is a position of the journal under a number 1, 2, 3, ... of the sequence's own.

    first = 4                   next = 12
      │                           │
    . 4 . . 7 8 9 │ 10 11 │                 entries: not acknowledged yet
    └ record 20 ──┘ └ 23 ─┘                 chunks: a record lives while a sequence has one in it

Each queue and each outgoing stream has one sequence. Entries are acknowledged in any order. The head
says which entries are still needed; checkpoints write it (commits.py). A committed number is never
used for another entry.

A seal puts one record for all sequences that have changed:

    store/r/<ticket>    { entries:    sequence -> spans           of queues and outgoing streams
                          publishers: name -> number
                          arrived:    origin, epoch, number }

The newest record is never deleted, so tickets and positions continue after a restart.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from palio.protocol.durability import keys
from palio.protocol.durability.storage import Store, decoded

Labels: TypeAlias = tuple[str, ...]
"""The subscriptions at another broker that a message is for; empty in a queue."""

OUT_OF_ORDER_MAX = 4096


class EntrySpan(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Entries with consecutive numbers, as they are stored."""

    number: int
    count: int
    positions: Sequence[int]
    """Of each entry; or of the first, if they are consecutive."""
    labels: Sequence[Labels] = ()
    """Of each entry; or of the first, if all have the same; or none, if none has any."""

    @classmethod
    def of(cls, number: int, positions: Sequence[int], labels: Sequence[Labels] = ()) -> EntrySpan:
        """
        >>> EntrySpan.of(5, range(20, 90), [("1@x",)] * 70)
        EntrySpan(number=5, count=70, positions=(20,), labels=[('1@x',)])
        """
        count = len(positions)
        if positions[-1] - positions[0] == count - 1:
            positions = (positions[0],)
        if labels and labels.count(labels[0]) == count:
            labels = labels[:1]
        return cls(number, count, positions, labels)

    def entries(self) -> Iterator[tuple[int, int, Labels]]:
        """Numbers, positions and labels."""
        numbers = range(self.number, self.number + self.count)
        positions, labels = self.positions, self.labels or ((),)
        if len(positions) < self.count:
            positions = range(positions[0], positions[0] + self.count)
        if len(labels) < self.count:
            labels = [labels[0]] * self.count
        return zip(numbers, positions, labels, strict=True)


class SequenceHead(msgspec.Struct, frozen=True, array_like=True):
    """What is still needed of a sequence."""

    first: int = 1
    next: int = 1
    base: int = 0
    """Ignore chunks in older records; they were rewritten."""
    gone: tuple[tuple[int, int], ...] = ()
    """Ranges of numbers after `first` that are not needed."""
    counts: dict[int, int] = {}
    """Of a queue: how often entries were delivered, of those that consumers gave back."""


class EntrySequence:
    """Owners delete from `entries`; queues, which do so in any order, append the number to `gone`."""

    __slots__ = (
        "_base",
        "_chunks",
        "_gone_before",
        "_unsealed",
        "counts",
        "entries",
        "first",
        "gone",
        "labels",
        "next",
    )

    def __init__(self, head: SequenceHead | None = None) -> None:
        head = head or SequenceHead()
        self.entries: dict[int, int] = {}
        self.labels: dict[int, Labels] = {}
        self.counts = head.counts
        """See `SequenceHead.counts`."""
        self.first = head.first
        self.next = head.next
        self.gone: list[int] = []
        self._base = head.base
        self._gone_before = {n for first, last in head.gone for n in range(first, last + 1)}
        self._unsealed: list[EntrySpan] = []
        self._chunks: deque[tuple[int, int]] = deque()  # last number, ticket

    def __len__(self) -> int:
        return len(self.entries)

    def restore(self, ticket: int, spans: Sequence[EntrySpan]) -> bool:
        """Restore a chunk from a record. False: none of it is needed."""
        if ticket < self._base or not spans:
            return False
        last = spans[-1].number + spans[-1].count - 1
        self.next = max(self.next, last + 1)
        is_needed = False
        for span in spans:
            for n, position, labels in span.entries():
                if n >= self.first and n not in self._gone_before:
                    is_needed = True
                    self.entries[n] = position
                    if labels:
                        self.labels[n] = labels
        if is_needed:
            self._chunks.append((last, ticket))
        return is_needed

    def extend(self, positions: Sequence[int], labels: Sequence[Labels] = ()) -> None:
        """New entries, under the next numbers; their positions ascend."""
        first, end = self.next, self.next + len(positions)
        self.next = end
        numbers = range(first, end)
        self.entries.update(zip(numbers, positions, strict=True))
        if labels:
            self.labels.update(zip(numbers, labels, strict=True))
        self._unsealed.append(EntrySpan.of(first, positions, labels))

    def lowest(self) -> int:
        """The number of the first entry; `next` if there is none."""
        entries, first, next = self.entries, self.first, self.next
        if not entries:
            first = next
        while first < next and first not in entries:
            first += 1
        self.first = first
        return first

    def chunk(self, ticket: int) -> list[EntrySpan]:
        """The entries added since the last call, for a record.

        It may have entries that were removed since; the head in the same commit excludes them.
        """
        new, self._unsealed = self._unsealed, []
        if self.first == self.next:
            return []
        if new:
            self._chunks.append((self.next - 1, ticket))
        return new

    def settle(self) -> list[int]:
        """Forget acknowledged entries. Returns the tickets of chunks that are no longer needed."""
        first = self.lowest()
        if self.counts:
            self.counts = {n: count for n, count in self.counts.items() if n in self.entries}
        if self._gone_before or self.gone:
            self._gone_before = {n for n in self._gone_before if n >= first}
            self._gone_before.update(n for n in self.gone if n >= first)
            self.gone.clear()
        released = []
        while self._chunks and self._chunks[0][0] < first:
            released.append(self._chunks.popleft()[1])
        return released

    @property
    def is_sparse(self) -> bool:
        """Whether so many entries were acknowledged out of order that a `rewrite` pays."""
        return len(self._gone_before) > OUT_OF_ORDER_MAX

    def rewrite(self, ticket: int) -> tuple[list[EntrySpan], list[int]]:
        """All entries as one chunk, and the tickets of the records that held them."""
        released = self.release()
        self._base = ticket
        self._gone_before.clear()
        self._unsealed.clear()
        if self.entries:
            self._chunks.append((self.next - 1, ticket))
        return self._spans(), released

    def _spans(self) -> list[EntrySpan]:
        """All entries."""
        numbers = list(self.entries)
        begins = [at for at, n in enumerate(numbers) if not at or n != numbers[at - 1] + 1]
        spans: list[EntrySpan] = []
        for begin, end in zip(begins, [*begins[1:], len(numbers)], strict=True):
            chosen = numbers[begin:end]
            labels = [self.labels.get(n, ()) for n in chosen] if self.labels else ()
            spans.append(EntrySpan.of(chosen[0], [self.entries[n] for n in chosen], labels))
        return spans

    def missing(self) -> int:
        """How many entries are needed and not there, because a record was lost (repair.py)."""
        gone = sum(n >= self.first for n in self._gone_before)
        needed = sum(n >= self.first for n in self.entries)
        return self.next - self.first - gone - needed

    def release(self) -> list[int]:
        """Drop all chunks. Returns their tickets."""
        released = [ticket for _, ticket in self._chunks]
        self._chunks.clear()
        return released

    def head(self) -> SequenceHead:
        return SequenceHead(
            self.first, self.next, self._base, tuple(_ranges(self._gone_before)), self.counts
        )


def _ranges(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    first = last = 0
    for n in sorted(numbers):
        if n != last + 1 or not first:
            if first:
                yield first, last
            first = n
        last = n
    if first:
        yield first, last


encode = msgspec.msgpack.Encoder().encode


class CommitRecord(msgspec.Struct, array_like=True):
    """The small changes of one commit."""

    time_us: int
    position: int
    """The next one of the journal."""
    entries: dict[str, list[EntrySpan]] = {}
    """By the keys of the heads of sequences."""
    publishers: dict[str, int] = {}
    arrived: list[tuple[str, str, int]] = []
    """Origin, epoch, and the number up to which its stream is stored here."""


_head_decoder = msgspec.msgpack.Decoder(SequenceHead)
record_decoder = msgspec.msgpack.Decoder(CommitRecord)


class CommitRecords:
    """`ticket` is that of the newest record. Counts how many chunks in each record are needed."""

    def __init__(self, store: Store) -> None:
        self.ticket = 0
        self._store = store
        self._needed: dict[int, int] = {}

    def read(self) -> Iterator[tuple[int, CommitRecord]]:
        """Read all records in order; called once, at restore."""
        for key, value in self._store.scan(keys.RECORDS):
            self.ticket = keys.number_of(key)
            self._needed[self.ticket] = 0
            yield self.ticket, decoded(record_decoder, key, value)

    def need(self, ticket: int) -> None:
        """One more chunk of a record that was read is needed."""
        self._needed[ticket] += 1

    def release(self, tickets: Iterable[int]) -> None:
        """One chunk fewer of each of these records is needed."""
        for ticket in tickets:
            self._needed[ticket] -= 1

    def put(self, ticket: int, record: CommitRecord) -> None:
        """The next record, of which all chunks are needed."""
        self.ticket = ticket
        self._needed[ticket] = len(record.entries)
        if ticket == 1:
            keys.put_format(self._store)
        self._store.put(f"{keys.RECORDS}{ticket:016x}", encode(record))

    def sweep(self) -> None:
        """Delete records with no needed chunk; the heads must be put before."""
        needless = [t for t, count in self._needed.items() if not count and t != self.ticket]
        for ticket in needless:
            del self._needed[ticket]
            self._store.delete(keys.numbered(keys.RECORDS, ticket))

    # ---- heads

    def sequence(self, head_key: str) -> EntrySequence:
        """A sequence with its stored head; `restore` adds the entries."""
        value = self._store.get(head_key)
        return EntrySequence(None if value is None else decoded(_head_decoder, head_key, value))

    def put_head(self, head_key: str, entries: EntrySequence) -> None:
        self._store.put(head_key, encode(entries.head()))

    def delete_head(self, head_key: str) -> None:
        self._store.delete(head_key)
