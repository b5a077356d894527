"""Pushing events to a sink: what an answer means, when to try again, and the handshake before (http-webhook.md).

    2xx                                delivered
    410                                the sink is retired: nothing more is sent to it
    404, 408, 409, 425, 429, 5xx       tried again after a back-off, and not before Retry-After
    no answer                          tried again
    anything else, redirects too       a dead letter at once

After the last attempt the event is a dead letter. Nothing here waits or sends.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeAlias

from palio.errors import InvalidValue

REQUEST_ORIGIN = "WebHook-Request-Origin"
REQUEST_RATE = "WebHook-Request-Rate"
ALLOWED_ORIGIN = "webhook-allowed-origin"
ALLOWED_RATE = "webhook-allowed-rate"


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """The n-th attempt comes `first_delay_s * factor ** (n - 2)` after the one before, with jitter."""

    attempts_max: int = 10
    first_delay_s: float = 1.0
    factor: float = 2.0
    delay_max_s: float = 600.0
    jitter: float = 0.2
    retry_after_max_s: float = 3600.0

    def __post_init__(self) -> None:
        is_sound = self.attempts_max >= 1 and self.factor >= 1 and 0 <= self.jitter < 1
        if not is_sound or min(self.first_delay_s, self.delay_max_s, self.retry_after_max_s) < 0:
            raise InvalidValue("attempts are at least 1, the factor too; jitter is from 0 to 1")


@dataclass(frozen=True, slots=True)
class Answer:
    """Of a sink: a status with Retry-After in seconds, or why there is none."""

    status: int = 0
    retry_after_s: float = 0.0
    error: str = ""

    @property
    def shown(self) -> str:
        return self.error or f"status {self.status}"


@dataclass(frozen=True, slots=True)
class DeliveredToSink:
    pass


@dataclass(frozen=True, slots=True)
class Retry:
    after_s: float


@dataclass(frozen=True, slots=True)
class DeadLetter:
    reason: str


@dataclass(frozen=True, slots=True)
class Retired:
    """The sink wants nothing more; the event and those behind it stay where they are."""

    reason: str


Decision: TypeAlias = DeliveredToSink | Retry | DeadLetter | Retired
_AGAIN = frozenset({404, 408, 409, 425, 429})


def decide(policy: DeliveryPolicy, attempt: int, answer: Answer, draw: float) -> Decision:
    """What follows the answer to an attempt, counted from 1. `draw` is a random number below 1.

    >>> decide(DeliveryPolicy(jitter=0), 3, Answer(503), 0.5)
    Retry(after_s=4.0)
    """
    if 200 <= answer.status < 300:
        return DeliveredToSink()
    if answer.status == 410:
        return Retired("the sink is gone: status 410")
    if not answer.error and answer.status not in _AGAIN and answer.status < 500:
        return DeadLetter(f"the sink refuses it: {answer.shown}")
    if attempt >= policy.attempts_max:
        return DeadLetter(f"{attempt} attempts failed, the last one: {answer.shown}")
    return Retry(max(_back_off_s(policy, attempt, draw), _asked_s(policy, answer)))


def _back_off_s(policy: DeliveryPolicy, attempt: int, draw: float) -> float:
    power = min(attempt - 1, 60)  # beyond that the maximum counts anyway
    delay_s = min(policy.delay_max_s, policy.first_delay_s * policy.factor**power)
    return delay_s * (1 + policy.jitter * (2 * draw - 1))


def _asked_s(policy: DeliveryPolicy, answer: Answer) -> float:
    return min(answer.retry_after_s, policy.retry_after_max_s)


def retry_after_s(value: str | None, now: datetime) -> float:
    """Of the header Retry-After, in seconds or as a date; 0 where it cannot be read."""
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        at = parsedate_to_datetime(text)
    except (TypeError, ValueError, IndexError, OverflowError):
        return 0.0
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max(0.0, (at - now).total_seconds())


# ---- the handshake


@dataclass(frozen=True, slots=True)
class Permission:
    """`per_minute` requests are allowed; None: as many as there are."""

    per_minute: int | None

    @property
    def interval_s(self) -> float:
        return 60.0 / self.per_minute if self.per_minute else 0.0


def handshake_headers(origin: str, per_minute: int | None) -> list[tuple[str, str]]:
    """Of the OPTIONS request that asks a sink for permission."""
    headers = [(REQUEST_ORIGIN, origin)]
    if per_minute is not None:
        headers.append((REQUEST_RATE, str(per_minute)))
    return headers


def permission_of(
    headers: Iterable[tuple[str, str]], origin: str, per_minute: int | None
) -> Permission | None:
    """What the headers of the answer allow; None: no deliveries. The status says nothing (4.2).

    The allowed rate counts, and the one that was asked for where there is none.
    """
    found = {name.lower(): value.strip() for name, value in headers}
    if found.get(ALLOWED_ORIGIN, "").lower() not in ("*", origin.lower()):
        return None
    allowed = found.get(ALLOWED_RATE)
    if allowed is None:
        return Permission(per_minute)
    if allowed == "*":
        return Permission(None)
    if not (allowed.isascii() and allowed.isdigit()) or int(allowed[:9]) < 1:
        return None
    return Permission(int(allowed[:9]))
