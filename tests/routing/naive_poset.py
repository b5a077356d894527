"""The oracle of posets: the same methods by pairwise scans, straight from the definitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from palio import Advertisement, Filter, Message, covers

T = TypeVar("T", Filter, Advertisement)


class NaivePoset(Generic[T]):
    """Items in the order of covering (2000, 3.4)."""

    def __init__(self, covers: Callable[[T, T], bool] = covers) -> None:
        self._items: list[T] = []
        self._covers = covers
        self._transitive = True

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def __contains__(self, item: object) -> bool:
        return item in self._items

    def insert(self, item: T) -> T:
        known = self.find(item)
        if known is None:
            self._items.append(item)
            return item
        return known

    def find(self, item: T) -> T | None:
        if item in self._items:
            return item
        equal = (x for x in self._items if self._covers(x, item) and self._covers(item, x))
        return next(equal, None)

    def remove(self, item: T) -> None:
        known = self.find(item)
        assert known is not None
        self._items.remove(known)

    def covering(self, item: T) -> set[T]:
        return {x for x in self._items if self._covers(x, item)}

    def covered(self, item: T) -> set[T]:
        return {x for x in self._items if self._covers(item, x)}

    def predecessors(self, item: T) -> set[T]:
        known = self.find(item)
        above = self.covering(known) - {known}
        return {a for a in above if not any(a != x and self._covers(a, x) for x in above)}

    def successors(self, item: T) -> set[T]:
        known = self.find(item)
        below = self.covered(known) - {known}
        return {b for b in below if not any(b != x and self._covers(x, b) for x in below)}

    def roots(self) -> set[T]:
        return {item for item in self._items if self.covering(item) == {item}}

    def ordered(self, items: Iterable[T]) -> list[T]:
        wanted = set(items)
        return [item for item in self._items if item in wanted]

    def matching(self, message: Message | Mapping[str, object]) -> set[T]:
        return {item for item in self._items if item.matches(message)}

    def stayed_transitive(self) -> bool:
        """Is what is seen of covering transitive here, and was it whenever this was asked?

        On conjunctions of strings it may not be, and a poset remembers what it once saw.
        """
        below = {a: self.covered(a) for a in self._items}
        self._transitive &= all(below[b] <= below[a] for a in self._items for b in below[a])
        return self._transitive


def remembered() -> Callable[[Filter, Filter], bool]:
    """Covering that asks once for each pair."""
    known: dict[tuple[Filter, Filter], bool] = {}

    def ask(a: Filter, b: Filter) -> bool:
        if (a, b) not in known:
            known[a, b] = covers(a, b)
        return known[a, b]

    return ask
