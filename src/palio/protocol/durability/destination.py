"""Destinations of stored messages: the common interface of queues and outgoing streams.

    push ──▶ entries ──(committed: safe)──▶ may go out ──collect──▶ Departures ──▶ (acknowledged)
                                                         clear: the subscriptions are removed

A destination is bounded. Each entry is a reference to a message of the journal, until it is
acknowledged or dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from palio.protocol.durability.outgoing import QueueDelivery
from palio.protocol.durability.sequence import EntrySequence, Labels
from palio.protocol.wire.headers import CarryTarget

TURN_BYTES_MAX = 32 << 20
"""What queues send in a turn, besides one message."""
TURN_WORK_MAX = 8000
"""The same in messages: small ones would hold the event loop for long before they have these bytes."""


class Departures(msgspec.Struct, eq=False):
    """What destinations send."""

    room: int = TURN_BYTES_MAX
    """Bytes that queues may still send in this turn."""
    work: int = TURN_WORK_MAX
    """The same in messages."""
    left: dict[Destination, None] = {}
    """Those that can send more in the next turn."""
    deliveries: list[QueueDelivery] = []
    carries: dict[int, list[CarryTarget]] = {}
    """By position: a message for several brokers is sent once."""


class Bounded(Protocol):
    """Something that makes publishers wait when it is full."""

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be added."""
        ...

    @property
    def has_room(self) -> bool:
        """Whether waiting publishers may continue."""
        ...


class Destination(Bounded, Protocol):
    sequence: EntrySequence
    head_key: str
    """Where the head of the entries is stored."""
    safe: int
    """Entries before this number are committed."""

    def fits(self, count: int, size: int) -> bool:
        """Whether there is room for `count` messages of `size` bytes in total."""
        ...

    def push(self, positions: Sequence[int], labels: Sequence[Labels], size: int) -> None:
        """Add messages of `size` bytes; the journal has counted their references already."""
        ...

    @property
    def can_depart(self) -> bool:
        """Whether something may be ready to be sent."""
        ...

    def collect(self, departures: Departures, now_us: int) -> None:
        """Add what can be sent now."""
        ...

    def clear(self) -> None:
        """Drop all entries."""
        ...

    def shrink(self) -> None:
        """A commit begins: drop what is too much."""
        ...

    def sealed(self) -> None:
        """A commit begins that says which entries were lost."""
        ...

    def committed(self) -> None:
        """Such a commit is done."""
        ...

    def __hash__(self) -> int: ...
