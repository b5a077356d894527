"""Broken brokers are caught, and the failure becomes a short plan. They are broken around the core's
public calls, so that they stay broken in the same way whatever the core looks like inside."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from palio.protocol.broker.broker import Broker
from palio.protocol.broker.effects import Effects
from palio.protocol.client.dedup_window import PositionWindow
from palio.protocol.wire.frames import SIZE_BYTES, FrameKind
from palio.sim.brokers.drawing import FAULTS, BrokerSettings, draw
from palio.sim.brokers.plans import BrokerPlan, parse_broker_plan
from palio.sim.brokers.process import MakeBroker
from palio.sim.brokers.runs import BROKERS
from palio.sim.brokers.simulation import run
from palio.sim.kernel.disk import SimulatedDisk
from palio.sim.kernel.plans import NetworkVerb
from palio.sim.kernel.shrinking import shrunk

SEEDS_MAX = 40
OPERATIONS_MAX = 10
CRASHES = ("crash",) * 3


class AnswersBeforeTheCommit(Broker):
    """It takes every commit as done when it begins."""

    _time_us = 0
    _is_committing = False
    _has_unsaved = False

    def receive(self, link: int, data: bytes, now_us: int) -> None:
        self._time_us = now_us
        super().receive(link, data, now_us)

    def wake(self, now_us: int) -> None:
        self._time_us = now_us
        super().wake(now_us)

    def take(self) -> Effects:
        effects = super().take()
        ticket = effects.commit
        while ticket is not None:
            self._has_unsaved = True
            super().committed(ticket, self._time_us)
            more = super().take()
            for link, frames in more.writes.items():
                effects.writes.setdefault(link, []).extend(frames)
            effects.closes.extend(more.closes)
            ticket = more.commit
        effects.commit = None
        if self._has_unsaved and not self._is_committing:
            self._is_committing, self._has_unsaved = True, False
            effects.commit = 0
        return effects

    def committed(self, ticket: int, now_us: int) -> None:
        self._is_committing = False
        self._time_us = now_us


class DropsANeighbour(Broker):
    """Live messages never go to a neighbour that this broker has dialled."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._dialled: set[int] = set()

    def open(self, link: int, now_us: int, **options: Any) -> None:
        if options.get("dials") is not None:
            self._dialled.add(link)
        super().open(link, now_us, **options)

    def take(self) -> Effects:
        effects = super().take()
        for link in self._dialled & effects.writes.keys():
            effects.writes[link] = [
                frame
                for frame in frames_of(b"".join(effects.writes[link]))
                if frame[SIZE_BYTES] != FrameKind.FORWARD
            ]
        return effects


def frames_of(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = SIZE_BYTES + int.from_bytes(data[at : at + SIZE_BYTES], "little")
        yield data[at : at + size]
        at += size


def noticed(make_broker: MakeBroker = Broker, faults: tuple[str, ...] = CRASHES) -> BrokerPlan:
    """The plan of the first seed that fails a check."""
    settings = BrokerSettings(3, operations=20, faults=faults)
    plans = (draw(settings, seed) for seed in range(SEEDS_MAX))
    return next(plan for plan in plans if run(plan, make_broker).kind is not None)


def caught(
    *kinds: str,
    make_broker: MakeBroker = Broker,
    faults: tuple[str, ...] = CRASHES,
    operations_max: int = OPERATIONS_MAX,
) -> BrokerPlan:
    """Some seed fails, and shrinks to a text that fails one of these checks."""
    plan = noticed(make_broker, faults)
    short = shrunk(BROKERS, plan, lambda tried: run(tried, make_broker))
    assert len(short.operations) <= operations_max, str(short)
    replayed = run(parse_broker_plan(str(short)), make_broker)
    assert replayed.kind in kinds, replayed.text
    assert replayed == run(short, make_broker)
    return short


def test_an_answer_before_the_commit_is_noticed() -> None:
    assert run(noticed(AnswersBeforeTheCommit)).kind is None


@pytest.mark.slow
def test_an_answer_before_the_commit() -> None:
    short = caught("lost", "twice", make_broker=AnswersBeforeTheCommit)
    assert any(operation.verb is NetworkVerb.CRASH for operation in short.operations)
    assert run(short).kind is None, "the broker that is shipped has no such failure"


def test_next_hops_that_drop_a_neighbour() -> None:
    short = caught("lost", "restless", make_broker=DropsANeighbour, faults=())
    assert len(short.brokers) == 2
    assert run(short).kind is None


@pytest.fixture
def lossy_disk(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    end: Callable[[SimulatedDisk[bytes]], None] = SimulatedDisk.end

    def lossy(self: SimulatedDisk[bytes]) -> None:
        """By content, not by count, so that a shorter plan may show it too. Not every one does: values
        hold times and numbers, so what is lost changes with each operation that is left out."""
        writes = self._under_way[0]
        for key in [key for key, value in writes.items() if value and zlib.crc32(value) % 5 == 0]:
            del writes[key]
        end(self)

    monkeypatch.setattr(SimulatedDisk, "end", lossy)
    return monkeypatch


def test_a_store_that_loses_a_committed_write_is_noticed(lossy_disk: pytest.MonkeyPatch) -> None:
    plan = noticed()
    lossy_disk.undo()
    assert run(plan).kind is None


@pytest.mark.slow
def test_a_store_that_loses_a_committed_write(lossy_disk: pytest.MonkeyPatch) -> None:
    kinds = ("lost", "twice", "broken", "leftovers", "restless", "refused")
    short = caught(*kinds, operations_max=19)
    lossy_disk.undo()
    assert run(short).kind is None


@pytest.fixture
def forgetful_window(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    def is_new(self: PositionWindow, position: int, number: int) -> bool:
        self._delivered[position] = number
        return True

    monkeypatch.setattr(PositionWindow, "is_new", is_new)
    return monkeypatch


def test_a_dedup_window_that_forgets_is_noticed(forgetful_window: pytest.MonkeyPatch) -> None:
    plan = noticed(faults=FAULTS)
    assert run(plan).kind == "twice"
    forgetful_window.undo()
    assert run(plan).kind is None


@pytest.mark.slow
def test_a_dedup_window_that_forgets(forgetful_window: pytest.MonkeyPatch) -> None:
    short = caught("twice", faults=FAULTS)
    forgetful_window.undo()
    assert run(short).kind is None
