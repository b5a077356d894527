"""Segments of the journal: messages at consecutive positions that are stored together.

    first = 10     place       0   1   2   3   4       position = first + place
                   counts      1   0   2   0   0       references to each message
                   sizes      80   0  95   0   0       0: it was thinned out
                   rows        0       1               in the batch, which has no others
                   spans      (2, 17:00, here) (3, 17:05, elsewhere)

In memory the messages are a MessageBatch; on disk they are FORWARD frames with no routing header.
Small batches gather in an open segment and are joined when it is read. The metadata is stored
separately, so a restart reads no messages. The messages of the segments used last are also in memory
(StoredSegments).
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import numpy as np

from palio.protocol.durability import keys
from palio.protocol.durability.storage import DamagedStore, Store, decoded
from palio.protocol.wire.batch import MessageBatch, expiries, rows_with_headers
from palio.protocol.wire.encode import NO_ROUTE, forward_frames
from palio.protocol.wire.frames import BrokenFrame, Limits, read_frames
from palio.protocol.wire.layout import END, ROUTE, TEXT

_MANY = 32  # from here on, arrays are faster
_UNLIMITED = Limits(header=1 << 40, attributes=1 << 40, body=1 << 40)


class StoringSpan(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Messages that were stored at the same time."""

    count: int
    stored_us: int
    published_here: bool
    """Otherwise another broker carried them here."""


