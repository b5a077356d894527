"""What other brokers want, in the interest table, in the entries of the routing scheme (2006, 3).

    PSF, iPS, PIF   filters of brokers ─▶ LiveDisjunctions ─▶ entries: reduced disjunctions, by NextHop
    DRP             filters of brokers ─▶ as each broker announced them, by RemoteBroker

A changed filter changes only the entries that contain its broker. A new topology changes the sets of
brokers behind the entries. `regroup` compares every filter with the new sets: first it adds what is
missing, then it removes the rest. Until nothing is missing, the policy sends messages that match any
entry to all children (tree_policy.py), so none is lost meanwhile. Both are done piece by piece, and at
every moment the table matches at least what brokers want, as far as their changes have been applied.

The table and the poset of the filters depend on each other as forwarding and routing tables do
elsewhere: messages are matched by the table alone, and the table can be made anew from the poset and
the topology. `held` and `predicates` count what the table has for other brokers, beside `formula`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TypeAlias

from palio.model.predicate import Filter
from palio.protocol.broker.scheduler import in_slices
from palio.protocol.interfaces import NextHop, RemoteBroker
from palio.protocol.policies.policy import RoutingPolicy
from palio.routing.interest_table import InterestTable
from palio.routing.schemes.live_disjunctions import LiveDisjunctions
from palio.routing.schemes.memory import filter_bits

Work: TypeAlias = Iterator[int]
"""What is done piece by piece; each number is the cost of a piece, in checks of 0.3 us."""

_CHANGE = 30
"""Checks: as long as to add a filter to the table, or to remove one."""
_ORDER = 600
"""Checks: as long as to find what covers a filter, usually."""
_ENTRY = 500
"""Checks: as long as to find an entry in the tree of a source."""
_FILTERS_AT_ONCE = 500
_CHANGES_AT_ONCE = 50


class FilterAmount:
    """How much some filters are; bits are those of the model in routing/schemes/memory.py."""

    __slots__ = ("constraints", "filters", "predicate_bits")

    def __init__(self) -> None:
        self.filters = self.constraints = self.predicate_bits = 0

    def count(self, found: Filter, change: int) -> None:
        self.filters += change
        self.constraints += change * len(found.constraints)
        self.predicate_bits += change * filter_bits(found)


class RemoteInterests:
    """`flush` processes the messages received so far; it is called before the table changes."""

    def __init__(
        self, table: InterestTable, policy: RoutingPolicy, flush: Callable[[], None]
    ) -> None:
        self._table, self._flush = table, flush
        self._grouping = policy.grouping
        self.known = LiveDisjunctions()
        """The filters of all brokers, of unreachable ones too; empty for DRP."""
        self._entries: dict[str, int] = {}  # name -> mask of its brokers
        self._containing: dict[int, list[str]] = {}  # bits -> the entries that have one of them
        self._lacking: dict[str, None] = {}  # entries that may miss filters
        self._surplus: dict[str, None] = {}  # entries, also former ones, with filters to remove
        self._round = 0
        """How often the topology has changed; only the last `regroup` goes on."""
        self.is_outdated = False
        """`regroup` has to follow the topology."""
        self._wanted: dict[str, FilterAmount] = {}  # by broker
        self._uses: Counter[str] = Counter()  # in how many entries a broker is
        self.held = FilterAmount()
        """The filters of all entries."""
        self.predicates = 0
        """Entries that have filters."""

    @property
    def is_settled(self) -> bool:
        """Whether no entry may miss a filter."""
        return not self._lacking and not self.is_outdated

    def formula(self) -> tuple[int, int]:
        """Constraints and bits of all entries by the formulas of the paper, with alpha = 1: each has
        the predicates of all brokers behind it, one after the other. With DRP each broker has one."""
        constraints = bits = 0
        for broker, wanted in self._wanted.items():
            uses = 1 if self._grouping is None else self._uses[broker]
            constraints += uses * wanted.constraints
            bits += uses * wanted.predicate_bits
        return constraints, bits

    def change(self, broker: str, news: Mapping[Filter, bool]) -> Work:
        """Add (True) and remove filters of another broker. Neither another change nor `regroup` may
        begin before it ends."""
        wanted = self._wanted.setdefault(broker, FilterAmount())
        for found, is_wanted in news.items():
            wanted.count(found, 1 if is_wanted else -1)
        if not wanted.filters:
            del self._wanted[broker]
        if self._grouping is None:
            self._write(RemoteBroker(broker), news)
            yield _CHANGE * len(news)
            return
        for found, is_wanted in news.items():
            yield _ORDER
            changes = self.known.change(broker, found, is_wanted)
            while part := list(islice(changes, _CHANGES_AT_ONCE)):
                due: dict[str, dict[Filter, bool]] = {}
                for shared, bits in part:
                    for name in self._having(bits):
                        due.setdefault(name, {})[shared.item] = shared.is_in(self._entries[name])
                for name, filters in due.items():
                    yield _CHANGE * (len(part) + self._reconcile(name, filters))

    def _having(self, bits: int) -> list[str]:
        """The entries that contain one of these brokers."""
        known = self._containing.get(bits)
        if known is None:
            known = [name for name, mask in self._entries.items() if mask & bits]
            self._containing[bits] = known
        return known

    def _reconcile(self, name: str, filters: Mapping[Filter, bool]) -> int:
        """Bring the table into line: an entry should have these filters (True) or not. Returns how
        many filters were added or removed."""
        interface = NextHop(name)
        present = self._table.filters_of(interface)
        news = {f: is_in for f, is_in in filters.items() if is_in is not (f in present)}
        self._write(interface, news)
        return len(news)

    def _write(self, interface: NextHop | RemoteBroker, news: Mapping[Filter, bool]) -> None:
        if not news:
            return
        self._flush()
        before = bool(self._table.filters_of(interface))
        for found, is_added in news.items():
            self.held.count(found, 1 if is_added else -1)
        self._table.change(interface, news)
        self.predicates += bool(self._table.filters_of(interface)) - before

    # ---- a new topology

    def reroute(self) -> None:
        """The policy has a new topology: `regroup` has to follow it."""
        if self._grouping is not None:
            self._round += 1
            self.is_outdated = True
            self._grouping.settling(frozenset([*self._entries, *self._surplus]))

    def regroup(self) -> Work:
        """Follow the topology of the policy. It ends early when there is a newer one."""
        grouping = self._grouping
        if grouping is None:
            return
        this = self._round
        entries: dict[str, int] = {}
        uses: Counter[str] = Counter()
        for name, behind in grouping.entries():
            uses.update(behind)
            entries[name] = self.known.mask(behind)
            yield _ENTRY + len(behind)
            if self._round != this:
                return
        self.is_outdated = False
        self._replace(entries, uses)
        grouping.settling(frozenset([*self._entries, *self._surplus]))
        for step in (self._fill, self._settle, self._clear):
            for checks in step():
                yield checks
                if self._round != this:
                    return

    def _replace(self, entries: dict[str, int], uses: Counter[str]) -> None:
        """Take the new entries, and note what has to be done for them."""
        old, self._entries, self._uses, self._containing = self._entries, entries, uses, {}
        self.known.forget_all_but(uses)
        for name, mask in entries.items():
            if old.get(name) != mask:
                self._lacking[name] = self._surplus[name] = None
        for name in old:
            if name not in entries:
                self._lacking.pop(name, None)
                self._surplus[name] = None

    def _fill(self) -> Work:
        """Add to each entry what it misses."""
        filters = list(self.known) if self._lacking else []
        for name in list(self._lacking):
            mask = self._entries[name]
            for part in in_slices(filters, _FILTERS_AT_ONCE):
                due = {one.item: True for one in part if one.is_in(mask)}
                yield len(part) + _CHANGE * self._reconcile(name, due)
            del self._lacking[name]

    def _settle(self) -> Work:
        """No entry misses a filter: messages need not go to all children any more."""
        assert self._grouping is not None
        self._flush()
        self._grouping.settling(frozenset())
        yield 0

    def _clear(self) -> Work:
        """Remove from each entry what it should not have."""
        for name in list(self._surplus):
            mask = self._entries.get(name, 0)
            for part in in_slices(list(self._table.filters_of(NextHop(name))), _FILTERS_AT_ONCE):
                due = {found: False for found in part if not self.known.is_in(found, mask)}
                yield len(part) + _CHANGE * self._reconcile(name, due)
            del self._surplus[name]
