"""Who is there in which version of a table: names, positions and tombstones.

An interface has a position from when it is added until it is removed. Positions ascend in the order
in which interfaces came; one that is removed and added again gets a new position, at the end. All
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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from palio.errors import InvalidPredicate
from palio.matching.columns import Ints

_FEW = 4096  # names that a dict holds at no cost; more are filed by a kernel
_SCANS = 8  # how often names are searched from end to end before that pays
_ONE = np.uint32(1)


def string_array(texts: Sequence[str]) -> Any:
    """An Arrow array of strings, without pa.array, which imports pandas where it is installed."""
    parts = [text.encode() for text in texts]
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    blob = pa.py_buffer(b"".join(parts))
    if offsets[-1] < 2**31:
        return pa.StringArray.from_buffers(len(parts), pa.py_buffer(offsets.astype(np.int32)), blob)
    return pa.LargeStringArray.from_buffers(len(parts), pa.py_buffer(offsets), blob)


class Names:
    """The names of a compiled table by position, and back; what is costly is made when needed."""

    def __init__(self, array: Any, listed: list[str] | None = None) -> None:
        self.array = array
        self._scans = 0
        if listed is not None:
            self.__dict__["listed"] = np.array(listed, object)

    def __len__(self) -> int:
        return len(self.array)

    @cached_property
    def listed(self) -> Ints:
        """The names as Python strings; made piece by piece, so that other threads get their turn."""
        pieces = (self.array.slice(at, _FEW) for at in range(0, len(self.array), _FEW))
        return np.array([name for piece in pieces for name in piece.to_pylist()], object)

    def position(self, name: str) -> int | None:
        """Where a name is, if anywhere."""
        if len(self) <= _FEW:
            return self._by_name.get(name)
        if "_filed" not in self.__dict__ and self._scans < _SCANS:
            self._scans += 1
            found = pc.index(self.array, pa.scalar(name, self.array.type)).as_py()
        else:
            found = self._find(name)
        return int(found) if found >= 0 else None

    def _find(self, name: str) -> int:
        from palio.matching.name_kernels import find_name

        text = name.encode()
        found = find_name(*self._filed, np.frombuffer(text or b"\0", np.uint8), len(text))
        return int(found)

    @cached_property
    def _by_name(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.listed)}

    def file(self) -> None:
        """Make the index now, where many lookups are to come."""
        if len(self) > _FEW:
            self._find("")  # which loads its kernel too

    @cached_property
    def _filed(self) -> tuple[Ints, Ints, Ints]:
        from palio.matching.name_kernels import fill_slots

        _, offsets, data = self.array.buffers()
        width = np.int64 if pa.types.is_large_string(self.array.type) else np.int32
        first = self.array.offset
        begin = np.frombuffer(offsets, width)[first : first + len(self) + 1].astype(np.int64)
        blob = np.frombuffer(data, np.uint8)
        blob.flags.writeable = False  # one kernel for all
        slots = np.zeros(1 << int(2 * len(self)).bit_length(), np.int32)
        fill_slots(blob, begin, slots)
        return blob, begin, slots


@dataclass(slots=True)
class Line:
    """What the versions that follow each other share; it only grows, under its lock."""

    base: Names
    gone: Ints  # uint32, with room to spare
    fresh: list[str] = field(default_factory=list)
    places: dict[str, tuple[int, ...]] = field(
        default_factory=dict
    )  # the fresh positions of a name
    sequence: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def over(cls, base: Names) -> Line:
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

    line: Line
    sequence: int
    count: int
    gone: Ints  # of the line, as it was: later removals are above `sequence`
    removed: int = 0  # how many removals there were since the base

    @classmethod
    def of(cls, base: Names) -> Roster:
        """All names are there."""
        line = Line.over(base)
        return cls(line, 0, len(base), line.gone)

    @property
    def base(self) -> Names:
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
        self, line: Line, removed: list[int], found: dict[str, int | None]
    ) -> tuple[Roster, list[int]]:
        sequence = self.sequence + 1
        line.gone[removed] = sequence
        again = set(removed)
        positions = [
            line.append(name) if place is None or place in again else place
            for name, place in found.items()
        ]
        line.sequence = sequence  # last: now the next update may follow
        count, total = len(line.base) + len(line.fresh), self.removed + len(removed)
        return Roster(line, sequence, count, line.gone, total), positions

    def _forked(self) -> Line:
        """A line of its own, that ends with this version."""
        line = Line.over(self.base)
        line.sequence = self.sequence
        line.extend(self.line.fresh[: self.count - len(self.base)])
        seen = self.gone[: self.count]
        line.gone[: self.count] = np.where(seen <= self.sequence, seen, 0)
        return line
