"""What goes into a deposit and what comes out of it, as values (deposit.py)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple, TypeAlias

import msgspec

from palio.protocol.durability.kept import Message, Picked
from palio.protocol.frames import Target
from palio.protocol.words import Got

Key: TypeAlias = tuple[str, str]
"""A durable subscription: its broker and its name."""
Keys: TypeAlias = tuple[Key, ...]
"""Those that a message matches."""


class Delivery(NamedTuple):
    """Messages for a consumer of a subscription, to be acknowledged by their positions."""

    consumer: Hashable
    name: str
    again: bool
    """They may have been sent before."""
    positions: list[int]
    messages: list[Message] | Picked


class Ended(NamedTuple):
    """A subscription at home is gone for good."""

    name: str
    reason: str
    """Empty: by `remove`."""
    consumers: list[Hashable]
    version: int = 0
    """There may be another one of this name by now."""


class Outgoing(NamedTuple):
    """What may go out, because it is safe."""

    published: list[tuple[str, int]]
    """Publishers, and the number up to which all is stored."""
    got: list[Got]
    carries: list[tuple[Message, tuple[Target, ...]]]
    """One frame can serve several targets; two targets may be the same broker."""
    deliveries: list[Delivery]
    created: list[str]
    """Subscriptions at home that others may now learn of."""
    ended: list[Ended]
    has_room: bool
    """Publications that `publish` did not take may be offered again."""


class Statistics(msgspec.Struct):
    """Counters since the start; and how it is now."""

    published: int = 0
    duplicates: int = 0
    """Of publishers and of streams: they were here already."""
    arrived: int = 0
    delivered: int = 0
    redelivered: int = 0
    acknowledged: int = 0
    carried: int = 0
    retries: int = 0
    dropped: int = 0
    """By the policy `drop`."""
    ended: int = 0
    """By the policy `end`."""
    replayed: int = 0
    """Steps through the journal for new subscriptions."""
    messages: int = 0
    bytes: int = 0
    """Of the journal."""
    publishers: int = 0
    backlogs: dict[str, int] = {}
    """Messages that wait for a broker."""
    queues: dict[str, int] = {}
    """Messages that wait for a subscription."""
