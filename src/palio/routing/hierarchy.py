"""The rules of a hierarchy: a router has one master, and is to it what a client is.

    master   gets all subscriptions of its slaves, and all messages from below
    slave    gets the messages that it subscribed to; it knows nothing of what is wanted above

So a router assumes that its master subscribes to everything. Formula (1) does the rest: the neighbours
of a router below a master are told so, and their messages go up too.
"""

from __future__ import annotations

from collections.abc import Mapping

from palio.errors import RoutingError
from palio.model.predicate import Filter
from palio.routing.packets import Packet, Peer, Role

EVERYTHING = Filter(())
"""What a master subscribes to at its slaves. No packet says so: the slave assumes it."""


def check_roles(name: str, peers: Mapping[Peer, Role], is_selective: bool) -> None:
    """Raise RoutingError if a router cannot have peers of these roles. `is_selective`: subscriptions
    go only towards advertisements."""
    masters = [peer for peer, role in peers.items() if role is Role.MASTER]
    if len(masters) > 1:
        first, second = masters
        raise RoutingError(
            f"router {name}: {second!r} cannot be master, {first!r} is; "
            f"a hierarchy has one: step Left({first!r}) first"
        )
    if is_selective and masters and Role.NEIGHBOUR in peers.values():
        raise RoutingError(
            f"router {name} has the master {masters[0]!r} and neighbours, which are told nothing of what "
            "is published above: with advertisements, join them to the master, or as its slaves"
        )


def from_master(name: str, master: Peer, packet: Packet) -> RoutingError:
    """The error for a subscription or an advertisement of a master."""
    return RoutingError(
        f"router {name}: its master {master!r} sent {type(packet).__name__}; a master forwards nothing "
        "to its slaves: join them as neighbours on both sides, or as master and slave"
    )
