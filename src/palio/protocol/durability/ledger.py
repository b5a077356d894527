"""The ledger: one record for each seal, which says who refers to which messages of the journal.

    r/<ticket>  { queues:  label  -> {number: position}              entries that are new
                  streams: broker -> {number: (position, labels)}
                  publishers, arrived: last numbers }

    line        first = 4                   next = 12
                  │                           │
    numbers     . 4 . . 7 8 9 │ 10 11 │               what is still to be acknowledged
    chunks      └ record 20 ──┘ └ 23 ─┘               a record lives while a line has a chunk in it

A `Line` is a sequence of entries with numbers of its own, acknowledged in any order: a queue, or the
stream to a broker. However many lines are touched, a seal puts one record. Heads (from where a line
is still needed) are put now and then, in the seal that also deletes records and batches that are no
longer needed: a crash before it only brings entries back that were acknowledged a moment ago.

What always holds: the newest record stays, so tickets and positions go on after a restart. A
number that was committed is never used for another entry.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar

import msgspec

from palio.protocol.store import Store

Sent: TypeAlias = tuple[int, tuple[str, ...]]
"""An entry of a stream: a position of the journal, and the labels of whom it is for."""

T = TypeVar("T")
LATE_MAX = 4096

encode = msgspec.msgpack.Encoder().encode


class Record(msgspec.Struct, array_like=True):
    """What one seal adds."""

    time_us: int
    position: int
    """The next one of the journal."""
    queues: dict[str, dict[int, int]]
    streams: dict[str, dict[int, Sent]]
    publishers: dict[str, int]
    arrived: list[tuple[str, str, int]]
    """Origin, epoch, and the number up to which its stream is stored here."""


class Head(msgspec.Struct, frozen=True, array_like=True):
    """What is still needed of a line."""

    first: int = 1
    next: int = 1
    base: int = 0
    """Chunks in records before this one do not count: what was needed of them was written again."""
    late: tuple[tuple[int, int], ...] = ()
    """Ranges of numbers after `first` that are not needed."""


_head_decoder = msgspec.msgpack.Decoder(Head)
_record_decoder = msgspec.msgpack.Decoder(Record)


class Line(Generic[T]):
    """Entries by number. Owners take entries out, and say so in `gone`."""

    __slots__ = ("_base", "_chunks", "_late", "_sealed", "entries", "first", "gone", "next")

    def __init__(self, head: Head | None = None) -> None:
        head = head or Head()
        self.entries: dict[int, T] = {}
        self.first = head.first
        self.next = head.next
        self.gone: list[int] = []
        self._base = head.base
        self._late = {n for first, last in head.late for n in range(first, last + 1)}
        self._sealed = head.next
        self._chunks: deque[tuple[int, int]] = deque()  # last number, ticket

    def restore(self, ticket: int, chunk: dict[int, T]) -> bool:
        """Take a chunk from a record; False: nothing of it is needed."""
        if ticket < self._base or not chunk:
            return False
        last = max(chunk)
        self.next = self._sealed = max(self.next, last + 1)
        needed = {n: e for n, e in chunk.items() if n >= self.first and n not in self._late}
        if not needed:
            return False
        self.entries.update(needed)
        self._chunks.append((last, ticket))
        return True

    def extend(self, entries: Sequence[T]) -> None:
        """New entries, under the next numbers."""
        end = self.next + len(entries)
        self.entries.update(zip(range(self.next, end), entries, strict=True))
        self.next = end

    def lowest(self) -> int:
        """The number of the first entry; `next` if there is none."""
        if not self.entries:
            self.first = self.next
        while self.first < self.next and self.first not in self.entries:
            self.first += 1
        return self.first

    def chunk(self, ticket: int) -> dict[int, T]:
        """What is new since the last time, for a record."""
        entries = self.entries
        new = {n: entries[n] for n in range(self._sealed, self.next) if n in entries}
        self._sealed = self.next
        if new:
            self._chunks.append((self.next - 1, ticket))
        return new

    def settle(self) -> list[int]:
        """Forget what is acknowledged: tickets of records in which nothing is needed any more."""
        first = self.lowest()
        if self._late or self.gone:
            self._late = {n for n in self._late if n >= first}
            self._late.update(n for n in self.gone if n >= first)
            self.gone.clear()
        released = []
        while self._chunks and self._chunks[0][0] < first:
            released.append(self._chunks.popleft()[1])
        return released

    @property
    def is_sparse(self) -> bool:
        """So much was acknowledged out of order that it is time for a `rewrite`."""
        return len(self._late) > LATE_MAX

    def rewrite(self, ticket: int) -> tuple[dict[int, T], list[int]]:
        """All that is needed, as one chunk; and tickets of the records where it was."""
        released = self.release()
        self._base = ticket
        self._late.clear()
        self._sealed = self.next
        if self.entries:
            self._chunks.append((self.next - 1, ticket))
        return self.entries, released

    def release(self) -> list[int]:
        """Give up all chunks: their tickets."""
        released = [ticket for _, ticket in self._chunks]
        self._chunks.clear()
        return released

    def head(self) -> Head:
        return Head(self.first, self.next, self._base, tuple(_ranges(self._late)))


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


class Ledger:
    """The records, and how many chunks in each are needed."""

    def __init__(self, store: Store, prefix: str) -> None:
        self._store = store
        self._prefix = prefix
        self._needed: dict[int, int] = {}
        self.ticket = 0

    def records(self) -> Iterator[tuple[int, Record]]:
        """What is stored, in order: read once, when everything else is restored."""
        for key, value in self._store.scan(f"{self._prefix}r/"):
            self.ticket = int(key.rpartition("/")[2], 16)
            self._needed[self.ticket] = 0
            yield self.ticket, _record_decoder.decode(value)

    def need(self, ticket: int) -> None:
        self._needed[ticket] = self._needed.get(ticket, 0) + 1

    def release(self, tickets: Iterable[int]) -> None:
        for ticket in tickets:
            self._needed[ticket] -= 1

    def put(self, ticket: int, record: Record) -> None:
        """The next record."""
        self.ticket = ticket
        self._needed.setdefault(ticket, 0)
        self._store.put(f"{self._prefix}r/{ticket:016x}", encode(record))

    def sweep(self) -> None:
        """Delete records that nobody needs, once all heads are put."""
        dead = [t for t, count in self._needed.items() if not count and t != self.ticket]
        for ticket in dead:
            del self._needed[ticket]
            self._store.delete(f"{self._prefix}r/{ticket:016x}")

    def head(self, key: str) -> Head | None:
        value = self._store.get(self._prefix + key)
        return None if value is None else _head_decoder.decode(value)

    def put_head(self, key: str, head: Head) -> None:
        self._store.put(self._prefix + key, encode(head))

    def delete_head(self, key: str) -> None:
        self._store.delete(self._prefix + key)
