"""Demand: what anybody else wants, reduced, kept as it changes.

    filter ──▶ how many brokers want it ──▶ poset, whose roots cover all others

The answer is for publishers, who keep quiet about the rest (quenching). It is bounded: of a crowd of
filters there is no short account, and then a publisher sends everything.
"""

from __future__ import annotations

from collections.abc import Iterable

from palio.model.language import FILTERS_MAX
from palio.model.predicate import Filter, Predicate
from palio.routing.poset import SUBSCRIPTIONS, Poset

SAID_MAX = FILTERS_MAX  # filters of an answer: what parsers take
COUNTED_MAX = 4 * SAID_MAX  # distinct filters that it is made of


class Demand:
    """The union of filters, each there as often as it was added.

    >>> from palio import parse
    >>> demand = Demand()
    >>> demand.add(parse("x > 1 OR x > 5").filters)
    >>> demand.reduced()
    Predicate(x > 1)
    """

    def __init__(self) -> None:
        self._counts: dict[Filter, int] = {}
        self._poset: Poset[Filter] | None = Poset(SUBSCRIPTIONS)
        self._equal: dict[Filter, Filter] = {}  # to the one that is in the poset for it
        self._uses: dict[Filter, int] = {}  # of those in the poset
        self._answer: Predicate | None = None
        self._is_stale = True

    def add(self, filters: Iterable[Filter]) -> None:
        for found in filters:
            self._counts[found] = self._counts.get(found, 0) + 1
            if self._counts[found] == 1:
                self._is_stale = True
                self._insert(found)

    def remove(self, filters: Iterable[Filter]) -> None:
        for found in filters:
            self._counts[found] -= 1
            if not self._counts[found]:
                del self._counts[found]
                self._is_stale = True
                self._withdraw(found)

    def reduced(self) -> Predicate | None:
        """The filters that no other one covers; None: there are too many."""
        if self._is_stale:
            self._is_stale = False
            self._answer = self._roots()
        return self._answer

    def _roots(self) -> Predicate | None:
        if self._poset is None and 2 * len(self._counts) <= COUNTED_MAX:  # not to and fro
            self._poset, self._equal, self._uses = Poset(SUBSCRIPTIONS), {}, {}
            for found in self._counts:
                self._insert(found)
        roots = set() if self._poset is None else self._poset.roots()
        if self._poset is None or len(roots) > SAID_MAX:
            return None
        return Predicate(tuple(self._poset.ordered(roots)))

    def _insert(self, found: Filter) -> None:
        if len(self._counts) > COUNTED_MAX:
            self._poset = None
        if self._poset is not None:
            known = self._equal[found] = self._poset.insert(found)
            self._uses[known] = self._uses.get(known, 0) + 1

    def _withdraw(self, found: Filter) -> None:
        if self._poset is not None:
            known = self._equal.pop(found)
            self._uses[known] -= 1
            if not self._uses[known]:
                del self._uses[known]
                self._poset.remove(known)
