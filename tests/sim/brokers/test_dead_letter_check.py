"""The check of dead letters by itself."""

from __future__ import annotations

import json

import pytest

from palio.protocol.wire.message_headers import NO_HEADERS
from palio.sim.brokers.core_view import ArrivedMessage, queue_name
from palio.sim.brokers.dead_letter_check import DeadLetterChecker
from palio.sim.brokers.expected import PublishedMessage
from palio.sim.brokers.plans import MessageSpec, SubscriptionSpec
from palio.sim.kernel.verdicts import Violation

SPEC = SubscriptionSpec("work", "x > 0", durable=True, deliveries_max=3)
STORED = MessageSpec('{"x": 1}', b"body", durable=True)
KEY = ("eve", 7)


def checker_of(
    losing: tuple[str, ...] = ("drop",), spec: MessageSpec = STORED
) -> DeadLetterChecker:
    published = PublishedMessage("eve#1", *KEY, 5, spec, False)
    made = DeadLetterChecker({KEY: published}, losing)
    made.asked(SPEC)
    made.collected_from_us = 10
    return made


def dead_letter(
    number: int = 1,
    x: int = 1,
    key: tuple[str, int] = KEY,
    deliveries: int = 3,
    why: str = "deliveries",
) -> ArrivedMessage:
    told = {
        "dead_reason": why,
        "deliveries": deliveries,
        "dead_queue": queue_name("work", ""),
        "dead_publisher": key[0],
        "dead_number": key[1],
        "original": {"x": x},
    }
    text = json.dumps(told).encode()
    return ArrivedMessage(1, "/a/dead-letters", number, 1, 1, text, NO_HEADERS + b"body")


def queued() -> ArrivedMessage:
    return ArrivedMessage(1, *KEY, 1, 1, b'{"x": 1}', NO_HEADERS + b"body")


def test_what_is_rejected_is_a_dead_letter() -> None:
    checker = checker_of()
    checker.rejected(SPEC, queued(), 20)
    with pytest.raises(Violation, match="no dead letter"):
        checker.check_lost()
    checker.arrived(dead_letter())
    checker.arrived(dead_letter())  # redelivered
    checker.check_lost()
    assert checker.may_have(SPEC, checker._publications[KEY])


def test_once() -> None:
    checker = checker_of()
    checker.arrived(dead_letter(1))
    with pytest.raises(Violation, match="twice"):
        checker.arrived(dead_letter(2))
    checker.over(SPEC)
    checker.arrived(dead_letter(3))


def test_not_too_soon_and_not_without_a_rejection() -> None:
    for wrong in (dead_letter(deliveries=2), dead_letter(deliveries=1, why="rejected")):
        with pytest.raises(Violation) as caught:
            checker_of().arrived(wrong)
        assert caught.value.kind == "miscounted"
    checker = checker_of()
    checker.rejected(SPEC, queued(), 20)
    checker.arrived(dead_letter(deliveries=1, why="rejected"))


@pytest.mark.parametrize("wrong", [dead_letter(x=2), dead_letter(key=("eve", 8))])
def test_as_it_was_published(wrong: ArrivedMessage) -> None:
    with pytest.raises(Violation, match="a dead letter"):
        checker_of().arrived(wrong)


def test_nobody_collects_or_the_queue_may_lose() -> None:
    for checker, now_us in ((checker_of(), 9), (checker_of(("",)), 20)):
        checker.rejected(SPEC, queued(), now_us)
        checker.check_lost()
