"""The routing state as it must be when the network is quiet, computed from nothing but the clients.

Of each link u-v, what u has forwarded to v follows from what is in force on u's side of the tree:
the filters of all clients there (with advertisements: those that intersect an advertisement in force
on v's side); by covering, only those that no other of them covers. What v holds from u is the same set,
so both ends agree. In a hierarchy only masters are told, and all; and of its master a router holds that
it wants everything.

Patterns are shared out anew from the watches of all clients, router by router, by all advertisements
in force (`sharing.py`); what a router matches of them, it must subscribe to under its own name.

Filters are bits: bit i is the i-th class of equal filters, `above[i]` the classes that cover it.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from palio.model.advertisement import Advertisement
from palio.model.predicate import Filter
from palio.routing.hierarchy import EVERYTHING
from palio.sim.routers.link_history import paths
from palio.sim.routers.pattern_sharing import shared_out
from palio.sim.routers.plans import RouterPlan
from palio.sim.routers.process import RouterProcess
from palio.sim.routers.relations import covers, intersects
from palio.sim.routers.subscription_history import SubscriptionHistory


class Recomputation:
    """Compares the routers of a plan with what its clients want."""

    def __init__(self, plan: RouterPlan) -> None:
        self._plan = plan
        self._is_covering = plan.routing == "covering"
        self._directions = [d for a, b in plan.links for d in ((a, b), (b, a))]
        self._paths = paths(plan)
        self._representatives: list[Filter] = []
        self._classes: dict[Filter, int] = {}
        self._above: list[int] = []

    def difference(
        self, nodes: dict[str, RouterProcess], histories: dict[str, SubscriptionHistory]
    ) -> str | None:
        """A sentence on the first difference; None: every router is as it must be."""
        offered = {client: said.offers() for client, said in histories.items()}
        watched = {client: said.watched() for client, said in histories.items()}
        shares = shared_out(self._plan, self._paths, watched, offered)
        for client in histories.values():
            for declared in client.subscriptions:
                self._class(declared.item)
        for share in shares.values():
            for item in share.filters:
                self._class(item)
        router_of = dict(self._plan.clients)
        wanted = {client: self._mask(said.filters()) for client, said in histories.items()}
        for name, share in shares.items():  # a router is a client of its own
            router_of[name] = name
            wanted[name], offered[name] = self._mask(share.filters), []
        forwarded = {
            (u, v): self._forwarded(
                sum_bits(
                    wanted[c] for c, home in router_of.items() if v not in self._paths[u][home]
                ),
                [
                    a
                    for c, home in router_of.items()
                    if v in self._paths[u][home]
                    for a in offered[c]
                ],
            )
            if self._is_told(u, v)
            else 0
            for u, v in self._directions
        }
        for name, node in nodes.items():
            heard = {u: mask for (u, v), mask in forwarded.items() if v == name}
            if self._is_covering and self._plan.hierarchy:
                everything = 1 << self._class(EVERYTHING)
                heard |= {u: everything for u, v in self._plan.links if v == name}
            here = [client for client, home in router_of.items() if home == name]
            # What a router subscribes to itself, it keeps even where another of its filters covers it.
            heard |= {c: wanted[c] if c == name else self._maximal(wanted[c]) for c in here}
            told = {v: mask for (u, v), mask in forwarded.items() if u == name}
            difference = self._compare(name, node, heard, told)
            if difference is None and name in shares:
                difference = shares[name].difference(name, node.router)
            if difference is not None:
                return difference
        return None

    def _compare(
        self, name: str, node: RouterProcess, heard: dict[str, int], told: dict[str, int]
    ) -> str | None:
        """The first filter that a router should know otherwise than it does."""
        router = node.router
        assert router is not None
        expected = self._by_class(heard, told)
        for f in router.subscriptions:
            actual = (set(router.subscribers(f)), set(router.forwards(f)))
            right = expected.pop(self._classes.get(f, -1), (set(), set()))
            if actual != right:
                return f"router {name} has {shown(f, *actual)}; it should have {shown(f, *right)}"
        for i, right in expected.items():
            return f"router {name} lacks {shown(self._representatives[i], *right)}"
        return None

    def _by_class(
        self, heard: dict[str, int], told: dict[str, int]
    ) -> dict[int, tuple[set[str], set[str]]]:
        """Subscribers and forwards of each class of filters that a router is to know."""
        peers_of: dict[int, tuple[set[str], set[str]]] = {}
        for place, masks in enumerate((heard, told)):
            for peer, mask in masks.items():
                while mask:
                    bit = mask & -mask
                    peers_of.setdefault(bit.bit_length() - 1, (set(), set()))[place].add(peer)
                    mask ^= bit
        return peers_of

    def _is_told(self, u: str, v: str) -> bool:
        """Does u forward subscriptions to v at all?"""
        if self._plan.hierarchy:
            return (v, u) in self._plan.links
        return self._plan.routing != "flooding"

    def _forwarded(self, mask: int, offers: Iterable[Advertisement]) -> int:
        if self._plan.advertisements and not self._plan.hierarchy:
            met = [
                f for f in self._filters(mask) if any(intersects(a, f) for a in offers)
            ]  # a filter intersects what its cover intersects: hiding loses nothing
            mask = self._mask(met)
        return self._maximal(mask)

    def _filters(self, mask: int) -> list[Filter]:
        return [f for i, f in enumerate(self._representatives) if mask >> i & 1]

    def _mask(self, filters: Iterable[Filter]) -> int:
        return sum_bits(1 << self._classes[f] for f in filters)

    def _maximal(self, mask: int) -> int:
        if not self._is_covering:
            return mask
        return sum_bits(
            1 << i for i, above in enumerate(self._above) if mask >> i & 1 and not above & mask
        )

    def _class(self, f: Filter) -> int:
        """The number of the filters that equal this one; without covering, of this one."""
        known = self._classes.get(f)
        if known is not None:
            return known
        below, above, number = 0, 0, len(self._representatives)
        for i, other in enumerate(self._representatives if self._is_covering else ()):
            wider, narrower = covers(other, f), covers(f, other)
            if wider and narrower:
                self._classes[f] = i
                return i
            above |= wider << i
            below |= narrower << i
        for i in range(number):
            self._above[i] |= (below >> i & 1) << number
        self._classes[f] = number
        self._representatives.append(f)
        self._above.append(above)
        return number


def sum_bits(masks: Iterable[int]) -> int:
    total = 0
    for mask in masks:
        total |= mask
    return total


def shown(f: Filter, subscribers: AbstractSet[str], forwards: AbstractSet[str]) -> str:
    """An item of a routing table, as the 2000 paper draws it: with two sets."""
    return f"[{f}] subscribers {named(subscribers)} forwards {named(forwards)}"


def named(peers: Iterable[str]) -> str:
    """A set of peers as it is written."""
    return "{" + ", ".join(sorted(peers, key=lambda name: (len(name), name))) + "}"
