"""Indexes of a poset: which items cover an item, and which does it cover? No pairwise scans.

**Filters** are compared as boxes: for each name a cell (`cells.py`), a set of values. As in the pivot
engine, one name of each filter decides where to search:

    which cover f?        each filter is filed in its most selective cell. For each name of f: the
                          cells that contain that of f, and the filters filed in them
    which does f cover?   each filter is recorded at all its cells. For the most selective name of
                          f: the cells inside that of f, and the filters recorded at them

Candidates are compared on their other names; the result for two cells is cached for the search.
Contradictory filters have no box: everything covers them, and they cover only each other.

**Advertisements** are few: they are grouped by the names they allow. One covers another only if it
allows at least the other's names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from palio.model.advertisement import Advertisement
from palio.model.boxes import box, is_contradiction
from palio.model.caches import cached
from palio.model.covering import advertisement_covers
from palio.model.message import Message
from palio.model.outlines import outline
from palio.model.predicate import Filter, Op
from palio.model.valuesets import ValueSet, constraint_bytes
from palio.routing.cells import Cell, NameCells


class PosetItem(Protocol):
    """What a poset orders: a filter or an advertisement."""

    def __hash__(self) -> int: ...
    def matches(self, message: Message) -> bool: ...


T = TypeVar("T", bound=PosetItem)
Form = TypeVar("Form")


class PosetNode(Generic[T, Form]):
    """An item in a poset, in the form its index compares, and its immediate relations."""

    __slots__ = (
        "form", "is_exact", "item", "number", "others", "pivot", "predecessors", "successors",
        "unproven",
    )  # fmt: skip

    def __init__(self, item: T, form: Form, number: int, is_exact: bool) -> None:
        self.item = item
        self.form = form
        self.number = number
        self.is_exact = is_exact
        self.pivot: str | None = None  # the name under which it is filed
        self.others: tuple[
            tuple[str, Any], ...
        ] = ()  # its other names, and their parts of the form
        self.predecessors: set[PosetNode[T, Form]] = set()
        self.successors: set[PosetNode[T, Form]] = set()
        self.unproven: frozenset[PosetNode[T, Form]] = frozenset()
        """Predecessors that cover it by what was between them only: covering is not transitive."""

    def remove_predecessor(self, node: PosetNode[T, Form]) -> None:
        self.predecessors.remove(node)
        if node in self.unproven:
            self.unproven -= {node}


class PosetIndex(Protocol[T, Form]):
    """Finds nodes by covering."""

    def form(self, item: T) -> Form: ...
    def covers(self, a: Form, b: Form) -> bool: ...
    def is_exact(self, form: Form) -> bool:
        """Is all that it covers known? Then it covers also what those cover that it covers."""

    def same(self, form: Form) -> PosetNode[T, Form] | None:
        """A node with an equal form; None if only a search can tell."""

    def covering(self, form: Form) -> set[PosetNode[T, Form]]: ...
    def covered(self, form: Form) -> set[PosetNode[T, Form]]: ...
    def add(self, node: PosetNode[T, Form]) -> None: ...
    def remove(self, node: PosetNode[T, Form]) -> None: ...


Box: TypeAlias = "dict[str, Cell[FilterNode]] | None"
FilterNode: TypeAlias = PosetNode[Filter, "Box"]


class FilterIndex:
    """An index of filters; a form is the filter's box, None when nothing matches it."""

    def __init__(self) -> None:
        self._nodes: dict[FilterNode, None] = {}
        self._names: dict[str, NameCells[FilterNode]] = {}
        self._by_cells: dict[frozenset[Cell[FilterNode]] | None, FilterNode] = {}

    def form(self, item: Filter) -> Box:
        sets = _sets(item)
        if sets is None:
            return None
        cells: dict[str, Cell[FilterNode]] = {}
        for name, allowed in sets.items():
            known = self._names.get(name)
            cells[name] = (known and known.find(allowed)) or Cell(allowed)
        return cells

    def covers(self, a: Box, b: Box) -> bool:
        if a is None or b is None:
            return b is None
        for name, cell in a.items():
            other = b.get(name)
            if other is None or not (other is cell or cell.holds(other)):
                return False
        return True

    def is_exact(self, form: Box) -> bool:
        return form is None or all(cell.is_exact for cell in form.values())

    def same(self, form: Box) -> FilterNode | None:
        return self._by_cells.get(_key(form))

    def covering(self, form: Box) -> set[FilterNode]:
        if form is None:
            return set(self._nodes)
        found = {everything} if (everything := self._by_cells.get(_key({}))) else set()
        holds = {name: _Around(cell) for name, cell in form.items()}
        for name, cell in form.items():
            known = self._names.get(name)
            around = known.around(cell) if known else ()
            found.update([wide.alone for wide in around if wide.alone is not None])
            for node in [node for wide in around if wide.shared for node in wide.shared]:
                for its, wide in node.others:
                    if its not in holds or not holds[its][wide]:
                        break
                else:
                    found.add(node)
        return found

    def covered(self, form: Box) -> set[FilterNode]:
        bottom = self._by_cells.get(None)
        if form is None:
            return {bottom} if bottom else set()
        if not form:
            return set(self._nodes)
        found = {bottom} if bottom else set()
        if any(name not in self._names for name in form):
            return found
        pivot = self._pivot(form)
        others = [(name, _Inside(cell)) for name, cell in form.items() if name != pivot]
        near = [inside.holders for inside in self._names[pivot].inside(form[pivot])]
        if not others:
            return found.union(*near)
        nodes = [node for holders in near for node in holders]
        for name, is_inside in others:
            nodes = [node for node in nodes if is_inside[node.form.get(name)]]  # type: ignore[union-attr]
        found.update(nodes)
        return found

    def add(self, node: FilterNode) -> None:
        self._nodes[node] = None
        self._by_cells[_key(node.form)] = node
        if not node.form:
            return
        for name, cell in node.form.items():
            self._names.setdefault(name, NameCells()).hold(cell, node)
        node.pivot = self._pivot(node.form)
        node.others = tuple(item for item in node.form.items() if item[0] != node.pivot)
        self._names[node.pivot].file(node.form[node.pivot], node, alone=not node.others)

    def remove(self, node: FilterNode) -> None:
        del self._nodes[node]
        del self._by_cells[_key(node.form)]
        if not node.form:
            return
        assert node.pivot is not None
        self._names[node.pivot].unfile(node.form[node.pivot], node)
        for name, cell in node.form.items():
            self._names[name].release(cell, node)
            if not self._names[name].uses:
                del self._names[name]

    def _pivot(self, form: dict[str, Cell[FilterNode]]) -> str:
        """The name for which the fewest candidates are expected: at least those with the same set."""

        def candidates(name: str) -> float:
            cell = form[name]
            return max(self._names[name].uses * cell.weight, len(cell.holders))

        return min(form, key=candidates)


