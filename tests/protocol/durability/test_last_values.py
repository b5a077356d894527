"""The last values of one broker: which of two stays, bounds, what is gone, restarts."""

from __future__ import annotations

from random import Random

import pytest

from palio.protocol.durability.bounds import LastValueBounds
from palio.protocol.durability.last_values import GONE_US, PREFIX, LastValue, LastValues, value_of
from palio.protocol.durability.storage import DamagedStore
from palio.protocol.wire.batch import Entry
from tests.protocol.durability.memory_store import MemoryStore

USUAL = LastValueBounds()


def value(key: int, time_us: int, text: bytes = b"{}", expires_us: int = 0) -> LastValue:
    name = key.to_bytes(16, "big")
    return LastValue(name, time_us, "ann/app", time_us, time_us, "a", text, b"\0\0", expires_us)


def shown(values: LastValues) -> list[tuple[int, int]]:
    return sorted([(int.from_bytes(one.key, "big"), one.time_us) for one in values])


def commit(values: LastValues, ticket: int = 1) -> None:
    values.sealed(ticket)
    values.committed(ticket)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_order_of_arrival_the_end_is_the_same(seed: int) -> None:
    random = Random(seed)
    offered = [
        value(random.randrange(3), time, random.choice([b"", b'{"x": 1}'])) for time in range(12)
    ]
    ends = set()
    for _ in range(5):
        store = MemoryStore()
        values = LastValues(store, USUAL)
        for ticket, one in enumerate(random.sample(offered, len(offered)), 1):
            values.offer(one)
            if random.random() < 0.5:
                commit(values, ticket)
        commit(values, 99)
        ends.add(tuple(shown(values)))
        again = LastValues(store, USUAL)
        assert (shown(again), again.bytes) == (shown(values), values.bytes)
    newest = {one.key: one for one in offered}
    wanted = [one for one in newest.values() if not one.is_gone]
    assert ends == {
        tuple(sorted([(int.from_bytes(one.key, "big"), one.time_us) for one in wanted]))
    }


def test_what_is_not_committed_is_not_shown() -> None:
    values = LastValues(MemoryStore(), USUAL)
    values.offer(value(1, 5))
    commit(values)
    values.offer(value(1, 6))
    values.offer(value(2, 7))
    assert shown(values) == [(1, 5)]
    assert values.awaited(value(1, 6).key) == value(1, 6).order
    assert not values.is_safe(value(1, 6).key, value(1, 6).order)
    commit(values, 2)
    assert shown(values) == [(1, 6), (2, 7)]
    assert values.awaited(value(1, 6).key) is None


def test_what_does_not_fit_leaves_no_older_value() -> None:
    one = value(1, 1, b"x" * 100)
    values = LastValues(MemoryStore(), LastValueBounds(values=2, bytes=3 * one.size))
    assert [values.offer(value(key, key, b"x" * 100)) for key in (1, 2, 3)] == [True, True, False]
    assert not values.offer(value(1, 9, b"x" * 500))
    commit(values)
    assert (shown(values), values.refused) == ([(2, 2)], 2)
    assert values.bytes == one.size
    assert values.offer(value(4, 10))
    assert not values.offer(value(1, 8)), "it is older than what did not fit"


def test_marks_of_what_is_gone_are_bounded_in_number_and_time() -> None:
    store = MemoryStore()
    values = LastValues(store, LastValueBounds(values=3))
    for key in range(10):
        values.offer(value(key, key + 1, b""))
    assert (len(values.values()), len(list(store.scan(PREFIX))), values.bytes) == (3, 3, 0)
    commit(values)
    assert values.deadline_us is not None
    for _ in range(3):
        values.wake(GONE_US + 10)
    assert (values.values(), values.deadline_us, list(store.scan(PREFIX))) == ([], None, [])


def test_what_expires_leaves_a_mark() -> None:
    store = MemoryStore()
    values = LastValues(store, USUAL)
    values.offer(value(1, 5, expires_us=50))
    values.offer(value(2, 5, expires_us=60))
    values.offer(value(2, 6))
    commit(values)
    assert values.find(value(1, 0).key, 49) is not None
    assert values.find(value(1, 0).key, 50) is None, "before anybody has looked"
    values.wake(70)
    assert shown(values) == shown(LastValues(store, USUAL)) == [(2, 6)]
    assert not values.offer(value(1, 4))
    assert values.offer(value(1, 71))


def test_times_grow_whatever_the_clock_does_also_after_a_restart() -> None:
    store = MemoryStore()
    values = LastValues(store, USUAL)
    key = value(1, 0).key
    times = [values.next_time_us(key, now) for now in (100, 50, 100)]
    assert times == [100, 101, 102]
    values.offer(value(1, 500))
    assert values.next_time_us(key, 100) == 501
    assert LastValues(store, USUAL).next_time_us(key, 100) == 501


def test_what_is_no_last_value_and_what_is_damaged() -> None:
    assert value_of(Entry("ann", 1, 0, b"{}", b"\0\0body"), "a") is None
    assert value_of(Entry("ann", 1, 0, b"{}", b"\xff\xff"), "a") is None
    store = MemoryStore()
    store.put(f"{PREFIX}v/00", b"\xc1")
    with pytest.raises(DamagedStore):
        LastValues(store, USUAL)
