"""Subscription forwarding in a broker (2000, 3.5): routers forward subscriptions along the links.

Each neighbour is a peer of the router, and the interest table has its subscriptions, which came along
the trees of their origins (routing/overlay.py). A message follows the tree of its source, to those
children that it matches. So every topology will do; a broker stores what its neighbours have
forwarded, reduced by covering, and not the filters of all brokers.

A neighbour may also be the master of this broker, or its slave (routing/hierarchy.py). Trees, headers and
the lookup are the same: in the interest table the master wants everything.
"""

from __future__ import annotations

from typing import ClassVar

from palio.model.predicate import Filter
from palio.protocol.interfaces import RemoteBroker
from palio.protocol.policies.policy import EntryGrouping
from palio.protocol.policies.source_trees import SourceTrees
from palio.protocol.wire.codes import NeighbourRole
from palio.routing.packets import Joined, Left, Packet, Received, Role, Send, TopologyChanged
from palio.routing.router import Router
from palio.routing.schemes.hops import NeighbourHops
from palio.routing.topology import Topology

FORWARDING = "forwarding"
_ROLES = {
    NeighbourRole.PEER: Role.NEIGHBOUR,
    NeighbourRole.MASTER: Role.MASTER,
    NeighbourRole.SLAVE: Role.SLAVE,
}


class SubscriptionForwardingPolicy(SourceTrees):
    is_source_routed = False
    grouping: EntryGrouping | None = None
    routes_by_link_state: ClassVar[bool] = False
    reason = "its router has subscribed to the message"

    def __init__(self, me: str, router: Router) -> None:
        super().__init__(FORWARDING, me, NeighbourHops)
        self.interests: dict[Filter, bool] = {}
        self._router = router

    def on_topology(self, net: Topology | None) -> list[Send]:
        self.follow(net)
        return self._router.step(TopologyChanged(net))

    def on_neighbour(self, name: str, role: NeighbourRole | None) -> list[Send]:
        peer = RemoteBroker(name)
        if role is not None:
            return self._router.step(Joined(peer, _ROLES[role]))
        return self._router.step(Left(peer)) if peer in self._router.peers else []

    def on_packet(self, name: str, packet: Packet) -> list[Send]:
        return self._router.step(Received(RemoteBroker(name), packet))

    def is_receiver(self, route: bytes) -> bool:
        return True
