"""A sorted collection of spans that changes: which lie around a given span, and which inside it?

Spans lie sorted by (low, high) in blocks of bounded length, and each block knows its extremes:

    block          [ (low, high, number, entry), ... ]   [ ... ]   [ ... ]
    first          (low, high, number) of its first span
    least, most    the least and the greatest high end in it

A search looks at the blocks whose lows can do, skips those whose highs cannot, and scans the rest.
One-sided spans share their open end, so they lie sorted by the other one, and nearly every span
that is scanned is found.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Any, Generic, TypeAlias, TypeVar

from palio.model.outlines import Span

Entry = TypeVar("Entry")
_Row: TypeAlias = tuple[Any, Any, int, Entry]

_LENGTH_MAX = 256


class Spans(Generic[Entry]):
    """Spans and what they belong to; `number` is the entry's own, so no two rows are alike."""

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
        """The entries whose span begins at or before this one and ends at or after it."""
        low, high = span
        found: list[Entry] = []
        for at, most in enumerate(self._most):
            if self._firsts[at][0] > low:
                break
            if most >= high:
                found += [row[3] for row in self._blocks[at] if row[1] >= high and row[0] <= low]
        return found

    def inside(self, span: Span) -> list[Entry]:
        """The entries whose span begins at or after this one and ends at or before it."""
        low, high = span
        found: list[Entry] = []
        start = max(0, bisect_left(self._firsts, (low,)) - 1)
        for at in range(start, len(self._blocks)):
            if self._firsts[at][0] > high:
                break
            if self._least[at] <= high:
                found += [row[3] for row in self._blocks[at] if row[0] >= low and row[1] <= high]
        return found

    def not_inside(self, span: Span) -> list[Entry]:
        """The others."""
        low, high = span
        return [row[3] for block in self._blocks for row in block if row[0] < low or row[1] > high]

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
