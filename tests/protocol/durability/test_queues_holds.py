"""What clients choose holds no turn for long: the order of acknowledgements, instants, rejections at once.

The bounds are of processor time, several times what it takes.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from palio.protocol.wire.batch import Entry
from palio.protocol.wire.message_headers import EXPIRES_US, NO_HEADERS, packed
from palio.protocol.wire.publishers import broker_key

from .test_message_store import ANN, Host, delivered

COUNT = 30_000
FAR_US = 1_000_000


def host_of(
    publisher: str = ANN, instant: Callable[[int], int] | None = None, **bounds: int
) -> Host:
    host = Host(**bounds)
    host.create("x")
    for first in range(1, COUNT, 1000):
        entries = []
        for number in range(first, first + 1000):
            block = NO_HEADERS if instant is None else packed({EXPIRES_US: instant(number)}, 100)
            entries.append(Entry(publisher, number, 0, b"{}", block))
        host.offer(entries, ("A", "x"))
        host.turn()
    return host


def consumed(host: Host) -> Host:
    """All are on their way to a consumer."""
    host.messages.attach("x", "c", COUNT)
    count = 0
    while found := delivered(host.turn()):
        count += len(found)
    assert count == COUNT
    return host


def seconds(act: Callable[[], object]) -> float:
    begin = time.thread_time()
    act()
    return time.thread_time() - begin


def test_messages_that_expire_in_any_order() -> None:
    instants = list(range(FAR_US, FAR_US + COUNT))
    random.Random(1).shuffle(instants)
    host = host_of(instant=lambda number: instants[number - 1], sweep_us=FAR_US, retention_us=0)
    host.now_us = 3 * FAR_US
    host.messages.attach("x", "c", 10)
    for turn in range(1, 4):
        assert seconds(host.turn) < 0.1
        assert host.messages.statistics().counters.expired == COUNT * turn // 3


def test_messages_that_expire_and_nobody_wants() -> None:
    host = host_of(instant=lambda number: FAR_US, sweep_us=FAR_US, retention_us=0)
    host.now_us = 3 * FAR_US
    turns = 0
    while host.messages.deadline_us <= host.now_us and turns < 20:
        assert seconds(lambda: host.wait(0)) < 0.1
        turns += 1
    assert (host.messages.statistics().counters.expired, turns) == (COUNT, 4)
    assert host.messages.statistics().queues == {"x": 0}


def test_acknowledgements_in_any_order() -> None:
    host = consumed(host_of())
    numbers = list(range(1, COUNT + 1))
    random.Random(1).shuffle(numbers)
    part = numbers[:10_000]
    assert seconds(lambda: host.messages.acknowledge("c", part, host.now_us)) < 0.1
    assert host.messages.statistics().queues == {"x": COUNT - 10_000}


def test_messages_whose_delay_is_over_at_once_come_in_order() -> None:
    host = consumed(host_of())
    numbers = list(range(1, COUNT + 1))
    random.Random(1).shuffle(numbers)
    for first in range(0, COUNT, 10_000):
        part = numbers[first : first + 10_000]
        host.messages.nack("c", part, FAR_US, host.now_us)
    host.turn()
    assert delivered(host.wait(FAR_US // 2)) == []
    assert delivered(host.wait(FAR_US))[:3] == [1, 2, 3]


def test_rejected_dead_letters_are_dropped_in_parts() -> None:
    host = consumed(host_of(broker_key("A", "dead-letters")))
    republishing = host.messages.republishing
    republishing.reject("c", list(range(1, COUNT + 1)), "no")
    turns = 0
    while republishing.has_work(host.now_us):
        assert seconds(lambda: republishing.take() == []) < 0.05
        turns += 1
    assert turns > 10
    assert republishing.counters.dead_dropped == COUNT
    assert host.messages.statistics().queues == {"x": 0}