class SegmentMetadata(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The stored form of all but the messages."""

    bytes: int
    sizes: list[int]
    spans: list[StoringSpan]
    expires: dict[int, int] = {}
    """By place: when a message expires, if it does."""


_encode = msgspec.msgpack.Encoder().encode
_metadata_decoder = msgspec.msgpack.Decoder(SegmentMetadata)


class SegmentPage(NamedTuple):
    """Messages of a segment, with their positions."""

    positions: Sequence[int]
    batch: MessageBatch


class Segment:
    """`bytes` is its size on disk, an estimate until it is stored. `present` counts the messages that
    were not thinned out, `references` is the sum of `counts`. Without `batches` it is on disk only;
    several must be joined before it is read."""

    __slots__ = (
        "batches",
        "bytes",
        "counts",
        "expires",
        "first",
        "is_stored",
        "present",
        "references",
        "sizes",
        "spans",
    )

    def __init__(self, first: int) -> None:
        self.first = first
        self.counts = array("I")
        self.sizes = array("I")
        self.spans: list[StoringSpan] = []
        self.expires: dict[int, int] = {}
        """By position: the instants of those that expire."""
        self.references = 0
        self.present = 0
        self.bytes = 0
        self.is_stored = False
        self.batches: list[MessageBatch] = []

    @classmethod
    def restored(cls, first: int, metadata: bytes) -> Segment:
        """A segment that is on disk; its messages have no references yet."""
        found = decoded(_metadata_decoder, keys.numbered(keys.SEGMENT_METADATA, first), metadata)
        segment = cls(first)
        segment.sizes = array("I", found.sizes)
        segment.counts = array("I", bytes(4 * len(found.sizes)))
        segment.spans = found.spans
        segment.expires = {first + place: us for place, us in found.expires.items()}
        segment.present = len(found.sizes) - found.sizes.count(0)
        segment.bytes = found.bytes
        segment.is_stored = True
        return segment

    # ---- what is in it

    @property
    def end(self) -> int:
        """The position after its last message."""
        return self.first + len(self.counts)

    @property
    def ends_us(self) -> int:
        """When its last message was stored."""
        return self.spans[-1].stored_us

    @property
    def has_published(self) -> bool:
        """Whether some of its messages were published here."""
        return any(span.published_here for span in self.spans)

    def stored_at_us(self, position: int) -> int:
        """When the message at a position was stored."""
        at = self.first
        for span in self.spans:
            at += span.count
            if position < at:
                return span.stored_us
        raise self._damaged(f"nothing says when its message {position} was stored")

    def since(self, time_us: int) -> int:
        """The position of the first message that was stored at this time or later."""
        at = self.first
        for span in self.spans:
            if span.stored_us >= time_us:
                break
            at += span.count
        return at

    def pick(self, positions: Sequence[int]) -> MessageBatch:
        """The messages at these positions; they are in memory and joined."""
        batch, count = self.batches[0], len(positions)
        if count == self.present == len(self.sizes) and (
            count == 1 or positions == list(range(self.first, self.end))
        ):
            return batch
        rows = self.rows(positions)
        if count < self.present:
            return batch.pick(rows)
        return MessageBatch(batch.data, batch.names, batch.rows[rows], batch.durable)

    def rows(self, positions: Sequence[int]) -> list[int]:
        """Where messages are in the batch."""
        first = self.first
        if self.present == len(self.sizes):
            return [position - first for position in positions]
        places = np.array(positions, np.int64) - first
        is_present = np.frombuffer(self.sizes, np.uint32) > 0
        if not is_present[places].all():
            gone = next(p for p in positions if not is_present[p - first])
            raise DamagedStore(f"message {gone} of the journal is gone while it is needed")
        rows: list[int] = (np.cumsum(is_present) - 1)[places].tolist()
        return rows

    def published(self, position: int, count_max: int) -> SegmentPage | None:
        """The first messages published here, from this position on; None: there are none."""
        found: list[int] = []
        at = self.first
        for span in self.spans:
            end = at + span.count
            if span.published_here:
                found += range(max(at, position), end)
            at = end
        sizes, first = self.sizes, self.first
        present = (position for position in found if sizes[position - first])
        found = list(islice(present, count_max))
        return SegmentPage(found, self.pick(found)) if found else None

    # ---- references

    def retain(self, position: int) -> int:
        """Add a reference to a message. Returns its size."""
        at = position - self.first
        self.counts[at] += 1
        self.references += 1
        return self.sizes[at]

    def release(self, positions: Sequence[int]) -> int:
        """Remove a reference from each of these, which may name a message twice. Returns their total
        size."""
        first, counts, sizes = self.first, self.counts, self.sizes
        self.references -= len(positions)
        if len(positions) >= _MANY:
            places = np.array(positions, np.int64) - first
            np.subtract.at(np.frombuffer(counts, np.uint32), places, np.uint32(1))
            return int(np.frombuffer(sizes, np.uint32)[places].sum())
        size = 0
        for position in positions:
            counts[position - first] -= 1
            size += sizes[position - first]
        return size

    # ---- changes

    def append(
        self,
        batch: MessageBatch,
        sizes: list[int],
        references: list[int],
        stored_us: int,
        published_here: bool,
    ) -> None:
        """Append messages with these sizes and reference counts."""
        count = len(sizes)
        if rows_with_headers(batch):
            end = self.end
            for row, instant in expiries(batch).items():
                self.expires[end + row] = instant
        self.batches.append(batch)
        self.counts.extend(references)
        self.sizes.extend(sizes)
        self.bytes += sum(sizes)
        self.present += count
        self.references += sum(references)
        last = self.spans[-1] if self.spans else None
        if last and last.stored_us == stored_us and last.published_here == published_here:
            count += self.spans.pop().count
        self.spans.append(StoringSpan(count, stored_us, published_here))

    def thin(self) -> None:
        """Drop the messages without references; all are in memory and joined."""
        needed = np.flatnonzero(np.frombuffer(self.counts, np.uint32)) + self.first
        batch = self.pick(needed.tolist())
        self.sizes = array(
            "I", [s if c else 0 for s, c in zip(self.sizes, self.counts, strict=True)]
        )
        self.present = len(needed)
        self.batches = [batch]

    def join(self) -> None:
        """Join the batches into one."""
        self.batches = [MessageBatch.concat(self.batches)]

    # ---- on disk

    def encode(self) -> tuple[bytes, bytes]:
        """The messages and the metadata, as they are stored."""
        if len(self.batches) > 1:
            self.join()
        batch = self.batches[0]
        rows: Any = np.arange(self.present)
        frames = forward_frames(batch, {NO_ROUTE: rows})
        self.bytes = len(frames.data)
        self.is_stored = True
        if len(batch.data) > 2 * self.bytes:
            self.batches = [_moved(batch, frames.data, frames.ends)]
        expires = self.expires
        if expires:
            expires = {position - self.first: us for position, us in expires.items()}
        return frames.data, _encode(
            SegmentMetadata(self.bytes, self.sizes.tolist(), self.spans, expires)
        )

    def load(self, data: bytes) -> None:
        """Take the messages from what was stored."""
        try:
            batches = read_frames(data, _UNLIMITED)
        except BrokenFrame as error:
            raise self._damaged(str(error)) from None
        if sum(map(len, batches)) != self.present:
            raise self._damaged("messages are missing")
        self.batches = batches

    def _damaged(self, reason: str) -> DamagedStore:
        key = keys.numbered(keys.SEGMENTS, self.first)
        return DamagedStore(f"segment {self.first} of the journal is damaged: {reason}", key=key)

    def unload(self) -> None:
        """Keep the messages on disk only."""
        self.batches = []


def _moved(batch: MessageBatch, data: bytes, ends: list[int]) -> MessageBatch:
    """The same messages, out of the frames that they were written to: `batch` shares its bytes with
    much else that was received."""
    rows: Any = batch.rows.copy()
    rows[:, TEXT:ROUTE] += (np.array(ends, np.int64) - rows[:, END])[:, None]
    return MessageBatch(data, batch.names, rows, batch.durable)


class StoredSegments:
    """A cache of messages in memory, of at most `cache_bytes`, or one segment if that is larger."""

    def __init__(self, store: Store, cache_bytes: int) -> None:
        self._store = store
        self._cache_bytes = cache_bytes
        self._cached: OrderedDict[int, Segment] = OrderedDict()
        self._bytes = 0

    def restored(self) -> list[Segment]:
        """All that are on disk, in order, without their messages."""
        return [
            Segment.restored(keys.number_of(key), value)
            for key, value in self._store.scan(keys.SEGMENT_METADATA)
        ]

    def put(self, segment: Segment) -> int:
        """Store a segment, or store it again. Returns how many bytes it grew."""
        before = segment.bytes
        if self._cached.pop(segment.first, None):
            self._bytes -= before
        messages, metadata = segment.encode()
        number = f"{segment.first:016x}"
        self._store.put(keys.SEGMENTS + number, messages)
        self._store.put(keys.SEGMENT_METADATA + number, metadata)
        self._cached[segment.first] = segment
        self._bytes += segment.bytes
        if self._bytes > self._cache_bytes:
            self._shrink()
        return segment.bytes - before

    def delete(self, segment: Segment) -> None:
        number = f"{segment.first:016x}"
        self._store.delete(keys.SEGMENTS + number)
        self._store.delete(keys.SEGMENT_METADATA + number)
        if self._cached.pop(segment.first, None):
            self._bytes -= segment.bytes

    def load(self, segment: Segment) -> Segment:
        """The segment with its messages in memory, joined."""
        if segment.batches:
            if segment.is_stored:
                self._cached.move_to_end(segment.first)
            if len(segment.batches) > 1:
                segment.join()
            return segment
        data = self._store.get(f"{keys.SEGMENTS}{segment.first:016x}")
        if data is None:
            raise DamagedStore(f"segment {segment.first} of the journal is missing from the store")
        segment.load(data)
        if len(segment.batches) > 1:
            segment.join()
        self._cached[segment.first] = segment
        self._bytes += segment.bytes
        self._shrink()
        return segment

    def _shrink(self) -> None:
        """Unload the least recently used segments; keep the last one, whatever its size."""
        while self._bytes > self._cache_bytes and len(self._cached) > 1:
            _, segment = self._cached.popitem(last=False)
            segment.unload()
            self._bytes -= segment.bytes
