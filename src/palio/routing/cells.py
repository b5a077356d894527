"""The value sets that filters have for one name, and the search among them.

A cell is a set of values and the filters that have it. Equal sets share one cell, so a search compares
sets once, however many filters have them. There are two queries, each with an index of its own, by
the outlines of the sets (`model/outlines.py`):

    which cells lie around a set?          by its members, its hull, the pairs of letters in it;
    only those that filters are filed in   holes are the points of != cells, loose is the rest
    which cells lie inside a set?          by its members, its bounds, the pairs of letters it needs

Intervals and holes decide by themselves; other candidates are verified by `is_subset`, so the
answers are exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from palio.model.operators import ORDER_OPS, Op
from palio.model.outlines import WHOLE, Member, outline
from palio.model.valuesets import ValueSet, is_subset
from palio.routing.spans import Spans

N = TypeVar("N", bound=Hashable)  # whatever has the sets
_PLAIN = ORDER_OPS | {Op.EQ, Op.PREFIX}


class Cell(Generic[N]):
    """A set of values of one name, the filters that have it, and those filed in it."""

    __slots__ = (
        "allowed",
        "alone",
        "filed_pair",
        "holders",
        "is_exact",
        "number",
        "outline",
        "shared",
        "weight",
    )

    def __init__(self, allowed: ValueSet) -> None:
        self.allowed = allowed
        self.outline = outline(allowed)
        self.number = -1  # given when it is kept
        self.holders: set[N] = set()
        self.alone: N | None = None  # who is filed and has nothing but this cell
        self.shared: set[N] | None = None  # who is filed and has others
        self.filed_pair: str | None = None
        self.weight = self._weight()
        self.is_exact = _is_exact(allowed, self.outline.kind)

    def _weight(self) -> float:
        """How likely another set lies inside this one: a guess that ranks the ways of filing."""
        if self.outline.members is not None:
            return 0.01
        if self.outline.bounds is not None:
            return 0.4
        return 0.05 if self.outline.needed_pairs else 1.0

    def holds(self, other: Cell[N]) -> bool:
        """Does the other lie inside this one?"""
        mine, its = self.outline, other.outline
        if mine.kind != its.kind and mine.kind != "mixed":
            return False
        if mine.is_interval:
            low, high = mine.bounds  # type: ignore[misc]
            return bool(low <= its.hull[0] and its.hull[1] <= high)  # type: ignore[index]
        if mine.hole is not None and mine.kind == its.kind:
            low, high = mine.hole
            if low < its.hull[0] or its.hull[1] < high:  # type: ignore[index]
                return True
            if its.is_interval:
                return False
        return self is other or is_subset(other.allowed, self.allowed)


def _is_exact(allowed: ValueSet, kind: str) -> bool:
    """Whether `is_subset` finds all that lies inside; of conjunctions of strings it does not."""
    if kind == "string":
        assert allowed.strings is not None
        return len(allowed.strings) == 1 and all(op in _PLAIN for op, _ in allowed.strings)
    return kind != "mixed"


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
            kind = cell.outline.kind
            if kind not in self._kinds:
                self._kinds[kind] = _Kind(kind)
            self._kinds[kind].add(cell)
        cell.holders.add(holder)

    def release(self, cell: Cell[N], holder: N) -> None:
        self.uses -= 1
        cell.holders.remove(holder)
        if not cell.holders:
            del self._cells[cell.allowed]
            self._kinds[cell.outline.kind].remove(cell)

    def file(self, cell: Cell[N], holder: N, *, alone: bool) -> None:
        """Let searches for what lies around find the holder by this cell."""
        if cell.alone is None and cell.shared is None:
            self._kinds[cell.outline.kind].open(cell)
        if alone:
            cell.alone = holder
        elif cell.shared is None:
            cell.shared = {holder}
        else:
            cell.shared.add(holder)

    def unfile(self, cell: Cell[N], holder: N) -> None:
        if cell.alone is holder:
            cell.alone = None
        elif cell.shared is not None:
            cell.shared.remove(holder)
            cell.shared = cell.shared or None
        if cell.alone is None and cell.shared is None:
            self._kinds[cell.outline.kind].close(cell)

    def around(self, cell: Cell[N]) -> list[Cell[N]]:
        """The cells that hold all of this one, at least those that have something filed in them."""
        found: list[Cell[N]] = []
        for kind in {cell.outline.kind: None, "mixed": None}:
            if kind in self._kinds:
                found += self._kinds[kind].around(cell)
        return found

    def inside(self, cell: Cell[N]) -> list[Cell[N]]:
        """The cells that this one holds all of."""
        found: list[Cell[N]] = []
        for kind in self._kinds if cell.outline.kind == "mixed" else (cell.outline.kind,):
            if kind in self._kinds:
                found += self._kinds[kind].inside(cell)
        return found


class _Kind(Generic[N]):
    """The cells of one kind: what may lie inside a set, and what may lie around it."""

    __slots__ = (
        "all", "bounding", "by_member", "by_pair", "holes", "intervals", "large", "loose", "needing",
        "small",
    )  # fmt: skip

    def __init__(self, kind: str) -> None:
        whole = WHOLE[kind]
        self.all: dict[Cell[N], None] = {}
        self.by_member: dict[Member, dict[Cell[N], None]] = defaultdict(dict)
        self.small: Spans[Cell[N]] = Spans(whole)  # hulls of cells with few members
        self.large: Spans[Cell[N]] = Spans(whole)  # hulls of the others
        self.by_pair: dict[str, dict[Cell[N], None]] = defaultdict(dict)
        # Cells that have something filed, by their bounds, their holes, a pair that they need:
        self.intervals: Spans[Cell[N]] = Spans(whole)
        self.bounding: Spans[Cell[N]] = Spans(whole)  # what is no interval
        self.holes: Spans[Cell[N]] = Spans(whole)
        self.needing: dict[str, dict[Cell[N], None]] = defaultdict(dict)
        self.loose: dict[Cell[N], None] = {}

    def add(self, cell: Cell[N]) -> None:
        self.all[cell] = None
        its = cell.outline
        for member in its.members or ():
            self.by_member[member][cell] = None
        if its.hull is not None:
            spans = self.large if its.members is None else self.small
            spans.add(its.hull, cell.number, cell, as_point=its.is_point)
        for pair in its.pairs:
            self.by_pair[pair][cell] = None

    def remove(self, cell: Cell[N]) -> None:
        del self.all[cell]
        its = cell.outline
        for member in its.members or ():
            _drop(self.by_member, member, cell)
        if its.hull is not None:
            spans = self.large if its.members is None else self.small
            spans.remove(its.hull, cell.number, as_point=its.is_point)
        for pair in its.pairs:
            _drop(self.by_pair, pair, cell)

    def open(self, cell: Cell[N]) -> None:
        """Something is filed in this cell. One with few members is found by them already."""
        its = cell.outline
        if its.members is not None:
            return
        if its.bounds is not None:
            spans = self.intervals if its.is_interval else self.bounding
            spans.add(its.bounds, cell.number, cell)
        elif its.needed_pairs:
            sizes = {pair: len(self.needing.get(pair, ())) for pair in sorted(its.needed_pairs)}
            cell.filed_pair = min(sizes, key=sizes.__getitem__)
            self.needing[cell.filed_pair][cell] = None
        elif its.hole is not None:
            self.holes.add(its.hole, cell.number, cell, as_point=True)
        else:
            self.loose[cell] = None

    def close(self, cell: Cell[N]) -> None:
        its = cell.outline
        if its.members is not None:
            return
        if its.bounds is not None:
            spans = self.intervals if its.is_interval else self.bounding
            spans.remove(its.bounds, cell.number)
        elif cell.filed_pair is not None:
            _drop(self.needing, cell.filed_pair, cell)
            cell.filed_pair = None
        elif its.hole is not None:
            self.holes.remove(its.hole, cell.number, as_point=True)
        else:
            del self.loose[cell]

    def around(self, cell: Cell[N]) -> list[Cell[N]]:
        maybe = list(self.loose)
        its = cell.outline
        if its.some_member is not None and self.by_member:
            maybe += self.by_member.get(its.some_member, ())
        if its.hull is not None:
            maybe += self.bounding.around(its.hull)
            if not its.is_interval:  # an interval has all points that lie in its hull
                maybe += self.holes.inside(its.hull)
        if self.needing:
            for pair in its.pairs:
                maybe += self.needing.get(pair, ())
        allowed = cell.allowed
        found = [other for other in maybe if other is cell or is_subset(allowed, other.allowed)]
        if its.hull is not None:
            found += self.intervals.around(its.hull)
            found += self.holes.points_outside(its.hull)
        return found

    def inside(self, cell: Cell[N]) -> list[Cell[N]]:
        its = cell.outline
        if its.bounds is not None and its.members is None:
            maybe = self.small.inside(its.bounds) + self.large.inside(its.bounds)
            if its.is_interval:
                return maybe
        else:
            maybe = list(self._maybe_inside(cell))
        return [other for other in maybe if cell.holds(other)]

    def _maybe_inside(self, cell: Cell[N]) -> Iterable[Cell[N]]:
        its = cell.outline
        if its.members is not None:
            return dict.fromkeys(c for m in its.members for c in self.by_member.get(m, ()))
        if its.needed_pairs:
            having = [self.by_pair.get(pair, {}) for pair in its.needed_pairs]
            return [c for c in min(having, key=len) if its.needed_pairs <= c.outline.pairs]
        return self.all


K = TypeVar("K")


def _drop(table: dict[K, dict[Cell[N], None]], key: K, cell: Cell[N]) -> None:
    del table[key][cell]
    if not table[key]:
        del table[key]
