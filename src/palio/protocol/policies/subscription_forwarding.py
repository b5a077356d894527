"""Subscription forwarding in a broker (2000, 3.5): routers forward subscriptions along the links.

Each neighbour is a peer of the router, and the interest table has its subscriptions. A message goes
to every neighbour that it matches, except the one that it came from; it needs no route. The links of
the network must form a tree.
"""

from __future__ import annotations

from collections.abc import Collection

from palio.model.predicate import Filter
from palio.protocol.interfaces import RemoteBroker
from palio.protocol.policies.policy import DROPS, Hops
from palio.protocol.wire.encode import NO_ROUTE
from palio.routing.packets import Joined, Left, Packet, Received, Role, Send
from palio.routing.router import Router
from palio.routing.topology import Topology


class SubscriptionForwardingPolicy:
    is_source_routed = False
    routes_by_link_state = False
    reason = "its router has subscribed to the message"

    def __init__(self, me: str, router: Router) -> None:
        self.dropped = dict.fromkeys(DROPS, 0)
        self.interests: dict[Filter, bool] = {}
        self._router = router

    def on_topology(self, net: Topology | None) -> None:
        pass

    def on_neighbour(self, name: str, is_up: bool) -> list[Send]:
        peer = RemoteBroker(name)
        if is_up:
            return self._router.step(Joined(peer, Role.NEIGHBOUR))
        return self._router.step(Left(peer)) if peer in self._router.peers else []

    def on_packet(self, name: str, packet: Packet) -> list[Send]:
        return self._router.step(Received(RemoteBroker(name), packet))

    def is_receiver(self, route: bytes) -> bool:
        return True

    def next_hops(
        self, route: bytes, interested: Collection[str], came_from: str | None, count: int = 1
    ) -> Hops:
        source = None if came_from is None else RemoteBroker(came_from)
        peers = self._router.next_hops(map(RemoteBroker, interested), source)
        return [(peer.name, NO_ROUTE) for peer in peers if isinstance(peer, RemoteBroker)]
