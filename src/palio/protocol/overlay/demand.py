"""Demand: what anybody else wants, reduced, kept as it changes.

    filter ──▶ how many brokers want it ──▶ poset, whose roots cover all others

The answer is for publishers, who keep quiet about the rest (quenching). It is bounded: of a crowd of
filters there is no short account, and then a publisher sends everything.
"""

from __future__ import annotations

from collections.abc import Iterable

from palio.model.predicate import Filter, Predicate
from palio.routing.poset import SUBSCRIPTIONS, Poset

SAID_MAX = 1000  # filters of an answer; a client parses them in 0.1 s
COUNTED_MAX = (
    4096  # distinct filters that it is made of; their poset takes 0.7 s once, 0.1 ms a change
)


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
        self._limit = COUNTED_MAX
        self._poset: Poset[Filter] | None = None  # until somebody asks
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
        if self._poset is None:
            if len(self._counts) > self._limit:
                return None
            self._limit = COUNTED_MAX
            self._poset, self._equal, self._uses = Poset(SUBSCRIPTIONS), {}, {}
            for found in self._counts:
                self._insert(found)
        roots = self._poset.roots()
        return Predicate(tuple(self._poset.ordered(roots))) if len(roots) <= SAID_MAX else None

    def _insert(self, found: Filter) -> None:
        if self._poset is not None and len(self._counts) > self._limit:
            self._poset = None
            self._limit = COUNTED_MAX // 2  # not to and fro
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
