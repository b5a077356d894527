"""The interest table: which interfaces does a message match? One forwarding table with live updates.

A small table evaluates the filters of its interfaces one by one, until that has cost more than compiling
would. Above `EVALUATED_MAX` filters there is always a compiled table of the engine pivot; changes make a
new version of it, when the next message is looked up or by `settle`. A batch is matched as one column.

    interface ──▶ slot, a number ──▶ buckets of at most BUCKET_MAX filters ──▶ rows of the table

A compiled table can remove whole rows only, hence the buckets (interest_buckets.py). Versions have to be
merged and compacted now and then, so that they do not become larger than the table. That takes long:
`upkeep` gives such work to whoever has a thread for it; without `defers` it is done at once.

An answer consists of slots (matches.py). The slot of a removed interface is not reused before
`reclaim`, so an answer that is kept for a while never refers to another interface.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from palio.model.message import Message
from palio.model.predicate import Filter
from palio.routing.interest_buckets import Bucket, FilterBuckets, Interface
from palio.routing.interest_slots import InterestSlots
from palio.routing.lookups_ahead import (
    ExpressionCosts,
    LookedUp,
    LookupAhead,
    MessageRows,
    interfaces_of_each,
    rows_of_each,
    slots_of_each,
)
from palio.routing.matches import Matches

if TYPE_CHECKING:
    from palio.matching.table import ForwardingTable
    from palio.matching.versions.upkeep import MaintainedTable, UpkeepWork

EVALUATED_MAX = 256  # filters: about 0.2 ms a message; compiling takes 10 ms and more
EVALUATIONS_MAX = 50_000  # of filters since the last change; about as long as compiling
PARSING = 20  # evaluations: as long as to read a message
BATCH_MIN = 8  # messages: fewer are quicker one by one
MANY = 64  # interfaces of a message: more are quicker as a column

_SHARE, _LEAST = 0.5, 4096  # changes above the base when a table is compacted: a share, at least


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
        self._failures = 0  # of expressions, but those that the table of now has counted
        self.expressions = ExpressionCosts()  # of all filters
        self._ahead: dict[bytes, list[int]] = {}
        self._lookups: list[LookupAhead] = []  # that have begun
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
            for lookup in self._lookups:
                lookup.changed[interface] = None
            self.version += 1
            self._evaluations = 0
            if self._size <= EVALUATED_MAX and not self.expressions.are_costly:
                self._forget_table()

    def _forget_table(self) -> None:
        self._failures = self.expression_failures
        self._table = None
        self._buckets.forget_table()

    @property
    def expression_failures(self) -> int:
        """How often an expression could not be computed for a message."""
        of_table = 0 if self._table is None else self._table.engine.use.failures.total
        return self._failures + of_table

    def _fail(self, _name: str, _reason: str) -> None:
        self._failures += 1

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
        self.expressions.add(found)

    def _remove(self, interface: Interface, found: Filter) -> None:
        own = self._filters[interface]
        self._buckets.remove(own.pop(found), found)
        self._size -= 1
        self.expressions.remove(found)
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
        if self._ahead:
            return self.answer(slots_of_each(self._ahead, messages, self._slots_of_message))
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

    # ---- lookups that take long

    def look_up_ahead(self, messages: MessageRows) -> LookupAhead:
        """Begin a lookup of which other threads compute the most, until `note_ahead`."""
        begin: Callable[[], LookedUp]
        if self._needs_table(len(messages)):
            begin = partial(rows_of_each, self._current(), messages)
        else:
            filters = [(one, tuple(own)) for one, own in self._filters.items()]
            begin = partial(interfaces_of_each, filters, messages, self._fail)
        lookup = LookupAhead(messages, begin, self._filters, self._buckets.named, self._fail)
        self._lookups.append(lookup)
        return lookup

    def note_ahead(self, lookup: LookupAhead) -> None:
        """Answer for these messages with what was found, until `forget_ahead`."""
        self._ahead = lookup.slots(self._slots.get)

    def forget_ahead(self, lookup: LookupAhead) -> None:
        self._lookups.remove(lookup)
        self._ahead = {}

    def interfaces_of(self, message: Message) -> list[Any]:
        """The interfaces of which a filter matches the message."""
        return [self._slots.interfaces[slot] for slot in self._slots_of_message(message)]

    def _slots_of_message(self, message: Message) -> list[int]:
        if not self._needs_table(1):
            numbers, slots = self._slots.numbers, []
            for interface, filters in self._filters.items():
                for found in filters:
                    if found.matches(message, self._fail):
                        slots.append(numbers[interface])
                        break
            return slots
        names = self._current().forward(message)
        self._has_many = len(names) > MANY
        return list(dict.fromkeys([self._buckets.named[name].slot for name in names]))

    def _needs_table(self, messages: int) -> bool:
        """Whether a compiled table pays off for so many more messages."""
        if self._size > EVALUATED_MAX or self._table is not None or self.expressions.are_costly:
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
