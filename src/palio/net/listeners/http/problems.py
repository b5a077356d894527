"""What is wrong with a request, as problem details (RFC 9457), and the problems that errors mean.

    {"type": "urn:palio:problem:parse", "title": "Bad Request", "status": 400, "code": "parse",
     "detail": "...", "position": 7}

`code` is for programs, `detail` for people. Details never tell what the other end did not send or may not
know: errors that are no `PalioError` are logged, and their problem has no details.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from palio.errors import (
    InvalidPattern,
    InvalidPredicate,
    InvalidValue,
    LimitExceeded,
    LivesElsewhere,
    NoReply,
    PalioError,
    ParseError,
    RefusedByBroker,
    SubscriptionEnded,
    Unreachable,
)
from palio.protocol.wire.codes import CloseCode, EndCode, RefusalCode

RETRY_AFTER: Final = (("Retry-After", "1"),)
CHALLENGE: Final = (("WWW-Authenticate", 'Bearer realm="palio"'),)

_STATUS: Final[dict[str, int]] = {
    RefusalCode.INVALID: 400,
    RefusalCode.DENIED: 403,
    RefusalCode.LIMIT: 429,
    RefusalCode.FULL: 409,
    RefusalCode.CONFLICT: 409,
    RefusalCode.UNKNOWN: 404,
}
_ENDED: Final[dict[str, int]] = {
    EndCode.DENIED: 403,
    EndCode.FULL: 409,
    EndCode.TAKEN_OVER: 409,
    EndCode.FORGOTTEN: 404,
    EndCode.OPERATOR: 404,
    EndCode.MOVED: 404,
}


class Problem(PalioError):
    """Raised by handlers; the connection answers with it."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        headers: tuple[tuple[str, str], ...] = (),
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.headers, self.more = status, code, headers, more

    def members(self) -> dict[str, Any]:
        return {
            "type": f"urn:palio:problem:{self.code.replace('_', '-')}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            **self.more,
        }


def as_problem(error: PalioError) -> Problem:
    """The problem that an error means."""
    match error:
        case Problem():
            return error
        case LimitExceeded():
            return Problem(400, "too_large", error.detail, position=error.position)
        case ParseError():
            return Problem(400, "parse", error.detail, position=error.position)
        case InvalidPredicate():
            return Problem(400, "predicate", str(error))
        case InvalidPattern():
            return Problem(400, "pattern", str(error))
        case InvalidValue():
            return Problem(400, "invalid", str(error))
        case SubscriptionEnded(code=code):
            return Problem(_ENDED.get(code, 409), code or "ended", error.detail)
        case LivesElsewhere():
            return Problem(
                421, error.code, error.detail, broker=error.broker, address=error.address
            )
        case NoReply():
            return Problem(504, "no_reply", error.detail)
        case RefusedByBroker(code=code):
            return _refusal(error, code)
        case Unreachable(code=code):
            return Problem(503, code or "unavailable", error.detail, RETRY_AFTER)
    return Problem(503, "unavailable", "the broker is not available now", RETRY_AFTER)


def _refusal(error: RefusedByBroker, code: str) -> Problem:
    if code in set(CloseCode) - set(RefusalCode) or code == CloseCode.PROTOCOL:
        return Problem(503, code, error.detail, RETRY_AFTER)
    return Problem(_STATUS.get(code, 403), code or "rejected", error.detail)


def unauthorized(error: PalioError) -> Problem:
    """The broker does not know who it is."""
    return Problem(401, "unauthorized", error.detail, CHALLENGE)
