"""Codes: what programs read where people read a reason.

    Bye ──▶ CloseCode      SubscriptionEnded ──▶ EndCode      Refused ──▶ RefusalCode

A reason is a sentence for people and may change; a code decides. `HelloRole` and `Full` are words that a
client or broker chooses; `parse_role` and `parse_full` are the only places that read them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from palio.errors import InvalidValue

Code = TypeVar("Code", bound=StrEnum)


class CloseCode(StrEnum):
    """Why a connection is closed."""

    PROTOCOL = "protocol"
    """The other end sent what it must not send."""
    DENIED = "denied"
    """Nobody knows who it is, or it may not connect any more."""
    VERSION = "version"
    """It speaks another version of the protocol."""
    ROLES = "roles"
    """Two brokers do not agree who is master and who is slave."""
    ROUTING = "routing"
    """Two brokers have different routing policies."""
    REPLACED = "replaced"
    """The same client or broker has another connection."""
    SILENT = "silent"
    """Nothing came for too long."""
    HANDSHAKE_TIMEOUT = "handshake_timeout"
    """It did not complete the handshake in time."""
    DISPLACED = "displaced"
    """It had not completed the handshake when too many newer connections came."""
    FRAME_TIMEOUT = "frame_timeout"
    """It began a frame and did not complete it in time."""
    OVERLOAD = "overload"
    """It sends more than is taken, or reads too slowly."""
    STOPPING = "stopping"
    """The broker stops."""
    FAILED = "failed"
    """The broker has failed, and takes nothing until it is restarted."""
    STORE_FULL = "store_full"
    """The broker has no room for messages."""
    STORE_UNREACHABLE = "store_unreachable"
    """The database of the broker does not answer."""
    LEASE_EXPIRED = "lease_expired"
    """The broker could not renew the lease on its name; another process may run it soon."""
    MOVED = "moved"
    """Another process runs the broker now."""
    TOO_MANY_CONNECTIONS = "too_many_connections"
    """The broker has as many connections as it takes."""
    REMOTE = "remote"
    """The other end closed it."""

    @property
    def is_temporary(self) -> bool:
        """A later connection may succeed although nobody changes the client or its grants."""
        return self not in _FOR_GOOD


_FOR_GOOD = frozenset(
    {
        CloseCode.PROTOCOL,
        CloseCode.DENIED,
        CloseCode.VERSION,
        CloseCode.ROLES,
        CloseCode.ROUTING,
    }
)


class EndCode(StrEnum):
    """Why a broker ends a subscription."""

    FULL = "full"
    """More messages waited for it than its bound allows."""
    DENIED = "denied"
    """The grants of the client do not allow it any more."""
    TAKEN_OVER = "taken_over"
    """Another client consumes the durable subscription."""
    FORGOTTEN = "forgotten"
    """The durable subscription was ended for good, by another client."""
    OPERATOR = "operator"
    """The durable subscription was ended for good, by an operator."""
    MOVED = "moved"
    """An operator gave the durable subscription to another identity."""


class DeadReason(StrEnum):
    """Why a message became a dead letter: its attribute `dead_reason`."""

    DELIVERIES = "deliveries"
    """It was delivered as often as its subscription allows, and never acknowledged."""
    REJECTED = "rejected"
    """A consumer said that it will never process it."""


class RejectionCode(StrEnum):
    """Why a broker rejects a message."""

    INVALID = "invalid"
    """It cannot be read, or says what makes no sense."""
    DENIED = "denied"
    """The grants of the client do not allow it."""
    SCHEMA = "schema"
    """It is not valid by a schema."""


class RefusalCode(StrEnum):
    """Why a broker refuses a request."""

    INVALID = "invalid"
    """The request makes no sense; the reason says what would."""
    DENIED = "denied"
    """The grants of the client, or the configuration of the broker, do not allow it."""
    LIMIT = "limit"
    """The client has as many as it may have."""
    FULL = "full"
    """More messages of the past match the subscription than its queue holds."""
    CONFLICT = "conflict"
    """Something else has this id or this name, or the subscription is there with other options."""
    UNKNOWN = "unknown"
    """There is no such subscription."""
    ELSEWHERE = "elsewhere"
    """The durable subscription lives at another broker; `broker` and `address` say where."""
    PARSE = "parse"
    """A text is not a predicate or pattern; `text` and `position` say where."""
    TOO_LARGE = "too_large"
    """A text is a predicate or pattern beyond a limit; `text` and `position` say where."""
    PREDICATE = "predicate"
    """A predicate or constraint makes no sense."""
    PATTERN = "pattern"
    """A pattern makes no sense."""


class HelloRole(StrEnum):
    """Who says Hello."""

    CLIENT = "client"
    BROKER = "broker"


class NeighbourRole(StrEnum):
    """What a neighbour is to a broker, with subscription forwarding."""

    PEER = "peer"
    """Both forward subscriptions to each other."""
    MASTER = "master"
    """The broker above in a hierarchy."""
    SLAVE = "slave"
    """A broker below in a hierarchy."""

    @property
    def other_way(self) -> NeighbourRole:
        """What the broker is to its neighbour."""
        return _OTHER_WAY[self]


_OTHER_WAY = {
    NeighbourRole.PEER: NeighbourRole.PEER,
    NeighbourRole.MASTER: NeighbourRole.SLAVE,
    NeighbourRole.SLAVE: NeighbourRole.MASTER,
}


class Full(StrEnum):
    """What happens when more messages wait for a subscription than its bound allows."""

    BLOCK = "block"
    """Publishers wait. Durable subscriptions only: nobody waits for a live one."""
    DROP = "drop"
    """The oldest messages are dropped."""
    END = "end"
    """The subscription ends."""

    def within(self, ceiling: Full) -> Full:
        """What a subscription gets that asks for this, where the operator allows `ceiling`. Only
        `block` harms others, so it needs the operator's `block`; `drop` and `end` are always allowed.

        >>> Full.BLOCK.within(Full.DROP), Full.END.within(Full.DROP), Full.BLOCK.within(Full.BLOCK)
        (<Full.DROP: 'drop'>, <Full.END: 'end'>, <Full.BLOCK: 'block'>)
        """
        return ceiling if self is Full.BLOCK else self


class SubscriptionKind(StrEnum):
    """What a subscription of a client is."""

    LIVE = "live"
    SHARED = "shared"
    """Live, in a group."""
    PATTERN = "pattern"
    DURABLE = "durable"


def parse_role(text: str) -> HelloRole:
    """The role that this text names; raises InvalidValue with those that exist."""
    return _parse(HelloRole, "the role in Hello", text)


def parse_full(text: str) -> Full | None:
    """What `full` of a request means; None: it says nothing. Raises InvalidValue as `parse_role`."""
    return _parse(Full, "full", text) if text else None


def _parse(codes: type[Code], what: str, text: str) -> Code:
    try:
        return codes(text)
    except ValueError:
        shown = repr(text) if len(text) <= 60 else repr(text[:57]) + "..."
        raise InvalidValue(f"{what} is {', '.join(codes)}, not {shown}") from None
