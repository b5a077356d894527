"""Datagrams are lost, doubled and reordered as often as their faults say."""

from __future__ import annotations

from collections import Counter
from random import Random

from palio.sim.kernel.clock import VirtualClock
from palio.sim.kernel.datagrams import DatagramFaults, DatagramNetwork


def _arrivals(faults: DatagramFaults, count: int, *, is_partitioned: bool = False) -> list[int]:
    clock = VirtualClock()
    network = DatagramNetwork(clock, Random(1), faults)
    seen: list[int] = []
    network.arrive = lambda sender, receiver, datagram: seen.append(datagram)
    if is_partitioned:
        network.partition("b", "a")
    for number in range(count):
        network.send("a", "b", number)
        clock.run(clock.now_us + 1000)
    clock.run_until_quiet(10**6)
    return seen


def test_faults_does_what_it_says() -> None:
    steady = {"delay_us_min": 100, "delay_us_max": 900}
    assert _arrivals(DatagramFaults(**steady), 1000) == list(range(1000))
    lost = 1000 - len(_arrivals(DatagramFaults(**steady, loss=0.2), 1000))
    assert 150 < lost < 250
    doubled = Counter(_arrivals(DatagramFaults(**steady, duplicate=0.2), 1000))
    assert 150 < sum(count == 2 for count in doubled.values()) < 250
    mixed = _arrivals(DatagramFaults(**steady, reorder=0.2), 1000)
    assert mixed != sorted(mixed) == list(range(1000))
    assert _arrivals(DatagramFaults(), 10, is_partitioned=True) == []
