"""Delayed messages in the store: they wait, survive a restart, and leave once."""

from __future__ import annotations

from typing import Any

import pytest

from palio.errors import InvalidValue
from palio.protocol.durability.bounds import DelayBounds
from palio.protocol.durability.outgoing import Outgoing
from palio.protocol.interfaces import DurableSubscription
from palio.protocol.wire.batch import Entry
from palio.protocol.wire.message_headers import NO_HEADERS, NOT_BEFORE_US, packed

from .test_message_store import ANN, Host, delivered

SECOND = 1_000_000


def later(number: int, at_us: int) -> Entry:
    block = packed({NOT_BEFORE_US: at_us}, 100) if at_us else NO_HEADERS
    return Entry(ANN, number, 0, b"%d" % number, block + b"body")


def host_of(*instants: int, **bounds: Any) -> Host:
    host = Host(retention_us=0, sweep_us=SECOND, **bounds)
    host.create("x")
    host.messages.attach("x", "c", 100)
    host.offer([later(n, at) for n, at in enumerate(instants, 1)], ("A", "x"))
    return host


def release(host: Host, *to: str) -> list[int]:
    """Do what the core does with delayed messages."""
    found = []
    matches = tuple(DurableSubscription("A", name) for name in to)
    for message in host.messages.republishing.take_due(host.now_us):
        if host.messages.republishing.release(message, matches, host.now_us):
            found += message.numbers()
        else:
            break
    return found


def waiting(host: Host) -> int:
    return len(host.messages.republishing.delayed)


def test_it_waits_for_its_time() -> None:
    host = host_of(0, 9000, 5000, 400)
    out = host.turn()
    assert delivered(out) == [1, 4], "the time of 4 has come already"
    assert out.published == [(ANN, 4)], "all are stored"
    assert waiting(host) == 2
    assert host.messages.deadline_us == 5000
    host.now_us = 5000
    assert host.turn().is_republishing
    assert release(host, "x") == [3]
    assert delivered(host.turn()) == [3]
    host.now_us = 9001
    assert release(host, "x") == [2]
    assert delivered(host.turn()) == [2]
    assert waiting(host) == host.messages.republishing.delayed.bytes == 0
    assert host.messages.republishing.counters.delayed == 2
    host.messages.acknowledge("c", [1, 2, 3, 4], host.now_us)
    host.wait(2 * SECOND)
    host.wait(2 * SECOND)
    assert host.messages.statistics().messages == 0


def test_a_whole_batch_is_stored_at_once_and_once() -> None:
    host = host_of(9000, 5000, 7000)
    host.turn()
    before = waiting(host), host.messages.republishing.delayed.bytes
    host.offer([later(n, 8000) for n in (2, 3, 4)], ("A", "x"))  # 2 and 3 are duplicates
    host.turn()
    assert before[0] == 3
    assert waiting(host) == 4
    host.restart()
    assert waiting(host) == 4
    assert host.messages.republishing.delayed.bytes > before[1]
    found = []
    for now_us in (5000, 7000, 8000, 9000):
        host.now_us = now_us
        found += release(host, "x")
    assert found == [2, 3, 4, 1]


def test_a_batch_beyond_the_bounds_is_stored_as_far_as_there_is_room() -> None:
    host = host_of(5000, 5000, 5000, delays=DelayBounds(messages=2))
    host.turn()
    assert waiting(host) == 2


def test_nothing_goes_before_it_is_committed() -> None:
    host = host_of(5000)
    host.now_us = 6000
    assert list(host.messages.republishing.take_due(6000)) == []
    assert not host.messages.take(6000).is_republishing
    assert host.turn().is_republishing


def test_killed_at_any_commit_it_is_there_once() -> None:
    for last in range(4):
        host = host_of(5000)
        host.turn()
        host.now_us = 5000
        if last > 0:
            release(host, "x")
        if last > 1:
            host.messages.seal()
        if last > 2:
            host.disk.commit()
        host.restart()
        queued = host.messages.statistics().queues["x"]
        assert waiting(host) + queued == 1, last
        assert (queued == 1) == (last == 3)
        assert host.messages.last_number(ANN) == 1
        if not queued:
            assert release(host, "x") == [1]
        host.messages.attach("x", "c", 1)
        assert delivered(host.turn()) == [1]
        host.wait(2 * SECOND)
        host.restart()
        assert waiting(host) == 0


def test_a_subscription_from_the_past_gets_it_at_its_time_only() -> None:
    host = Host()
    host.offer([later(1, 5000)])
    host.turn()
    host.create("x", since=0)
    host.messages.attach("x", "c", 10)
    assert delivered(host.turn()) == []
    host.now_us = 5000
    release(host, "x")
    assert delivered(host.turn()) == [1]


def test_it_waits_for_room() -> None:
    host = host_of(0, 5000, queue=1)
    host.turn()
    host.now_us = 5000
    assert release(host, "x") == []
    assert not host.turn().is_republishing
    host.messages.acknowledge("c", [1], host.now_us)
    assert host.turn().is_republishing
    assert release(host, "x") == [2]


def refusal(host: Host, at_us: int, *, durable: bool = True) -> str:
    with pytest.raises(InvalidValue) as caught:
        host.messages.republishing.delayed.check(at_us, host.now_us, durable=durable)
    return str(caught.value)


def test_what_is_refused() -> None:
    host = host_of(5000, delays=DelayBounds(10 * SECOND, 1))
    assert "durable=True" in refusal(host, 5000, durable=False)
    assert "the most are 10 s" in refusal(host, 20 * SECOND)
    assert "1 delayed messages of" in refusal(host, 6000)


def test_many_take_several_turns() -> None:
    host = host_of(*[5000] * 100)
    host.turn()
    host.now_us = 5000
    turns, out = 0, Outgoing(is_republishing=True)
    while out.is_republishing:
        release(host, "x")
        out = host.turn()
        turns += 1
    assert turns > 2
    assert host.messages.statistics().queues == {"x": 100}