def _filter_bytes(item: Filter) -> int:
    return sum(map(constraint_bytes, item.constraints))


@cached(16384, _filter_bytes)
def _sets(item: Filter) -> Mapping[str, ValueSet] | None:
    """The box of a filter; None if it is a contradiction. Cached, since the routers of a simulation
    mostly have the same filters."""
    sets = box(item)
    return None if is_contradiction(sets) else sets


def prepare(item: Filter) -> None:
    """Compute now, in any thread, what takes long when a filter of many values is added."""
    for allowed in (_sets(item) or {}).values():
        outline(allowed)


def _key(form: Box) -> frozenset[Cell[FilterNode]] | None:
    return None if form is None else frozenset(form.values())


class _Around(dict["Cell[FilterNode]", bool]):
    """Which cells contain this one; each is compared once."""

    def __init__(self, cell: Cell[FilterNode]) -> None:
        self.cell = cell

    def __missing__(self, wide: Cell[FilterNode]) -> bool:
        verdict = self[wide] = wide.holds(self.cell)
        return verdict


class _Inside(dict["Cell[FilterNode] | None", bool]):
    """Which cells this one contains; each is compared once. None is never contained."""

    def __init__(self, cell: Cell[FilterNode]) -> None:
        self.cell = cell
        self[None] = False

    def __missing__(self, narrow: Cell[FilterNode] | None) -> bool:
        assert narrow is not None
        verdict = self[narrow] = self.cell.holds(narrow)
        return verdict


AdvertisementNode: TypeAlias = PosetNode[Advertisement, Advertisement]


class AdvertisementIndex:
    """An index of advertisements, which are compared as they are."""

    def __init__(self) -> None:
        self._groups: dict[frozenset[str], dict[AdvertisementNode, None]] = {}

    def form(self, item: Advertisement) -> Advertisement:
        return item

    def covers(self, a: Advertisement, b: Advertisement) -> bool:
        return advertisement_covers(a, b)

    def is_exact(self, form: Advertisement) -> bool:
        return False  # they may constrain strings

    def same(self, form: Advertisement) -> AdvertisementNode | None:
        return None

    def covering(self, form: Advertisement) -> set[AdvertisementNode]:
        names = _allowed_names(form)
        near = (group for its, group in self._groups.items() if its >= names)
        return {node for group in near for node in group if advertisement_covers(node.form, form)}

    def covered(self, form: Advertisement) -> set[AdvertisementNode]:
        names = _allowed_names(form)
        near = (group for its, group in self._groups.items() if its <= names)
        return {node for group in near for node in group if advertisement_covers(form, node.form)}

    def add(self, node: AdvertisementNode) -> None:
        self._groups.setdefault(_allowed_names(node.form), {})[node] = None

    def remove(self, node: AdvertisementNode) -> None:
        names = _allowed_names(node.form)
        del self._groups[names][node]
        if not self._groups[names]:
            del self._groups[names]


def _allowed_names(advertisement: Advertisement) -> frozenset[str]:
    """The names that a message may have; that one may be absent allows nothing."""
    return frozenset(c.name for c in advertisement.constraints if c.op is not Op.ABSENT)
