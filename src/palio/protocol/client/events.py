"""Events: what a client's session reports to its host.

Most events are control messages of the broker (wire/control.py), passed on as they came. Two are the
session's own: a message that arrived for a subscription, and the end of the connection.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

import msgspec

from palio.protocol.wire.codes import CloseCode
from palio.protocol.wire.control import ControlMessage
from palio.protocol.wire.frames import MessageFrame
from palio.protocol.wire.headers import DeliverHeader


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """A message that arrived for one subscription."""

    id: int
    """Of the subscription."""
    frame: MessageFrame

    @property
    def header(self) -> DeliverHeader:
        return self.frame.header  # type: ignore[return-value]


class CloseCause(Enum):
    """Why a session gives up its connection."""

    REFUSED = "the broker answered Hello with Bye"
    UNAVAILABLE = "the broker answered Hello with Bye, for a reason that passes"
    OTHER_VERSION = "the broker speaks another version of the protocol"
    BYE = "the broker said Bye"
    NO_WELCOME = "the broker did not answer Hello in time"
    SILENCE = "the broker sent nothing for longer than its keepalive"
    PROTOCOL_ERROR = "the broker sent something that it must not send to a client"

    @property
    def is_refusal(self) -> bool:
        """The next connection would end in the same way, unless the broker is changed."""
        return self in (CloseCause.REFUSED, CloseCause.OTHER_VERSION)

    @property
    def is_said_by_broker(self) -> bool:
        """The broker ended the connection itself, so it needs no Bye."""
        return self in (CloseCause.REFUSED, CloseCause.UNAVAILABLE, CloseCause.BYE)


class Closing(msgspec.Struct, frozen=True):
    """The connection is useless now: the host writes what `take` returns, then closes it."""

    cause: CloseCause
    reason: str
    """For people."""
    code: CloseCode | None = None
    """The broker's, if it said Bye."""


SessionEvent: TypeAlias = ControlMessage | Arrival | Closing
