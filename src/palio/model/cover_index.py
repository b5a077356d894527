"""An index of boxes that finds those which may cover a given box.

A box can cover another only if, for the name it is filed under, its set holds the other's. Each
box is filed once, under the name and the set that select best:

    points    few values: under each of them; a set inside it holds one of them
    spans     a range low..high: a set inside it lies between; a tree finds all that dominate it
    suffixes  under the suffix: a set inside it has a suffix that ends with it
    parts     under the substring: a set inside it has a fact that contains it
    rest      != and any: candidates for everything that names the attribute

Lookups give candidates; whoever asks verifies them.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from palio.model import ranges
from palio.model.covering import Box
from palio.model.strings import Facts, common_prefix, facts
from palio.model.values import Type
from palio.model.valuesets import ORDERED, ValueSet

Span: TypeAlias = tuple[Any, Any]  # low, high: comparable with each other within one kind

POINTS_MAX = 64
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
        members = _members(allowed)
        if members is not None:
            for member in members:
                self.points[member].append(position)
            return
        kind, span = _span(allowed)
        if span is not None:
            self.spans[kind].add(span, position)
            return
        known = _only_strings(allowed)
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
            some = _some_member(allowed)
            yield from self.points.get(some, ()) if some else ()
        if self.spans:
            kind, low, high = _hull(allowed)
            if kind in self.spans:
                yield from self.spans[kind].dominating(low, high)
        if self.suffixes or self.parts:
            known = _only_strings(allowed)
            if known is not None:
                yield from self._by_part(known)

    def _by_part(self, known: Facts) -> Iterator[int]:
        text = next(iter(known.only)) if known.only else None
        ending = known.suffix if text is None else text
        if self.suffixes:
            for i in range(len(ending)):
                yield from self.suffixes.get(ending[i:], ())
        if self.parts:
            prefix = common_prefix(known.low, known.high)
            texts = (known.suffix, prefix, *known.contains) if text is None else (text,)
            for part in {p for t in texts for p in _parts(t)}:
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
    if _members(allowed) is not None:
        return 0.01
    if _span(allowed)[1] is not None:
        return 0.4
    known = _only_strings(allowed)
    return 0.05 if known is not None and (known.suffix or any(known.contains)) else 1.0


def _only_strings(allowed: ValueSet) -> Facts | None:
    if allowed.strings is None or allowed.absent or any(allowed.ranges):
        return None
    return facts(allowed.strings)


def _members(allowed: ValueSet) -> list[tuple[Any, Any]] | None:
    """All members, when they are few."""
    if allowed.absent:
        return None
    members: list[tuple[Any, Any]] = []
    for type, spans in zip(ORDERED, allowed.ranges, strict=True):
        if sum(high - low + 1 for low, high in spans) + len(members) > POINTS_MAX:
            return None
        members.extend((type, key) for low, high in spans for key in range(low, high + 1))
    if allowed.strings is not None:
        only = facts(allowed.strings).only
        if only is None or len(only) > POINTS_MAX:
            return None
        members.extend((Type.STRING, text) for text in only)
    return members


def _some_member(allowed: ValueSet) -> tuple[Any, Any] | None:
    for type, spans in zip(ORDERED, allowed.ranges, strict=True):
        if spans:
            return type, spans[0][0]
    only = facts(allowed.strings).only if allowed.strings is not None else None
    return (Type.STRING, next(iter(only))) if only else None


def _span(allowed: ValueSet) -> tuple[str, Span | None]:
    """The span to file a set under, None when it bounds nothing."""
    kind, low, high = _hull(allowed)
    if kind == "mixed" or (low, high) == _BOUNDLESS[kind]:
        return kind, None
    if kind == "string" and not low.strip("\0"):
        low = ""  # what contains anything but NULs lies above NULs, whatever its own low end
        if high == _TOP:
            return kind, None
    return kind, (low, high)


_TOP = (1, "")
_BOUNDLESS: dict[str, Span] = {
    "number": (-math.inf, math.inf),
    "time": ranges.UNIVERSE[Type.TIME],
    "bool": ranges.UNIVERSE[Type.BOOL],
    "string": ("", _TOP),
}


def _hull(allowed: ValueSet) -> tuple[str, Any, Any]:
    """The kind of a set and the least and greatest of it."""
    bools, ints, floats, times = allowed.ranges
    kinds = [bool(bools), bool(ints or floats), bool(times), allowed.strings is not None]
    if allowed.absent or sum(kinds) != 1:
        return "mixed", None, None
    if ints or floats:
        ends: list[tuple[float, float]] = [(ints[0][0], ints[-1][1])] if ints else []
        if floats:
            last = ranges.float_from_key(floats[-1][1])
            ends.append((ranges.float_from_key(floats[0][0]), math.inf if last != last else last))
        return "number", min(low for low, _ in ends), max(high for _, high in ends)
    if allowed.strings is not None:
        known = facts(allowed.strings)
        if known.only is not None:
            return "string", min(known.only, default=""), (0, max(known.only, default="") + "\0")
        return "string", known.low, _TOP if known.high is None else (0, known.high)
    spans = times or bools
    return ("time" if times else "bool"), spans[0][0], spans[-1][1]


def _parts(text: str) -> Iterable[str]:
    length = len(text)
    for i in range(length):
        for j in range(i + 1, min(length, i + _PART_LENGTH_MAX) + 1):
            yield text[i:j]
