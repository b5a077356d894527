"""Streams: order, windows, retries, and what destinations say."""

from __future__ import annotations

from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.kept import Message, weigh
from palio.protocol.durability.ledger import Line
from palio.protocol.durability.streams import Arrival, Inbound, Outbound
from palio.protocol.frames import Carry, Target

from .memory_store import MemoryStore

BOUNDS = Bounds(window=100, retry_us_min=10, retry_us_max=40, backlog=200)


def outbound(count: int, bounds: Bounds = BOUNDS) -> Outbound:
    journal = Journal(MemoryStore(), "", bounds)
    stream = Outbound("B", Line(), journal, bounds)
    for n in range(1, count + 1):
        message = Message("p", n, 0, b"{}", b"." * 100, 0, True)
        position = journal.extend([message], weigh([message]), [1])
        stream.push([(position, ("1@x",))])
    stream.commit(count + 1)
    stream.reach(True)
    return stream


def numbers(stream: Outbound, now_us: int = 0) -> list[int]:
    return [target.number for _, target in stream.send(now_us)]


def test_nothing_is_sent_before_it_is_committed_or_the_destination_is_there() -> None:
    stream = outbound(3)
    stream.commit(2)
    stream.reach(False)
    assert numbers(stream) == []
    stream.reach(True)
    assert numbers(stream) == [1]
    assert numbers(stream) == []
    stream.commit(4)
    assert stream.send(0) == [(2, Target("B", 2, 1, ("1@x",))), (3, Target("B", 3, 1, ("1@x",)))]


def test_few_go_at_first_and_more_with_each_answer() -> None:
    stream = outbound(200)
    assert numbers(stream) == list(range(1, 17))
    assert stream.got(16, 0)
    assert numbers(stream) == list(range(17, 49))
    assert stream.got(20, 0)
    assert numbers(stream) == list(range(49, 85))
    assert stream.got(84, 0)
    assert numbers(stream) == list(range(85, 185)), "the window"


def test_bytes_under_way_are_bounded() -> None:
    stream = outbound(10, Bounds(window_bytes=300))
    assert numbers(stream) == [1, 2, 3]
    stream.got(2, 0)
    assert numbers(stream) == [4, 5]


def test_silence_makes_it_go_again_after_pauses_that_double() -> None:
    stream = outbound(2)
    times = []
    now_us = 0
    while len(times) < 6:
        assert numbers(stream, now_us) == [1, 2]
        assert stream.deadline_us is not None
        assert not stream.wake(stream.deadline_us - 1)
        times.append(stream.deadline_us - now_us)
        now_us = stream.deadline_us
        assert stream.wake(now_us)
    assert times == [10, 20, 40, 40, 40, 40]
    numbers(stream, now_us)
    stream.got(1, now_us)
    assert stream.deadline_us == now_us + 10
    stream.got(2, now_us)
    assert stream.deadline_us is None


def test_it_goes_again_at_once_when_the_topology_changed() -> None:
    stream = outbound(2)
    assert numbers(stream) == [1, 2]
    stream.reach(False)
    assert stream.deadline_us is None, "nobody is asked while there is no way"
    stream.reach(True)
    assert numbers(stream, 3) == [1, 2]


def test_answers_that_make_no_sense_change_nothing() -> None:
    stream = outbound(3)
    stream.commit(3)
    numbers(stream)
    assert stream.got(1, 0)
    for number in (-1, 0, 1, 3, 99):
        assert not stream.got(number, 0)
    assert list(stream.line.entries) == [2, 3]


def test_what_is_given_up_is_skipped() -> None:
    stream = outbound(5)
    numbers(stream)
    stream.give_up()
    assert numbers(stream) == []
    message = Message("p", 9, 0, b"{}", b"", 0, True)
    position = stream._journal.extend([message], weigh([message]), [1])
    stream.push([(position, ("1@x",))])
    stream.commit(7)
    assert stream.send(0) == [(6, Target("B", 6, 6, ("1@x",)))]


def test_a_full_backlog_has_room_again_with_some_distance() -> None:
    stream = outbound(200)
    assert stream.is_full
    stream.got(10, 0)
    assert not stream.is_full
    assert not stream.has_room
    stream.got(26, 0)
    assert stream.has_room


# ---- the other end


def offer(inbound: Inbound, number: int, first: int = 1, size: int = 1) -> bool:
    carry = Carry("A", "e", (), "p", number, 0)
    arrival = Arrival(carry, ("1@x",), b"", b"." * size)
    return inbound.offer(Target("B", number, first, ("1@x",)), arrival, 0)


def accepted(inbound: Inbound) -> list[int]:
    found = []
    while (arrival := inbound.turn) is not None:
        found.append(arrival.carry.number)
        inbound.accept()
    return found


def test_messages_are_taken_in_order_and_once() -> None:
    inbound = Inbound("A", "e", BOUNDS)
    assert all(offer(inbound, n) for n in (3, 2, 3))
    assert accepted(inbound) == []
    assert offer(inbound, 1)
    assert accepted(inbound) == [1, 2, 3]
    assert not offer(inbound, 2), "say again that it is here"
    assert accepted(inbound) == []


def test_early_messages_are_bounded_in_number_and_bytes() -> None:
    inbound = Inbound("A", "e", Bounds(window=4, window_bytes=10))
    offer(inbound, 5)
    offer(inbound, 4, size=8)
    offer(inbound, 3, size=8)
    offer(inbound, 2, size=1)
    offer(inbound, 1, size=99)
    assert accepted(inbound) == [1, 2]
    offer(inbound, 3)
    assert accepted(inbound) == [3, 4]


def test_the_origin_says_where_it_begins() -> None:
    """After a lost disk here, or when it gave messages up."""
    inbound = Inbound("A", "e", BOUNDS)
    offer(inbound, 2)
    offer(inbound, 12, first=11)
    assert inbound.expected == 11
    assert accepted(inbound) == []
    offer(inbound, 11, first=1)
    assert accepted(inbound) == [11, 12]
