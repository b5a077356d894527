"""Messages that expire: nothing of them leaves a queue, and they are freed."""

from __future__ import annotations

from palio.protocol.durability.message_store import MessageStore
from palio.protocol.wire.batch import Entry
from palio.protocol.wire.message_headers import EXPIRES_US, NO_HEADERS, packed

from .test_message_store import ANN, Host, delivered

SECOND = 1_000_000


def expiring(number: int, at_us: int | None) -> Entry:
    block = NO_HEADERS if at_us is None else packed({EXPIRES_US: at_us}, 100)
    return Entry(ANN, number, 0, b"%d" % number, block + b"body")


def host_of(*instants: int | None) -> Host:
    """A queue whose messages expire at these instants."""
    host = Host(sweep_us=SECOND, retention_us=0)
    host.create("x")
    if instants:
        host.offer([expiring(i, at) for i, at in enumerate(instants, 1)], ("A", "x"))
    host.turn()
    return host


def counted(messages: MessageStore) -> tuple[int, int]:
    found = messages.statistics()
    return found.counters.expired, found.queues["x"]


def test_what_has_expired_is_not_delivered() -> None:
    host = host_of(5000, None, 9000, 5000)
    host.now_us = 5000
    host.messages.attach("x", "c", 10)
    assert delivered(host.turn()) == [2, 3]
    assert counted(host.messages) == (2, 2)


def test_large_batches_too_and_a_message_at_its_instant() -> None:
    host = host_of(*[None] * 50, 5000, *[None] * 50)
    host.now_us = 4999
    host.messages.attach("x", "early", 51)
    assert delivered(host.turn())[-1] == 51
    host.messages.detach("early")
    host.now_us = 5000
    host.messages.attach("x", "late", 1000)
    assert delivered(host.turn()) == [n for n in range(1, 102) if n != 51]


def test_after_a_restart_too_without_a_look_at_the_messages() -> None:
    host = host_of(5000, None, *[9000] * 30)
    host.restart()
    host.now_us = 8000
    host.messages.attach("x", "c", 100)
    assert delivered(host.turn()) == list(range(2, 33))
    host.restart()
    assert counted(host.messages)[1] == 32, "the head was not written yet"
    host.now_us = 10_000
    host.messages.attach("x", "c", 100)
    assert delivered(host.turn()) == [2]


def test_what_expires_where_nobody_consumes_is_freed() -> None:
    host = host_of(5000, 6000)
    for _ in range(8):
        host.wait(SECOND)
    assert counted(host.messages) == (2, 0)
    assert host.messages.statistics().messages == 0
    host.restart()
    assert counted(host.messages) == (0, 0)


def test_what_is_in_flight_may_be_acknowledged_and_expires_when_it_comes_back() -> None:
    host = host_of(5000, 5000)
    host.messages.attach("x", "c", 10)
    assert delivered(host.turn()) == [1, 2]
    for _ in range(3):
        host.wait(SECOND)
    assert counted(host.messages) == (0, 2)
    host.messages.acknowledge("c", [1], host.now_us)
    host.messages.detach("c")
    host.messages.attach("x", "d", 10)
    assert delivered(host.turn()) == []
    assert counted(host.messages) == (1, 0)
    assert host.messages.statistics().counters.acknowledged == 1


def test_what_expires_before_its_commit_is_not_delivered_after_it() -> None:
    host = host_of()
    host.messages.attach("x", "c", 10)
    host.offer([expiring(1, 5000), expiring(2, None)], ("A", "x"))
    ticket = host.messages.seal()
    assert ticket is not None
    host.now_us = 6000
    host.messages.take(host.now_us)
    host.messages.wake(host.now_us)
    host.disk.commit()
    host.messages.committed(ticket, host.now_us)
    assert delivered(host.messages.take(host.now_us)) == [2]


def test_expired_messages_make_room_for_publishers() -> None:
    host = Host(queue=2, sweep_us=SECOND)
    host.create("x")
    assert host.offer([expiring(n, 5000) for n in (1, 2, 3)], ("A", "x")) == 2
    host.turn()
    assert host.wait(2 * SECOND).has_room


def test_a_segment_is_freed_with_the_heads_that_no_longer_name_it() -> None:
    """A delivery finds that entries have expired, and a checkpoint of something else frees their segment."""
    host = Host(sweep_us=100 * SECOND, retention_us=0)
    host.create("x")
    host.create("y")
    host.offer([expiring(1, 5000), expiring(2, 5000)], ("A", "x"))
    host.turn()
    host.offer([expiring(3, None)], ("A", "y"))
    host.turn()
    for _ in range(4):
        host.wait(SECOND)
    host.messages.attach("x", "c", 10)
    host.messages.attach("y", "d", 10)
    assert delivered(host.turn()) == [3]
    host.messages.acknowledge("d", [1], host.now_us)
    for _ in range(4):
        host.wait(SECOND)
    host.restart()
    assert counted(host.messages)[1] == 0
