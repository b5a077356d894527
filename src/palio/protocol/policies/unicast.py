"""Unicast: the next hop to a broker, for messages with an address: durable messages to their home
broker, acknowledgements, answers. It does not depend on the routing policy."""

from __future__ import annotations

from palio.routing.schemes.hops import unicast_hops
from palio.routing.topology import Topology


class Unicast:
    def __init__(self, me: str) -> None:
        self._me = me
        self.hop_of: dict[str, str] = {}
        """The next hop to each reachable broker."""

    def on_topology(self, net: Topology | None) -> None:
        self.hop_of = {} if net is None else unicast_hops(net, self._me)
