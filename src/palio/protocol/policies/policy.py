"""The interface of routing policies: which neighbours get a message next, and with which header.

    route       the routing header of a message
    interested  the names of other brokers, or of entries, that match it in the interest table
    next_hops   ──▶ [(neighbour, route), ...]

A policy is told the topology (`on_topology`), the neighbours that are linked (`on_neighbour`) and the
packets of their routers (`on_packet`). All brokers of a network use the same policy.

While brokers have different topologies, a message may be dropped, and is counted:

    astray    it came from a neighbour that is not on the path from the source, or would go back
    unknown   the source, or a receiver, in the route is not in the topology
    spent     it has no hops left

A copy that is astray or unknown is delivered here, but not forwarded; a later copy on the right path
is. So a broker forwards a message for one neighbour only, and a message causes at most brokers x hops
packets; with DRP, receivers x hops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Annotated, ClassVar, Protocol, TypeAlias

import msgspec

from palio.model.predicate import Filter
from palio.protocol.wire.codes import NeighbourRole
from palio.protocol.wire.frames import BrokenFrame
from palio.routing.packets import Packet, Send
from palio.routing.router import Router
from palio.routing.topology import Topology

Hops: TypeAlias = list[tuple[str, bytes]]
"""Neighbours, each with the routing header of the message that it gets."""

DROPS = ("astray", "unknown", "spent")


class EntryGrouping(Protocol):
    """Groups other brokers into entries of the interest table."""

    def entries(self) -> Iterator[tuple[str, frozenset[str]]]:
        """The name of each entry, and the brokers behind it."""
        ...

    def settling(self, entries: frozenset[str]) -> None:
        """Until the next call, one of these entries may miss filters, but not all of them together."""
        ...


class RoutingPolicy(Protocol):
    dropped: dict[str, int]
    """How many messages were dropped, by the reason."""
    interests: dict[Filter, bool]
    """What this broker announces by link state: new filters (True) and removed ones (False). The
    broker floods them and clears it."""
    is_source_routed: bool
    """The route of a message from a neighbour says by itself where it goes next."""
    routes_by_link_state: ClassVar[bool]
    """Whether the interests of other brokers come by link state, not by packets of routers."""
    grouping: EntryGrouping | None
    """None: each broker that is known by link state is an entry of its own."""
    reason: str
    """Why a neighbour gets a message, for explanations."""

    def __init__(self, me: str, router: Router) -> None: ...

    def on_topology(self, net: Topology | None) -> list[Send]:
        """The topology has changed; None: this broker reaches no other one. Returns what is sent to
        routers."""
        ...

    def on_neighbour(self, name: str, role: NeighbourRole | None) -> list[Send]:
        """A neighbour of this role is linked; None: no longer. Returns what is sent to routers."""
        ...

    def on_packet(self, name: str, packet: Packet) -> list[Send]:
        """Process a packet from the router of a neighbour; returns what is sent to routers."""
        ...

    def is_receiver(self, route: bytes) -> bool:
        """Is a message from a neighbour for this broker too? It is matched here only then."""
        ...

    def next_hops(
        self, route: bytes, interested: Collection[str], came_from: str | None, count: int = 1
    ) -> Hops | None:
        """Where `count` messages with this route go next; `came_from` is None for messages that were
        published here. None: these copies are refused, and others may come on the right path. With a
        count of 0 nothing is counted as dropped: somebody only asks. Raises BrokenFrame if the route
        is invalid."""
        ...


_HopsLeft: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
ROUTE_WRITER = msgspec.msgpack.Encoder()
"""Writes the routing header of a scheme: how many hops are left, and the header of the scheme."""
ROUTE_READER: msgspec.msgpack.Decoder[tuple[int, str | tuple[str, ...]]] = msgspec.msgpack.Decoder(
    tuple[_HopsLeft, str | tuple[str, ...]]
)


def broken_route(came_from: str, error: Exception) -> BrokenFrame:
    """The error for bytes that `ROUTE_READER` cannot read."""
    return BrokenFrame(f"the route of a message from {came_from!r}: {error}")


def wrong_scheme(came_from: str, name: str) -> BrokenFrame:
    """The error for a route that another scheme wrote."""
    return BrokenFrame(
        f"the route of a message from {came_from!r} is not one of {name}; "
        "all brokers of a network must use one routing policy"
    )
