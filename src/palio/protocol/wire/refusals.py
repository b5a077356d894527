"""Refusals: an error of the broker as the control message `Refused`, and at the client as an error again.

    broker   PalioError ──refused──▶ Refused(id, reason, code, text, position) ──to_error──▶   client

A text that is no predicate is the same ParseError at both ends, with its position.
"""

from __future__ import annotations

from palio.errors import (
    InvalidPattern,
    InvalidPredicate,
    LimitExceeded,
    LivesElsewhere,
    PalioError,
    ParseError,
    RefusedByBroker,
)
from palio.protocol.wire.codes import RefusalCode
from palio.protocol.wire.control import Refused
from palio.protocol.wire.parts import cut

TEXT_MAX = 10_000
"""Characters of a text that is sent back; who asked knows it anyway."""


class RequestRefused(PalioError):
    """No to a request, for a reason that has a code."""

    def __init__(self, code: RefusalCode, reason: str, *, remedy: str = "") -> None:
        super().__init__(reason, remedy=remedy)
        self.code = code


class HomeElsewhere(RequestRefused):
    """A durable subscription lives at another broker; `address` is empty if nobody has said how clients
    reach it."""

    def __init__(self, me: str, broker: str, address: str) -> None:
        self.broker, self.address = broker, address
        remedy = f"ask {address or broker}"
        if not address:
            remedy += (
                ", whose configuration does not say at which [broker] address clients reach it"
            )
        super().__init__(
            RefusalCode.ELSEWHERE,
            f"this is broker {me!r}; the durable subscription lives at broker {broker!r}",
            remedy=remedy,
        )


def refused(id: int, error: PalioError) -> Refused:
    """The answer to a request that raised this error."""
    if isinstance(error, ParseError):
        code = RefusalCode.TOO_LARGE if isinstance(error, LimitExceeded) else RefusalCode.PARSE
        text = error.text if len(error.text) <= TEXT_MAX else ""
        return Refused(id, cut(error.detail), code, text, error.position)
    if isinstance(error, HomeElsewhere):
        where = error.broker, error.address
        return Refused(id, cut(str(error)), error.code, "", 0, *where)
    if isinstance(error, RequestRefused):
        return Refused(id, cut(str(error)), error.code)
    if isinstance(error, InvalidPredicate):
        return Refused(id, cut(str(error)), RefusalCode.PREDICATE)
    if isinstance(error, InvalidPattern):
        return Refused(id, cut(str(error)), RefusalCode.PATTERN)
    return Refused(id, cut(str(error)))


def to_error(refused: Refused, broker: str) -> PalioError:
    """What a client raises; `broker` is its address."""
    match refused.code:
        case RefusalCode.PARSE:
            return ParseError(refused.reason, refused.text).at(position=refused.position)
        case RefusalCode.TOO_LARGE:
            return LimitExceeded(refused.reason, refused.text).at(position=refused.position)
        case RefusalCode.PREDICATE:
            return InvalidPredicate(refused.reason)
        case RefusalCode.PATTERN:
            return InvalidPattern(refused.reason)
        case RefusalCode.ELSEWHERE:
            return LivesElsewhere(
                f"{broker} says: {refused.reason}", refused.broker, refused.address
            )
    return RefusedByBroker(f"{broker} says: {refused.reason}", code=refused.code)
