"""New grants of clients: nothing is delivered that they do not cover, not even until it is checked."""

from __future__ import annotations

import cProfile
from typing import Any

import pytest

from palio.model.language import parse
from palio.protocol.broker.access import EVERYTHING, Access, Identity
from palio.protocol.broker.effects import BackgroundJob
from palio.protocol.wire.control import Subscribed, SubscribeRequest, SubscriptionEnded
from palio.protocol.wire.frames import MessageFrame
from tests.protocol.broker.test_scheduler import NOW, Host


def granting(text: str) -> Access:
    return Access(anonymous=Identity("anybody", parse(text), EVERYTHING))


class SlowHost(Host):
    """Its jobs are run when the test says so."""

    def __init__(self) -> None:
        super().__init__(granting("x >= 0"))
        self.jobs: list[BackgroundJob[Any]] = []
        self.client(1)
        self.client(2)

    def turns_without_jobs(self) -> None:
        for _ in range(5):
            effects = self.core.take()
            for link, frames in effects.writes.items():
                self.heard[link] += self.readers[link].feed(b"".join(frames))
            if effects.commit is not None:
                self.disk.begin()
                self.disk.end()
                self.core.committed(effects.commit, NOW)
            self.jobs += effects.jobs

    def run_jobs(self) -> None:
        jobs, self.jobs = self.jobs, []
        for job in jobs:
            job.run()
            self.core.finished(job, NOW)

    def numbers(self) -> list[int]:
        """Of the messages that client 1 got."""
        frames = [one for one in self.heard[1] if isinstance(one, MessageFrame)]
        return [frame.header.number for frame in frames]  # type: ignore[union-attr]


KINDS = [
    {"predicate": "x = 5"},
    {"predicate": "x = 5", "group": "g"},
    {"predicate": "x = 5", "durable": "d"},
    {"pattern": "[x = 5] or [x = 6]"},
]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_delivered_between_a_reload_and_the_check(kind: dict[str, str]) -> None:
    host = SlowHost()
    host.send(1, SubscribeRequest(1, **kind))  # type: ignore[arg-type]
    host.run()
    host.heard[1].clear()
    host.publish(2, 1, durable=True)
    host.run()
    assert host.heard[1], "it is delivered"
    host.publish(2, 2, durable=True)  # received, and not delivered yet
    host.core.reload_access(granting("x >= 100"), NOW)
    host.heard[1].clear()
    host.publish(2, 3, durable=True)
    host.turns_without_jobs()
    assert host.heard[1] == []
    host.run_jobs()
    host.run()
    assert [type(one) for one in host.heard[1]] == [SubscriptionEnded]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_still_covered_goes_on_in_order(kind: dict[str, str]) -> None:
    host = SlowHost()
    host.send(1, SubscribeRequest(1, **kind))  # type: ignore[arg-type]
    host.run()
    host.heard[1].clear()
    for number in range(1, 10):
        host.publish(2, number, durable=True)
        if number % 3 == 0:
            host.core.reload_access(granting(f"x >= {number - 9}"), NOW)  # the last one runs on
            host.turns_without_jobs()
    host.run_jobs()
    host.run()
    assert len(host.heard[1]) == 9
    if "predicate" in kind:
        assert host.numbers() == list(range(1, 10))


def test_a_subscription_that_is_made_meanwhile_has_the_new_grants() -> None:
    host = SlowHost()
    host.send(1, SubscribeRequest(1, "x = 5"))
    host.turns_without_jobs()
    assert host.jobs, "it is compared with the old grants"
    host.core.reload_access(granting("x >= 100"), NOW)
    host.run_jobs()
    host.publish(2, 1)
    host.turns_without_jobs()
    host.publish(2, 2)
    host.turns_without_jobs()
    assert host.numbers() == []
    host.run_jobs()
    host.run()
    assert [type(one) for one in host.heard[1]] == [Subscribed, SubscriptionEnded]


def test_the_same_grants_again_hold_nothing() -> None:
    host = SlowHost()
    host.send(1, SubscribeRequest(1, "x = 5"))
    host.run()
    host.core.reload_access(granting("x >= 0"), NOW)
    host.publish(2, 1)
    host.turns_without_jobs()
    assert host.numbers() == [1]
    assert host.jobs == []


def test_a_link_is_withheld_and_released_without_a_look_at_its_live_subscriptions() -> None:
    counts = []
    for subscriptions in (10, 1000):
        host = SlowHost()
        host.send(1, *[SubscribeRequest(i, f"x = {i}") for i in range(subscriptions)])
        host.run()
        profile = cProfile.Profile()
        profile.enable()
        host.core.congest(1, True, NOW)
        host.core.congest(1, False, NOW)
        host.core.reload_access(granting("x >= 1"), NOW)
        profile.disable()
        counts.append(sum(entry.callcount for entry in profile.getstats()))
    assert counts[1] < counts[0] + 50


def test_a_subscription_made_while_its_client_is_withheld_waits_too() -> None:
    host = SlowHost()
    host.send(1, SubscribeRequest(1, "x = 5"))
    host.run()
    host.core.congest(1, True, NOW)
    host.send(1, SubscribeRequest(2, "x = 5"), SubscribeRequest(3, "x = 5", durable="d"))
    host.run()
    host.publish(2, 1, durable=True)
    host.run()
    assert host.numbers() == []
    host.core.reload_access(granting("x >= 1"), NOW)
    host.core.congest(1, False, NOW)
    host.turns_without_jobs()
    assert host.numbers() == [], "its subscriptions are not checked yet"
    host.run_jobs()
    host.run()
    assert sorted(host.numbers()) == [1, 1, 1]
