"""The poset of a routing table: items ordered by covering, most general first (2000, 3.4).

        roots          [airline = any]     [price < 500]
                          |        \\        /
                          v         v      v
                  [airline = UA]   [airline = any, price < 100]
                          |         /
                          v        v
                  [airline = UA, price < 50]

Only immediate relations are stored: an edge leads from f to g when f covers g and no item of the
poset lies between them. An index finds the items that cover an item, and those that it covers
(`poset_index.py`).

Invariants: every edge is a covering, so a message that does not match an item matches nothing below
it; of equal items (each covers the other) one is stored; there is no cycle; and between two items
there is an edge or a longer path, never both.

Covering of conjunctions of strings is sound but not complete, and therefore not always transitive:
the tests may find that f covers g and g covers h, but not that f covers h. In the poset, h is below
f while g is stored, and stays below when g is removed, which is correct. `covering` and `covered`
return what `palio.covers` finds for each pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic

from palio.errors import InvalidValue
from palio.model.advertisement import Advertisement
from palio.model.message import Message, as_message
from palio.model.predicate import Filter
from palio.routing.poset_index import AdvertisementIndex, FilterIndex, PosetIndex, PosetNode, T


@dataclass(frozen=True, slots=True)
class Order(Generic[T]):
    """A covering relation, by the index that finds it."""

    name: str
    index: Callable[[], PosetIndex[T, Any]]


SUBSCRIPTIONS: Order[Filter] = Order("subscriptions", FilterIndex)
ADVERTISEMENTS: Order[Advertisement] = Order("advertisements", AdvertisementIndex)


class Poset(Generic[T]):
    """Items in the order of covering.

    >>> import palio
    >>> wide, narrow = (palio.parse(t).filters[0] for t in ("x < 5", "x < 3 AND y = 1"))
    >>> poset = Poset(SUBSCRIPTIONS)
    >>> poset.insert(narrow), poset.insert(wide)
    (Filter(x < 3 AND y = 1), Filter(x < 5))
    >>> poset.roots(), poset.successors(wide)
    ({Filter(x < 5)}, {Filter(x < 3 AND y = 1)})
    """

    def __init__(self, order: Order[T]) -> None:
        self.order = order
        self._index: PosetIndex[T, Any] = order.index()
        self._nodes: dict[T, PosetNode[T, Any]] = {}
        self._roots: dict[PosetNode[T, Any], None] = {}
        self._inserted = 0
        self._is_exact = True  # all its items are, and were
        self._search: _Search[T] | None = None  # the last one, until something changes
        self.visited = 0
        """How many items insertions have found above and below theirs: what they cost."""

    def __len__(self) -> int:
        return len(self._nodes)

    def __iter__(self) -> Iterator[T]:
        """All items, in the order of insertion."""
        return iter(self._nodes)

    def __contains__(self, item: object) -> bool:
        """Whether this item itself is stored; `find` looks for an equal one."""
        return item in self._nodes

    def insert(self, item: T) -> T:
        """Insert an item. Returns the equal item that is stored already, else the item itself."""
        if item in self._nodes:
            return item
        search = self._searched(item)
        form = search.form
        if (same := self._index.same(form)) is not None:
            return same.item
        above, below = search.above(), search.below()
        self.visited += len(above) + len(below)
        if equal := above & below:
            return _first(equal).item
        beyond_above, beyond_below = _beyond(above, _above), _beyond(below, _below)
        if equal := (above | beyond_above) & (below | beyond_below):
            return _first(equal).item
        node = PosetNode(item, form, self._inserted, self._index.is_exact(form))
        self._inserted += 1
        self._nodes[item] = node
        self._is_exact = self._is_exact and node.is_exact
        self._index.add(node)
        node.predecessors = above - beyond_above
        node.successors = below - beyond_below
        self._link(node)
        self._search = _Search(self._index, item, form, above | {node}, below | {node})
        return item

    def _link(self, node: PosetNode[T, Any]) -> None:
        """Add the edges of a new node, and remove those that it makes redundant."""
        for lower in node.successors:
            for upper in lower.predecessors & node.predecessors:
                upper.successors.remove(lower)
                lower.remove_predecessor(upper)
            lower.predecessors.add(node)
            self._roots.pop(lower, None)
        for upper in node.predecessors:
            upper.successors.add(node)
        if not node.predecessors:
            self._roots[node] = None

    def remove(self, item: T) -> None:
        """Remove the item, or the one that is equal to it, and relink what was below it."""
        node = self._node(item)
        self._search = None
        del self._nodes[node.item]
        self._roots.pop(node, None)
        self._index.remove(node)
        for upper in node.predecessors:
            upper.successors.remove(node)
        for lower in sorted(node.successors, key=_number):
            lower.remove_predecessor(node)
            for upper in [p for p in node.predecessors if not self._is_linked(p, lower)]:
                upper.successors.add(lower)
                lower.predecessors.add(upper)
                if not self._is_exact and not self._index.covers(upper.form, lower.form):
                    lower.unproven |= {upper}
            if not lower.predecessors:
                self._roots[lower] = None

    def _is_linked(self, upper: PosetNode[T, Any], lower: PosetNode[T, Any]) -> bool:
        """Whether a node lies between the two; looks at the smaller set of edges."""
        covers = self._index.covers
        if len(upper.successors) < len(lower.predecessors):
            return any(covers(node.form, lower.form) for node in upper.successors)
        return any(covers(upper.form, node.form) for node in lower.predecessors)

    def find(self, item: T) -> T | None:
        """The stored item that is equal to this one, if there is one."""
        node = self._find(item)
        return None if node is None else node.item

    def covering(self, item: T) -> set[T]:
        """All items that cover this one, an equal one included. It need not be stored."""
        return {node.item for node in self._searched(item).above()}

    def covered(self, item: T) -> set[T]:
        """All items that this one covers, an equal one included. It need not be stored."""
        return {node.item for node in self._searched(item).below()}

    def covers(self, item: T, other: T) -> bool:
        """Whether one item covers the other. Neither need be stored; it is faster if they are."""
        return self._index.covers(self._form(item), self._form(other))

    def above(self, item: T) -> Iterator[T]:
        """The items on all paths upward, the nearest first; those that cover the item are among them.

        It is lazy, because most callers stop after a step or two.
        """
        start = self._node(item)
        seen = {start}
        found = [start]
        for node in found:  # the loop appends to it
            if node is not start:
                yield node.item
            new = node.predecessors - seen
            seen |= new
            found += new

    def exposed(self, item: T, hides: Callable[[T], bool]) -> list[T]:
        """What may be hidden by this item alone: the items below it, except those that are certainly
        covered by one that `hides`: on ways of exact items and proven edges covering is transitive."""
        lit: dict[PosetNode[T, Any], None] = {}
        dark: set[PosetNode[T, Any]] = set()
        ways = [(self._node(item), False)]
        while ways:
            upper, hides_below = ways.pop()
            for node in upper.successors:
                is_dark = hides_below and upper not in node.unproven
                if node in (dark if is_dark else lit):
                    continue
                if is_dark:
                    dark.add(node)
                else:
                    lit[node] = None
                is_dark = node.is_exact and (is_dark or hides(node.item))
                if not is_dark or not self._is_exact:  # else all below it is hidden
                    ways.append((node, is_dark))
        return [node.item for node in lit if node not in dark]

    def predecessors(self, item: T) -> set[T]:
        """The immediate predecessors of the item. It, or an equal one, must be stored."""
        return {node.item for node in self._node(item).predecessors}

    def successors(self, item: T) -> set[T]:
        """The immediate successors of the item. It, or an equal one, must be stored."""
        return {node.item for node in self._node(item).successors}

    def roots(self) -> set[T]:
        """The items that no other one covers."""
        return {node.item for node in self._roots}

    def ordered(self, items: Iterable[T]) -> list[T]:
        """Sort items of this poset by insertion, where a deterministic order is needed."""
        return sorted(items, key=lambda item: self._nodes[item].number)

    def matching(self, message: Message | Mapping[str, object]) -> set[T]:
        """All items that match a message; what lies below one that does not is skipped (3.7)."""
        known = as_message(message)
        matched: set[T] = set()
        open_above: dict[PosetNode[T, Any], int] = {}
        ready = list(self._roots)
        while ready:
            node = ready.pop()
            if not node.item.matches(known):
                continue
            matched.add(node.item)
            for lower in node.successors:
                left = open_above.get(lower, len(lower.predecessors)) - 1
                open_above[lower] = left
                if not left:
                    ready.append(lower)
        return matched

    def _searched(self, item: T) -> _Search[T]:
        """The search for an item; the last one is cached, since a query often precedes an insert."""
        if self._search is None or self._search.item != item:
            self._search = _Search(self._index, item, self._form(item))
        return self._search

    def _form(self, item: T) -> Any:
        node = self._nodes.get(item)
        return self._index.form(item) if node is None else node.form

    def _find(self, item: T) -> PosetNode[T, Any] | None:
        node = self._nodes.get(item)
        if node is not None:
            return node
        form = self._index.form(item)
        if (same := self._index.same(form)) is not None:
            return same
        covers = self._index.covers
        equal = {node for node in self._index.covering(form) if covers(form, node.form)}
        return _first(equal) if equal else None

    def _node(self, item: T) -> PosetNode[T, Any]:
        node = self._find(item)
        if node is None:
            raise InvalidValue(
                f"{item!r} is not in the poset of {self.order.name}, nor is one that is equal to it; "
                "insert it first"
            )
        return node


class _Search(Generic[T]):
    """What an index finds about an item; each side is searched when it is needed."""

    __slots__ = ("_above", "_below", "_index", "form", "item")

    def __init__(
        self,
        index: PosetIndex[T, Any],
        item: T,
        form: Any,
        above: set[PosetNode[T, Any]] | None = None,
        below: set[PosetNode[T, Any]] | None = None,
    ) -> None:
        self._index = index
        self.item = item
        self.form = form
        self._above = above
        self._below = below

    def above(self) -> set[PosetNode[T, Any]]:
        if self._above is None:
            self._above = self._index.covering(self.form)
        return self._above

    def below(self) -> set[PosetNode[T, Any]]:
        if self._below is None:
            self._below = self._index.covered(self.form)
        return self._below


_number = attrgetter("number")
_above = attrgetter("predecessors")
_below = attrgetter("successors")


def _first(nodes: Iterable[PosetNode[T, Any]]) -> PosetNode[T, Any]:
    return min(nodes, key=_number)


def _beyond(
    nodes: set[PosetNode[T, Any]], neighbours: Callable[[PosetNode[T, Any]], set[PosetNode[T, Any]]]
) -> set[PosetNode[T, Any]]:
    """All nodes on paths that start at these nodes. Where covering is transitive, they are among
    the nodes themselves."""
    beyond: set[PosetNode[T, Any]] = set().union(*map(neighbours, nodes))
    new = beyond - nodes
    while new:
        new = set().union(*map(neighbours, new)) - beyond
        beyond |= new
    return beyond
