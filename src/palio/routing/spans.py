"""A sorted collection of spans: which contain a given span, and which lie inside it?

Most spans are points or have one open end, and among those of one sort both ends ascend together.
They lie in chains, where two binary searches delimit the answer:

    chain          keys    (low, high, number), ascending      points    5..5   7..7   9..9
                   highs   ascending too                       until      ..3    ..7    ..9
                   entries                                     since     2..    4..    6..

The others are sorted by (low, high) in blocks of bounded length, each with its extreme values. A
search takes the blocks that can qualify by their lows, skips those that cannot by their highs, and
scans the rest:

    block          [ (low, high, number, entry), ... ]   [ ... ]   [ ... ]
    first          (low, high, number) of its first span
    least, most    the least and the greatest high end in it
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from typing import Any, Generic, TypeAlias, TypeVar

from palio.model.outlines import Span

Entry = TypeVar("Entry")
_Row: TypeAlias = tuple[Any, Any, int, Entry]

_LENGTH_MAX = 256


class Spans(Generic[Entry]):
    """Spans and what they belong to; `number` is the entry's own, so no two rows are alike.

    `whole` holds every span. What is added `as_point` overlaps no other point.
    """

    __slots__ = ("_sorts", "_whole")

    def __init__(self, whole: Span) -> None:
        self._whole = whole
        self._sorts: dict[str, _Chain[Entry] | _Blocks[Entry]] = {}

    def add(self, span: Span, number: int, entry: Entry, *, as_point: bool = False) -> None:
        sort = self._sort(span, as_point)
        if sort not in self._sorts:
            self._sorts[sort] = _Blocks() if sort == "other" else _Chain(self._whole[1])
        self._sorts[sort].add(span, number, entry)

    def remove(self, span: Span, number: int, *, as_point: bool = False) -> None:
        self._sorts[self._sort(span, as_point)].remove(span, number)

    def around(self, span: Span) -> list[Entry]:
        """The entries whose span begins at or before this one and ends at or after it."""
        found: list[Entry] = []
        for spans in self._sorts.values():
            found += spans.around(span)
        return found

    def inside(self, span: Span) -> list[Entry]:
        """The entries whose span begins at or after this one and ends at or before it."""
        found: list[Entry] = []
        for spans in self._sorts.values():
            found += spans.inside(span)
        return found

    def points_outside(self, span: Span) -> list[Entry]:
        """The points that do not lie inside this span."""
        points = self._sorts.get("point")
        return points.outside(span) if isinstance(points, _Chain) else []

    def _sort(self, span: Span, as_point: bool) -> str:
        if as_point:
            return "point"
        if span[0] == self._whole[0]:
            return "until"
        return "since" if span[1] == self._whole[1] else "other"


class _Chain(Generic[Entry]):
    """Spans of which both ends ascend together."""

    __slots__ = ("entries", "highs", "keys", "top")

    def __init__(self, top: Any) -> None:
        self.top = top  # no span ends above
        self.keys: list[tuple[Any, Any, int]] = []
        self.highs: list[Any] = []
        self.entries: list[Entry] = []

    def add(self, span: Span, number: int, entry: Entry) -> None:
        key = (*span, number)
        at = bisect_left(self.keys, key)
        self.keys.insert(at, key)
        self.highs.insert(at, span[1])
        self.entries.insert(at, entry)

    def remove(self, span: Span, number: int) -> None:
        at = bisect_left(self.keys, (*span, number))
        del self.keys[at], self.highs[at], self.entries[at]

    def around(self, span: Span) -> list[Entry]:
        low, high = span
        first = bisect_left(self.highs, high)
        return self.entries[first : bisect_right(self.keys, (low, self.top, math.inf))]

    def inside(self, span: Span) -> list[Entry]:
        low, high = span
        return self.entries[bisect_left(self.keys, (low,)) : bisect_right(self.highs, high)]

    def outside(self, span: Span) -> list[Entry]:
        low, high = span
        first, last = bisect_left(self.keys, (low,)), bisect_right(self.highs, high)
        return self.entries[:first] + self.entries[max(first, last) :]


class _Blocks(Generic[Entry]):
    """Spans of any shape."""

    __slots__ = ("_blocks", "_firsts", "_least", "_most")

    def __init__(self) -> None:
        self._blocks: list[list[_Row[Entry]]] = []
        self._firsts: list[tuple[Any, Any, int]] = []
        self._least: list[Any] = []
        self._most: list[Any] = []

    def add(self, span: Span, number: int, entry: Entry) -> None:
        low, high = span
        if not self._blocks:
            self._put(0, [(low, high, number, entry)])
            return
        at = max(0, bisect_right(self._firsts, (low, high, number)) - 1)
        block = self._blocks[at]
        insort(block, (low, high, number, entry))
        if len(block) > _LENGTH_MAX:
            half = len(block) // 2
            self._put(at + 1, block[half:])
            del block[half:]
            self._describe(at)
            return
        self._firsts[at] = block[0][:3]
        self._least[at] = min(self._least[at], high)
        self._most[at] = max(self._most[at], high)

    def remove(self, span: Span, number: int) -> None:
        low, high = span
        at = bisect_right(self._firsts, (low, high, number)) - 1
        block = self._blocks[at]
        del block[bisect_left(block, (low, high, number))]
        if block:
            self._describe(at)
            return
        for column in (self._blocks, self._firsts, self._least, self._most):
            del column[at]

    def around(self, span: Span) -> list[Entry]:
        low, high = span
        found: list[Entry] = []
        for at, most in enumerate(self._most):
            if self._firsts[at][0] > low:
                break
            if most >= high:
                found += [row[3] for row in self._blocks[at] if row[1] >= high and row[0] <= low]
        return found

    def inside(self, span: Span) -> list[Entry]:
        low, high = span
        found: list[Entry] = []
        start = max(0, bisect_left(self._firsts, (low,)) - 1)
        for at in range(start, len(self._blocks)):
            if self._firsts[at][0] > high:
                break
            if self._least[at] <= high:
                found += [row[3] for row in self._blocks[at] if row[0] >= low and row[1] <= high]
        return found

    def _put(self, at: int, block: list[_Row[Entry]]) -> None:
        self._blocks.insert(at, block)
        self._firsts.insert(at, block[0][:3])
        self._least.insert(at, None)
        self._most.insert(at, None)
        self._describe(at)

    def _describe(self, at: int) -> None:
        block = self._blocks[at]
        highs = [row[1] for row in block]
        self._firsts[at] = block[0][:3]
        self._least[at], self._most[at] = min(highs), max(highs)
