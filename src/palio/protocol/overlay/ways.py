"""Ways: what Hdr and Fwd of one broker need of the map, for each scheme (2006, 3).

    scheme   for messages from v, at u                            header that goes on
    PSF      child_u(v), each with T_v/(u, w)                     v
    iPS      the same                                             u where nobody below can tell
    PIF      child_u(v), each with T_x/(u, w) of all sources x    v

Every broker knows what every other one wants. So Fwd need not ask a disjunction for each next hop:
a message goes to w if one of those behind w wants it, which is the same, and when subscriptions
change nothing here does. DRP needs only `first_hops`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeAlias

from palio.routing.schemes.sources import SourceClasses
from palio.routing.topology import Topology
from palio.routing.trees import SourceTree, members

_KEPT = 1 << 12

Behind: TypeAlias = tuple[tuple[str, frozenset[str]], ...]


class Way(NamedTuple):
    """What happens here to messages of one source."""

    giver: str | None
    """The only neighbour that hands them over; nobody at the source."""
    behind: Behind
    """The next hops, each with the brokers for which messages go there."""
    header: str
    """Whom they name as their source when they go on."""


class Ways:
    """The ways of PSF; those of the others differ in little."""

    def __init__(self, net: Topology, me: str) -> None:
        self._net, self._me = net, me
        self.of = lru_cache(_KEPT)(self._way)

    def _way(self, source: str) -> Way:
        tree = self._net.tree(source)
        return Way(tree.parent(self._me), self._behind(tree), self._header(source))

    def _behind(self, tree: SourceTree) -> Behind:
        return tuple((w, tree.descendants(w)) for w in tree.children(self._me))

    def _header(self, source: str) -> str:
        return source


class IndistinguishableWays(Ways):
    """The ways of iPS. The giver is that of PSF: trees fit each other, so below the broker that put
    its name on a message the way is that of its own tree."""

    def __init__(self, net: Topology, me: str) -> None:
        super().__init__(net, me)
        self._classes = SourceClasses(net)

    def _behind(self, tree: SourceTree) -> Behind:
        at = self._net.number(self._me)
        entries = self._classes.entries[at][self._classes.label[at, tree.root]]
        return tuple((self._net.nodes[w], self._names(mask)) for w, mask in entries)

    def _names(self, mask: int) -> frozenset[str]:
        return frozenset(self._net.nodes[i] for i in members(mask))

    def _header(self, source: str) -> str:
        at, number = self._net.number(self._me), self._net.number(source)
        rewrites = self._classes.rewrites[at][self._classes.label[at, number]]
        return self._me if rewrites else source


class InterfaceWays(Ways):
    """The ways of PIF."""

    def __init__(self, net: Topology, me: str) -> None:
        super().__init__(net, me)
        found: dict[str, frozenset[str]] = {}
        for tree in net.trees():
            for w in tree.children(me):
                found[w] = found.get(w, frozenset()) | tree.descendants(w)
        self._of_neighbour = found

    def _behind(self, tree: SourceTree) -> Behind:
        return tuple((w, self._of_neighbour[w]) for w in tree.children(self._me))


WAYS: dict[str, type[Ways]] = {"PSF": Ways, "iPS": IndistinguishableWays, "PIF": InterfaceWays}


def first_hops(net: Topology, me: str) -> dict[str, str]:
    """unicast_u: for every other broker the neighbour that is next on the way there."""
    tree = net.tree(me)
    return {x: w for w in tree.children(me) for x in tree.descendants(w)}
