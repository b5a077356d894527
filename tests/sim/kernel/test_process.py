"""Processes: what was planned before a crash does not happen, what happens while frozen is late."""

from __future__ import annotations

from random import Random

import pytest

from palio.errors import PalioError
from palio.sim.kernel.clock import VirtualClock
from palio.sim.kernel.network import SimulatedNetwork
from palio.sim.kernel.process import CrashMode, EventLoopProcess, SimulatedProcess


class Counting(EventLoopProcess):
    def __init__(self) -> None:
        super().__init__("p", SimulatedNetwork(VirtualClock(), Random(1)), Random(1))
        self.turns = 0
        self.wakes: list[int] = []

    def turn(self) -> None:
        self.turns += 1

    def wake(self) -> None:
        self.wakes.append(self._clock.now_us)

    def crash(self, mode: CrashMode) -> None:
        self._end_life()

    def run(self, until_us: int) -> None:
        self._clock.run(until_us)


def test_one_turn_for_all_that_happens() -> None:
    process = Counting()
    for _ in range(3):
        process.plan_turn()
    process.run(10_000)
    assert process.turns == 1


def test_only_the_last_timer_counts() -> None:
    process = Counting()
    process.set_timer(500)
    process.set_timer(900)
    process.set_timer(700)
    process.run(10_000)
    assert process.wakes == [700]


def test_a_freeze_delays_and_a_crash_voids() -> None:
    process = Counting()
    process.set_timer(500)
    process.freeze()
    process.run(1_000)
    assert process.wakes == []
    process.thaw()
    assert process.wakes == [1_000]
    process.set_timer(2_000)
    process.crash(CrashMode.NOW)
    process.run(10_000)
    assert process.wakes == [1_000]


def test_what_cannot_crash_says_so() -> None:
    process = SimulatedProcess("p", SimulatedNetwork(VirtualClock(), Random(1)))
    with pytest.raises(PalioError, match="p is no process that can crash"):
        process.crash(CrashMode.NOW)
