"""Dead letters in the store: nothing of them is lost or doubled, wherever the broker is killed."""

from __future__ import annotations

from palio.protocol.durability.outgoing import Outgoing
from palio.protocol.durability.queues import Full
from palio.protocol.interfaces import DurableSubscription
from palio.protocol.wire.batch import Entry, MessageBatch
from palio.protocol.wire.control import Durable
from palio.protocol.wire.message_headers import NO_HEADERS
from palio.protocol.wire.publishers import broker_key

from .test_delayed import later, release
from .test_message_store import Host, all_match, delivered

DEAD = broker_key("A", "dead")
SECOND = 1_000_000


def create(host: Host, name: str, deliveries_max: int = 0) -> None:
    host.messages.create(
        name, Durable("", 0, 1), Full.BLOCK, all_match, host.now_us, deliveries_max=deliveries_max
    )


def host_of(count: int, deliveries_max: int = 2, **bounds: int) -> Host:
    """A queue `x`, whose consumer is `c`, and another one for its dead letters."""
    host = Host(**bounds)
    create(host, "x", deliveries_max)
    create(host, "dlq")
    host.turn()
    host.messages.attach("x", "c", 100)
    host.publish(range(1, count + 1), ("A", "x"))
    host.turn()
    return host


def bury(host: Host, *to: str) -> list[bool]:
    """Do what the core does with dead entries."""
    done = []
    for dead in host.messages.republishing.take():
        number = host.messages.republishing.number(DEAD, host.now_us)
        entry = Entry(DEAD, number, 0, b"%d" % dead.message.number, NO_HEADERS)
        dead_letter = MessageBatch.of([entry], durable=True)
        matches = [DurableSubscription("A", name) for name in to]
        done.append(host.messages.republishing.publish(dead, dead_letter, matches, host.now_us))
    return done


def nack(host: Host, *positions: int) -> Outgoing:
    host.messages.nack("c", positions, 0, host.now_us)
    return host.turn()


def dead_letters(host: Host) -> list[bytes]:
    """What waits in the queue for dead letters."""
    host.messages.attach("dlq", "d", 100)
    out = host.turn()
    host.messages.detach("d")
    return [
        one.batch.attributes(row)
        for one in out.deliveries
        if one.name == "dlq"
        for row in range(one.batch.count)
    ]


def test_delivered_as_often_as_may_be() -> None:
    host = host_of(2)
    assert delivered(nack(host, 1)) == [1]
    assert not host.messages.republishing.has_work(host.now_us)
    out = nack(host, 1)
    assert delivered(out) == []
    assert out.is_republishing
    ((dead),) = host.messages.republishing.take()
    assert (dead.name, dead.number, dead.deliveries, dead.rejection) == ("x", 1, 2, None)
    assert bury(host, "dlq", "x") == [True]
    assert dead_letters(host) == [b"1"]
    counters = host.messages.statistics()
    assert counters.queues == {"x": 1, "dlq": 1}, "not for the queue where it died"
    assert host.messages.republishing.counters.dead == 1
    host.turn()
    host.restart()
    assert host.messages.statistics().queues == {"x": 1, "dlq": 1}


def test_consumers_that_leave() -> None:
    host = host_of(3, deliveries_max=1)
    host.messages.acknowledge("c", [2], host.now_us)
    host.messages.detach("c")
    assert len(bury(host, "dlq")) == 2
    assert dead_letters(host) == [b"1", b"3"]
    assert host.messages.statistics().queues["x"] == 0


def test_rejected() -> None:
    host = host_of(3, deliveries_max=0)
    host.messages.republishing.reject("c", [2, 2, 77], "no such desk")
    host.messages.republishing.reject("other", [1], "")
    (dead,) = host.messages.republishing.take()
    assert (dead.number, dead.rejection, dead.deliveries) == (2, "no such desk", 1)
    bury(host, "dlq")
    assert dead_letters(host) == [b"2"]


def test_a_dead_letter_that_dies_is_dropped() -> None:
    host = Host()
    create(host, "x", 1)
    host.turn()
    host.messages.attach("x", "c", 10)
    host.offer([Entry(DEAD, 1, 0, b"1", NO_HEADERS)], ("A", "x"))
    host.turn()
    nack(host, 1)
    assert bury(host, "x") == []
    host.turn()
    host.restart()
    statistics = host.messages.statistics()
    assert statistics.queues == {"x": 0}


