"""A message on its way, and who is at the other end: the words that routers and patterns share."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from palio.model.message import Message

Peer: TypeAlias = str


class Publish(msgspec.Struct, frozen=True, tag=True):
    """A message on its way. Publisher and number name it, wherever it is."""

    message: Message
    publisher: str
    number: int
    time: int = 0
    """When it was published, in microseconds of the publisher's clock: the order of patterns."""
