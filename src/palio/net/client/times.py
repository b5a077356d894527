"""Times that go into the headers of a message when it is published."""

from __future__ import annotations

import time
from datetime import timedelta
from math import ceil
from typing import TypeAlias

from palio.errors import InvalidValue
from palio.net.client.notes import microseconds
from palio.protocol.wire.control import DELAY_US_MAX
from palio.protocol.wire.message_headers import EXPIRES_US, NOT_BEFORE_US, Headers

Duration: TypeAlias = float | timedelta
"""Seconds, or a timedelta."""


_SECONDS_MAX = DELAY_US_MAX / 1e6


def with_expiry(headers: Headers | None, expires_in: Duration) -> Headers:
    """Headers that say when a message expires, by the clock of this machine."""
    return {**(headers or {}), EXPIRES_US: after("expires_in", expires_in)}


def check_delayed(durable: bool) -> None:
    """Raise InvalidValue for a delayed message that is not durable."""
    if not durable:
        raise InvalidValue(
            "a message that is not durable cannot wait for its time",
            remedy="publish it with durable=True, or without a delay",
        )


def with_delay(headers: Headers | None, delay: Duration | None, not_before: object) -> Headers:
    """Headers that say when a message is published."""
    if delay is not None and not_before is not None:
        raise InvalidValue("a message has a delay, or `not_before`: give one of them")
    instant = microseconds(not_before) if delay is None else after("delay", delay)
    return {**(headers or {}), NOT_BEFORE_US: instant}


def after(name: str, duration: Duration) -> int:
    """The instant after this time, in microseconds."""
    wait_us = microseconds_of(name, duration)
    if not wait_us:
        raise InvalidValue(f"{name}={duration!r}: a time in seconds is needed, more than 0")
    return time.time_ns() // 1000 + wait_us


def microseconds_of(name: str, duration: object) -> int:
    """A duration in microseconds, rounded up."""
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or not 0 <= seconds <= _SECONDS_MAX
    ):
        raise InvalidValue(
            f"{name}={duration!r}: a time in seconds is needed, more than 0 and at most a year"
        )
    return ceil(seconds * 1e6)
