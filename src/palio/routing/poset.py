"""A poset by pairwise scans: small, and replaced by the indexed one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from palio.model.advertisement import Advertisement
from palio.model.covering import advertisement_covers, covers
from palio.model.message import Message
from palio.model.predicate import Filter

T = TypeVar("T", Filter, Advertisement)


@dataclass(frozen=True)
class Order(Generic[T]):
    """How items are compared."""

    covers: Callable[[T, T], bool]


SUBSCRIPTIONS: Order[Filter] = Order(covers)
ADVERTISEMENTS: Order[Advertisement] = Order(advertisement_covers)


class Poset(Generic[T]):
    """Items ordered by covering."""

    def __init__(self, order: Order[T]) -> None:
        self._covers: Callable[[T, T], bool] = order.covers
        self._above: dict[T, set[T]] = {}
        self._below: dict[T, set[T]] = {}

    def insert(self, item: T) -> T:
        found = self.find(item)
        if found is not None:
            return found
        above, below = self.covering(item), self.covered(item)
        self._above[item], self._below[item] = above, below
        for a in above:
            self._below[a].add(item)
        for b in below:
            self._above[b].add(item)
        return item

    def find(self, item: T) -> T | None:
        if item in self._above:
            return item
        for other in self._above:
            if self._covers(item, other) and self._covers(other, item):
                return other
        return None

    def remove(self, item: T) -> None:
        for a in self._above.pop(item):
            self._below[a].discard(item)
        for b in self._below.pop(item):
            self._above[b].discard(item)

    def covering(self, item: T) -> set[T]:
        return {o for o in self._above if o == item or self._covers(o, item)}

    def covered(self, item: T) -> set[T]:
        return {o for o in self._above if o == item or self._covers(item, o)}

    def predecessors(self, item: T) -> set[T]:
        above = self._above[item]
        return {a for a in above if not (self._below[a] & above)}

    def successors(self, item: T) -> set[T]:
        below = self._below[item]
        return {b for b in below if not (self._above[b] & below)}

    def roots(self) -> set[T]:
        return {item for item, above in self._above.items() if not above}

    def matching(self, message: Message | Mapping[str, object]) -> set[T]:
        return {item for item in self._above if item.matches(message)}

    def __len__(self) -> int:
        return len(self._above)

    def __iter__(self) -> Iterator[T]:
        return iter(self._above)

    def __contains__(self, item: object) -> bool:
        return item in self._above
