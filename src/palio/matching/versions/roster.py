"""Who is there in which version of a table: names, positions and tombstones.

An interface has a position from when it is added until it is removed. Positions ascend in the order
in which interfaces came; one that is removed and added once more gets a new position, at the end. All
versions of a line share its arrays, to which an update only appends:

    position     0    1    2    3  |  4    5    6        gone: the update that removed it, 0 for none
    name        ann  bob  cy   dan | eve  bob  fay
    gone         0    2    0    5  |  0    0    0
                 base: compiled    |  fresh: added since

    version 1    ann  bob  cy   dan  eve                 sees 5 positions, and removals up to 1
    version 3    ann       cy   dan  eve  bob            6 positions, removals up to 3
    version 5    ann       cy        eve  bob  fay

A version is a roster: the line, a sequence number and a count of positions. What comes later changes
nothing of what it sees, so readers need no lock. Updating a version that is no longer the newest
copies the line.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from palio.errors import InvalidPredicate
from palio.matching.encode.columns import Ints
from palio.matching.versions.interface_names import InterfaceNames, string_array

_ONE = np.uint32(1)


@dataclass(slots=True)
class VersionLine:
    """What the versions that follow each other share; it only grows, under its lock."""

    base: InterfaceNames
    gone: Ints  # uint32, with room to spare
    fresh: list[str] = field(default_factory=list)
    places: dict[str, tuple[int, ...]] = field(
        default_factory=dict
    )  # the fresh positions of a name
    sequence: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def over(cls, base: InterfaceNames) -> VersionLine:
        # The system hands out zeroed pages at their first use, so that room costs nothing.
        return cls(base, np.zeros(2 * len(base) + 4096, np.uint32))

    def append(self, name: str) -> int:
        """A new position for a name."""
        position = len(self.base) + len(self.fresh)
        if position == len(self.gone):
            self.gone = np.concatenate([self.gone, np.zeros(len(self.gone), np.uint32)])
        self.fresh.append(name)
        self.places[name] = (*self.places.get(name, ()), position)
        return position

    def extend(self, names: Iterable[str]) -> None:
        for name in names:
            self.append(name)


@dataclass(frozen=True)
class Roster:
    """The interfaces of one version; see the head of the module."""

    line: VersionLine
    sequence: int
    count: int
    gone: Ints  # of the line, as it was: later removals are above `sequence`
    removed: int = 0  # how many removals there were since the base

    @classmethod
    def of(cls, base: InterfaceNames) -> Roster:
        """All names are there."""
        line = VersionLine.over(base)
        return cls(line, 0, len(base), line.gone)

    @property
    def base(self) -> InterfaceNames:
        return self.line.base

    def is_live(self, positions: Ints) -> Ints:
        """Which of these positions have an interface in this version."""
        # An unsigned 0 - 1 is above every sequence number.
        return np.asarray(self.gone[positions] - _ONE >= self.sequence)

    @cached_property
    def live(self) -> Ints:
        """For each position, whether it has an interface."""
        return np.asarray(self.gone[: self.count] - _ONE >= self.sequence)

    @cached_property
    def positions(self) -> Ints:
        """The positions that have an interface, ascending."""
        return np.flatnonzero(self.live)

    @cached_property
    def interfaces(self) -> tuple[str, ...]:
        """The names in the order in which they were given."""
        return tuple(self.names(self.positions))

    @cached_property
    def order(self) -> Ints:
        """For each position, its place in `interfaces`."""
        return np.cumsum(self.live) - 1

    def names(self, positions: Ints) -> list[str]:
        """The names at these positions, which ascend."""
        fresh, count = self.line.fresh, len(self.base)
        known = len(positions) if self.count == count else np.searchsorted(positions, count)
        found: list[str] = self.base.listed.take(positions[:known]).tolist()
        return found + [fresh[i - count] for i in positions[known:].tolist()]

    @cached_property
    def array(self) -> Any:
        """The names of all positions, also of those that are gone, as Arrow has them."""
        base, fresh = self.base.array, self.line.fresh[: self.count - len(self.base)]
        if not fresh:
            return base
        return pa.chunked_array([base, string_array(fresh).cast(base.type)])

    def find(self, name: str) -> int | None:
        """The position of an interface, if it is there."""
        for position in reversed(self.line.places.get(name, ())):
            if position < self.count and self._has(position):
                return position
        position_in_base = self.base.position(name)
        if position_in_base is None or not self._has(position_in_base):
            return None
        return position_in_base

    def require(self, name: str) -> int:
        """The position of an interface that must be there."""
        position = self.find(name)
        if position is None:
            raise InvalidPredicate(f"the table has no interface {name!r}")
        return position

    def among(self, names: Iterable[str]) -> Ints:
        """The positions of interfaces that must be there, ascending, each once."""
        if isinstance(names, str):
            raise InvalidPredicate(
                f"`among` takes a list of interfaces, not the text {names!r}",
                remedy=f"write among=[{names!r}]",
            )
        asked = tuple(names)
        known: tuple[tuple[str, ...], Ints] | None = self.__dict__.get("_limit")
        if known is None or known[0] != asked:  # a router asks for the same again and again
            known = asked, np.array(sorted({self.require(name) for name in asked}), np.int64)
            self.__dict__["_limit"] = known
        return known[1]

    def _has(self, position: int) -> bool:
        removed = int(self.gone[position])
        return removed == 0 or removed > self.sequence

    def changed(self, remove: Iterable[str], add: Iterable[str]) -> tuple[Roster, list[int]]:
        """The next version, and the positions of the names that were added."""
        removed = [self.require(name) for name in remove]
        found = {name: self.find(name) for name in add}
        line = self.line
        with line.lock:
            if line.sequence == self.sequence:
                return self._appended(line, removed, found)
            copied = self._forked()
        return self._appended(copied, removed, found)

    def _appended(
        self, line: VersionLine, removed: list[int], found: dict[str, int | None]
    ) -> tuple[Roster, list[int]]:
        sequence = self.sequence + 1
        line.gone[removed] = sequence
        just_removed = set(removed)
        positions = [
            line.append(name) if place is None or place in just_removed else place
            for name, place in found.items()
        ]
        line.sequence = sequence  # last: now the next update may follow
        count, total = len(line.base) + len(line.fresh), self.removed + len(removed)
        return Roster(line, sequence, count, line.gone, total), positions

    def _forked(self) -> VersionLine:
        """A line of its own, that ends with this version."""
        line = VersionLine.over(self.base)
        line.sequence = self.sequence
        line.extend(self.line.fresh[: self.count - len(self.base)])
        seen = self.gone[: self.count]
        line.gone[: self.count] = np.where(seen <= self.sequence, seen, 0)
        return line
