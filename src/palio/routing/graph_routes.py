"""The paths of a router on a graph: of messages and advertisements, and back, of subscriptions."""

from __future__ import annotations

from collections.abc import Callable

from palio.routing.overlay import Branch, GraphOverlay, OriginPaths, interest_paths, message_paths
from palio.routing.publication import Peer
from palio.routing.topology import Topology
from palio.routing.trees import Node


class GraphRoutes:
    """`peer_of` gives the peer for the name of a neighbour in the topology."""

    def __init__(self, me: Node, peer_of: Callable[[Node], Peer]) -> None:
        self._me, self._peer_of = me, peer_of
        self._advertised = GraphOverlay(me, peer_of)
        self._wanted = GraphOverlay(me, peer_of)
        self._paths: dict[Node, OriginPaths] = {}
        self._back: dict[Node, OriginPaths] = {}

    @property
    def overlays(self) -> tuple[GraphOverlay, GraphOverlay]:
        """Of advertisements, and of subscriptions."""
        return self._advertised, self._wanted

    def follow(self, net: Topology | None) -> None:
        """The topology has changed; None: this router reaches no other one."""
        self._paths = {} if net is None else message_paths(net, self._me)
        self._back = {} if net is None else interest_paths(net, self._me)
        self._advertised.follow(self._paths)
        self._wanted.follow(self._back)

    def branches_behind(self, peer: Peer) -> list[Branch]:
        """In which the subscriptions of origins come here from this neighbour."""
        return [
            Branch(peer, origin)
            for origin, path in self._back.items()
            if path.came_from is not None and self._peer_of(path.came_from) == peer
        ]

    def children(self, source: Node | None, came_from: Peer) -> set[Peer]:
        """The neighbours that are next on the paths of messages with this source. None if these came
        from another neighbour than their path does: then the topology is changing."""
        path = self._paths.get(source)
        if path is None:
            return set()
        if path.came_from is not None and self._peer_of(path.came_from) != came_from:
            return set()
        return {self._peer_of(node) for node, _ in path.behind}
