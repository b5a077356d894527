"""What consumers give back: how often it was delivered, and when it goes again."""

from __future__ import annotations

from palio.protocol.durability.outgoing import Outgoing

from .test_message_store import Host, delivered

SECOND = 1_000_000


def counts(out: Outgoing) -> dict[int, int]:
    """How often each number has been delivered."""
    return {
        number: count
        for one in out.deliveries
        for number, count in zip(
            one.positions, one.deliveries or [1] * len(one.positions), strict=True
        )
    }


def host_of(count: int, credit: int = 100) -> Host:
    host = Host()
    host.create("x")
    host.messages.attach("x", "c", credit)
    host.publish(range(1, count + 1), ("A", "x"))
    return host


def test_what_is_given_back_comes_again_first_and_with_its_count() -> None:
    host = host_of(4, credit=2)
    assert counts(host.turn()) == {1: 1, 2: 1}
    host.messages.nack("c", [2], 0, host.now_us)
    assert counts(host.turn()) == {2: 2}, "its credit is back"
    host.messages.nack("c", [2, 1], 0, host.now_us)
    assert counts(host.turn()) == {1: 2, 2: 3}
    host.messages.acknowledge("c", [1, 2], host.now_us)
    assert counts(host.turn()) == {3: 1, 4: 1}
    assert host.messages.statistics().counters.returned == 3


def test_any_consumer_may_get_it_but_only_its_own_consumer_gives_it_back() -> None:
    host = host_of(1)
    host.turn()
    host.messages.attach("x", "d", 10)
    host.messages.nack("d", [1, 77], 0, host.now_us)
    assert counts(host.turn()) == {}
    host.messages.grant_credit("c", -200)
    host.messages.nack("c", [1, 1], 0, host.now_us)
    out = host.turn()
    assert counts(out) == {1: 2}
    assert [one.consumer for one in out.deliveries] == ["d"]
    host.messages.nack("c", [1], 0, host.now_us)
    assert counts(host.turn()) == {}


def test_a_delay_is_waited_for() -> None:
    host = host_of(3)
    host.turn()
    host.messages.nack("c", [1], 10 * SECOND, host.now_us)
    host.messages.nack("c", [2], SECOND, host.now_us)
    begin_us = host.now_us
    assert counts(host.turn()) == {}
    assert host.messages.deadline_us <= begin_us + SECOND
    assert counts(host.wait(SECOND)) == {2: 2}
    assert counts(host.wait(8 * SECOND)) == {}
    assert counts(host.wait(SECOND)) == {1: 2}
    assert counts(host.wait(100 * SECOND)) == {}


def test_a_restart_keeps_committed_counts_and_loses_no_message() -> None:
    host = host_of(3)
    host.turn()
    for _ in range(3):
        host.messages.nack("c", [2], 0, host.now_us)
        host.turn()
    host.messages.nack("c", [3], 1000 * SECOND, host.now_us)
    host.wait(SECOND)  # a checkpoint
    host.restart()
    host.messages.attach("x", "d", 10)
    assert counts(host.turn()) == {1: 2, 2: 4, 3: 2}
    host.messages.acknowledge("d", [2], host.now_us)
    host.wait(SECOND)
    host.restart()
    host.messages.attach("x", "e", 10)
    assert set(counts(host.turn())) == {1, 3}


def test_a_crash_before_the_checkpoint_forgets_only_the_count() -> None:
    host = host_of(1)
    host.turn()
    for _ in range(3):
        host.messages.nack("c", [1], 0, host.now_us)
        host.messages.take(host.now_us)
    host.restart()
    host.messages.attach("x", "d", 10)
    assert counts(host.turn()) == {1: 2}


def test_consumers_that_leave_count_too() -> None:
    host = host_of(40)
    host.turn()
    for _ in range(2):
        host.messages.detach("c")
        host.messages.attach("x", "c", 100)
        out = host.turn()
    assert set(counts(out).values()) == {3}
    assert delivered(out) == list(range(1, 41))


def test_purged_or_removed_while_it_was_delayed() -> None:
    host = host_of(2)
    host.turn()
    host.messages.nack("c", [1], SECOND, host.now_us)
    host.messages.administration.purge("x", 1, 10)
    host.turn()
    assert counts(host.wait(2 * SECOND)) == {}
    host.messages.nack("c", [2], SECOND, host.now_us)
    host.messages.remove("x", host.now_us)
    host.turn()
    assert counts(host.wait(2 * SECOND)) == {}