def test_killed_at_any_commit_it_is_there_once() -> None:
    for last in range(4):
        host = host_of(1)
        nack(host, 1)
        nack(host, 1)
        if last > 0:
            bury(host, "dlq")
        if last > 1:
            host.messages.seal()  # it is not committed yet
        if last > 2:
            host.disk.commit()  # and the broker does not hear of it
        host.restart()
        host.messages.attach("x", "c", 10)
        out = host.turn()
        queues = host.messages.statistics().queues
        assert queues["x"] + queues["dlq"] == 1, last
        assert (queues["dlq"] == 1) == (last == 3)
        assert len(delivered(out)) == queues["x"]


def test_what_is_dead_when_the_broker_starts_is_not_delivered() -> None:
    host = host_of(2)
    nack(host, 1)
    nack(host, 1)
    host.wait(SECOND)  # a checkpoint stores the counts
    host.restart()
    host.messages.attach("x", "c", 10)
    assert delivered(host.turn()) == [2]
    assert host.messages.republishing.has_work(host.now_us)
    bury(host, "dlq")
    assert dead_letters(host) == [b"1"]


def test_it_waits_for_room() -> None:
    host = host_of(2, deliveries_max=1, queue=2)
    host.publish([3, 4], ("A", "dlq"))
    host.turn()
    nack(host, 1, 2)
    assert bury(host, "dlq") == [False, False]
    assert not host.turn().is_republishing
    host.messages.attach("dlq", "d", 10)
    host.turn()
    host.messages.acknowledge("d", [1, 2], host.now_us)
    assert host.turn().is_republishing
    assert bury(host, "dlq") == [True, True]
    host.wait(SECOND)
    host.restart()
    assert host.messages.statistics().queues == {"x": 0, "dlq": 2}


def test_it_does_not_wait_for_delayed_messages_that_wait_for_its_queue() -> None:
    """Found by the simulator: the queue is full of dead entries, a delayed message has no room in it, and
    nothing else ever happens."""
    host = host_of(1, deliveries_max=0, queue=2)
    host.offer([later(2, 5_000)], ("A", "x"))
    host.publish([3], ("A", "x"))
    host.turn()
    host.now_us = 6_000
    assert host.turn().is_republishing
    assert release(host, "x") == []
    assert not host.turn().is_republishing, "there is no room"
    host.messages.republishing.reject("c", [1, 2], "no")
    assert host.turn().is_republishing
    assert bury(host, "dlq") == [True, True]
    assert host.turn().is_republishing
    assert release(host, "x") == [2]


def test_a_queue_does_not_wait_for_the_dead_letters_of_another() -> None:
    """Those of `x` go to `dlq`, which is full; what is dead there has to leave first."""
    host = host_of(40, deliveries_max=1, queue=40)
    host.publish(range(41, 81), ("A", "dlq"))
    host.turn()
    nack(host, *range(1, 41))
    assert set(bury(host, "dlq")) == {False}
    host.messages.attach("dlq", "d", 100)
    host.turn()
    host.messages.republishing.reject("d", list(range(1, 41)), "no")
    assert host.turn().is_republishing
    first = {dead.name for dead in host.messages.republishing.take()}
    bury(host)  # nobody wants the dead letters of `dlq`
    bury(host)
    assert first == {"dlq"}
    assert host.messages.statistics().queues["dlq"] == 0


def test_purged_expired_or_ended_while_it_waits() -> None:
    host = host_of(2, deliveries_max=1)
    nack(host, 1, 2)
    host.messages.administration.purge("x", 1, 1)
    (dead,) = host.messages.republishing.take()
    assert dead.number == 2
    host.messages.remove("x", host.now_us)
    assert host.messages.republishing.take() == []
    dead_letter = MessageBatch.of([Entry(DEAD, 1, 0, b"1", NO_HEADERS)], durable=True)
    assert host.messages.republishing.publish(dead, dead_letter, [], host.now_us), "nothing to do"
    host.turn()
    assert not host.messages.republishing.has_work(host.now_us)


def test_many_dead_letters_take_several_turns() -> None:
    host = host_of(100, deliveries_max=1)
    host.messages.detach("c")
    host.turn()
    turns = 0
    while host.messages.republishing.has_work(host.now_us):
        bury(host, "dlq")
        turns += 1
    host.turn()
    assert turns > 1
    assert host.messages.statistics().queues == {"x": 0, "dlq": 100}
