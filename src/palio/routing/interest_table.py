"""The interest table: which interfaces does a message match? One forwarding table with live updates.

A small table evaluates the filters of its interfaces one by one, until that has cost more than compiling
would. Above `EVALUATED_MAX` filters there is always a compiled table of the engine pivot; changes make a
new version of it, when the next message is looked up or by `settle`. A batch is matched as one column.

    interface ──▶ slot, a number ──▶ buckets of at most BUCKET_MAX filters ──▶ rows of the table

A compiled table can remove whole rows only, hence the buckets (interest_buckets.py). Versions have to be
merged and compacted now and then, so that they do not become larger than the table. That takes long:
`upkeep` gives such work to whoever has a thread for it; without `defers` it is done at once.

An answer consists of slots (`Matches`). The slot of a removed interface is not reused before
`reclaim`, so an answer that is kept for a while never refers to another interface. A batch has few
different answers (`Grouped`), so Python does something for each answer, not for each message:

    messages   0     1     2   3          Grouped: codes     1  2  1  1        which answer each gets
    ends       0     1     3   4  5                answers   (x), (y), (x, y)  who gets it
    found      y     x y   y   y
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload

import numpy as np

from palio.model.message import Message
from palio.model.predicate import Filter
from palio.routing.interest_buckets import Bucket, FilterBuckets, Interface
from palio.routing.interest_slots import InterestSlots

if TYPE_CHECKING:
    import pyarrow as pa

    from palio.matching.table import ForwardingTable
    from palio.matching.versions.upkeep import MaintainedTable, UpkeepWork

EVALUATED_MAX = 256  # filters: about 0.2 ms a message; compiling takes 10 ms and more
EVALUATIONS_MAX = 50_000  # of filters since the last change; about as long as compiling
PARSING = 20  # evaluations: as long as to read a message
BATCH_MIN = 8  # messages: fewer are quicker one by one
MANY = 64  # interfaces of a message: more are quicker as a column

_SHORT_MAX = 1 << 16
_SHARE, _LEAST = 0.5, 4096  # changes above the base when a table is compacted: a share, at least

T = TypeVar("T")


class MessageRows(Protocol):
    """Messages to look up: each parsed, or all as a column of JSON texts."""

    def __len__(self) -> int: ...

    def message(self, row: int) -> Message: ...

    def column(self) -> pa.Array: ...


class InterestTable:
    """The filters of all interfaces. `kind_of` sorts interfaces into at most eight kinds, each a bit.

    >>> from palio.model.language import parse
    >>> table = InterestTable()
    >>> table.change("ann", dict.fromkeys(parse("x > 1"), True))
    >>> table.interfaces_of(Message({"x": 2}))
    ['ann']
    """

    def __init__(
        self, kind_of: Callable[[Any], int] = lambda interface: 1, *, defers: bool = False
    ) -> None:
        self.version = 0
        """Grows with every change."""
        self.retired = self.reclaimed = 0
        """How many slots were ever retired, and how many of these may be reused."""
        self._slots = InterestSlots(kind_of)
        self.interfaces: Sequence[Any] = self._slots.interfaces
        """By slot; also those that have gone, until `reclaim`."""
        self._filters: dict[Interface, dict[Filter, Bucket]] = {}
        self._size = 0
        self._buckets = FilterBuckets()
        self._defers = defers
        self._table: MaintainedTable | None = None
        self._evaluations = 0  # since the last change, while there is no table
        self._has_many = False  # interfaces: the message that was looked up last

    def __len__(self) -> int:
        """How many filters there are, each counted for every interface that has it."""
        return self._size

    # ---- changes

    def change(self, interface: Interface, news: Mapping[Filter, bool]) -> None:
        """An interface gets filters (True) or loses them (False)."""
        for found, is_added in news.items():
            (self._add if is_added else self._remove)(interface, found)
        if news:
            self.version += 1
            self._evaluations = 0
            if self._size <= EVALUATED_MAX:
                self._table = None
                self._buckets.forget_table()

    def filters_of(self, interface: Interface) -> Collection[Filter]:
        """The filters of an interface; a view, until the next change."""
        return self._filters.get(interface, {}).keys()

    def _add(self, interface: Interface, found: Filter) -> None:
        own = self._filters.get(interface)
        if own is None:
            own = self._filters[interface] = {}
            self._slots.assign(interface)
        slot = self._slots.get(interface)
        assert slot is not None
        own[found] = self._buckets.add(interface, slot, found)
        self._size += 1

    def _remove(self, interface: Interface, found: Filter) -> None:
        own = self._filters[interface]
        self._buckets.remove(own.pop(found), found)
        self._size -= 1
        if not own:
            del self._filters[interface]
            self._slots.retire(interface)
            self.retired += 1

    # ---- slots

    def slot(self, interface: Interface) -> int | None:
        """The number of an interface in answers; None: it has no filters."""
        return self._slots.get(interface)

    def reclaim(self, count: int) -> None:
        """Allow the first `count` slots that were retired to be reused. No answer that is in use may
        have them: all were made when at least so many slots had been retired."""
        while self.reclaimed < count:
            self._slots.reclaim_oldest()
            self.reclaimed += 1

    # ---- messages

    def lookup(self, messages: MessageRows) -> Matches:
        """The interfaces that each message matches; InvalidValue if one is not a JSON object."""
        count = len(messages)
        if count < BATCH_MIN and not self._has_many:
            found = self.evaluate(messages, gives_up=True)
            if found is not None:
                return found
        elif not self._needs_table(count):
            return self.evaluate(messages)
        table = self._current()
        ends, rows = table.match_json(messages.column())
        ends, slots = self._buckets.slots_of(table, ends, rows)
        self._has_many = len(slots) > MANY * count
        return Matches(ends, slots, self._slots.kinds)

    @overload
    def evaluate(self, messages: MessageRows) -> Matches: ...
    @overload
    def evaluate(self, messages: MessageRows, *, gives_up: bool) -> Matches | None: ...
    def evaluate(self, messages: MessageRows, *, gives_up: bool = False) -> Matches | None:
        """The same for messages that are parsed one by one. With `gives_up` None, when one matches so
        many interfaces that a column is quicker."""
        if len(messages) == 1:
            own = self._slots_of_message(messages.message(0))
            return Matches.of_one(own, self._slots.kinds)
        all_ = []
        for i in range(len(messages)):
            all_.append(self._slots_of_message(messages.message(i)))
            if gives_up and self._has_many:
                return None
        return self.answer(all_)

    def answer(self, slots: Sequence[list[int]]) -> Matches:
        """The answer with these slots for each message."""
        ends = np.cumsum([0, *map(len, slots)])
        found = np.array([slot for own in slots for slot in own], np.int64)
        return Matches(ends, found, self._slots.kinds)

    def interfaces_of(self, message: Message) -> list[Any]:
        """The interfaces of which a filter matches the message."""
        return [self._slots.interfaces[slot] for slot in self._slots_of_message(message)]

    def _slots_of_message(self, message: Message) -> list[int]:
        if not self._needs_table(1):
            numbers, slots = self._slots.numbers, []
            for interface, filters in self._filters.items():
                for found in filters:
                    if found.matches(message):
                        slots.append(numbers[interface])
                        break
            return slots
        names = self._current().forward(message)
        self._has_many = len(names) > MANY
        return list(dict.fromkeys([self._buckets.named[name].slot for name in names]))

    def _needs_table(self, messages: int) -> bool:
        """Whether a compiled table pays off for so many more messages."""
        if self._size > EVALUATED_MAX or self._table is not None:
            return True
        self._evaluations += messages * max(self._size, PARSING)
        return self._evaluations > EVALUATIONS_MAX

    # ---- the compiled table

    def settle(self) -> None:
        """Bring a compiled table up to date now, not when the next message waits for it."""
        if self._size > EVALUATED_MAX:
            self._current()

    def upkeep(self, *, idle: bool = False) -> UpkeepWork | None:
        """Work on the table that is due: call `run` in any thread, then `finish` in this one. `idle`:
        there are no changes now, so a few are worth it."""
        table = self._table
        return None if table is None else table.merge() or table.compaction(idle=idle)

    def _current(self) -> ForwardingTable:
        """The table with all changes until now."""
        if self._table is None:
            from palio.matching.versions.upkeep import MaintainedTable

            self._table = MaintainedTable(self._buckets.compiled(), _SHARE, _LEAST)
        elif self._buckets.has_changes:
            self._table.update(*self._buckets.take_changes())
            if not self._defers:
                while (work := self.upkeep()) is not None:
                    work.run()
                    work.finish()
        return self._table.table


class Matches:
    """The slots of the interfaces of message i are found[ends[i]:ends[i + 1]] (interest_table.py).

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
            own = [slot for slot in self.found.tolist() if self.kinds.item(slot) & wanted]
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
