"""PSF, iPS and PIF in a broker: messages follow the tree of their source (2006, 3.1 to 3.3).

The interest table has the entries of the scheme, each with a reduced disjunction:

    scheme   an entry is for                                     its name in answers
    PSF      a source and a next hop                             'source' via 'next hop'
    iPS      a next hop, and sources with the same below it      the same, with one of the sources
    PIF      a next hop                                          next hop

A lookup answers with entries, and the ones for the source of a message say where it goes next.

While a new topology is being written into the table (`settling`), an entry may miss filters, but all
entries together miss none: a message that matches any of them goes to all children.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from palio.protocol.policies.scheme_policy import SchemePolicy
from palio.protocol.policies.source_trees import SourceHops, SourceTrees
from palio.routing.packets import Send
from palio.routing.router import Router
from palio.routing.schemes.hops import TreeHops
from palio.routing.topology import Topology
from palio.routing.trees import members


class TreePolicy(SourceTrees, SchemePolicy):
    """`hops_of` makes the functions of the scheme for a network."""

    def __init__(
        self, name: str, me: str, router: Router, hops_of: Callable[[Topology], TreeHops]
    ) -> None:
        SchemePolicy.__init__(self, me, router)
        SourceTrees.__init__(self, name, me, hops_of)
        self.grouping = self
        self._names: dict[tuple[int, ...], str] = {}
        self._settling: frozenset[str] = frozenset()

    def on_topology(self, net: Topology | None) -> list[Send]:
        self.follow(net)
        self._names = {}
        return super().on_topology(net)

    def entries(self) -> Iterator[tuple[str, frozenset[str]]]:
        net, hops = self._net, self._hops
        if net is None or hops is None:
            return
        u, seen = net.number(self._me), set[str]()
        for v in range(len(net)):
            for w, mask in hops.entries(u, v):
                name = self._entry(net, v, w, mask)
                if name not in seen:
                    seen.add(name)
                    yield name, frozenset([net.nodes[x] for x in members(mask)])

    def settling(self, entries: frozenset[str]) -> None:
        self._settling, self._sources = entries, {}

    def _entry(self, net: Topology, v: int, w: int, mask: int) -> str:
        """The name of the entry that decides about w for messages of v."""
        assert self._hops is not None
        key = self._hops.stored_as(v, w, mask)
        name = self._names.get(key)
        if name is None:
            hop = net.nodes[w]
            name = hop if len(key) == 1 else f"{net.nodes[v]!r} via {hop!r}"
            self._names[key] = name
        return name

    def _of(self, net: Topology, source: str) -> SourceHops:
        """For iPS, messages come from the same neighbour as in PSF. The trees are consistent: below a
        broker that wrote its name on a message, the path is that of its own tree."""
        assert self._hops is not None
        u, v = net.number(self._me), net.number(source)
        behind = tuple(
            (net.nodes[w], self._settling or frozenset([self._entry(net, v, w, mask)]))
            for w, mask in self._hops.entries(u, v)
        )
        return SourceHops(
            net.tree(source).parent(self._me), behind, net.nodes[self._hops.header(u, v)]
        )
