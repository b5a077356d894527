"""Link states between brokers: what each broker says about itself, and who knows which state."""

from __future__ import annotations

import msgspec

from palio.protocol.wire.routing_memory import RoutingMemory
from palio.protocol.wire.structs import ControlStruct as _Control
from palio.protocol.wire.structs import Number


class Durable(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A durable subscription, as all brokers know it."""

    predicate: str
    since: Number
    version: Number
    """Grows when a name is used again."""


class LinkState(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a broker says about itself, whole or (`base` > 0) as changes since number `base`."""

    broker: str
    epoch: str
    number: Number
    base: Number
    links: tuple[tuple[str, float], ...]
    """Always whole, unless there are parts."""
    wanted: tuple[str, ...] = ()
    """Filters of live subscriptions, reduced; only where a routing scheme needs them."""
    unwanted: tuple[str, ...] = ()
    durable: dict[str, Durable] = {}
    undurable: tuple[str, ...] = ()
    is_faded: bool = False
    """Only durable subscriptions; links and filters have aged out. Never incremental."""
    part: Number = 0
    """The parts of a complete state are numbered."""
    more: bool = False
    memory: RoutingMemory | None = None
    """When it was sent. A new value alone is no reason to send a state."""
    master: str = ""
    """Of the broker, among the links; empty: none. Always whole, in all parts."""
    address: str = ""
    """At which clients reach the broker: a URL; empty: it does not say. Likewise."""


class Digest(_Control, frozen=True, tag="Digest"):
    """The known states: broker, epoch and number. The other end answers with newer ones."""

    known: tuple[tuple[str, str, Number], ...]
    more: bool = False


class LinkStates(_Control, frozen=True, tag="LinkStates"):
    states: tuple[LinkState, ...]


class Missing(_Control, frozen=True, tag="Missing"):
    """Request whole states: changes arrived whose base is missing here."""

    brokers: tuple[str, ...]
