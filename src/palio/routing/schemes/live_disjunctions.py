"""Reduced disjunctions of sets of brokers, maintained while brokers add and remove filters.

The forwarding function of a scheme has one predicate for each entry: the disjunction of what a set of
brokers wants (2006, 3). A filter belongs to it if a broker of the set wants it and no broker of the set
wants one that covers it. Whether it does follows from two masks of brokers (bit i: the i-th broker):

    filter        wanted              covered             entry {b, c}: is a bit of `wanted` in it,
    x > 1         a                                                     and none of `covered`?
    x > 3         b   c               a                   x > 3         yes, until b or c wants x > 1
    x > 5         c                   a b c               x > 5         no

All filters are ordered in one poset (poset.py): `covered` is the union of the masks above a filter. A
change of one broker changes one bit of that filter, and of those below it; nothing else is computed
again. Of equal filters the poset has one. With more than `ORDERED_MAX` filters, new ones are not
ordered: they cover nothing and nothing covers them, so disjunctions are larger and still right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from palio.model.predicate import Filter
from palio.routing.poset import SUBSCRIPTIONS, Poset

ORDERED_MAX = 1 << 15
"""Filters in the poset."""


class SharedFilter:
    """A filter that brokers want, and all that are equal to it."""

    __slots__ = ("covered", "item", "uses", "wanted")

    def __init__(self, item: Filter) -> None:
        self.item = item
        self.uses = 0
        """How often a broker has it, or an equal one."""
        self.wanted = 0
        self.covered = 0
        """The brokers that want a filter that covers it."""

    def is_in(self, brokers: int) -> bool:
        """Whether the reduced disjunction of these brokers has it."""
        return bool(self.wanted & brokers) and not self.covered & brokers


MaskChange: TypeAlias = tuple[SharedFilter, int]
"""A filter, and the bits of its masks that have changed."""


class LiveDisjunctions:
    """The filters of brokers, each with the masks that say in which disjunctions it is.

    >>> from palio import parse
    >>> wide, narrow = parse("x > 1 OR x > 3").filters
    >>> found = LiveDisjunctions()
    >>> len([*found.change("ann", wide, True), *found.change("bob", narrow, True)])
    2
    >>> [found.is_in(narrow, found.mask(brokers)) for brokers in (["bob"], ["ann", "bob"])]
    [True, False]
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._free: list[int] = []
        self._filters_of: Counter[str] = Counter()
        self._shared: dict[Filter, SharedFilter] = {}
        self._announced: Counter[Filter] = Counter()  # how many brokers have exactly this filter
        self._repeats: Counter[tuple[Filter, int]] = Counter()  # equal filters of one broker
        self._poset: Poset[Filter] = Poset(SUBSCRIPTIONS)

    def __len__(self) -> int:
        """How many different filters there are."""
        return len(self._shared)

    def __iter__(self) -> Iterator[SharedFilter]:
        return iter([one for found, one in self._shared.items() if found == one.item])

    # ---- brokers

    def mask(self, brokers: Iterable[str]) -> int:
        """The mask of these brokers."""
        return sum(1 << self._number(broker) for broker in brokers)

    def forget_all_but(self, brokers: Iterable[str]) -> None:
        """Reuse the bits of brokers that are none of these and want nothing; no mask may have them."""
        kept = set(brokers)
        for broker in [b for b in self._numbers if b not in kept and b not in self._filters_of]:
            self._free.append(self._numbers.pop(broker))

    def _number(self, broker: str) -> int:
        number = self._numbers.get(broker)
        if number is None:
            number = self._free.pop() if self._free else len(self._numbers)
            self._numbers[broker] = number
        return number

    # ---- filters

    def is_in(self, found: Filter, brokers: int) -> bool:
        """Whether the reduced disjunction of these brokers has this filter."""
        shared = self._shared.get(found)
        return shared is not None and shared.item == found and shared.is_in(brokers)

    def change(self, broker: str, found: Filter, is_wanted: bool) -> Iterator[MaskChange]:
        """A broker wants a filter that it did not want, or no longer wants one. Gives the filters whose
        masks change, each with the bits that do. There may be many below the filter itself: it is given
        first if it is new, last if it is gone, so that whoever writes disjunctions as these come never
        lacks what brokers want. The next change must wait until all are given."""
        bit = 1 << self._number(broker)
        self._filters_of[broker] += 1 if is_wanted else -1
        if not self._filters_of[broker]:
            del self._filters_of[broker]
        return self._add(found, bit) if is_wanted else self._remove(found, bit)

    def _add(self, found: Filter, bit: int) -> Iterator[MaskChange]:
        shared = self._shared.get(found)
        if shared is None:
            shared = self._enter(found)
        self._announced[found] += 1
        shared.uses += 1
        if shared.wanted & bit:
            self._repeats[shared.item, bit] += 1
            return
        shared.wanted |= bit
        yield shared, bit
        yield from self._below(shared)

    def _remove(self, found: Filter, bit: int) -> Iterator[MaskChange]:
        shared = self._shared[found]
        shared.uses -= 1
        self._announced[found] -= 1
        if not self._announced[found]:
            del self._announced[found]
            if found != shared.item:
                del self._shared[found]
        repeated = (shared.item, bit)
        if repeated in self._repeats:
            self._repeats[repeated] -= 1
            if not self._repeats[repeated]:
                del self._repeats[repeated]
            return
        shared.wanted &= ~bit
        yield from self._below(shared)
        if not shared.uses:
            del self._shared[shared.item]
            if shared.item in self._poset:
                self._poset.remove(shared.item)
        yield shared, bit

    def _enter(self, found: Filter) -> SharedFilter:
        """The shared filter of one that is new: another that is equal, or its own."""
        item = found
        if len(self._poset) < ORDERED_MAX:
            item = self._poset.insert(found)
        shared = self._shared.get(item)
        if shared is None:
            shared = self._shared[item] = SharedFilter(item)
            if item in self._poset:
                shared.covered = self._above(item)
        self._shared[found] = shared
        return shared

    def _above(self, item: Filter) -> int:
        """The brokers that want something above a filter."""
        covered = 0
        for upper in self._poset.predecessors(item):
            shared = self._shared[upper]
            covered |= shared.wanted | shared.covered
        return covered

    def _below(self, shared: SharedFilter) -> Iterator[MaskChange]:
        """Update the filters below one whose masks have changed."""
        poset = self._poset
        if shared.item not in poset:
            return
        waiting = poset.ordered(poset.successors(shared.item))
        for item in waiting:  # the loop appends to it; a bit of a filter changes once
            lower, covered = self._shared[item], self._above(item)
            if covered != lower.covered:
                changed, lower.covered = covered ^ lower.covered, covered
                yield lower, changed
                waiting += poset.ordered(poset.successors(item))
