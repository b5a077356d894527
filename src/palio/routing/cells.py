"""The value sets that filters have for one name, and the search among them.

A cell is a set of values together with the filters that have it: equal sets share one cell, so a
search compares sets once, however many filters have them. Two questions are asked, and each has an
index of its own, by the outlines of the sets (`model/outlines.py`):

    which cells lie around a set?          by its members, its hull, the pairs of letters in it;
    only those that filters are filed in   holes are the points of != cells, loose is the rest
    which cells lie inside a set?          by its members, its bounds, the pairs of letters it needs

Intervals and holes decide by themselves; other candidates are verified by `is_subset`, so the
answers are exact.
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
        "allowed", "bounds", "filed", "filed_pair", "holders", "hole", "hull", "is_interval", "kind",
        "members", "needed_pairs", "number", "pairs", "weight",
    )  # fmt: skip

    def __init__(self, allowed: ValueSet) -> None:
        self.allowed = allowed
        self.number = -1  # given when it is kept
        self.holders: set[N] = set()
        self.filed: set[N] = set()
        self.members = outlines.members(allowed)
        self.kind, self.hull = outlines.hull(allowed)
        self.bounds = outlines.bounds(allowed)[1]
        self.is_interval = self.members is None and outlines.is_interval(allowed)
        self.hole = outlines.hole(allowed) if self.bounds is None else None
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
                yield from self._kinds[kind].around(cell)

    def inside(self, cell: Cell[N]) -> Iterator[Cell[N]]:
        """The cells that this one holds all of."""
        for kind in self._kinds if cell.kind == "mixed" else (cell.kind,):
            if kind in self._kinds:
                yield from self._kinds[kind].inside(cell)


class _Kind(Generic[N]):
    """The cells of one kind: what may lie inside a set, and what may lie around it."""

    def __init__(self) -> None:
        self.all: dict[Cell[N], None] = {}
        self.by_member: dict[Member, dict[Cell[N], None]] = defaultdict(dict)
        self.small: Spans[Cell[N]] = Spans()  # hulls of cells with few members
        self.large: Spans[Cell[N]] = Spans()  # hulls of the others
        self.by_pair: dict[str, dict[Cell[N], None]] = defaultdict(dict)
        # Cells that have something filed, by their bounds, their holes, a pair that they need:
        self.intervals: Spans[Cell[N]] = Spans()
        self.bounding: Spans[Cell[N]] = Spans()  # what is no interval
        self.holes: Spans[Cell[N]] = Spans()
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
            spans = self.intervals if cell.is_interval else self.bounding
            spans.add(cell.bounds, cell.number, cell)
        elif cell.needed_pairs:
            sizes = {pair: len(self.needing.get(pair, ())) for pair in sorted(cell.needed_pairs)}
            cell.filed_pair = min(sizes, key=sizes.__getitem__)
            self.needing[cell.filed_pair][cell] = None
        elif cell.hole is not None:
            self.holes.add(cell.hole, cell.number, cell)
        else:
            self.loose[cell] = None

    def close(self, cell: Cell[N]) -> None:
        if cell.members is not None:
            return
        if cell.bounds is not None:
            spans = self.intervals if cell.is_interval else self.bounding
            spans.remove(cell.bounds, cell.number)
        elif cell.filed_pair is not None:
            _drop(self.needing, cell.filed_pair, cell)
            cell.filed_pair = None
        elif cell.hole is not None:
            self.holes.remove(cell.hole, cell.number)
        else:
            del self.loose[cell]

    def around(self, cell: Cell[N]) -> Iterator[Cell[N]]:
        if cell.hull is not None:
            yield from self.intervals.around(cell.hull)
            yield from self.holes.not_inside(cell.hull)
        for other in self._maybe_around(cell):
            if other is cell or is_subset(cell.allowed, other.allowed):
                yield other

    def _maybe_around(self, cell: Cell[N]) -> Iterator[Cell[N]]:
        yield from self.loose
        member = outlines.some_member(cell.allowed)
        if member is not None:
            yield from (other for other in self.by_member.get(member, ()) if other.filed)
        if cell.hull is not None:
            yield from self.bounding.around(cell.hull)
            yield from self.holes.inside(cell.hull)
        if self.needing:
            for pair in cell.pairs:
                yield from self.needing.get(pair, ())

    def inside(self, cell: Cell[N]) -> Iterator[Cell[N]]:
        if cell.bounds is not None and cell.members is None:
            within = self.small.inside(cell.bounds) + self.large.inside(cell.bounds)
            if cell.is_interval:
                yield from within
                return
            candidates: Iterable[Cell[N]] = within
        else:
            candidates = self._maybe_inside(cell)
        for other in candidates:
            if other is cell or is_subset(other.allowed, cell.allowed):
                yield other

    def _maybe_inside(self, cell: Cell[N]) -> Iterable[Cell[N]]:
        if cell.members is not None:
            return dict.fromkeys(c for m in cell.members for c in self.by_member.get(m, ()))
        if cell.needed_pairs:
            having = [self.by_pair.get(pair, {}) for pair in cell.needed_pairs]
            return [c for c in min(having, key=len) if cell.needed_pairs <= c.pairs]
        return self.all


K = TypeVar("K")


def _drop(table: dict[K, dict[Cell[N], None]], key: K, cell: Cell[N]) -> None:
    del table[key][cell]
    if not table[key]:
        del table[key]
