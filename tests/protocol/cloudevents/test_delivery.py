"""Deliveries to sinks: what follows an answer, and the handshake."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from palio.errors import InvalidValue
from palio.protocol.cloudevents.delivery import (
    Answer,
    DeadLetter,
    DeliveredToSink,
    DeliveryPolicy,
    Permission,
    Retired,
    Retry,
    decide,
    handshake_headers,
    permission_of,
    retry_after_s,
)

STEADY = DeliveryPolicy(attempts_max=5, first_delay_s=1, factor=3, delay_max_s=20, jitter=0)


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_delivered(status: int) -> None:
    assert decide(STEADY, 1, Answer(status), 0.5) == DeliveredToSink()


@pytest.mark.parametrize(
    "answer", [Answer(s) for s in (404, 408, 409, 425, 429, 500, 503)] + [Answer(error="refused")]
)
def test_tried_again_with_back_off_and_then_a_dead_letter(answer: Answer) -> None:
    delays = [decide(STEADY, attempt, answer, 0.5) for attempt in range(1, 5)]
    assert delays == [Retry(1), Retry(3), Retry(9), Retry(20)]
    last = decide(STEADY, 5, answer, 0.5)
    assert isinstance(last, DeadLetter)
    assert last.reason == f"5 attempts failed, the last one: {answer.shown}"


@pytest.mark.parametrize("status", [301, 302, 307, 400, 401, 403, 415, 413])
def test_refused_at_once(status: int) -> None:
    assert decide(STEADY, 1, Answer(status), 0.5) == DeadLetter(
        f"the sink refuses it: status {status}"
    )


def test_a_sink_that_is_gone() -> None:
    assert isinstance(decide(STEADY, 1, Answer(410), 0.5), Retired)


def test_jitter_is_around_the_delay() -> None:
    policy = DeliveryPolicy(first_delay_s=10, jitter=0.2)
    assert decide(policy, 1, Answer(500), 0.0) == Retry(8)
    assert decide(policy, 1, Answer(500), 0.5) == Retry(10)
    assert decide(policy, 5000, Answer(500), 0.5) != Retry(0)
    with pytest.raises(InvalidValue):
        DeliveryPolicy(attempts_max=0)


def test_retry_after() -> None:
    now = datetime(2024, 3, 1, 10, tzinfo=UTC)
    assert retry_after_s("120", now) == 120
    assert retry_after_s("Fri, 01 Mar 2024 10:01:00 GMT", now) == 60
    assert retry_after_s("Fri, 01 Mar 2024 09:00:00 GMT", now) == 0
    for wrong in (None, "", "soon", "-5", "\u0665", "1.5", "1 Jan 9999999999 0:0"):
        assert retry_after_s(wrong, now) == 0
    assert decide(STEADY, 1, Answer(429, 60), 0.5) == Retry(60)
    assert decide(STEADY, 3, Answer(429, 2), 0.5) == Retry(9)
    assert decide(STEADY, 1, Answer(429, 1e9), 0.5) == Retry(3600)


def test_the_handshake() -> None:
    assert handshake_headers("b.example", 120) == [
        ("WebHook-Request-Origin", "b.example"),
        ("WebHook-Request-Rate", "120"),
    ]
    allowed = [("WebHook-Allowed-Origin", "B.example"), ("WebHook-Allowed-Rate", "60")]
    assert permission_of(allowed, "b.example", 120) == Permission(60)
    assert Permission(60).interval_s == 1.0
    anyone = [("webhook-allowed-origin", "*")]
    assert permission_of(anyone, "b.example", 120) == Permission(120)
    assert permission_of([*anyone, ("webhook-allowed-rate", "*")], "b.example", 120) == Permission(
        None
    )
    for refused in (
        [],
        [("WebHook-Allowed-Origin", "other")],
        [*anyone, ("webhook-allowed-rate", "0")],
    ):
        assert permission_of(refused, "b.example", None) is None
