"""Broken expiry, delays, counts and dead letters are caught: some seed of each fails."""

from __future__ import annotations

from heapq import heappush
from typing import Any

import pytest

from palio.protocol.broker.data_path import DataPath
from palio.protocol.durability.delayed import DelayedMessages
from palio.protocol.durability.expiry import ExpiringEntries
from palio.protocol.durability.queues import Queue
from palio.protocol.durability.republishing import Republishing
from palio.protocol.durability.returned import ReturnedEntries
from palio.protocol.wire.batch import MessageBatch
from tests.sim.brokers.test_mutants import Patch, caught

pytestmark = pytest.mark.slow


def test_delays_of_what_is_given_back_that_are_ignored_are_caught(monkeypatch: Patch) -> None:
    nack = Queue.nack

    def hasty(self: Queue, key: Any, numbers: Any, due_us: int = 0, *rest: Any) -> int:
        return nack(self, key, numbers, 0, *rest)

    monkeypatch.setattr(Queue, "nack", hasty)
    caught("too soon")


def test_messages_given_back_that_never_come_again_are_caught(monkeypatch: Patch) -> None:
    def nack(self: Queue, key: Any, numbers: Any, *_: Any) -> int:
        return self.acknowledge(numbers)

    monkeypatch.setattr(Queue, "nack", nack)
    caught("lost")


def test_counts_of_deliveries_that_are_lost_are_caught(monkeypatch: Patch) -> None:
    def forgetful(self: ReturnedEntries, numbers: list[int], due_us: int = 0) -> None:
        for n in numbers if due_us else ():
            heappush(self.delayed, (due_us, n))
        if not due_us:
            self.put_back(numbers)

    monkeypatch.setattr(ReturnedEntries, "add", forgetful)
    caught("miscounted")


def test_counts_that_begin_too_high_are_caught(monkeypatch: Patch) -> None:
    deliver = Queue.deliver

    def counts(self: Queue, *arguments: Any) -> Any:
        shares = deliver(self, *arguments)
        for share in shares:
            share.deliveries[:] = share.deliveries or [2] * len(share.numbers)
        return shares

    monkeypatch.setattr(Queue, "deliver", counts)
    caught("miscounted")


def test_queues_that_deliver_what_has_expired_are_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(ExpiringEntries, "due", lambda self, now_us: {})
    caught("expired")


def test_live_messages_that_do_not_expire_are_caught(monkeypatch: Patch) -> None:
    monkeypatch.setattr(DataPath, "_unexpired", lambda self, batch, matches: (batch, matches))
    monkeypatch.setattr("palio.protocol.broker.subscriber.expiry", lambda payload: 0)
    caught("expired")


def test_delayed_messages_that_do_not_wait_are_caught(monkeypatch: Patch) -> None:
    due = DelayedMessages.due

    def early(self: DelayedMessages, now_us: int) -> Any:
        return due(self, now_us + 200_000)

    monkeypatch.setattr(DelayedMessages, "due", early)
    caught("early")


def test_delayed_messages_that_are_published_twice_are_caught(monkeypatch: Patch) -> None:
    release = Republishing.release

    def twice(self: Republishing, message: Any, matches: Any, now_us: int) -> bool:
        return self._publishing.store_own(message, matches, now_us) and release(
            self, message, matches, now_us
        )

    monkeypatch.setattr(Republishing, "release", twice)
    caught("twice")


def test_delayed_messages_that_are_lost_are_caught(monkeypatch: Patch) -> None:
    def lossy(self: Republishing, message: Any, matches: Any, now_us: int) -> bool:
        self.drop_due(now_us)
        return True

    monkeypatch.setattr(Republishing, "release", lossy)
    caught("lost")


def test_dead_letters_that_are_lost_are_caught(monkeypatch: Patch) -> None:
    def lossy(self: Republishing, dead: Any, *_: Any, **__: Any) -> bool:
        self.drop(dead)
        return True

    monkeypatch.setattr(Republishing, "publish", lossy)
    caught("lost")


def test_dead_letters_that_are_doubled_are_caught(monkeypatch: Patch) -> None:
    def twice(self: Republishing, dead: Any, dead_letter: Any, matches: Any, now_us: int) -> bool:
        publish = self._publishing.publish_own
        more = dead_letter.entry(0)._replace(number=dead_letter.entry(0).number + 1)
        if publish(dead_letter, matches, now_us) and publish(
            MessageBatch.of([more], durable=True), matches, now_us
        ):
            self._remove(self._subscriptions.queue(dead.name), dead.number)
        return True

    monkeypatch.setattr(Republishing, "publish", twice)
    caught("twice")


def test_what_is_given_up_too_soon_is_caught(monkeypatch: Patch) -> None:
    make = ReturnedEntries.__init__

    def strict(self: ReturnedEntries, sequence: Any, deliveries_max: int = 0) -> None:
        make(self, sequence, deliveries_max and deliveries_max - 1)

    monkeypatch.setattr(ReturnedEntries, "__init__", strict)
    caught("miscounted")
