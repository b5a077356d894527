"""The check of what is given back, of counts and of expiry, by itself."""

from __future__ import annotations

import msgspec
import pytest

from palio.protocol.wire.control import Subscribed
from palio.sim.brokers.core_view import ArrivedMessage
from palio.sim.brokers.delivery_check import EndToEndChecker
from palio.sim.brokers.plans import MessageSpec, SubscriptionSpec
from palio.sim.kernel.verdicts import Violation

ALONE = SubscriptionSpec("work", "x > 0", durable=True, deliveries_max=3)
SHARED = msgspec.structs.replace(ALONE, group="g")
STORED = MessageSpec('{"x": 1}', b"body", durable=True)


def checker_of(spec: SubscriptionSpec, message: MessageSpec = STORED) -> EndToEndChecker:
    """Ann has had the subscription since 20, on a connection that began at 5; Eve publishes at 30."""
    checker = EndToEndChecker(())
    checker.connected("ann", 5)
    checker.asked("ann", 1, spec, "a", 10)
    checker.subscribed("ann", spec, "a", Subscribed(1, version=15), 20)
    checker.published("eve", 1, message, 30)
    return checker


def get(
    checker: EndToEndChecker, spec: SubscriptionSpec, deliveries: int, now_us: int, sent_us: int = 0
) -> None:
    """Ann gets it, and gives it back, to come again in 100 us."""
    text = STORED.attributes.encode()
    payload = STORED.headers + STORED.body
    arrival = ArrivedMessage(1, "eve", 1, 1, deliveries, text, payload, sent_us)
    checker.arrived("ann", spec, "a", arrival, now_us).due_us = now_us + 100


def test_again_after_its_delay() -> None:
    checker = checker_of(ALONE)
    get(checker, ALONE, 1, 50)
    get(checker, ALONE, 2, 150)
    with pytest.raises(Violation, match="1 us too soon") as caught:
        get(checker, ALONE, 3, 249)
    assert caught.value.kind == "too soon"


def test_on_another_connection_at_any_time_and_with_any_count() -> None:
    checker = checker_of(ALONE)
    get(checker, ALONE, 1, 50)
    checker.connected("ann", 60)
    get(checker, ALONE, 3, 70)


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        (ALONE, [2]),
        (ALONE, [1, 3]),
        (ALONE, [1, 2, 2]),
        (ALONE, [1, 2, 3, 4]),
        (SHARED, [1, 2, 2]),
    ],
)
def test_counts(spec: SubscriptionSpec, counts: list[int]) -> None:
    checker = checker_of(spec)
    for at, count in enumerate(counts[:-1]):
        get(checker, spec, count, 1_000 * (at + 1))
    with pytest.raises(Violation) as caught:
        get(checker, spec, counts[-1], 1_000 * len(counts))
    assert caught.value.kind == "miscounted"


def test_who_shares_a_queue_may_miss_some() -> None:
    checker = checker_of(SHARED)
    get(checker, SHARED, 2, 50)
    get(checker, SHARED, 3, 150)


def test_what_is_given_back_and_never_comes_again_is_lost() -> None:
    checker = checker_of(ALONE)
    checker.acknowledged("eve", 1, 40)
    get(checker, ALONE, 1, 50)
    checker.dead_letters.collected_from_us = 0
    with pytest.raises(Violation, match="never got"):
        checker.check_lost()


def test_what_comes_again_is_redelivered() -> None:
    checker = checker_of(ALONE)
    get(checker, ALONE, 1, 50)
    with pytest.raises(Violation) as caught:
        get(checker, ALONE, 1, 150)
    assert caught.value.kind == "twice"


def test_sent_before_it_expires() -> None:
    message = msgspec.structs.replace(STORED, expires_us=100)
    get(checker_of(ALONE, message), ALONE, 1, 500, sent_us=129)
    with pytest.raises(Violation) as caught:
        get(checker_of(ALONE, message), ALONE, 1, 500, sent_us=130)
    assert caught.value.kind == "expired"
