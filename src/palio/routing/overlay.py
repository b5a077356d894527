"""Along which links items travel from their origins: the term NST of formula (1) (2000, 3.5).

An item is a subscription or an advertisement. Its origin is the router where a client has it.

    AcyclicOverlay   an item goes over every link except the one on which it came
    GraphOverlay     an item goes over the links of its origin's spanning tree; any graph

On a graph, this router sends an item to the neighbour w if w is its child in the tree of the origin.
Origins with the same routers behind w, in their trees, need not be told apart: they are one *branch*
of w, named after one of them. So an item travels once for all of them, and covering works among them:

    origins 1, 2, 5 ─▶ me ─▶ w ─▶ x, y       Branch(w, 1)
    origins 3, 4    ─▶ me ─▶ w ─▶ x          Branch(w, 3)   Branch(w, 1) is wider: what it has, the
                                                            routers behind w get anyway

Where the graph is a tree, a neighbour has one branch, named after this router, and formula (1) is that
of the acyclic overlay.

An item counts only if it came from the neighbour that is next towards its origin. The routers on
such a path are ever nearer to the origin, so no cycle of routers can keep an item alive that its
origin has removed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from palio.routing.publication import Peer
from palio.routing.topology import Topology
from palio.routing.trees import Node, SourceTree, members


class Branch(NamedTuple):
    """The items that a peer has, or is sent, for one class of origins."""

    peer: Peer
    origin: Node | None = None
    """Names the class. None: on an acyclic overlay, and for clients of this router."""


class Overlay(Protocol):
    def branches(self, peer: Peer) -> tuple[Branch, ...]:
        """The branches of a neighbour."""
        ...

    def reaches(self, holders: Mapping[Branch, object], branch: Branch) -> bool:
        """Whether an item that these hold goes to a branch."""
        ...

    def wider(self, branch: Branch) -> tuple[Branch, ...]:
        """The branches of the same neighbour that reach all routers behind this one, and more."""
        ...

    def moved(self, branch: Branch) -> set[Branch] | None:
        """The branches whose items go to this one, or to a wider one, and did not before the overlay
        changed last, or the reverse. None: all items may be concerned."""
        ...


class AcyclicOverlay:
    def branches(self, peer: Peer) -> tuple[Branch, ...]:
        return (Branch(peer),)

    def reaches(self, holders: Mapping[Branch, object], branch: Branch) -> bool:
        return len(holders) > 1 or (len(holders) == 1 and branch not in holders)

    def wider(self, branch: Branch) -> tuple[Branch, ...]:
        return ()

    def moved(self, branch: Branch) -> set[Branch] | None:
        return set()


class OriginPaths(NamedTuple):
    """How the items of one origin pass through this router."""

    came_from: Node | None
    """The neighbour from which they come; None at the origin itself."""
    behind: tuple[tuple[Node, int], ...]
    """The neighbours to which they go, each with the routers behind it, a mask."""


class GraphOverlay:
    """`peer_of` gives the peer of a router that has the name of a neighbour in the topology."""

    def __init__(self, me: Node, peer_of: Callable[[Node], Peer]) -> None:
        self._me, self._peer_of = me, peer_of
        self._branches: dict[Peer, tuple[Branch, ...]] = {}
        self._inbound: dict[Branch, tuple[Branch, ...]] = {}
        self._own: set[Branch] = set()  # those that items of this router go to
        self._wider: dict[Branch, tuple[Branch, ...]] = {}
        self._moved: dict[Branch, set[Branch]] = {}

    def follow(self, paths: Mapping[Node, OriginPaths]) -> None:
        """The trees have changed: `paths` has every reachable origin, and this router."""
        origins: dict[Node, dict[int, list[Node]]] = {}  # of each neighbour, by what is behind it
        for origin, path in paths.items():
            for node, behind in path.behind:
                origins.setdefault(node, {}).setdefault(behind, []).append(origin)
        before = self._inbound, self._own, self._wider
        self._branches, self._inbound, self._own, self._wider = {}, {}, set(), {}
        for node, classes in origins.items():
            peer = self._peer_of(node)
            named = {mask: Branch(peer, self._name(of)) for mask, of in classes.items()}
            self._branches[peer] = tuple(named.values())
            for mask, branch in named.items():
                self._inbound[branch] = tuple(
                    Branch(self._peer_of(path.came_from), origin)
                    for origin in classes[mask]
                    if (path := paths[origin]).came_from is not None
                )
                if self._me in classes[mask]:
                    self._own.add(branch)
                self._wider[branch] = tuple(
                    other for more, other in named.items() if more != mask and more & mask == mask
                )
        self._compare(*before)

    def _compare(
        self,
        inbound: Mapping[Branch, tuple[Branch, ...]],
        own: set[Branch],
        wider: Mapping[Branch, tuple[Branch, ...]],
    ) -> None:
        """Note what has moved, in branches that are as wide as before."""
        changed = {
            branch: set(came) ^ set(inbound[branch])
            for branch, came in self._inbound.items()
            if branch in inbound and (branch in own) == (branch in self._own)
        }
        self._moved = {
            branch: found.union(*(changed[other] for other in wider[branch]))
            for branch, found in changed.items()
            if set(self._wider[branch]) == set(wider[branch])
            and changed.keys() >= set(wider[branch])
        }

    def _name(self, origins: list[Node]) -> Node:
        return self._me if self._me in origins else min(origins)

    def branches(self, peer: Peer) -> tuple[Branch, ...]:
        return self._branches.get(peer, ())

    def reaches(self, holders: Mapping[Branch, object], branch: Branch) -> bool:
        for inbound in self._inbound.get(branch, ()):
            if inbound in holders:
                return True
        return branch in self._own and any(holder.origin is None for holder in holders)

    def wider(self, branch: Branch) -> tuple[Branch, ...]:
        return self._wider.get(branch, ())

    def moved(self, branch: Branch) -> set[Branch] | None:
        return self._moved.get(branch)


def message_paths(net: Topology, me: Node) -> dict[Node, OriginPaths]:
    """The paths of messages, and of advertisements, which go ahead of them: along T_v of the origin v."""
    u = net.number(me)
    return {
        tree.source: OriginPaths(
            tree.parent(me), tuple((net.nodes[w], tree.masks[w]) for w in tree.children_of[u])
        )
        for tree in net.trees()
    }


def interest_paths(net: Topology, me: Node) -> dict[Node, OriginPaths]:
    """The paths of subscriptions: from their origin back along the paths that messages take to it.

    T_v and its reverse differ where shortest paths are not unique. A message of x takes the path of
    T_x to the origin, so the subscription must have come from there to x on the same routers.
    """
    trees: list[SourceTree] = list(net.trees())
    u = net.number(me)
    behind: dict[int, dict[int, int]] = {}  # neighbour -> origin -> routers behind the neighbour
    for w in map(net.number, net.neighbours(me)):
        if trees[w].parents[u] != w:
            continue  # messages of w to this router take another path
        through = trees[w].masks[u]  # the origins to which w sends by this router
        found = behind[w] = dict.fromkeys(members(through), 0)
        for x, tree in enumerate(trees):
            for origin in members(tree.masks[w] & through):
                found[origin] |= 1 << x
    hop_of = {x: w for w in trees[u].children_of[u] for x in members(trees[u].masks[w])}
    return {
        node: OriginPaths(
            net.nodes[hop_of[origin]] if origin != u else None,
            tuple((net.nodes[w], of[origin]) for w, of in behind.items() if origin in of),
        )
        for origin, node in enumerate(net.nodes)
    }
