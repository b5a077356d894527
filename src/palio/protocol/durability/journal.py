"""The journal: durable messages by position 1, 2, 3, ..., in segments.

    position    1 2 3 4 5 6 7 │ 8 9 │ 10 11 12 13 │ 14 ...
                └─ segment 1 ─┘ └ 8 ┘ └─ segment 10 ─┘ └ open: grows until the next seal

A segment is one put for its messages and one for its metadata (segments.py). It is freed when
nothing refers to it. If messages in it were published here, its retention must also be over: it is
old enough, or the journal too large. After that, a segment with references to fewer than half of its
messages is thinned (rewritten without the others), so one slow subscription does not keep them all.
Times of storing never decrease, even if the clock does.

Only `seal` and `sweep` put and delete. References are not stored: after a restart their holders call
`retain` again.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from enum import Enum
from itertools import repeat

from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.releases import Releases
from palio.protocol.durability.segments import Segment, SegmentPage, StoredSegments
from palio.protocol.durability.storage import DamagedStore, Store
from palio.protocol.wire.batch import MessageBatch

SEGMENT_COUNT = 4096
SEGMENT_BYTES = 4 << 20
"""An open segment with so many messages or bytes is closed."""
LARGE_BATCH = 128
"""A batch with so many messages gets a segment of its own."""


class _Verdict(Enum):
    KEEP = 0
    THIN = 1
    FREE = 2


class Journal:
    """`next` is the position of the next message, `bytes` about the size on disk."""

    def __init__(self, store: Store, bounds: Bounds, next: int = 1) -> None:
        self.bytes = 0
        self._bounds = bounds
        self._stored = StoredSegments(store, bounds.cache_bytes)
        self._segments = self._stored.restored()
        self.expiring: dict[int, int] = {}
        """By position, which ascend: the instants of the messages that expire."""
        for segment in self._segments:
            self.expiring |= segment.expires
            self.bytes += segment.bytes
            next = max(next, segment.end)
        self._time_us = self._segments[-1].ends_us if self._segments else 0
        self.next = next
        self._open = Segment(next)
        self._segments.append(self._open)
        self._firsts = [segment.first for segment in self._segments]
        self.releases = Releases(self.release)
        """Of messages that a subscription needed which is over."""

    def __len__(self) -> int:
        return sum(segment.present for segment in self._segments)

    @property
    def is_full(self) -> bool:
        """Whether publishers must wait."""
        return self.bytes >= self._bounds.journal_bytes

    @property
    def has_room(self) -> bool:
        """Whether waiting publishers may continue."""
        return not self.is_full

    def fits(self, size: int) -> bool:
        """There is room for so many bytes."""
        return self.bytes + size <= self._bounds.journal_bytes

    def stored_us(self, now_us: int) -> int:
        """The time of storing: now, or the last one if the clock went back."""
        self._time_us = max(self._time_us, now_us)
        return self._time_us

    # ---- writing

    def append(
        self,
        batch: MessageBatch,
        sizes: list[int],
        references: list[int],
        stored_us: int,
        published_here: bool,
    ) -> int:
        """Append messages with these sizes and reference counts. Returns the position of the first;
        the others follow it."""
        count = len(sizes)
        if count >= LARGE_BATCH and self._open.counts:
            self._begin()
        segment = self._open
        before = segment.bytes
        segment.append(batch, sizes, references, stored_us, published_here)
        self.bytes += segment.bytes - before
        if segment.expires:
            self.expiring |= segment.expires
        first = self.next
        self.next += count
        if (
            count >= LARGE_BATCH
            or len(segment.counts) >= SEGMENT_COUNT
            or segment.bytes >= SEGMENT_BYTES
        ):
            self._begin()
        return first

    def _begin(self) -> None:
        """Close the open segment, and open the next one."""
        self._open = Segment(self.next)
        self._segments.append(self._open)
        self._firsts.append(self.next)

    def seal(self) -> None:
        """Put all segments that are not stored yet."""
        if self._open.counts:
            self._begin()
        at = len(self._segments) - 2  # all but the open one
        while at >= 0 and not self._segments[at].is_stored:
            self.bytes += self._stored.put(self._segments[at])
            at -= 1

    # ---- references

    def retain(self, position: int) -> int:
        """Add a reference to a message. Returns its size."""
        return self._find(position).retain(position)

    def release(self, positions: Sequence[int]) -> int:
        """Remove a reference from each of these messages. Returns their total size.

        A message occurs twice when a stream has it twice: as new, and from a replay."""
        size = 0
        for segment, part in self._split(sorted(positions)):  # clients choose the order
            size += segment.release(part)
        return size

    # ---- reading

    def size(self, position: int) -> int:
        segment = self._find(position)
        return segment.sizes[position - segment.first]

    def fitting(self, positions: Sequence[int], size_max: int) -> tuple[int, int]:
        """How many of these messages, from the first, have so many bytes; at least one. And their
        size."""
        count = size = 0
        for segment, part in self._split(positions):
            first, all_sizes = segment.first, segment.sizes
            if part[-1] - part[0] == len(part) - 1:  # as most are
                sizes = all_sizes[part[0] - first : part[-1] - first + 1]
            else:
                sizes = array("I", [all_sizes[position - first] for position in part])
            whole = sum(sizes)
            if size + whole <= size_max:
                count, size = count + len(part), size + whole
                continue
            for one in sizes:
                if count and size + one > size_max:
                    return count, size
                count, size = count + 1, size + one
        return count, size

    def stored_at_us(self, position: int) -> int:
        """When a message was stored."""
        return self._find(position).stored_at_us(position)

    def locate(self, positions: Sequence[int]) -> list[tuple[MessageBatch, int]]:
        """The messages at these positions, each as a batch and a row."""
        found: list[tuple[MessageBatch, int]] = []
        for segment, part in self._split(positions):
            batch = self._stored.load(segment).batches[0]
            found += zip(repeat(batch), segment.rows(part), strict=False)
        return found

    def pick(self, positions: Sequence[int]) -> list[MessageBatch]:
        """The messages at these positions, in parts."""
        return [self._stored.load(segment).pick(part) for segment, part in self._split(positions)]

    def since(self, time_us: int) -> int:
        """The position of the first message that was stored at this time or later."""
        if self._time_us < time_us:
            return self.next
        at = len(self._segments) - 1  # the open segment is searched too
        while at and self._segments[at - 1].ends_us >= time_us:
            at -= 1
        return self._segments[at].since(time_us)

    def page(self, position: int, count_max: int) -> tuple[SegmentPage | None, int]:
        """So many messages published here at most, of one segment, from a position on; the next
        position."""
        at = max(0, bisect_right(self._firsts, position) - 1)
        segment = self._segments[at]
        if position >= segment.end:  # freed meanwhile
            if at + 1 == len(self._segments):
                return None, self.next
            segment = self._segments[at + 1]
        if not segment.has_published:
            return None, segment.end
        page = self._stored.load(segment).published(max(position, segment.first), count_max)
        if page is None or len(page.positions) < count_max:
            return page, segment.end
        return page, page.positions[-1] + 1

    def _find(self, position: int) -> Segment:
        segment = self._segments[bisect_right(self._firsts, position) - 1]
        if not 0 <= position - segment.first < len(segment.counts):
            raise DamagedStore(
                f"message {position} is not in the journal, which ends before {self.next}: "
                "the store is damaged, or was written by something else"
            )
        return segment

    def _split(self, positions: Sequence[int]) -> list[tuple[Segment, Sequence[int]]]:
        """The positions by segments, in their order."""
        if not positions:
            return []
        segment = self._find(positions[0])
        if min(positions) >= segment.first and max(positions) < segment.end:  # as most are
            return [(segment, positions)]
        found: list[tuple[Segment, Sequence[int]]] = []
        at = 0
        while at < len(positions):
            segment = self._find(positions[at])
            end = _together(positions, at, segment)
            found.append((segment, positions[at:end]))
            at = end
        return found

    # ---- tidying up

    def has_waste(self, now_us: int, needed: int) -> bool:
        """Whether there is something to sweep. Replays need the positions from `needed` on."""
        excess = self.bytes - self._bounds.retention_bytes
        return any(
            self._judge(segment, now_us, needed, excess) is not _Verdict.KEEP
            for segment in self._segments
        )

    def sweep(self, now_us: int, needed: int) -> None:
        """Free unreferenced segments, in the same commit as the heads that release them; thin others."""
        remaining: list[Segment] = []
        for segment in self._segments:
            excess = self.bytes - self._bounds.retention_bytes
            verdict = self._judge(segment, now_us, needed, excess)
            if verdict is _Verdict.FREE:
                self._stored.delete(segment)
                for position in segment.expires:
                    del self.expiring[position]
                self.bytes -= segment.bytes
                continue
            if verdict is _Verdict.THIN:
                self._thin(segment)
            remaining.append(segment)
        if len(remaining) < len(self._segments):
            self._segments = remaining
            self._firsts = [segment.first for segment in remaining]

    def _judge(self, segment: Segment, now_us: int, needed: int, excess: int) -> _Verdict:
        if not segment.is_stored:
            return _Verdict.KEEP
        is_over = segment.ends_us + self._bounds.retention_us <= now_us or excess > 0
        if (not is_over or segment.end > needed) and segment.has_published:
            return _Verdict.KEEP
        if not segment.references:
            return _Verdict.FREE
        return _Verdict.THIN if 2 * segment.references < segment.present else _Verdict.KEEP

    def _thin(self, segment: Segment) -> None:
        self._stored.load(segment).thin()
        self.bytes += self._stored.put(segment)


def _together(positions: Sequence[int], at: int, segment: Segment) -> int:
    """End of the run of positions inside this segment; they may be unsorted during a replay."""
    end = bisect_left(positions, segment.end, at)
    chosen = positions[at:end]
    if chosen and segment.first <= min(chosen) and max(chosen) < segment.end:
        return end
    end = at + 1
    while end < len(positions) and segment.first <= positions[end] < segment.end:
        end += 1
    return end
