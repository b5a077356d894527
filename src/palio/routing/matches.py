"""The answers of the interest table for a batch of messages: which interfaces each one matches.

A batch has few different answers (`Grouped`), so Python does something for each answer, not for each
message:

    messages   0     1     2   3          Grouped: codes     1  2  1  1        which answer each gets
    ends       0     1     3   4  5                answers   (x), (y), (x, y)  who gets it
    found      y     x y   y   y
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import or_
from typing import Any, Generic, TypeVar

import numpy as np

_SHORT_MAX = 1 << 16

T = TypeVar("T")


class Matches:
    """The slots of the interfaces of message i are found[ends[i]:ends[i + 1]] (drawn above).

    `kinds` has the kind of each slot, a bit; `present` those that occur in the answer.
    """

    __slots__ = ("ends", "found", "kinds", "present")

    def __init__(self, ends: Any, found: Any, kinds: Any, present: int | None = None) -> None:
        self.ends = ends
        self.found = found
        self.kinds = kinds
        self.present = int(np.bitwise_or.reduce(kinds[found])) if present is None else present

    @classmethod
    def of_one(cls, slots: list[int], kinds: Any) -> Matches:
        """The answer for one message."""
        present = reduce(or_, map(kinds.item, slots), 0) if len(slots) < 64 else None
        return cls(np.array((0, len(slots))), np.array(slots, np.int64), kinds, present)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def slots(self, row: int) -> list[int]:
        """The slots of one message."""
        own: list[int] = self.part(row).tolist()
        return own

    def part(self, row: int) -> Any:
        """The slots of one message, as an array."""
        return self.found[self.ends[row] : self.ends[row + 1]]

    def rows_with(self, slot: int) -> list[int]:
        """The messages that match one interface."""
        places = np.flatnonzero(self.found == slot)
        rows: list[int] = (np.searchsorted(self.ends, places, "right") - 1).tolist()
        return rows

    def has(self, wanted: int) -> bool:
        """Does any message match an interface of these kinds?"""
        return self.present & wanted != 0

    def of(self, wanted: int) -> Matches:
        """Only the interfaces of these kinds."""
        if not self.present & ~wanted:
            return self
        if len(self.ends) == 2:
            kind_of, own = self.kinds.item, list[int]()
            for slot in self.found.tolist():
                if kind_of(slot) & wanted:
                    own.append(slot)
            return Matches.of_one(own, self.kinds)
        keep = (self.kinds[self.found] & wanted) != 0
        before = np.zeros(len(keep) + 1, np.int64)
        np.cumsum(keep, out=before[1:])
        return Matches(before[self.ends], self.found[keep], self.kinds)

    def pick(self, rows: Sequence[int]) -> Matches:
        """Only some messages."""
        if len(rows) == len(self) and list(rows) == list(range(len(rows))):
            return self
        chosen = np.array(rows, np.int64)
        begin, end = self.ends[:-1][chosen], self.ends[1:][chosen]
        ends = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(end - begin, out=ends[1:])
        parts = [self.found[a:b] for a, b in zip(begin.tolist(), end.tolist(), strict=True)]
        found = np.concatenate(parts) if parts else self.found[:0]
        return Matches(ends, found, self.kinds)

    def slice(self, begin: int, end: int) -> Matches:
        """The messages from one row to another."""
        if begin == 0 and end >= len(self):
            return self
        first, last = self.ends[begin], self.ends[end]
        return Matches(self.ends[begin : end + 1] - first, self.found[first:last], self.kinds)

    def grouped(self, meaning: Callable[[int], T]) -> Grouped[T]:
        """The answer of each message, by what a slot means."""
        ends, found = self.ends, self.found
        if len(ends) == 2:
            return Grouped([tuple(map(meaning, found.tolist()))], np.zeros(1, np.int64))
        counts = np.diff(ends)
        codes = np.zeros(len(counts), np.int64)
        if not len(found):
            return Grouped([()], codes)
        seen = np.zeros(int(found.max()) + 1, np.bool_)
        seen[found] = True
        slots = np.flatnonzero(seen)
        code_of = np.zeros(len(seen), np.int64)
        code_of[slots] = np.arange(1, len(slots) + 1)
        alone = [meaning(slot) for slot in slots.tolist()]
        answers: list[tuple[T, ...]] = [(), *[(one,) for one in alone]]
        is_one = counts == 1
        codes[is_one] = code_of[found[ends[:-1][is_one]]]
        sets: dict[tuple[int, ...], int] = {}
        for row in np.flatnonzero(counts > 1).tolist():
            own = tuple(code_of[found[ends[row] : ends[row + 1]]].tolist())
            code = sets.get(own)
            if code is None:
                code = sets[own] = len(answers)
                answers.append(tuple([alone[i - 1] for i in own]))
            codes[row] = code
        return Grouped(answers, codes)


class Grouped(Generic[T]):
    """What each message of a batch matches.

    >>> grouped = Grouped.of([("x",), (), ("x",)])
    >>> list(grouped), grouped.parts()
    ([('x',), (), ('x',)], [(('x',), [0, 2]), ((), [1])])
    """

    __slots__ = ("answers", "codes")

    def __init__(self, answers: Sequence[tuple[T, ...]], codes: Any) -> None:
        self.answers = answers
        self.codes = codes

    @classmethod
    def of(cls, found: Sequence[tuple[T, ...]]) -> Grouped[T]:
        """The same as Python values: the answer of each message."""
        answers: dict[tuple[T, ...], int] = {}
        codes = [answers.setdefault(one, len(answers)) for one in found]
        return cls(list(answers), np.array(codes, np.int64))

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[tuple[T, ...]]:
        return iter([self.answers[code] for code in self.codes.tolist()])

    def pick(self, rows: Sequence[int]) -> Grouped[T]:
        """Only some messages."""
        return Grouped(self.answers, self.codes[np.array(rows, np.int64)])

    def parts(self) -> list[tuple[tuple[T, ...], list[int]]]:
        """The answers that occur, and the rows of the messages that get each."""
        if len(self.codes) == 1:
            return [(self.answers[self.codes[0]], [0])]
        codes = self.codes
        if len(self.answers) <= _SHORT_MAX:
            codes = codes.astype(np.uint16)  # which numpy sorts by radix
        order = np.argsort(codes, kind="stable")
        ordered = codes[order]
        begins = [0, *(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist()]
        rows = order.tolist()
        ends = [*begins[1:], len(rows)]
        return [
            (self.answers[code], rows[begin:end])
            for code, begin, end in zip(ordered[begins].tolist(), begins, ends, strict=True)
        ]
