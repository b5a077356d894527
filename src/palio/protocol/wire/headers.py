"""The headers of message frames: where a message comes from and where it goes (frames.py)."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from palio.protocol.wire.structs import Number

DELIVERIES_TOLD = 127
"""One byte in msgpack."""


class PublishHeader(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A new message. Numbers of a publisher grow; the connection tells who the publisher is."""

    number: Number
    time: Number
    """When it was published, in microseconds of the publisher's clock."""
    durable: bool


class DeliverHeader(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message for a client."""

    subscriptions: tuple[Number, ...]
    """The ids of the receiver's subscriptions that the message is for."""
    position: Number
    """In the queue of a durable subscription: to be acknowledged; 0: there is none."""
    publisher: str
    number: Number
    time: Number
    deliveries: Number = 1
    """How often it has been sent, this time included; what was or may have been sent before a restart counts
    once. At most DELIVERIES_TOLD: more are said to be so many."""

    @property
    def redelivered(self) -> bool:
        """It may have been sent before; it was not acknowledged."""
        return self.deliveries > 1


class ForwardHeader(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message between brokers, best effort."""

    route: msgspec.Raw
    """The routing header: what the routing policy wrote on the message (policies/)."""
    publisher: str
    number: Number
    time: Number
    durable: bool
    """The message is also carried to durable subscriptions; this copy is for live ones."""


class CarryTarget(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A broker that a carried message is for."""

    broker: str
    number: Number
    """In the stream from the origin to this broker: 1, 2, 3, ..."""
    first: Number
    """The first number that the origin still keeps: no earlier one follows."""
    names: tuple[str, ...]
    """The durable subscriptions there that the message matches, as version@name."""


class CarryHeader(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message between brokers that its origin keeps until all targets have stored it."""

    origin: str
    epoch: str
    """Of the origin's store: numbers of different epochs have nothing to do with each other."""
    targets: tuple[CarryTarget, ...]
    publisher: str
    number: Number
    time: Number


Header: TypeAlias = PublishHeader | DeliverHeader | ForwardHeader | CarryHeader
