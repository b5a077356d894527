"""Messages follow the tree of their source, whose name is in their routing header.

    published here   source: this broker            goes to the children in its own tree
    from w           source: by the header          must come from the parent in the source's tree

`hops_of` decides for which interested brokers a child gets a message, and which source the header
names next. While brokers have different topologies, messages may be dropped (policy.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from palio.protocol.policies.policy import (
    DROPS,
    ROUTE_READER,
    ROUTE_WRITER,
    Hops,
    broken_route,
    wrong_scheme,
)
from palio.routing.schemes.hops import TreeHops
from palio.routing.topology import Topology
from palio.routing.trees import members


class SourceHops(NamedTuple):
    """How this broker forwards the messages of one source."""

    came_from: str | None
    """The neighbour from which they must come; None at the source itself."""
    behind: tuple[tuple[str, frozenset[str]], ...]
    """The next hops, each with the brokers behind it."""
    header: str
    """The source that forwarded messages name."""


class SourceTrees:
    """The base of policies that follow these trees. `name`: of the policy, for errors; `hops_of` makes
    its functions for a network."""

    def __init__(self, name: str, me: str, hops_of: Callable[[Topology], TreeHops]) -> None:
        self.dropped = dict.fromkeys(DROPS, 0)
        self._name, self._me = name, me
        self._hops_of = hops_of
        self._net: Topology | None = None
        self._hops_max = 0
        self._hops: TreeHops | None = None
        self._sources: dict[str, SourceHops] = {}

    def follow(self, net: Topology | None) -> None:
        """The topology has changed; None: this broker reaches no other one."""
        self._net = net
        self._hops_max = 0 if net is None else len(net) - 1  # no path has more
        self._hops = None if net is None else self._hops_of(net)
        self._sources = {}

    def next_hops(
        self, route: bytes, interested: Collection[str], came_from: str | None, count: int = 1
    ) -> Hops | None:
        """See `RoutingPolicy.next_hops`."""
        left, source = self._hops_max, self._me
        if came_from is not None:
            try:
                written, header = ROUTE_READER.decode(route)
            except (ValueError, RecursionError) as error:  # ValueError: all that msgspec raises
                raise broken_route(came_from, error) from None
            if not isinstance(header, str):
                raise wrong_scheme(came_from, self._name)
            left, source = min(left, written), header
        own = self._sources.get(source)
        if own is None:
            if self._net is None or source not in self._net:
                if came_from is None:
                    return []
                self.dropped["unknown"] += count
                return None
            own = self._sources[source] = self._of(self._net, source)
        if own.came_from != came_from:
            self.dropped["astray"] += count
            return None
        hops = [hop for hop, behind in own.behind if not behind.isdisjoint(interested)]
        if not hops:
            return []
        if not left:
            self.dropped["spent"] += count
            return []
        next_route = ROUTE_WRITER.encode((left - 1, own.header))
        return [(hop, next_route) for hop in hops]

    def _of(self, net: Topology, source: str) -> SourceHops:
        """For iPS, messages come from the same neighbour as in PSF. The trees are consistent: below a
        broker that wrote its name on a message, the path is that of its own tree."""
        assert self._hops is not None
        u, v = net.number(self._me), net.number(source)
        behind = tuple(
            (net.nodes[w], frozenset(net.nodes[x] for x in members(mask)))
            for w, mask in self._hops.entries(u, v)
        )
        return SourceHops(
            net.tree(source).parent(self._me), behind, net.nodes[self._hops.header(u, v)]
        )
