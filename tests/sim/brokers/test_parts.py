"""Wires, disks and sleepers do what a real network, disk and kernel may do, and nothing else."""

from __future__ import annotations

from random import Random

import pytest

from palio.sim.brokers.disks import Disk
from palio.sim.brokers.wires import Network, Wire
from palio.sim.clock import Clock

MINUTE_US = 60_000_000


class End:
    def __init__(self, place: str) -> None:
        self.place = place
        self.is_awake = True
        self.got = b""
        self.pieces = 0
        self.is_closed = False

    def received(self, wire: Wire, data: bytes) -> None:
        self.got += data
        self.pieces += 1

    def hung_up(self, wire: Wire) -> None:
        self.is_closed = True


class Pair:
    def __init__(self, seed: int = 1) -> None:
        self.clock = Clock()
        self.network = Network(self.clock, Random(seed), lambda wire, side, piece: None)
        self.a, self.b = End("a"), End("b")
        self.wire = self.network.join(self.a, self.b)
        self.places = frozenset("ab")

    def run(self) -> None:
        self.clock.run(self.clock.now_us + MINUTE_US)


@pytest.mark.parametrize("seed", range(20))
def test_bytes_arrive_whole_and_in_order(seed: int) -> None:
    pair = Pair(seed)
    for i in range(50):
        pair.wire.write(pair.a, bytes([i]) * 20)
        pair.clock.run(pair.clock.now_us + 100)
    pair.wire.close(pair.a)
    pair.run()
    assert pair.b.got == b"".join(bytes([i]) * 20 for i in range(50))
    assert pair.b.pieces > 50, "cut anywhere"
    assert pair.b.is_closed
    assert not pair.network.wires(pair.places)


def test_a_cut_is_heard_by_both_and_loses_what_is_under_way() -> None:
    pair = Pair()
    pair.wire.write(pair.a, b"lost")
    pair.wire.cut(is_silent=False)
    pair.wire.write(pair.b, b"lost too")
    pair.run()
    assert (pair.a.got, pair.b.got) == (b"", b"")
    assert pair.a.is_closed
    assert pair.b.is_closed


def test_a_silent_cut_is_heard_by_nobody() -> None:
    pair = Pair()
    pair.wire.cut(is_silent=True)
    pair.wire.write(pair.a, b"lost")
    pair.wire.close(pair.a)
    pair.run()
    assert pair.b.got == b""
    assert not pair.b.is_closed


def test_a_partition_only_delays() -> None:
    pair = Pair()
    pair.network.part(pair.places)
    pair.wire.write(pair.a, b"late")
    pair.wire.close(pair.a)
    pair.run()
    assert pair.b.got == b""
    pair.network.rejoin_all()
    pair.run()
    assert pair.b.got == b"late"
    assert pair.b.is_closed


def test_who_sleeps_takes_nothing_until_it_wakes() -> None:
    pair = Pair()
    pair.b.is_awake = False
    pair.wire.write(pair.a, b"late")
    pair.run()
    assert pair.b.got == b""
    pair.b.is_awake = True
    pair.network.woke("b")
    pair.run()
    assert pair.b.got == b"late"


@pytest.mark.parametrize("is_done", [False, True])
def test_a_disk_keeps_whole_commits(is_done: bool) -> None:
    disk = Disk()
    disk.put("a/1", b"1")
    disk.begin()
    disk.end()
    disk.put("a/1", b"2")
    disk.put("a/2", b"2")
    disk.begin()
    disk.put("a/3", b"3")
    disk.delete("a/1")
    assert [key for key, _ in disk.scan("a/")] == ["a/2", "a/3"]
    disk.crash(is_done)
    kept = {"a/1": b"2", "a/2": b"2"} if is_done else {"a/1": b"1"}
    assert dict(disk.scan("a/")) == kept
    assert disk.get("a/3") is None
