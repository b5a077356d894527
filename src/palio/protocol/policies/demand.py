"""Demand: the reduced union of what other brokers want, maintained as it changes.

    filter ──▶ number of brokers that want it ──▶ poset ──▶ its roots, which cover all others

Clients that publish receive the roots and do not send what no root matches (quenching). The answer
is bounded: with too many filters it is None, and publishers send everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from palio.model.predicate import Filter, Predicate
from palio.protocol.policies.link_state import FilterChanges, LinkStateDatabase
from palio.routing.poset import SUBSCRIPTIONS, Poset

ROOTS_MAX = 1000  # filters in an answer; a client parses so many in 0.1 s
COUNTED_MAX = 4096  # distinct filters in the poset: 0.7 s to build, 0.1 ms for each change


class Demand:
    """A union of filters, each counted as often as it was added.

    >>> from palio import parse
    >>> demand = Demand()
    >>> demand.add(parse("x > 1 OR x > 5").filters)
    >>> demand.reduced()
    Predicate(x > 1)
    """

    def __init__(self) -> None:
        self._counts: dict[Filter, int] = {}
        self._limit = COUNTED_MAX
        self._poset: Poset[Filter] | None = None  # built by the first call of `reduced`
        self._equal: dict[Filter, Filter] = {}  # filter -> the equal one that the poset holds
        self._uses: dict[Filter, int] = {}  # filter in the poset -> number of filters equal to it
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
        """The filters that no other filter covers; None if there are too many."""
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
        return Predicate(tuple(self._poset.ordered(roots))) if len(roots) <= ROOTS_MAX else None

    def _insert(self, found: Filter) -> None:
        if self._poset is not None and len(self._counts) > self._limit:
            self._poset = None
            # build it again only well below the limit, not with every change around it
            self._limit = COUNTED_MAX // 2
        if self._poset is not None:
            held = self._equal[found] = self._poset.insert(found)
            self._uses[held] = self._uses.get(held, 0) + 1

    def _withdraw(self, found: Filter) -> None:
        if self._poset is not None:
            held = self._equal.pop(found)
            self._uses[held] -= 1
            if not self._uses[held]:
                del self._uses[held]
                self._poset.remove(held)


class NetworkDemand:
    """What the reachable brokers want, by their link states. The first query starts to follow
    them."""

    def __init__(self, database: LinkStateDatabase) -> None:
        self._database = database
        self._demand: Demand | None = None
        self._changes: FilterChanges = {}
        self._reachable: frozenset[str] = frozenset()

    def reduced(self) -> Predicate | None:
        """The filters of reachable brokers that no other filter covers; None if there are too
        many."""
        before, self._reachable = self._reachable, self._database.reachable_brokers()
        if self._demand is None:
            self._demand, self._changes = Demand(), self._database.follow()
            self._changes.clear()  # all brokers are counted below as newly reachable
        self._update(self._demand, before)
        self._changes.clear()
        return self._demand.reduced()

    def _update(self, demand: Demand, before: frozenset[str]) -> None:
        """Count the brokers that became reachable or unreachable, and the changes of the others."""
        changes, now = self._changes, self._reachable
        for broker in sorted(now - before):
            demand.add(self._database.wanted(broker).filters)
        for broker in sorted(before - now):
            filters = self._database.wanted(broker).filters
            demand.remove(_without(changes.get(broker, {}), filters))
        for broker in sorted(changes.keys() & before & now):
            demand.add(f for f, is_wanted in changes[broker].items() if is_wanted)
            demand.remove(f for f, is_wanted in changes[broker].items() if not is_wanted)


def _without(changes: Mapping[Filter, bool], filters: Iterable[Filter]) -> set[Filter]:
    """The filters as they were before these changes."""
    added = {found for found, is_wanted in changes.items() if is_wanted}
    return (set(filters) - added) | (changes.keys() - added)
