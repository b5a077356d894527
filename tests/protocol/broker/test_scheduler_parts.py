"""Turns with a budget: what arrives is read, and what leaves is removed, a part in each turn."""

from __future__ import annotations

from itertools import count, pairwise
from typing import Any

import pytest

from palio.protocol.broker import scheduler
from palio.protocol.wire.control import (
    VERSION,
    Acknowledge,
    Bye,
    Hello,
    Nack,
    Ping,
    Pong,
    Reject,
    Subscribed,
    SubscribeRequest,
    UnsubscribeRequest,
    Welcome,
)
from palio.protocol.wire.frames import FrameReader, MessageFrame, control_frame
from tests.protocol.broker.test_scheduler import NOW, Host


def test_frames_are_read_in_their_turn_and_not_when_they_arrive() -> None:
    """So that 20,000 of them in one read of a socket do not hold the event loop."""
    host = Host()
    host.client(1)
    host.client(2)
    pings = 5000
    host.send(1, *(Ping(i) for i in range(pings)))
    host.send(1, *(Ping(i) for i in range(pings, pings + 10)))
    host.send(2, Ping(7))
    for _ in range(2):
        host.turn()
    assert host.heard[2] == [Pong(7)]
    assert len(host.heard[1]) < 3 * scheduler.TURN_UNITS / scheduler.SMALL_COST
    host.run()
    assert host.heard[1] == [Pong(i) for i in range(pings + 10)]


def test_a_turn_ends_by_the_stopwatch_where_the_machine_is_slower_than_the_estimates() -> None:
    """Each request takes a third of the time that a turn has, whatever units it costs."""
    seconds = count(1, scheduler.TURN_S / 3)
    host = Host(stopwatch=lambda: next(seconds))
    host.client(1)
    host.send(1, *(UnsubscribeRequest(i) for i in range(20)))
    answers = [len(host.heard[1])]
    while len(host.heard[1]) < 20:
        host.turn()
        answers.append(len(host.heard[1]))
    assert all(after - before <= 4 for before, after in pairwise(answers)), answers


def test_a_broken_frame_ends_the_connection_after_what_came_before_it() -> None:
    host = Host()
    host.client(1)
    good = b"".join(control_frame(Ping(i)) for i in range(2000))
    host.core.receive(1, good, NOW)
    host.core.receive(1, good + b"\xff" * 16, NOW)
    host.run()
    *pongs, bye = host.heard[1]
    assert pongs == [Pong(i) for i in range(2000)] * 2
    assert isinstance(bye, Bye)
    assert not host.core._links.open


def test_half_a_frame_that_waits_its_turn_is_completed_by_what_comes_later() -> None:
    host = Host()
    host.client(1)
    data = b"".join(control_frame(Ping(i)) for i in range(3000))
    for at in range(0, len(data), 7001):
        host.core.receive(1, data[at : at + 7001], NOW)
    host.run()
    assert host.heard[1] == [Pong(i) for i in range(3000)]


def test_acknowledgements_of_many_positions_are_not_all_processed_in_one_turn() -> None:
    host = Host()
    host.client(1)
    host.send(1, SubscribeRequest(1, "x = 5", durable="d"))
    host.run()
    host.heard[1].clear()
    host.send(1, *[Acknowledge(1, tuple(range(10_000))), Ping(1)] * 20)
    host.turn()
    assert 0 < len(host.heard[1]) < 10
    host.run()
    assert host.heard[1] == [Pong(1)] * 20


@pytest.mark.parametrize("kind", [Nack, Reject])
def test_returns_of_many_positions_are_not_all_processed_in_one_turn(kind: type[Any]) -> None:
    host = Host()
    host.client(1)
    host.send(1, SubscribeRequest(1, "x = 5", durable="d"))
    host.run()
    host.heard[1].clear()
    host.send(1, *[kind(1, tuple(range(1_000))), Ping(1)] * 20)
    host.turn()
    assert 0 < len(host.heard[1]) < 10
    host.run()
    assert host.heard[1] == [Pong(1)] * 20


def test_a_subscription_with_many_filters_leaves_in_slices_and_can_come_back() -> None:
    host = Host()
    host.client(1)
    text = " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(7))  # 128 filters
    host.send(1, SubscribeRequest(1, text))
    host.run()
    assert len(host.core.parts.table) > 100
    host.heard[1].clear()
    host.send(1, UnsubscribeRequest(1))
    host.turns = 0
    host.run()
    assert host.turns > 2
    assert len(host.core.parts.table) == 0
    host.send(1, SubscribeRequest(1, text), UnsubscribeRequest(1), SubscribeRequest(1, "x = 5"))
    host.run()
    host.publish(1, 1)
    host.run()
    *_, subscribed, delivered = host.heard[1]
    assert isinstance(subscribed, Subscribed)
    assert isinstance(delivered, MessageFrame)
    assert len(host.core.parts.table) == 1


def test_hellos_of_many_connections_are_not_all_processed_in_one_turn() -> None:
    host = Host()
    links = 300
    for link in range(1, links + 1):
        host.core.open(link, NOW)
        host.readers[link], host.heard[link] = FrameReader(), []
        host.send(link, Hello(VERSION, "client", str(link)), Ping(1))
    host.turn()
    welcomed = sum(bool(heard) for heard in host.heard.values())
    assert 0 < welcomed <= 2 * scheduler.TURN_UNITS
    host.run()
    for heard in host.heard.values():
        assert [type(one) for one in heard] == [Welcome, Pong]
