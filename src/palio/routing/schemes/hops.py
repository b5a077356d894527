"""Next hops of the schemes that follow the tree of a source (2006, 3), as functions of the network.

    scheme   Fwd_u for messages with the header v               Hdr_u(v)
    PSF      child_u(v), each with T_v/(u, w)                     v
    iPS      the same, shared by sources that look alike at u     u where nobody below can tell
    PIF      child_u(v), each with T_x/(u, w) of all sources x    v
    forwarding (2000)   child_u(v), each with w alone             v

A message goes to the neighbour w when somebody in the set behind w wants it. Nodes are numbers here
and sets of nodes are masks (trees.py). The schemes of the lab and the routing policies of a broker
both use these classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Protocol

from palio.routing.schemes.sources import Entries, SourceClasses
from palio.routing.topology import Topology
from palio.routing.trees import Node


class TreeHops(Protocol):
    """The next hops of one scheme."""

    def entries(self, u: int, v: int) -> Entries:
        """The neighbours that may come next at u, each with the nodes for which a message goes
        there; v is the header of the message."""
        ...

    def header(self, u: int, v: int) -> int:
        """Hdr_u(v): whom messages name as their source when u passes them on."""
        ...

    def stored_as(self, v: int, w: int, nodes: int) -> tuple[int, ...]:
        """Which predicate of a processor decides about w for messages with the header v; `nodes` is
        the set that `entries` has for w. Equal answers: one predicate is stored for both."""
        ...


class PerSourceHops:
    """PSF."""

    def __init__(self, net: Topology) -> None:
        self._net = net

    def entries(self, u: int, v: int) -> Entries:
        tree = self._net.tree(self._net.nodes[v])
        return tuple([(w, tree.masks[w]) for w in tree.children_of[u]])

    def header(self, u: int, v: int) -> int:
        return v

    def stored_as(self, v: int, w: int, nodes: int) -> tuple[int, ...]:
        return (w, v)


class IndistinguishableHops:
    """iPS."""

    def __init__(self, net: Topology) -> None:
        self.classes = SourceClasses(net)

    def entries(self, u: int, v: int) -> Entries:
        return self.classes.entries[u][int(self.classes.label[u, v])]

    def header(self, u: int, v: int) -> int:
        return u if self.classes.rewrites[u][self.classes.label[u, v]] else v

    def stored_as(self, v: int, w: int, nodes: int) -> tuple[int, ...]:
        """Classes with the same descendants behind w share its predicate; on a tree, all do."""
        return (w, nodes)


class PerInterfaceHops:
    """PIF."""

    def __init__(self, net: Topology, senders: Iterable[Node] | None = None) -> None:
        self._net = net
        self._senders = net.nodes if senders is None else tuple(senders)

    @cached_property
    def behind(self) -> list[dict[int, int]]:
        """For each u and w the nodes in T_v/(u, w) of any sender v."""
        found: list[dict[int, int]] = [{} for _ in self._net.nodes]
        for tree in self._net.trees(self._senders):
            for x in tree.order[1:]:
                own = found[tree.parents[x]]
                own[x] = own.get(x, 0) | tree.masks[x]
        return found

    def entries(self, u: int, v: int) -> Entries:
        tree = self._net.tree(self._net.nodes[v])
        return tuple([(w, self.behind[u][w]) for w in tree.children_of[u]])

    def header(self, u: int, v: int) -> int:
        return v

    def stored_as(self, v: int, w: int, nodes: int) -> tuple[int, ...]:
        return (w,)


class NeighbourHops:
    """Subscription forwarding (2000, 3.5): a child gets what it has subscribed to itself."""

    def __init__(self, net: Topology) -> None:
        self._net = net

    def entries(self, u: int, v: int) -> Entries:
        tree = self._net.tree(self._net.nodes[v])
        return tuple([(w, 1 << w) for w in tree.children_of[u]])

    def header(self, u: int, v: int) -> int:
        return v

    def stored_as(self, v: int, w: int, nodes: int) -> tuple[int, ...]:
        return (w,)


def unicast_hops(net: Topology, u: Node) -> dict[Node, Node]:
    """unicast_u: for every other node the neighbour of u that is next on the way there."""
    tree = net.tree(u)
    return {x: w for w in tree.children(u) for x in tree.descendants(w)}


def partition(receivers: Iterable[Node], hop_of: Mapping[Node, Node]) -> dict[Node, list[Node]]:
    """H_W of DRP: the receivers by next hop, without those that no hop leads to."""
    found: dict[Node, list[Node]] = {}
    for x in receivers:
        hop = hop_of.get(x)
        if hop is not None:
            found.setdefault(hop, []).append(x)
    return found
