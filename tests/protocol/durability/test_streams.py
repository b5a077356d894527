"""Streams: order, windows, retries, and what destinations say."""

from __future__ import annotations

from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.destination import Departures
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.sequence import EntrySequence
from palio.protocol.durability.streams import CarriedArrival, IncomingStream, OutgoingStream
from palio.protocol.wire.batch import Entry, MessageBatch
from palio.protocol.wire.headers import CarryHeader, CarryTarget

from .memory_store import MemoryStore

BOUNDS = Bounds(window=100, retry_us_min=10, retry_us_max=40, backlog=200)


def outgoing(count: int, bounds: Bounds = BOUNDS) -> OutgoingStream:
    stream = OutgoingStream("B", EntrySequence(), Journal(MemoryStore(), bounds), bounds)
    for n in range(1, count + 1):
        push(stream, n)
    stream.safe = count + 1
    stream.reach(True)
    stream.set_window(0, 0)
    return stream


def push(stream: OutgoingStream, number: int) -> None:
    batch = MessageBatch.of([Entry("p", number, 0, b"{}", b"." * 100)], durable=True)
    position = stream._journal.append(batch, batch.sizes(), [1], 0, True)
    stream.push([position], [("1@x",)], batch.sizes()[0])


def sent(stream: OutgoingStream, now_us: int = 0) -> list[tuple[int, CarryTarget]]:
    departures = Departures()
    stream.collect(departures, now_us)
    return [(position, target) for position, (target,) in departures.carries.items()]


def numbers(stream: OutgoingStream, now_us: int = 0) -> list[int]:
    return [target.number for _, target in sent(stream, now_us)]


def test_nothing_is_sent_before_it_is_committed_or_the_destination_is_there() -> None:
    stream = outgoing(3)
    stream.safe = 2
    stream.reach(False)
    assert numbers(stream) == []
    stream.reach(True)
    assert numbers(stream) == [1]
    assert numbers(stream) == []
    stream.set_window(0, 0)
    stream.safe = 4
    assert sent(stream) == [
        (2, CarryTarget("B", 2, 1, ("1@x",))),
        (3, CarryTarget("B", 3, 1, ("1@x",))),
    ]


def test_few_go_at_first_and_more_with_each_answer() -> None:
    stream = outgoing(200)
    assert numbers(stream) == list(range(1, 17))
    assert stream.acknowledge(16, 0)
    assert numbers(stream) == list(range(17, 49))
    assert stream.acknowledge(20, 0)
    assert numbers(stream) == list(range(49, 85))
    assert stream.acknowledge(84, 0)
    assert numbers(stream) == list(range(85, 185)), "the window"


def test_bytes_under_way_are_bounded() -> None:
    stream = outgoing(10, Bounds(window_bytes=300))
    size = stream._journal.size(1)
    assert 150 >= size > 100
    assert numbers(stream) == [1, 2]
    stream.acknowledge(1, 0)
    assert numbers(stream) == [3]
    stream.set_window(0, size - 1)
    stream.acknowledge(3, 0)
    assert numbers(stream) == [4], "one always goes"


def test_one_message_goes_until_the_destination_has_told_its_window() -> None:
    """It may be another one after an interruption: what is beyond it would be dropped there."""
    stream = outgoing(50)
    for is_reachable in (False, True):
        stream.reach(is_reachable)
    assert numbers(stream) == [1]
    stream.set_window(3, 0)
    assert stream.acknowledge(1, 0)
    assert numbers(stream) == [2, 3, 4]
    stream.set_window(2, 0)
    assert stream.acknowledge(3, 0)
    assert numbers(stream) == [5]
    stream.set_window(1000, 0)
    assert stream.acknowledge(5, 0)
    assert numbers(stream) == list(range(6, 38))


def test_silence_makes_it_go_again_after_pauses_that_double() -> None:
    stream = outgoing(2)
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
    stream.acknowledge(1, now_us)
    assert stream.deadline_us == now_us + 10
    stream.acknowledge(2, now_us)
    assert stream.deadline_us is None


def test_it_goes_again_at_once_when_the_topology_changed() -> None:
    stream = outgoing(2)
    assert numbers(stream) == [1, 2]
    stream.reach(False)
    assert stream.deadline_us is None, "nobody is asked while there is no way"
    stream.reach(True)
    assert numbers(stream, 3) == [1]
    assert stream.acknowledge(1, 3)
    assert numbers(stream, 3) == [2]


def test_answers_that_make_no_sense_change_nothing() -> None:
    stream = outgoing(3)
    stream.safe = 3
    numbers(stream)
    assert stream.acknowledge(1, 0)
    for number in (-1, 0, 1, 3, 99):
        assert not stream.acknowledge(number, 0)
    assert list(stream.sequence.entries) == [2, 3]


def test_what_is_given_up_is_skipped() -> None:
    stream = outgoing(5)
    numbers(stream)
    stream.clear()
    assert numbers(stream) == []
    push(stream, 9)
    stream.safe = 7
    assert sent(stream) == [(6, CarryTarget("B", 6, 6, ("1@x",)))]


def test_a_full_backlog_has_room_again_with_some_distance() -> None:
    stream = outgoing(200)
    assert stream.is_full
    stream.acknowledge(10, 0)
    assert not stream.is_full
    assert not stream.has_room
    stream.acknowledge(26, 0)
    assert stream.has_room


# ---- the other end


def offer(incoming: IncomingStream, number: int, first: int = 1, size: int = 1) -> bool:
    header = CarryHeader("A", "e", (), "p", number, 0)
    arrival = CarriedArrival(header, ("1@x",), b"", b"." * size, size)
    return incoming.offer(CarryTarget("B", number, first, ("1@x",)), arrival, 0)


def accepted(incoming: IncomingStream) -> list[int]:
    found = []
    while (arrival := incoming.early.get(incoming.expected)) is not None:
        found.append(arrival.header.number)
        incoming.accept()
    return found


def test_messages_are_taken_in_order_and_once() -> None:
    incoming = IncomingStream("A", "e", BOUNDS)
    assert all(offer(incoming, n) for n in (3, 2, 3))
    assert accepted(incoming) == []
    assert offer(incoming, 1)
    assert accepted(incoming) == [1, 2, 3]
    assert not offer(incoming, 2), "say again that it is here"
    assert accepted(incoming) == []


def test_early_messages_are_bounded_in_number_and_bytes() -> None:
    incoming = IncomingStream("A", "e", Bounds(window=4, window_bytes=10))
    offer(incoming, 5)
    offer(incoming, 4, size=8)
    offer(incoming, 3, size=8)
    offer(incoming, 2, size=1)
    offer(incoming, 1, size=99)
    assert accepted(incoming) == [1, 2]
    offer(incoming, 3)
    assert accepted(incoming) == [3, 4]


def test_the_origin_says_where_it_begins() -> None:
    """After a lost disk here, or when it gave messages up."""
    incoming = IncomingStream("A", "e", BOUNDS)
    offer(incoming, 2)
    offer(incoming, 12, first=11)
    assert incoming.expected == 11
    assert accepted(incoming) == []
    offer(incoming, 11, first=1)
    assert accepted(incoming) == [11, 12]
