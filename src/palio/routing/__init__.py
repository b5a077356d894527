"""Routing: what a router keeps, decides and says, without sockets, clocks or randomness."""

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
    Unadvertise,
    Unsubscribe,
)
from palio.routing.patterns.watching import PatternSettings
from palio.routing.router import Router

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
    "Unadvertise",
    "Unsubscribe",
]
