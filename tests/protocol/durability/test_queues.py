"""Queues: order, sharing, credit, and what happens when they are full."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.destination import Departures
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.queues import DELIVERED_BYTES_MAX, Full, Queue
from palio.protocol.durability.sequence import EntrySequence
from palio.protocol.wire.batch import Entry, MessageBatch

from .memory_store import MemoryStore


def queue(count: int = 0, full: Full = Full.BLOCK, **bounds: int) -> Queue:
    limits = Bounds(**bounds)
    made = Queue("x", "1@x", full, EntrySequence(), Journal(MemoryStore(), limits), limits)
    fill(made, count)
    return made


def fill(made: Queue, count: int, size: int = 0) -> None:
    for _ in range(count):
        entry = Entry("p", made._journal.next, 0, b"", b"." * size)
        batch = MessageBatch.of([entry], durable=True)
        sizes = batch.sizes()
        made.push([made._journal.append(batch, sizes, [1], 0, True)], [()], sizes[0])
    made.shrink()
    made.safe = made.sequence.next
    made.sealed()
    made.committed()


def delivered(made: Queue) -> list[tuple[object, int]]:
    shares = made.deliver(Departures())
    return [(share.consumer, number) for share in shares for number in share.numbers]


def test_one_consumer_gets_all_in_order_as_far_as_its_credit_goes() -> None:
    made = queue(5)
    assert delivered(made) == []
    made.attach("a", 2)
    assert delivered(made) == [("a", 1), ("a", 2)]
    assert delivered(made) == []
    made.acknowledge([2])
    assert delivered(made) == [("a", 3)]
    made.consumers.grant_credit("a", 5)
    assert delivered(made) == [("a", 4), ("a", 5)]


def test_nothing_goes_before_it_is_committed() -> None:
    made = queue(2)
    made.safe = 2
    made.attach("a", 10)
    assert delivered(made) == [("a", 1)]


def test_consumers_share_in_turn() -> None:
    made = queue(6)
    made.attach("a", 1)
    made.attach("b", 10)
    made.attach("c", 10)
    assert delivered(made) == [("a", 1), ("b", 2), ("b", 4), ("b", 6), ("c", 3), ("c", 5)]


def test_what_a_consumer_leaves_goes_to_another_first_and_says_so() -> None:
    made = queue(4)
    made.attach("a", 3)
    made.deliver(Departures())
    made.acknowledge([2])
    made.detach("a")
    made.attach("b", 10)
    shares = made.deliver(Departures())
    assert [(share.numbers, share.redelivered) for share in shares] == [
        ([1, 3], True),
        ([4], False),
    ]


def test_a_late_acknowledgement_of_one_who_left_counts() -> None:
    made = queue(2)
    made.attach("a", 10)
    made.deliver(Departures())
    made.detach("a")
    made.attach("a", 10)
    assert made.acknowledge([1, 1, 99, -1]) == 1
    assert delivered(made) == [("a", 2)]


def test_drop_lets_the_oldest_go() -> None:
    made = queue(full=Full.DROP, queue=3)
    made.attach("a", 1)
    fill(made, 2)
    assert delivered(made) == [("a", 1)]
    fill(made, 3)
    assert made.dropped == 2
    assert len(made) == 3
    made.acknowledge([1])
    assert delivered(made) == [("a", 3)], "what was dropped while it was out gives credit back"


def test_drop_goes_by_bytes_too_and_keeps_the_last() -> None:
    made = queue(full=Full.DROP, queue_bytes=1000)
    fill(made, 3, size=400)
    assert (len(made), made.dropped) == (2, 1)
    fill(made, 1, size=5000)
    assert (len(made), made.dropped) == (1, 3)


def test_block_is_full_and_end_is_over() -> None:
    made = queue(3, queue=3)
    assert made.is_full
    made.attach("a", 10)
    made.deliver(Departures())
    made.acknowledge([1])
    assert (made.is_full, made.has_room) == (False, True)
    made = queue(3, Full.END, queue=3)
    assert (made.is_full, made.is_over) == (False, False)
    fill(made, 1)
    assert made.is_over


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(["fill", "ack", "grant"]), st.integers(0, 4)),
            st.tuples(st.sampled_from(["attach", "detach"]), st.integers(0, 2)),
        ),
        max_size=80,
    )
)
def test_each_entry_is_with_one_consumer_until_it_is_acknowledged(
    steps: list[tuple[str, int]],
) -> None:
    made = queue()
    holds: dict[int, list[int]] = {}
    credit: dict[int, int] = {}
    done: set[int] = set()
    for step, n in steps:
        if step == "fill":
            fill(made, n)
        elif step == "attach" and n not in holds:
            made.attach(n, n)
            holds[n], credit[n] = [], n
        elif step == "detach" and n in holds:
            made.detach(n)
            del holds[n], credit[n]
        elif step == "grant" and n in holds:
            made.consumers.grant_credit(n, 2)
            credit[n] += 2
        elif step == "ack" and holds.get(n):
            number = holds[n].pop(len(holds[n]) // 2)
            done.add(number)
            made.acknowledge([number])
        for key, number in delivered(made):
            assert isinstance(key, int)
            assert number not in done
            assert all(number not in held for held in holds.values())
            holds[key].append(number)
        assert all(len(held) <= credit[key] for key, held in holds.items())
        out = {number for held in holds.values() for number in held}
        waiting = set(range(1, made.sequence.next)) - done - out
        assert set(made.sequence.entries) == out | waiting
        if waiting:
            assert all(len(held) == credit[key] for key, held in holds.items())


def test_a_turn_delivers_so_many_bytes_whatever_the_credit() -> None:
    made = queue()
    fill(made, 10, DELIVERED_BYTES_MAX // 3)
    made.attach("a", 1000)
    turns = []
    departures = Departures(left={made: None})
    while departures.left:
        departures = Departures()
        turns.append([number for share in made.deliver(departures) for number in share.numbers])
    assert turns == [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10]]


def test_a_turn_delivers_so_many_messages_however_small_they_are() -> None:
    made = queue()
    fill(made, 1000)
    made.attach("a", 10_000)
    made.attach("b", 10_000)
    numbers, turns = [], 0
    departures = Departures(left={made: None})
    while departures.left:
        departures, turns = Departures(work=300), turns + 1
        found = [number for share in made.deliver(departures) for number in share.numbers]
        assert len(found) <= 300
        numbers += found
    assert sorted(numbers) == list(range(1, 1001))
    assert turns >= 4


def test_what_many_consumers_leave_is_redelivered_in_order() -> None:
    made = queue(600)
    for i in range(200):
        made.attach(i, 3)
    assert len(delivered(made)) == 600
    for i in range(200):
        made.detach(i)
    made.attach("a", 1000)
    (share,) = made.deliver(Departures())
    assert (share.numbers, share.redelivered) == (list(range(1, 601)), True)


def test_redelivery_respects_the_bytes_of_a_turn() -> None:
    made = queue()
    fill(made, 4, DELIVERED_BYTES_MAX // 3)
    made.attach("a", 10)
    while delivered(made):
        pass
    made.detach("a")
    made.attach("b", 10)
    assert [number for _, number in delivered(made)] == [1, 2, 3]
    assert [number for _, number in delivered(made)] == [4]


def test_a_message_that_is_larger_than_a_turn_is_delivered_alone() -> None:
    made = queue()
    fill(made, 1, 10)
    fill(made, 2, 2 * DELIVERED_BYTES_MAX)
    fill(made, 2, 10)
    made.attach("a", 4)
    made.attach("b", 4)
    turns = []
    while found := delivered(made):
        turns.append(found)
    assert [number for turn in turns for _, number in turn] == [1, 2, 3, 4, 5]
    assert [len(turn) for turn in turns] == [2, 1, 2]


def test_all_queues_together_deliver_so_many_bytes_in_a_turn() -> None:
    made = [queue() for _ in range(4)]
    for one in made:
        fill(one, 2, 1_000_000)
        one.attach("a", 10)
    departures = Departures(room=3_500_000)
    for one in made:
        one.collect(departures, 0)
    assert [len(one.batch) for one in departures.deliveries] == [2, 1, 1]
    assert list(departures.left) == made[2:]
    departures = Departures()
    for one in made:
        one.collect(departures, 0)
    assert [len(one.batch) for one in departures.deliveries] == [2, 2]
