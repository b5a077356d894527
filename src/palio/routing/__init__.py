"""Routing: posets, subscription forwarding, patterns, schemes; no sockets, clocks or randomness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palio.routing.packets import (
    Advertise,
    Event,
    Joined,
    Left,
    Packet,
    Peer,
    Publish,
    Received,
    Restate,
    Role,
    Send,
    Subscribe,
    Tick,
    TopologyChanged,
    Unadvertise,
    Unsubscribe,
)
from palio.routing.patterns.watching import PatternSettings
from palio.routing.router import Router

if TYPE_CHECKING:
    from palio.routing.schemes import scheme
    from palio.routing.topology import Topology

__all__ = [
    "Advertise",
    "Event",
    "Joined",
    "Left",
    "Packet",
    "PatternSettings",
    "Peer",
    "Publish",
    "Received",
    "Restate",
    "Role",
    "Router",
    "Send",
    "Subscribe",
    "Tick",
    "Topology",
    "TopologyChanged",
    "Unadvertise",
    "Unsubscribe",
    "scheme",
]


def __getattr__(name: str) -> Any:
    """Load on first use: graphs need scipy, schemes the forwarding table."""
    if name == "Topology":
        from palio.routing.topology import Topology

        return Topology
    if name == "scheme":
        from palio.routing.schemes import scheme

        return scheme
    raise AttributeError(f"module 'palio.routing' has no attribute {name!r}")
