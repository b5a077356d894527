"""The journal against a plain list of messages."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.errors import InvalidFile
from palio.protocol.durability import journal as journals
from palio.protocol.durability import keys
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.journal import Journal
from palio.protocol.wire.batch import Entry, MessageBatch

from .memory_store import MemoryStore

FOR_EVER = 1 << 62


def entry(number: int, size: int = 0) -> Entry:
    return Entry("ann/1", number, 7, b'{"x":1}', b"." * size)


def append(
    journal: Journal,
    found: list[Entry],
    references: list[int],
    stored_us: int = 0,
    published_here: bool = True,
) -> int:
    batch = MessageBatch.of(found, durable=True)
    return journal.append(batch, batch.sizes(), references, stored_us, published_here)


def read(journal: Journal, *positions: int) -> list[Entry]:
    return [plain(found) for batch in journal.pick(positions) for found in batch]


def plain(found: Entry) -> Entry:
    """Messages that were read from the disk have an empty route there."""
    return found._replace(route=b"")


def numbers(journal: Journal, *positions: int) -> list[int]:
    return [found.number for found in read(journal, *positions)]


def open_journal(store: MemoryStore, **bounds: int) -> Journal:
    return Journal(store, Bounds(**bounds))


def test_a_segment_is_one_put_and_one_of_metadata() -> None:
    store = MemoryStore()
    journal = open_journal(store)
    for n in range(1, 1001):
        assert append(journal, [entry(n)], [0]) == n
    assert store.puts == 0
    journal.seal()
    assert store.puts == 2
    journal.seal()
    assert store.puts == 2


def test_large_segments_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "SEGMENT_COUNT", 10)
    store = MemoryStore()
    journal = open_journal(store)
    for n in range(1, 26):
        append(journal, [entry(n)], [0])
    journal.seal()
    found = [keys.number_of(key) for key, _ in store.scan(keys.SEGMENTS)]
    assert found == [1, 11, 21]
    assert numbers(journal, *range(1, 26)) == list(range(1, 26))


@given(
    st.lists(st.tuples(st.integers(1, 8), st.booleans()), max_size=12),
    st.integers(0, 30),
    st.sampled_from([0, 200, 1 << 20]),
)
def test_reads_what_was_appended_also_after_a_restart(
    batches: list[tuple[int, bool]], since: int, cache_bytes: int
) -> None:
    """The time of a message is the number of its batch, so `since` has a plain answer."""
    store = MemoryStore()
    journal = open_journal(store, cache_bytes=cache_bytes)
    wanted: list[Entry] = []
    times: list[int] = []
    origins: list[bool] = []
    for time_us, (count, published_here) in enumerate(batches):
        for _ in range(count):
            wanted.append(entry(len(wanted) + 1))
            times.append(journal.stored_us(time_us))
            origins.append(published_here)
            append(journal, [wanted[-1]], [0], times[-1], published_here)
        if time_us % 3:
            journal.seal()
    journal.seal()
    end = len(wanted) + 1
    for found in (journal, open_journal(store, cache_bytes=cache_bytes)):
        assert found.next == end
        assert len(found) == len(wanted)
        assert [read(found, n)[0] for n in range(1, end)] == wanted
        first = next((n for n, time_us in enumerate(times, 1) if time_us >= since), end)
        assert found.since(since) == first
        pages: list[tuple[int, Entry]] = []
        at = first
        while at < found.next:
            page, at = found.page(at, 3)
            if page is not None:
                pages += zip(page.positions, map(plain, page.batch), strict=True)
        assert pages == [(n, wanted[n - 1]) for n in range(first, end) if origins[n - 1]]


def test_since_sees_what_is_not_sealed() -> None:
    journal = open_journal(MemoryStore())
    for time_us in (5, 6, 7):
        append(journal, [entry(time_us)], [0], journal.stored_us(time_us))
    assert [journal.since(time_us) for time_us in (0, 5, 6, 7, 8)] == [1, 1, 2, 3, 4]
    page, _ = journal.page(2, 1000)
    assert page is not None
    assert list(page.positions) == [2, 3]


def test_the_clock_does_not_go_back() -> None:
    store = MemoryStore()
    journal = open_journal(store)
    assert [journal.stored_us(t) for t in (5, 9, 3)] == [5, 9, 9]
    append(journal, [entry(1)], [0], 9)
    journal.seal()
    assert open_journal(store).stored_us(2) == 9


def test_a_message_of_another_broker_is_freed_when_nobody_refers_to_it() -> None:
    store = MemoryStore()
    journal = open_journal(store)
    append(journal, [entry(1)], [2], published_here=False)
    journal.seal()
    journal.release([1])
    assert not journal.has_waste(0, FOR_EVER)
    journal.release([1])
    assert journal.has_waste(0, FOR_EVER)
    journal.sweep(0, FOR_EVER)
    assert list(store.scan("")) == []
    assert (journal.bytes, len(journal)) == (0, 0)
    with pytest.raises(InvalidFile, match="message 1 is not in the journal"):
        read(journal, 1)


def test_messages_published_here_stay_for_their_time() -> None:
    journal = open_journal(MemoryStore(), retention_us=100)
    append(journal, [entry(1)], [0], journal.stored_us(50))
    journal.seal()
    assert not journal.has_waste(149, FOR_EVER)
    assert journal.has_waste(150, FOR_EVER)
    assert not journal.has_waste(150, 1), "a replay needs it"


def test_the_oldest_go_first_when_there_are_too_many_bytes() -> None:
    journal = open_journal(MemoryStore(), retention_bytes=2500)
    for n in range(1, 6):
        append(journal, [entry(n, 1000)], [int(n == 2)])
        journal.seal()
    journal.sweep(0, FOR_EVER)
    assert len(journal) == 2
    assert numbers(journal, 2, 5) == [2, 5]


def test_a_segment_that_few_need_is_thinned() -> None:
    store = MemoryStore()
    journal = open_journal(store, retention_us=0)
    for n in range(1, 101):
        append(journal, [entry(n, 1000)], [int(n in (30, 60))])
    journal.seal()
    before = journal.bytes
    journal.sweep(1, FOR_EVER)
    assert journal.bytes < before / 20
    assert not journal.has_waste(1, FOR_EVER)
    for found in (journal, open_journal(store)):
        assert len(found) == 2
        assert numbers(found, 30, 60) == [30, 60]
        with pytest.raises(InvalidFile, match="message 31 of the journal is gone"):
            read(found, 31)
        with pytest.raises(InvalidFile, match="message 1 of the journal is gone"):
            read(found, *range(1, 101))


def test_the_cache_is_bounded() -> None:
    store = MemoryStore()
    journal = open_journal(store, cache_bytes=3000)
    for n in range(1, 11):
        append(journal, [entry(n, 1000)], [0])
        journal.seal()
    assert sum(bool(segment.batches) for segment in journal._segments) == 2
    assert [numbers(journal, n) for n in range(1, 11)] == [[n] for n in range(1, 11)]
    assert sum(bool(segment.batches) for segment in journal._segments) == 2


@given(
    st.lists(st.tuples(st.integers(1, 9), st.booleans(), st.integers(0, 2)), max_size=8),
    st.sampled_from([1, 1 << 20]),
    st.randoms(use_true_random=False),
)
def test_large_batches_and_gathered_ones_are_read_in_any_order(
    parts: list[tuple[int, bool, int]], cache_bytes: int, random: Random
) -> None:
    store = MemoryStore()
    bounds = Bounds(cache_bytes=cache_bytes, retention_us=10)
    journal = Journal(store, bounds)
    wanted: list[Entry] = []
    counts: list[int] = []
    for count, is_large, references in parts:
        found = [entry(len(wanted) + i, i) for i in range(1, count + 1)]
        chosen = [references if i % 3 == 0 else 0 for i in range(count)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(journals, "LARGE_BATCH", 1 if is_large else 10)
            first = append(journal, found, chosen, journal.stored_us(len(wanted)))
        assert first == len(wanted) + 1
        wanted += found
        counts += chosen
    journal.seal()
    positions = list(range(1, len(wanted) + 1))
    random.shuffle(positions)
    for opened in (journal, Journal(store, bounds)):
        assert read(opened, *positions) == [wanted[n - 1] for n in positions]
        assert read(opened, *sorted(positions)) == wanted
        located = opened.locate(positions)
        assert [plain(batch.entry(row)) for batch, row in located] == [
            wanted[n - 1] for n in positions
        ]
    journal.sweep(1_000, FOR_EVER)  # thinned: the rest is still there
    needed = [n for n in positions if counts[n - 1]]
    for opened in (journal, Journal(store, bounds)):
        assert read(opened, *needed) == [wanted[n - 1] for n in needed]


def test_a_segment_does_not_hold_what_was_received_beside_it() -> None:
    journal = open_journal(MemoryStore())
    received = MessageBatch.of([entry(n, 100) for n in range(1, 101)], durable=True)
    batch = received.pick([3, 50])
    journal.append(batch, batch.sizes(), [1, 1], 0, True)
    journal.seal()
    assert numbers(journal, 1, 2) == [4, 51]
    assert read(journal, 2) == [entry(51, 100)]
    (kept,) = journal.pick([1, 2])
    assert len(kept.data) < 500


@pytest.mark.parametrize("cut", [1, 60, 10_000])
def test_a_damaged_segment_is_an_error(cut: int) -> None:
    store = MemoryStore()
    journal = open_journal(store)
    append(journal, [entry(n) for n in (1, 2, 3)], [1] * 3)
    journal.seal()
    key = keys.numbered(keys.SEGMENTS, 1)
    data = store.get(key)
    assert data is not None
    store.put(key, data[: -min(cut, len(data))])
    with pytest.raises(InvalidFile, match="segment 1 of the journal is damaged"):
        read(open_journal(store), 1)
    store.delete(key)
    with pytest.raises(InvalidFile, match="segment 1 of the journal is missing"):
        read(open_journal(store), 1)


@pytest.mark.parametrize("count", [5, 100])
def test_who_refers_to_a_message_twice_lets_it_go_twice(count: int) -> None:
    """A stream has a message twice: as new for one subscription, from a replay for another."""
    store = MemoryStore()
    journal = open_journal(store, retention_us=0)
    append(journal, [entry(n) for n in range(1, count + 1)], [2] * count)
    journal.seal()
    journal.release([*range(1, count), *range(1, count)])
    journal.sweep(1, FOR_EVER)  # thinned
    assert len(journal) == 1
    assert numbers(journal, count) == [count]
    journal.release([count, count])
    journal.sweep(1, FOR_EVER)
    assert not list(store.scan(keys.SEGMENTS))
