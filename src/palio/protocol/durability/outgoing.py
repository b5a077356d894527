"""The output of a message store, as values (message_store.py)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeAlias

import msgspec

from palio.protocol.wire.batch import MessageBatch
from palio.protocol.wire.codes import EndCode
from palio.protocol.wire.control import CarryAck
from palio.protocol.wire.headers import CarryTarget

Carried: TypeAlias = tuple[MessageBatch, int, tuple[CarryTarget, ...]]
"""A message (a batch and a row) for other brokers: one frame can serve several targets, which may be
the same broker."""


class QueueDelivery(msgspec.Struct, frozen=True, eq=False):
    """Messages for a consumer of a subscription, to be acknowledged by their positions."""

    consumer: Hashable
    name: str
    positions: list[int]
    batch: MessageBatch
    deliveries: list[int] = []
    """Of each, this one included, if they have or may have been sent before; else none."""

    @property
    def redelivered(self) -> bool:
        return bool(self.deliveries)


class QueueEnded(msgspec.Struct, frozen=True):
    """A subscription of this broker has ended for good."""

    name: str
    reason: str
    """Empty: its own identity ended it."""
    consumers: list[Hashable]
    version: int
    """A successor with the same name has another version."""
    code: EndCode = EndCode.FULL


class Outgoing(msgspec.Struct):
    """What may be sent, because it is committed."""

    published: list[tuple[str, int]] = []
    """Publishers, each with the number up to which its messages are committed."""
    acks: list[CarryAck] = []
    carries: list[Carried] = []
    deliveries: list[QueueDelivery] = []
    created: list[str] = []
    """New subscriptions of this broker, which may be announced now."""
    ended: list[QueueEnded] = []
    has_more: bool = False
    """More may be sent, in the next turn: this one has enough."""
    acts: list[Hashable] = []
    """What operators did (administration.py)."""
    is_republishing: bool = False
    """Messages are to be published anew (republishing.py)."""
    has_room: bool = False
    """Messages that `publish` did not take may be offered again."""
