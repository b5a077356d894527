"""The topology of the network, made of the links in the records of all brokers.

A link is in the topology when both of its brokers announce it and a path of such links leads to it
from this broker. It has the larger of the two announced weights. Brokers with equal records compute
equal topologies.
"""

from __future__ import annotations

from collections.abc import Mapping

from palio.protocol.policies.broker_record import BrokerRecord
from palio.routing.topology import Topology


class TopologyMap:
    """The topology as this broker sees it. It reads the records and changes none of them."""

    def __init__(self, me: str, records: Mapping[str, BrokerRecord]) -> None:
        self._me = me
        self._records = records
        self._edges: dict[tuple[str, str], float] = {}
        self._topology: Topology | None = None
        self._is_stale = False

    def invalidate(self) -> None:
        """The links of a record have changed."""
        self._is_stale = True

    def topology(self) -> Topology | None:
        """The topology, or None if this broker reaches no other one.

        The same object is returned for as long as the links are equal.
        """
        if self._is_stale:
            self._is_stale = False
            edges = self._reachable_edges()
            if edges != self._edges:
                self._edges = edges
                rows = [(u, v, weight) for (u, v), weight in edges.items()]
                self._topology = Topology.from_edges(rows) if rows else None
        return self._topology

    def reachable(self, broker: str) -> bool:
        net = self.topology()
        return broker == self._me or (net is not None and broker in net)

    def reachable_brokers(self) -> frozenset[str]:
        """All other brokers in the topology."""
        net = self.topology()
        return frozenset() if net is None else frozenset(net.nodes) - {self._me}

    def _reachable_edges(self) -> dict[tuple[str, str], float]:
        """The agreed links that a search from this broker finds, with their weights."""
        edges: dict[tuple[str, str], float] = {}
        seen, waiting = {self._me}, [self._me]
        while waiting:
            u = waiting.pop()
            for v, weight in self._records[u].links.items():
                other = self._records.get(v)
                if other is None or u not in other.links:
                    continue
                edges[min(u, v), max(u, v)] = max(weight, other.links[u])
                if v not in seen:
                    seen.add(v)
                    waiting.append(v)
        return edges
