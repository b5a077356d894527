"""An index of boxes that finds those which may cover a given box.

A box can cover another only if, for the name it is filed under, its set holds the other's. Each
box is filed once, under the name and the set that select best:

    points    few values: under each of them; a set inside it holds one of them
    spans     a range low..high: a set inside it lies between; a tree finds all that dominate it
    suffixes  under the suffix: a set inside it has a suffix that ends with it
    parts     under the substring: a set inside it has a fact that contains it
    rest      != and any: candidates for everything that names the attribute

A lookup gives candidates; the caller verifies them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from palio.model.boxes import Box
from palio.model.outlines import Span, bounds, hull, members, only_strings, some_member, texts
from palio.model.strings import Facts
from palio.model.valuesets import ValueSet

_PART_LENGTH_MAX = 64


class CoverIndex:
    """A fixed collection of boxes; `candidates` gives the positions of those that may cover."""

    def __init__(self, boxes: Sequence[Box]) -> None:
        self._names: dict[str, _NameIndex] = defaultdict(_NameIndex)
        self._everything: list[int] = []
        uses = Counter(name for box in boxes for name in box)
        for position, box in enumerate(boxes):
            if not box:
                self._everything.append(position)
                continue
            name = min(box, key=lambda n: uses[n] * _weight(box[n]))
            self._names[name].add(position, box[name])
        for index in self._names.values():
            index.close()

    def candidates(self, box: Box) -> Iterator[int]:
        """The boxes that may cover this one; each at most once."""
        yield from self._everything
        for name, allowed in box.items():
            index = self._names.get(name)
            if index is not None:
                yield from index.candidates(allowed)


class _NameIndex:
    """The boxes that are filed under one name."""

    def __init__(self) -> None:
        self.points: dict[tuple[Any, Any], list[int]] = defaultdict(list)
        self.spans: dict[str, _Spans] = defaultdict(_Spans)
        self.suffixes: dict[str, list[int]] = defaultdict(list)
        self.parts: dict[str, list[int]] = defaultdict(list)
        self.rest: list[int] = []

    def add(self, position: int, allowed: ValueSet) -> None:
        few = members(allowed)
        if few is not None:
            for member in few:
                self.points[member].append(position)
            return
        kind, span = bounds(allowed)
        if span is not None:
            self.spans[kind].add(span, position)
            return
        known = only_strings(allowed)
        if known is not None and known.suffix:
            self.suffixes[known.suffix].append(position)
        elif known is not None and any(known.contains):
            self.parts[max(known.contains, key=len)[:_PART_LENGTH_MAX]].append(position)
        else:
            self.rest.append(position)

    def close(self) -> None:
        for spans in self.spans.values():
            spans.close()

    def candidates(self, allowed: ValueSet) -> Iterator[int]:
        yield from self.rest
        if self.points:
            some = some_member(allowed)
            yield from self.points.get(some, ()) if some else ()
        if self.spans:
            kind, span = hull(allowed)
            if span is not None and kind in self.spans:
                yield from self.spans[kind].dominating(*span)
        if self.suffixes or self.parts:
            known = only_strings(allowed)
            if known is not None:
                yield from self._by_part(known)

    def _by_part(self, known: Facts) -> Iterator[int]:
        ending, others = texts(known)
        if self.suffixes:
            for i in range(len(ending)):
                yield from self.suffixes.get(ending[i:], ())
        if self.parts:
            for part in {p for t in (ending, *others) for p in _parts(t)}:
                yield from self.parts.get(part, ())


class _Spans:
    """Spans sorted by their low ends, and a tree of the greatest high ends."""

    def __init__(self) -> None:
        self.entries: list[tuple[Span, int]] = []
        self.lows: list[Any] = []
        self.highest: list[Any] = []

    def add(self, span: Span, position: int) -> None:
        self.entries.append((span, position))

    def close(self) -> None:
        self.entries.sort(key=lambda entry: entry[0][0])
        self.lows = [span[0] for span, _ in self.entries]
        size = len(self.entries)
        tree = [None] * size + [span[1] for span, _ in self.entries]
        for node in range(size - 1, 0, -1):
            tree[node] = max(tree[2 * node], tree[2 * node + 1])
        self.highest = tree

    def dominating(self, low: Any, high: Any) -> Iterator[int]:
        """The spans that begin at or before `low` and end at or after `high`."""
        size = len(self.entries)
        left, right = size, size + bisect_right(self.lows, low)
        while left < right:  # the nodes that make up [0, right)
            if left & 1:
                yield from self._below(left, high)
                left += 1
            if right & 1:
                right -= 1
                yield from self._below(right, high)
            left //= 2
            right //= 2

    def _below(self, node: int, high: Any) -> Iterator[int]:
        size = len(self.entries)
        stack = [node]
        while stack:
            node = stack.pop()
            if self.highest[node] < high:
                continue
            if node >= size:
                yield self.entries[node - size][1]
            else:
                stack += (2 * node, 2 * node + 1)


def _weight(allowed: ValueSet) -> float:
    """How likely another set lies inside this one: a guess that ranks the ways of filing."""
    if members(allowed) is not None:
        return 0.01
    if bounds(allowed)[1] is not None:
        return 0.4
    known = only_strings(allowed)
    return 0.05 if known is not None and (known.suffix or any(known.contains)) else 1.0


def _parts(text: str) -> Iterable[str]:
    length = len(text)
    for i in range(length):
        for j in range(i + 1, min(length, i + _PART_LENGTH_MAX) + 1):
            yield text[i:j]
