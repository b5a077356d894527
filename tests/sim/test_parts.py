"""The small parts: clock, disk, network, history."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from palio.protocol.links import Frame
from palio.sim.clock import START_US, Clock, Restless
from palio.sim.disk import Disk
from palio.sim.history import Session
from palio.sim.network import Network, Weather


def test_ties_happen_in_the_order_they_were_planned() -> None:
    clock, seen = Clock(), list[str]()
    clock.after(5, seen.append, "b")
    clock.after(5, seen.append, "c")
    clock.after(1, seen.append, "a")
    clock.after(9, seen.append, "d")
    clock.run(START_US + 5)
    assert (seen, clock.now_us, len(clock)) == (["a", "b", "c"], START_US + 5, 1)
    clock.run_until_quiet(100)
    assert (seen[-1], clock.now_us, clock.instant) == ("d", START_US + 9, 4)


def test_a_clock_that_never_rests_is_noticed() -> None:
    clock = Clock()

    def again() -> None:
        clock.after(10, again)

    again()
    with pytest.raises(Restless, match="did not bring the network to rest"):
        clock.run_until_quiet(1000)


def test_a_crash_drops_what_was_not_synced() -> None:
    disk: Disk[str] = Disk()
    disk.write("a")
    disk.write("b")
    disk.sync(1)
    disk.write("c")
    assert disk.records == ["a", "b", "c"]
    disk.crash()
    assert disk.records == ["a"]


def _arrivals(weather: Weather, frames: int, *, cut: bool = False) -> list[int]:
    clock = Clock()
    network = Network(clock, Random(1), weather)
    seen: list[int] = []
    network.arrive = lambda sender, receiver, frame: seen.append(frame.number)
    if cut:
        network.cut("b", "a")
    for number in range(frames):
        network.send("a", "b", Frame(1, 1, 0, number))
        clock.run(clock.now_us + 1000)
    clock.run_until_quiet(10**6)
    return seen


def test_weather_does_what_it_says() -> None:
    steady = {"delay_us_min": 100, "delay_us_max": 900}
    assert _arrivals(Weather(**steady), 1000) == list(range(1000))
    lost = 1000 - len(_arrivals(Weather(**steady, loss=0.2), 1000))
    assert 150 < lost < 250
    doubled = Counter(_arrivals(Weather(**steady, duplicate=0.2), 1000))
    assert 150 < sum(count == 2 for count in doubled.values()) < 250
    mixed = _arrivals(Weather(**steady, reorder=0.2), 1000)
    assert mixed != sorted(mixed) == list(range(1000))
    assert _arrivals(Weather(), 10, cut=True) == []


def test_how_far_a_statement_has_come() -> None:
    """The drawing in `palio.sim.history`."""
    session = Session()
    session.sent["u"] = [3, 8, 8, 20]
    session.delivered["u"] = [5, 11, 14]
    assert [session.passed("u", t) for t in (2, 3, 4, 6, 9, 15, 20)] == [2, 5, 5, 6, 14, 15, None]
    assert session.passed("v", 7) == 7
    assert not session.is_delivered("u")
