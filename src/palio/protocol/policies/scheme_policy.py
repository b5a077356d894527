"""The common base of the scheme policies (2006): brokers learn filters of others by link state.

The router of the broker has one neighbour, `Network`, which represents all other brokers. What the
router forwards to it is what this broker wants, reduced by covering: the link-state database floods
those filters.
"""

from __future__ import annotations

from typing import ClassVar

from palio.errors import RoutingError
from palio.model.predicate import Filter
from palio.protocol.interfaces import Network
from palio.protocol.policies.policy import DROPS, EntryGrouping
from palio.protocol.wire.codes import NeighbourRole
from palio.routing.packets import Joined, Packet, Role, Send
from palio.routing.router import Router
from palio.routing.schemes.hops import unicast_hops
from palio.routing.topology import Topology


class SchemePolicy:
    """`_hop_of` has the next hop to each other broker."""

    is_source_routed = False
    grouping: EntryGrouping | None = None
    routes_by_link_state: ClassVar[bool] = True
    reason = "the next hop to brokers that want the message"

    def __init__(self, me: str, router: Router) -> None:
        self.dropped = dict.fromkeys(DROPS, 0)
        self._me = me
        self._net: Topology | None = None
        self._hop_of: dict[str, str] = {}
        router.step(Joined(Network(), Role.NEIGHBOUR))
        self.interests: dict[Filter, bool] = router.subscriptions.follow(Network())

    def on_topology(self, net: Topology | None) -> list[Send]:
        self._net = net
        self._hop_of = {} if net is None else unicast_hops(net, self._me)
        return []

    def on_neighbour(self, name: str, role: NeighbourRole | None) -> list[Send]:
        return []

    def on_packet(self, name: str, packet: Packet) -> list[Send]:
        raise RoutingError(
            f"the router of {name!r} forwards subscriptions, and this broker routes by link state; "
            "all brokers of a network must use one routing policy"
        )

    def is_receiver(self, route: bytes) -> bool:
        return True
