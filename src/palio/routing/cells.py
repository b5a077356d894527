"""The value sets that filters have for one name, and the search among them.

A cell is a set of values together with the filters that have it: equal sets share one cell, so a
search compares sets once, however many filters have them. Two questions are asked, and each has an
index of its own, by the outlines of the sets (`model/outlines.py`):

    which cells lie around a set?          by its members, its hull, the pairs of letters in it;
    only those that filters are filed in   `loose` are cells that bound nothing (!=, any)
    which cells lie inside a set?          by its members, its bounds, the pairs of letters it needs

Candidates are verified by `is_subset`, so the answers are exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from palio.model import outlines
from palio.model.outlines import Member
from palio.model.valuesets import ValueSet, is_subset
from palio.routing.spans import Spans

N = TypeVar("N", bound=Hashable)  # whatever has the sets

_END = "\0"  # behind the last letter; texts that hold it only make more candidates


class Cell(Generic[N]):
    """A set of values of one name, who has it, and who of them is filed in it."""

    __slots__ = (
        "allowed", "bounds", "filed", "filed_pair", "holders", "hull", "kind", "members",
        "needed_pairs", "number", "pairs", "weight",
    )  # fmt: skip

    def __init__(self, allowed: ValueSet) -> None:
        self.allowed = allowed
        self.number = -1  # given when it is kept
        self.holders: set[N] = set()
        self.filed: set[N] = set()
        self.members = outlines.members(allowed)
        self.kind, self.hull = outlines.hull(allowed)
        self.bounds = outlines.bounds(allowed)[1]
        known = outlines.only_strings(allowed)
        self.pairs: frozenset[str] = frozenset()
        self.needed_pairs: frozenset[str] = frozenset()
        self.filed_pair: str | None = None
        if known is not None:
            ending, others = outlines.texts(known)
            self.pairs = _pairs(ending, others)
            if self.members is None and self.bounds is None:
                self.needed_pairs = _pairs(known.suffix, known.contains)
        self.weight = self._weight()

    def _weight(self) -> float:
        """How likely another set lies inside this one: a guess that ranks the ways of filing."""
        if self.members is not None:
            return 0.01
        if self.bounds is not None:
            return 0.4
        return 0.05 if self.needed_pairs else 1.0


def _pairs(ending: str, others: Iterable[str]) -> frozenset[str]:
    """All pairs of neighbouring letters."""
    closed = ending + _END if ending else ""
    return frozenset(t[i : i + 2] for t in (closed, *others) for i in range(len(t) - 1))


class NameCells(Generic[N]):
    """All cells of one name."""

    def __init__(self) -> None:
        self.uses = 0  # filters that constrain this name
        self._cells: dict[ValueSet, Cell[N]] = {}
        self._kinds: dict[str, _Kind[N]] = {}
        self._count = 0

    def find(self, allowed: ValueSet) -> Cell[N] | None:
        """The cell of this set, if some filter has it."""
        return self._cells.get(allowed)

    def hold(self, cell: Cell[N], holder: N) -> None:
        """The holder has this set from now on."""
        self.uses += 1
        if not cell.holders:
            self._count += 1
            cell.number = self._count
            self._cells[cell.allowed] = cell
            self._kinds.setdefault(cell.kind, _Kind()).add(cell)
        cell.holders.add(holder)

    def release(self, cell: Cell[N], holder: N) -> None:
        self.uses -= 1
        cell.holders.remove(holder)
        if not cell.holders:
            del self._cells[cell.allowed]
            self._kinds[cell.kind].remove(cell)

    def file(self, cell: Cell[N], holder: N) -> None:
        """Let searches for what lies around find the holder by this cell."""
        if not cell.filed:
            self._kinds[cell.kind].open(cell)
        cell.filed.add(holder)

    def unfile(self, cell: Cell[N], holder: N) -> None:
        cell.filed.remove(holder)
        if not cell.filed:
            self._kinds[cell.kind].close(cell)

    def around(self, cell: Cell[N]) -> Iterator[Cell[N]]:
        """The cells that hold all of this one, of those that have something filed in them."""
        for kind in {cell.kind: None, "mixed": None}:
            if kind in self._kinds:
                for other in self._kinds[kind].maybe_around(cell):
                    if other is cell or is_subset(cell.allowed, other.allowed):
                        yield other

    def inside(self, cell: Cell[N]) -> Iterator[Cell[N]]:
        """The cells that this one holds all of."""
        for kind in self._kinds if cell.kind == "mixed" else (cell.kind,):
            if kind in self._kinds:
                for other in self._kinds[kind].maybe_inside(cell):
                    if other is cell or is_subset(other.allowed, cell.allowed):
                        yield other


class _Kind(Generic[N]):
    """The cells of one kind: what may lie inside a set, and what may lie around it."""

    def __init__(self) -> None:
        self.all: dict[Cell[N], None] = {}
        self.by_member: dict[Member, dict[Cell[N], None]] = defaultdict(dict)
        self.small: Spans[Cell[N]] = Spans()  # hulls of cells with few members
        self.large: Spans[Cell[N]] = Spans()  # hulls of the others
        self.by_pair: dict[str, dict[Cell[N], None]] = defaultdict(dict)
        self.bounding: Spans[Cell[N]] = Spans()  # bounds of cells that have something filed
        self.needing: dict[str, dict[Cell[N], None]] = defaultdict(dict)
        self.loose: dict[Cell[N], None] = {}

    def add(self, cell: Cell[N]) -> None:
        self.all[cell] = None
        for member in cell.members or ():
            self.by_member[member][cell] = None
        if cell.hull is not None:
            spans = self.large if cell.members is None else self.small
            spans.add(cell.hull, cell.number, cell)
        for pair in cell.pairs:
            self.by_pair[pair][cell] = None

    def remove(self, cell: Cell[N]) -> None:
        del self.all[cell]
        for member in cell.members or ():
            _drop(self.by_member, member, cell)
        if cell.hull is not None:
            spans = self.large if cell.members is None else self.small
            spans.remove(cell.hull, cell.number)
        for pair in cell.pairs:
            _drop(self.by_pair, pair, cell)

    def open(self, cell: Cell[N]) -> None:
        """Something is filed in this cell. One with few members is found by them already."""
        if cell.members is not None:
            return
        if cell.bounds is not None:
            self.bounding.add(cell.bounds, cell.number, cell)
        elif cell.needed_pairs:
            sizes = {pair: len(self.needing.get(pair, ())) for pair in sorted(cell.needed_pairs)}
            cell.filed_pair = min(sizes, key=sizes.__getitem__)
            self.needing[cell.filed_pair][cell] = None
        else:
            self.loose[cell] = None

    def close(self, cell: Cell[N]) -> None:
        if cell.members is not None:
            return
        if cell.bounds is not None:
            self.bounding.remove(cell.bounds, cell.number)
        elif cell.filed_pair is not None:
            _drop(self.needing, cell.filed_pair, cell)
            cell.filed_pair = None
        else:
            del self.loose[cell]

    def maybe_around(self, cell: Cell[N]) -> Iterator[Cell[N]]:
        yield from self.loose
        member = outlines.some_member(cell.allowed)
        if member is not None:
            yield from (other for other in self.by_member.get(member, ()) if other.filed)
        if cell.hull is not None:
            yield from self.bounding.around(cell.hull)
        if self.needing:
            for pair in cell.pairs:
                yield from self.needing.get(pair, ())

    def maybe_inside(self, cell: Cell[N]) -> Iterable[Cell[N]]:
        if cell.members is not None:
            return dict.fromkeys(c for m in cell.members for c in self.by_member.get(m, ()))
        if cell.bounds is not None:
            return self.small.inside(cell.bounds) + self.large.inside(cell.bounds)
        if cell.needed_pairs:
            having = [self.by_pair.get(pair, {}) for pair in cell.needed_pairs]
            fewest = min(having, key=len)
            return [c for c in fewest if cell.needed_pairs <= c.pairs]
        return list(self.all)


K = TypeVar("K")


def _drop(table: dict[K, dict[Cell[N], None]], key: K, cell: Cell[N]) -> None:
    del table[key][cell]
    if not table[key]:
        del table[key]
