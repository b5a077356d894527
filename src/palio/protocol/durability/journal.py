"""The journal: durable messages by position 1, 2, 3, ..., on disk in batches.

    position    1 2 3 4 5 6 7 │ 8 9 │ 10 11 12 13 │ 14 ...
                └── batch 1 ──┘ └ 8 ┘ └── batch 10 ──┘ └ open: gathers until the next seal
    counts      0 2 1 0 0 1 0   who still refers to each: entries of streams and queues
    sizes       bytes of each   kept apart, so that a restart reads no messages

    b/<first>   the messages, a list; None is one that was thinned out. Or a pack: the frames in
                which many messages of one publisher came, as they came
    m/<first>   count, sizes and times

A batch is one put, whatever it holds. It is freed when nothing refers to it and, if messages in it
were published here, retention is over: old enough, or the journal too large. A batch of which less
than half is referred to after that is thinned: rewritten without the rest, so that one slow
subscription does not hold everything. Times of storing never go back, whatever the clock does.

Puts happen in `seal`, and only there. References are not stored: who holds them says so again
(`retain`) after a restart.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import accumulate

import msgspec
import numpy as np

from palio.errors import InvalidFile
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.kept import Message, Pack, Picked, from_bytes, to_bytes
from palio.protocol.store import Store

BATCH_COUNT = 4096
BATCH_BYTES = 4 << 20
_MANY = 32  # for these, arrays are quicker


class _Meta(msgspec.Struct, frozen=True, array_like=True, gc=False):
    count: int
    bytes: int
    begins_us: int
    ends_us: int
    has_origin: bool
    sizes: list[int]


class _Batch:
    __slots__ = (
        "begins_us",
        "bytes",
        "counts",
        "ends_us",
        "first",
        "has_origin",
        "is_stored",
        "messages",
        "pack",
        "present",
        "references",
        "sizes",
    )

    def __init__(self, first: int) -> None:
        self.first = first
        self.messages: list[Message | None] | None = []
        self.pack: Pack | None = None  # or what they are made of, when they are wanted
        self.counts = array("I")
        self.sizes = array("I")
        self.references = 0  # the sum of counts
        self.present = 0  # messages that were not thinned out
        self.bytes = 0
        self.begins_us = 0
        self.ends_us = 0
        self.has_origin = False
        self.is_stored = False

    @property
    def end(self) -> int:
        return self.first + len(self.counts)

    def release(self, positions: Sequence[int]) -> int:
        """One less refers to each of these; their size."""
        first, counts, sizes = self.first, self.counts, self.sizes
        self.references -= len(positions)
        if len(positions) >= _MANY:
            places = np.array(positions, np.int64) - first
            np.frombuffer(counts, np.uint32)[places] -= 1
            return int(np.frombuffer(sizes, np.uint32)[places].sum())
        size = 0
        for position in positions:
            counts[position - first] -= 1
            size += sizes[position - first]
        return size

    def close(self, size: int) -> None:
        """Sum up what was gathered."""
        if self.pack is not None:
            self.begins_us = self.ends_us = self.pack.stored
            self.has_origin = True
        else:
            messages = [message for message in self.messages or () if message is not None]
            self.begins_us, self.ends_us = messages[0].stored, messages[-1].stored
            self.has_origin = any(message.is_origin for message in messages)
        self.references = sum(self.counts)
        self.present = len(self.counts)
        self.bytes = size


class _Verdict(Enum):
    KEEP = 0
    THIN = 1
    FREE = 2


_encoder = msgspec.msgpack.Encoder()
_meta_decoder = msgspec.msgpack.Decoder(_Meta)


class Journal:
    """`next` is the position of the next message. `bytes` is what it takes on disk, about."""

    def __init__(self, store: Store, prefix: str, bounds: Bounds, next: int = 1) -> None:
        self._store = store
        self._prefix = prefix
        self._bounds = bounds
        self.bytes = 0
        self._time_us = 0
        self._batches: list[_Batch] = []
        self._cached: OrderedDict[int, _Batch] = OrderedDict()
        self._cached_bytes = 0
        for key, value in store.scan(f"{prefix}m/"):
            batch = self._restored(int(key.rpartition("/")[2], 16), _meta_decoder.decode(value))
            self._batches.append(batch)
            self.bytes += batch.bytes
            next = max(next, batch.end)
        self.next = next
        if self._batches:
            self._time_us = self._batches[-1].ends_us
        self._open = _Batch(next)
        self._open_bytes = 0
        self._batches.append(self._open)
        self._firsts = [batch.first for batch in self._batches]

    @staticmethod
    def _restored(first: int, meta: _Meta) -> _Batch:
        batch = _Batch(first)
        batch.messages = None
        batch.counts = array("I", bytes(4 * meta.count))
        batch.sizes = array("I", meta.sizes)
        batch.present = meta.count - meta.sizes.count(0)
        batch.bytes, batch.has_origin = meta.bytes, meta.has_origin
        batch.begins_us, batch.ends_us = meta.begins_us, meta.ends_us
        batch.is_stored = True
        return batch

    def __len__(self) -> int:
        return sum(batch.present for batch in self._batches) + len(self._open.counts)

    @property
    def has_room(self) -> bool:
        return self.bytes < self._bounds.journal_bytes

    def clock(self, now_us: int) -> int:
        """The time of storing: now, or the last one if the clock went back."""
        self._time_us = max(self._time_us, now_us)
        return self._time_us

    def extend(
        self, messages: list[Message] | Pack, sizes: list[int], references: list[int]
    ) -> int:
        """Take messages of these sizes (`weigh`), to each of which so many refer. The position of
        the first; the others follow it."""
        first, at = self.next, 0
        if isinstance(messages, Pack):
            self._take_pack(messages, sizes, references)
            return first
        while at < len(messages):
            batch = self._open
            end = at + self._room(sizes[at : at + BATCH_COUNT - len(batch.counts)])
            size = sum(sizes[at:end])
            self._messages(batch).extend(messages[at:end])
            batch.counts.extend(references[at:end])
            batch.sizes.extend(sizes[at:end])
            self.bytes += size
            self._open_bytes += size
            self.next += end - at
            at = end
            if self._open_bytes >= BATCH_BYTES or len(batch.counts) >= BATCH_COUNT:
                self._begin()
        return first

    def _take_pack(self, pack: Pack, sizes: list[int], references: list[int]) -> None:
        """A pack is a batch of its own."""
        if self._open.counts:
            self._begin()
        batch = self._open
        batch.pack, batch.messages = pack, None
        batch.counts.extend(references)
        batch.sizes.extend(sizes)
        self._open_bytes = sum(sizes)
        self.bytes += self._open_bytes
        self.next += len(pack)
        self._begin()

    def _room(self, sizes: Sequence[int]) -> int:
        """How many messages of these sizes go into the open batch: it ends as soon as it is full."""
        if self._open_bytes + sum(sizes) < BATCH_BYTES:
            return len(sizes)
        return bisect_left(list(accumulate(sizes, initial=self._open_bytes)), BATCH_BYTES)

    def _begin(self) -> None:
        """Close the open batch, and open the next one."""
        self._open.close(self._open_bytes)
        self._open_bytes = 0
        self._open = _Batch(self.next)
        self._batches.append(self._open)
        self._firsts.append(self.next)

    def retain(self, position: int) -> int:
        """One more refers to this message. Its size."""
        batch = self._find(position)
        at = position - batch.first
        batch.counts[at] += 1
        batch.references += 1
        return batch.sizes[at]

    def release(self, positions: Sequence[int]) -> int:
        """One less refers to each of these messages, each of which is there once. Their size."""
        size = at = 0
        while at < len(positions):
            batch = self._find(positions[at])
            end = _together(positions, at, batch)
            size += batch.release(positions[at:end])
            at = end
        return size

    def size(self, position: int) -> int:
        batch = self._find(position)
        return batch.sizes[position - batch.first]

    def pick(self, positions: list[int]) -> Iterator[list[Message] | Picked]:
        """The same, in parts: messages of a pack are not made."""
        at = 0
        while at < len(positions):
            batch = self._find(positions[at])
            if batch.messages is None and batch.pack is None:
                self._load(batch)
            end = _together(positions, at, batch)
            chosen, first = positions[at:end], batch.first
            if batch.pack is None:
                yield self.read(chosen)
            else:
                yield Picked(batch.pack, [position - first for position in chosen])
            at = end

    def read(self, positions: Iterable[int]) -> list[Message]:
        """The messages at these positions."""
        found: list[Message] = []
        first = 0
        messages: list[Message | None] = []
        for position in positions:
            if not 0 <= position - first < len(messages):
                batch = self._find(position)
                first, messages = batch.first, self._messages(batch)
            message = messages[position - first]
            if message is None:
                raise InvalidFile(f"message {position} of the journal is gone while it is needed")
            found.append(message)
        return found

    def since(self, time_us: int) -> int:
        """The position of the first message that was stored at this time or later."""
        if self._time_us < time_us:
            return self.next
        at = len(self._batches) - 1  # the open one is looked into
        while at and self._batches[at - 1].ends_us >= time_us:
            at -= 1
        batch = self._batches[at]
        if batch.is_stored and batch.begins_us >= time_us:
            return batch.first
        messages = self._messages(batch)
        times = [message.stored if message else 0 for message in messages]
        for i in range(1, len(times)):
            times[i] = max(times[i], times[i - 1])
        return batch.first + bisect_left(times, time_us)

    def page(self, position: int) -> tuple[list[tuple[int, Message]], int]:
        """Messages published here, from a position to the end of its batch; and what comes next."""
        at = max(0, bisect_right(self._firsts, position) - 1)
        batch = self._batches[at]
        if position >= batch.end:  # freed meanwhile
            if at + 1 == len(self._batches):
                return [], self.next
            batch = self._batches[at + 1]
        position = max(position, batch.first)
        if batch.is_stored and not batch.has_origin:
            return [], batch.end
        messages = self._messages(batch)[position - batch.first :]
        found = [(n, m) for n, m in enumerate(messages, position) if m is not None and m.is_origin]
        return found, batch.end

    def seal(self) -> None:
        """Put what was gathered."""
        if self._open.counts:
            self._begin()
        at = len(self._batches) - 2  # all but the open one
        while at >= 0 and not self._batches[at].is_stored:
            self._put(self._batches[at])
            at -= 1
        self._shrink_cache()

    def has_waste(self, now_us: int, needed: int) -> bool:
        """There is something to sweep. A replay still needs what lies at `needed` and later."""
        excess = self.bytes - self._bounds.retention_bytes
        return any(
            self._judge(batch, now_us, needed, excess) is not _Verdict.KEEP
            for batch in self._batches
        )

    def sweep(self, now_us: int, needed: int) -> None:
        """Free and thin what nobody needs. Only together with what says that nobody does."""
        kept: list[_Batch] = []
        for batch in self._batches:
            excess = self.bytes - self._bounds.retention_bytes
            verdict = self._judge(batch, now_us, needed, excess)
            if verdict is _Verdict.FREE:
                self._free(batch)
                continue
            if verdict is _Verdict.THIN:
                self._thin(batch)
            kept.append(batch)
        if len(kept) < len(self._batches):
            self._batches = kept
            self._firsts = [batch.first for batch in kept]

    def _judge(self, batch: _Batch, now_us: int, needed: int, excess: int) -> _Verdict:
        if not batch.is_stored:
            return _Verdict.KEEP
        is_over = batch.ends_us + self._bounds.retention_us <= now_us or excess > 0
        if batch.has_origin and (not is_over or batch.end > needed):
            return _Verdict.KEEP
        if not batch.references:
            return _Verdict.FREE
        return _Verdict.THIN if 2 * batch.references < batch.present else _Verdict.KEEP

    def _free(self, batch: _Batch) -> None:
        self._store.delete(f"{self._prefix}b/{batch.first:016x}")
        self._store.delete(f"{self._prefix}m/{batch.first:016x}")
        self.bytes -= batch.bytes
        if self._cached.pop(batch.first, None):
            self._cached_bytes -= batch.bytes

    def _thin(self, batch: _Batch) -> None:
        messages = self._messages(batch)
        if self._cached.pop(batch.first, None):
            self._cached_bytes -= batch.bytes
        batch.pack = None
        kept = list(map(bool, batch.counts))
        batch.messages = [m if keep else None for m, keep in zip(messages, kept, strict=True)]
        batch.sizes = array("I", [s if k else 0 for s, k in zip(batch.sizes, kept, strict=True)])
        batch.present = sum(kept)
        self._put(batch)
        self._shrink_cache()

    def _put(self, batch: _Batch) -> None:
        key = f"{batch.first:016x}"
        data = to_bytes(batch.pack or batch.messages or [])
        self.bytes += len(data) - batch.bytes
        batch.bytes = len(data)
        batch.is_stored = True
        meta = _Meta(
            len(batch.counts),
            batch.bytes,
            batch.begins_us,
            batch.ends_us,
            batch.has_origin,
            batch.sizes.tolist(),
        )
        self._store.put(f"{self._prefix}b/{key}", data)
        self._store.put(f"{self._prefix}m/{key}", _encoder.encode(meta))
        self._cached[batch.first] = batch
        self._cached_bytes += batch.bytes

    def _find(self, position: int) -> _Batch:
        batch = self._batches[bisect_right(self._firsts, position) - 1]
        if not 0 <= position - batch.first < len(batch.counts):
            raise InvalidFile(
                f"message {position} is not in the journal, which ends before {self.next}: "
                "the store is damaged, or was written by something else"
            )
        if batch.first in self._cached:
            self._cached.move_to_end(batch.first)
        return batch

    def _messages(self, batch: _Batch) -> list[Message | None]:
        if batch.messages is None:
            if batch.pack is None:
                self._load(batch)
            if batch.pack is not None:
                batch.messages = list(batch.pack)
        assert batch.messages is not None
        return batch.messages

    def _load(self, batch: _Batch) -> None:
        data = self._store.get(f"{self._prefix}b/{batch.first:016x}")
        if data is None:
            raise InvalidFile(f"batch {batch.first} of the journal is missing from the store")
        found = from_bytes(data)
        if len(found) != len(batch.counts):
            raise InvalidFile(f"batch {batch.first} of the journal is damaged")
        if isinstance(found, Pack):
            batch.pack = found
        else:
            batch.messages = found
        self._cached[batch.first] = batch
        self._cached_bytes += batch.bytes
        self._shrink_cache()

    def _shrink_cache(self) -> None:
        """Forget what was used least lately; the last one stays, whatever its size."""
        while self._cached_bytes > self._bounds.cache_bytes and len(self._cached) > 1:
            _, batch = self._cached.popitem(last=False)
            batch.messages = batch.pack = None
            self._cached_bytes -= batch.bytes


def _together(positions: Sequence[int], at: int, batch: _Batch) -> int:
    """Where those in this batch end. They ascend, but while a replay goes on beside new ones."""
    end = bisect_left(positions, batch.end, at)
    chosen = positions[at:end]
    if chosen and batch.first <= min(chosen) and max(chosen) < batch.end:
        return end
    end = at + 1
    while end < len(positions) and batch.first <= positions[end] < batch.end:
        end += 1
    return end
