"""What other brokers want, in the interest table, in the entries of the routing scheme (2006, 3).

    PSF, iPS, PIF   filters of brokers ─▶ LiveDisjunctions ─▶ entries: reduced disjunctions, by NextHop
    DRP             filters of brokers ─▶ as each broker announced them, by RemoteBroker

A changed filter changes only the entries that contain its broker. A new topology changes the sets of
brokers behind the entries. `regroup` compares every filter with the new sets, in slices: first it adds
what is missing, then it removes the rest. Until nothing is missing, the policy sends messages that match
any entry to all children (tree_policy.py), so none is lost meanwhile.

The table and the poset of the filters depend on each other as forwarding and routing tables do
elsewhere: messages are matched by the table alone, and the table can be made anew from the poset and
the topology. `held` and `predicates` count what the table has for other brokers, beside `formula`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from palio.model.predicate import Filter
from palio.protocol.broker.scheduler import Slices, in_slices
from palio.protocol.interfaces import NextHop, RemoteBroker
from palio.protocol.policies.policy import RoutingPolicy
from palio.protocol.policies.tree_policy import TreePolicy
from palio.routing.interest_table import InterestTable
from palio.routing.schemes.live_disjunctions import LiveDisjunctions
from palio.routing.schemes.memory import filter_bits

CHECKS_AT_ONCE = 4000
"""Filters that a slice compares with the brokers of an entry: about 2 ms."""
_CHANGE = 40
"""Checks: as long as to change the table."""


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
        self._policy = policy if isinstance(policy, TreePolicy) else None
        self.known = LiveDisjunctions()
        """The filters of all brokers, of unreachable ones too; empty for DRP."""
        self._entries: dict[str, int] = {}  # name -> mask of its brokers
        self._containing: dict[int, list[str]] = {}  # bits -> the entries that have one of them
        self._lacking: dict[str, None] = {}  # entries that may miss filters
        self._surplus: dict[str, None] = {}  # entries, also former ones, with filters to remove
        self._round = 0
        """How often the topology has changed; only the last `regroup` goes on."""
        self._wanted: dict[str, FilterAmount] = {}  # by broker
        self._uses: Counter[str] = Counter()  # in how many entries a broker is
        self.held = FilterAmount()
        """The filters of all entries."""
        self.predicates = 0
        """Entries that have filters."""

    @property
    def is_grouped(self) -> bool:
        """Whether entries stand for sets of brokers; a change is then found by covering."""
        return self._policy is not None

    @property
    def is_settled(self) -> bool:
        """Whether no entry may miss a filter."""
        return not self._lacking

    def formula(self) -> tuple[int, int]:
        """Constraints and bits of all entries by the formulas of the paper, with alpha = 1: each has
        the predicates of all brokers behind it, one after the other. With DRP each broker has one."""
        constraints = bits = 0
        for broker, wanted in self._wanted.items():
            uses = 1 if self._policy is None else self._uses[broker]
            constraints += uses * wanted.constraints
            bits += uses * wanted.predicate_bits
        return constraints, bits

    def change(self, broker: str, news: Mapping[Filter, bool]) -> None:
        """Add (True) and remove filters of another broker."""
        wanted = self._wanted.setdefault(broker, FilterAmount())
        for found, is_wanted in news.items():
            wanted.count(found, 1 if is_wanted else -1)
        if not wanted.filters:
            del self._wanted[broker]
        if self._policy is None:
            self._write(RemoteBroker(broker), news)
            return
        changes: dict[str, dict[Filter, bool]] = {}
        for found, is_wanted in news.items():
            for shared, bits in self.known.change(broker, found, is_wanted):
                for name in self._having(bits):
                    changes.setdefault(name, {})[shared.item] = shared.is_in(self._entries[name])
        for name, filters in changes.items():
            self._reconcile(name, filters)

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
        if self._lacking and not all(news.values()):
            self._surplus[name] = None  # removed when no entry misses a filter
            news = {found: True for found, is_in in news.items() if is_in}
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

    def regroup(self) -> Slices:
        """Follow the topology of the policy, which has changed."""
        policy = self._policy
        if policy is None:
            return
        old, self._entries, self._containing = self._entries, {}, {}
        self._round += 1
        this = self._round
        self._uses.clear()
        for name, behind in policy.entries():
            self._uses.update(behind)
            mask = self._entries[name] = self.known.mask(behind)
            if old.get(name) != mask:
                self._lacking[name] = self._surplus[name] = None
        self.known.forget_all_but(self._uses)
        for name in old:
            if name not in self._entries:
                self._lacking.pop(name, None)
                self._surplus[name] = None
        if self._lacking:
            policy.settling(frozenset([*self._entries, *self._surplus]))
            yield from self._in_slices(self._fill())
            if self._round != this:
                return
            self._flush()
        policy.settling(frozenset())
        yield from self._in_slices(self._clear())

    def _in_slices(self, slices: Iterator[int]) -> Slices:
        """Run this in slices by the work that it reports; stop if the topology changes again."""
        this, done = self._round, 0
        for checks in slices:
            done += checks
            if done >= CHECKS_AT_ONCE:
                done = 0
                yield None
            if self._round != this:
                return

    def _fill(self) -> Iterator[int]:
        """Add to each entry what it misses. `change` adds filters that come meanwhile."""
        filters = list(self.known)
        for name in list(self._lacking):
            mask = self._entries[name]
            for part in in_slices(filters, CHECKS_AT_ONCE // 8):
                due = {one.item: True for one in part if one.is_in(mask)}
                yield len(part) + _CHANGE * self._reconcile(name, due)
            del self._lacking[name]

    def _clear(self) -> Iterator[int]:
        """Remove from each entry what it should not have."""
        for name in list(self._surplus):
            mask = self._entries.get(name, 0)
            for part in in_slices(list(self._table.filters_of(NextHop(name))), CHECKS_AT_ONCE // 8):
                due = {found: False for found in part if not self.known.is_in(found, mask)}
                yield len(part) + _CHANGE * self._reconcile(name, due)
            del self._surplus[name]
