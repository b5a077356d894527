"""Items in the order of covering and in the order of arrival, with answers cached for one step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from palio.model.advertisement import Advertisement
from palio.model.predicate import Filter
from palio.routing.poset import Order, Poset

T = TypeVar("T", Filter, Advertisement)


class ItemOrder(Generic[T]):
    """Whoever inserts a new item into the poset numbers it. `end_step` drops what is cached."""

    def __init__(self, order: Order[T]) -> None:
        self.poset: Poset[T] = Poset(order)
        self._numbers: dict[T, int] = {}
        self._arrivals = 0
        self._known: dict[tuple[T, T], bool] = {}
        self._below: dict[T, set[T]] = {}

    def __iter__(self) -> Iterator[T]:
        """In the order of arrival."""
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, item: T) -> None:
        """A new item has arrived."""
        self._below = {}
        self._numbers[item] = self._arrivals
        self._arrivals += 1

    def remove(self, item: T) -> None:
        self.poset.remove(item)
        del self._numbers[item]

    def end_step(self) -> None:
        self._known, self._below = {}, {}

    def covers(self, item: T, other: T) -> bool:
        known = self._known.get((item, other))
        if known is None:
            known = self._known[item, other] = self.poset.covers(item, other)
        return known

    def covering(self, item: T, others: set[T]) -> set[T]:
        """Those of the others that cover an item."""
        if not others:
            return set()
        return {o for o in self.poset.above(item) if o in others and self.covers(o, item)}

    def under(self, item: T) -> set[T]:
        """What an item covers, itself apart; most cover nothing, which needs no search."""
        found = self._below.get(item)
        if found is None:
            near = self.poset.successors(item)
            found = self._below[item] = self.poset.covered(item) - {item} if near else set()
        return found

    def sorted(self, items: Iterable[T]) -> list[T]:
        """In the order of arrival: the order of a set differs between processes."""
        return sorted(items, key=self._numbers.__getitem__)
