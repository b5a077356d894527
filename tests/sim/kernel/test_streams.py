"""Connections do what a real network may do, and nothing else."""

from __future__ import annotations

from random import Random

import pytest

from palio.sim.kernel.clock import VirtualClock
from palio.sim.kernel.streams import ByteStream, StreamNetwork

MINUTE_US = 60_000_000


class End:
    def __init__(self, place: str) -> None:
        self.place = place
        self.is_awake = True
        self.got = b""
        self.pieces = 0
        self.is_closed = False

    def received(self, stream: ByteStream, data: bytes) -> None:
        self.got += data
        self.pieces += 1

    def disconnected(self, stream: ByteStream) -> None:
        self.is_closed = True


class Pair:
    def __init__(self, seed: int = 1) -> None:
        self.clock = VirtualClock()
        self.network = StreamNetwork(self.clock, Random(seed), lambda stream, side, piece: None)
        self.a, self.b = End("a"), End("b")
        self.stream = self.network.connect(self.a, self.b)
        self.places = frozenset("ab")

    def run(self) -> None:
        self.clock.run(self.clock.now_us + MINUTE_US)


@pytest.mark.parametrize("seed", range(20))
def test_bytes_arrive_whole_and_in_order(seed: int) -> None:
    pair = Pair(seed)
    for i in range(50):
        pair.stream.write(pair.a, bytes([i]) * 20)
        pair.clock.run(pair.clock.now_us + 100)
    pair.stream.close(pair.a)
    pair.run()
    assert pair.b.got == b"".join(bytes([i]) * 20 for i in range(50))
    assert pair.b.pieces > 50, "cut anywhere"
    assert pair.b.is_closed
    assert not pair.network.between(pair.places)


def test_a_cut_is_heard_by_both_and_loses_what_is_under_way() -> None:
    pair = Pair()
    pair.stream.write(pair.a, b"lost")
    pair.stream.cut(is_silent=False)
    pair.stream.write(pair.b, b"lost too")
    pair.run()
    assert (pair.a.got, pair.b.got) == (b"", b"")
    assert pair.a.is_closed
    assert pair.b.is_closed


def test_a_silent_cut_is_heard_by_nobody() -> None:
    pair = Pair()
    pair.stream.cut(is_silent=True)
    pair.stream.write(pair.a, b"lost")
    pair.stream.close(pair.a)
    pair.run()
    assert pair.b.got == b""
    assert not pair.b.is_closed


def test_a_partition_only_delays() -> None:
    pair = Pair()
    pair.network.partition("a", "b")
    pair.stream.write(pair.a, b"late")
    pair.stream.close(pair.a)
    pair.run()
    assert pair.b.got == b""
    pair.network.heal_all()
    pair.run()
    assert pair.b.got == b"late"
    assert pair.b.is_closed


def test_a_frozen_end_receives_nothing_until_it_thaws() -> None:
    pair = Pair()
    pair.b.is_awake = False
    pair.stream.write(pair.a, b"late")
    pair.run()
    assert pair.b.got == b""
    pair.b.is_awake = True
    pair.network.resumed("b")
    pair.run()
    assert pair.b.got == b"late"
