"""Buckets: how the filters of the interest table are distributed over the rows of a compiled table.

    interface ──▶ buckets of at most BUCKET_MAX filters ──▶ a row of the table each

A compiled table can remove whole rows only. So to remove a filter, its bucket is compiled again, not
all filters of the interface.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from palio.model.predicate import Filter, Predicate

if TYPE_CHECKING:
    from palio.matching.table import ForwardingTable

_UNKNOWN = -1
BUCKET_MAX = 256
"""The most filters of one row of the table."""

Interface: TypeAlias = Hashable


class Bucket:
    """Filters of one interface that are one row of the compiled table."""

    __slots__ = ("filters", "interface", "name", "slot")

    def __init__(self, interface: Interface, slot: int, name: str) -> None:
        self.interface = interface
        self.slot = slot
        self.name = name
        self.filters: dict[Filter, None] = {}


class FilterBuckets:
    """The distribution of filters over the rows of the table, and their changes since it was made."""

    def __init__(self) -> None:
        self.named: dict[str, Bucket] = {}
        self._open: dict[Interface, Bucket] = {}  # where the next filter of an interface goes
        self._made = 0  # ever
        self._is_compiled = False
        self._compiled: set[str] = set()  # rows of the table
        self._new: dict[Bucket, list[Filter]] = {}  # not in the table yet
        self._stale: dict[Bucket, None] = {}  # with filters in the table that are gone
        self._counts: dict[int, int] = {}  # buckets of each slot
        self._repeated: set[int] = set()  # slots of several buckets
        self._numbered: ForwardingTable | None = None  # the version that `_slot_of` is about
        self._slot_of: Any = None  # by the row of the table; _UNKNOWN: not looked up yet

    def add(self, interface: Interface, slot: int, found: Filter) -> Bucket:
        bucket = self._open.get(interface)
        if bucket is None or len(bucket.filters) >= BUCKET_MAX:
            bucket = self._open[interface] = Bucket(interface, slot, str(self._made))
            self._made += 1
            self.named[bucket.name] = bucket
            self._count(slot, 1)
        bucket.filters[found] = None
        if self._is_compiled:
            self._new.setdefault(bucket, []).append(found)
        return bucket

    def remove(self, bucket: Bucket, found: Filter) -> None:
        del bucket.filters[found]
        if self._is_compiled:
            self._stale[bucket] = None
        if not bucket.filters:
            del self.named[bucket.name]
            self._count(bucket.slot, -1)
            if self._open.get(bucket.interface) is bucket:
                del self._open[bucket.interface]

    def _count(self, slot: int, change: int) -> None:
        count = self._counts[slot] = self._counts.get(slot, 0) + change
        (self._repeated.add if count > 1 else self._repeated.discard)(slot)
        if not count:
            del self._counts[slot]

    def slots_of(self, table: ForwardingTable, ends: Any, rows: Any) -> tuple[Any, Any]:
        """The slots of rows of the table, those of message i in rows[ends[i]:ends[i + 1]], and where
        they begin and end: each slot is there once for a message."""
        found = self._found(table, rows) if len(rows) else rows
        if self._repeated and np.isin(found, list(self._repeated)).any():
            return _distinct(ends, found)
        return ends, found

    def _found(self, table: ForwardingTable, rows: Any) -> Any:
        """Rows change with every version, so each is looked up when a message matches it."""
        if table is not self._numbered:
            self._numbered, self._slot_of = table, np.empty(0, np.int64)
        last, count = int(rows.max()), len(self._slot_of)
        if last >= count:
            added = np.full(2 * last + 64 - count, _UNKNOWN, np.int64)
            self._slot_of = np.concatenate([self._slot_of, added])
        found = self._slot_of[rows]
        if (found == _UNKNOWN).any():
            fresh, named = np.unique(rows[found == _UNKNOWN]), self.named
            self._slot_of[fresh] = [named[name].slot for name in table.named(fresh)]
            found = self._slot_of[rows]
        return found

    def compiled(self) -> ForwardingTable:
        from palio.matching.table import ForwardingTable

        self._is_compiled, self._compiled = True, set(self.named)
        self._new, self._stale = {}, {}
        return ForwardingTable.compile(
            {name: Predicate(tuple(b.filters)) for name, b in self.named.items()}
        )

    def forget_table(self) -> None:
        """There is no table any more: changes need not be remembered."""
        self._is_compiled = False
        self._new, self._stale = {}, {}

    @property
    def has_changes(self) -> bool:
        """Something changed that the table does not know."""
        return bool(self._new or self._stale)

    def take_changes(self) -> tuple[dict[str, Predicate], list[str]]:
        """The rows to add to the table, and those to remove first, since the last time."""
        new, self._new = self._new, {}
        stale, self._stale = self._stale, {}
        remove = [b.name for b in stale if b.name in self._compiled]
        add = {
            b.name: Predicate(tuple(b.filters if b in stale else new[b]))
            for b in {**stale, **new}
            if b.filters
        }
        self._compiled.difference_update(remove)
        self._compiled.update(add)
        return add, remove


def _distinct(ends: Any, found: Any) -> tuple[Any, Any]:
    """Each slot once for each message, in the order in which they came."""
    rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    pairs = rows * (int(found.max()) + 1) + found
    _, first = np.unique(pairs, return_index=True)
    first.sort()
    return np.searchsorted(rows[first], np.arange(len(ends))), found[first]
