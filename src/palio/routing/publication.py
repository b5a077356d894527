"""A published message, and the peers of a router: what routers and patterns share."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from palio.model.message import Message

Peer: TypeAlias = Any
"""Who is at the other end of a link: a name, or another hashable value of whoever drives the router."""


class Publish(msgspec.Struct, frozen=True, tag=True):
    """A published message. Publisher and number identify it in the whole network."""

    message: Message
    publisher: str
    number: int
    time: int = 0
    """When it was published, in microseconds of the publisher's clock; patterns order messages by it."""
    source: str | None = None
    """The router where it was published: on a graph, messages follow the tree of their source."""
