"""The journal against a plain list of messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.errors import InvalidFile
from palio.protocol.durability import journal as journals
from palio.protocol.durability.bounds import Bounds
from palio.protocol.durability.journal import Journal
from palio.protocol.durability.kept import Message, weigh

from .memory_store import MemoryStore

FOR_EVER = 1 << 62


def message(number: int, stored_us: int = 0, is_origin: bool = True, size: int = 0) -> Message:
    return Message("ann/1", number, 7, b'{"x":1}', b"." * size, stored_us, is_origin)


def append(journal: Journal, found: Message, references: int) -> int:
    return journal.extend([found], weigh([found]), [references])


def open_journal(store: MemoryStore, **bounds: int) -> Journal:
    return Journal(store, "", Bounds(**bounds))


def test_a_batch_is_one_put_and_one_of_sizes() -> None:
    store = MemoryStore()
    journal = open_journal(store)
    for n in range(1, 1001):
        assert append(journal, message(n), 0) == n
    assert store.puts == 0
    journal.seal()
    assert store.puts == 2
    journal.seal()
    assert store.puts == 2


def test_large_batches_are_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "BATCH_COUNT", 10)
    store = MemoryStore()
    journal = open_journal(store)
    for n in range(1, 26):
        append(journal, message(n), 0)
    journal.seal()
    assert [key for key, _ in store.scan("b/")] == [f"b/{n:016x}" for n in (1, 11, 21)]
    assert [journal.read([n])[0].number for n in range(1, 26)] == list(range(1, 26))


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
    kept: list[Message] = []
    for time_us, (count, is_origin) in enumerate(batches):
        for _ in range(count):
            kept.append(message(len(kept) + 1, journal.clock(time_us), is_origin))
            append(journal, kept[-1], 0)
        if time_us % 3:
            journal.seal()
    journal.seal()
    for found in (journal, open_journal(store, cache_bytes=cache_bytes)):
        assert found.next == len(kept) + 1
        assert len(found) == len(kept)
        assert [found.read([n])[0] for n in range(1, len(kept) + 1)] == kept
        first = next((n for n, m in enumerate(kept, 1) if m.stored >= since), len(kept) + 1)
        assert found.since(since) == first
        pages, at = [], first
        while at < found.next:
            page, at = found.page(at)
            pages += page
        assert pages == [(n, m) for n, m in enumerate(kept, 1) if n >= first and m.is_origin]


def test_since_sees_what_is_not_sealed() -> None:
    journal = open_journal(MemoryStore())
    for time_us in (5, 6, 7):
        append(journal, message(time_us, journal.clock(time_us)), 0)
    assert [journal.since(time_us) for time_us in (0, 5, 6, 7, 8)] == [1, 1, 2, 3, 4]
    assert [n for n, _ in journal.page(2)[0]] == [2, 3]


def test_the_clock_does_not_go_back() -> None:
    store = MemoryStore()
    journal = open_journal(store)
    assert [journal.clock(t) for t in (5, 9, 3)] == [5, 9, 9]
    append(journal, message(1, 9), 0)
    journal.seal()
    assert open_journal(store).clock(2) == 9


def test_a_message_of_another_broker_is_freed_when_nobody_refers_to_it() -> None:
    store = MemoryStore()
    journal = open_journal(store)
    append(journal, message(1, is_origin=False), 2)
    journal.seal()
    journal.release([1])
    assert not journal.has_waste(0, FOR_EVER)
    journal.release([1])
    assert journal.has_waste(0, FOR_EVER)
    journal.sweep(0, FOR_EVER)
    assert list(store.scan("")) == []
    assert (journal.bytes, len(journal)) == (0, 0)
    with pytest.raises(InvalidFile, match="message 1 is not in the journal"):
        journal.read([1])


def test_messages_published_here_stay_for_their_time() -> None:
    journal = open_journal(MemoryStore(), retention_us=100)
    append(journal, message(1, journal.clock(50)), 0)
    journal.seal()
    assert not journal.has_waste(149, FOR_EVER)
    assert journal.has_waste(150, FOR_EVER)
    assert not journal.has_waste(150, 1), "a replay needs it"


def test_the_oldest_go_first_when_there_are_too_many_bytes() -> None:
    journal = open_journal(MemoryStore(), retention_bytes=2500)
    for n in range(1, 6):
        append(journal, message(n, size=1000), int(n == 2))
        journal.seal()
    journal.sweep(0, FOR_EVER)
    assert len(journal) == 2
    assert [journal.read([n])[0].number for n in (2, 5)] == [2, 5]


def test_a_batch_that_few_need_is_thinned() -> None:
    store = MemoryStore()
    journal = open_journal(store, retention_us=0)
    for n in range(1, 101):
        append(journal, message(n, size=1000), int(n in (30, 60)))
    journal.seal()
    before = journal.bytes
    journal.sweep(1, FOR_EVER)
    assert journal.bytes < before / 20
    assert not journal.has_waste(1, FOR_EVER)
    for found in (journal, open_journal(store)):
        assert len(found) == 2
        assert [found.read([n])[0].number for n in (30, 60)] == [30, 60]
        with pytest.raises(InvalidFile, match="message 31 of the journal is gone"):
            found.read([31])


def test_the_cache_is_bounded() -> None:
    store = MemoryStore()
    journal = open_journal(store, cache_bytes=3000)
    for n in range(1, 11):
        append(journal, message(n, size=1000), 0)
        journal.seal()
    in_memory = [batch for batch in journal._batches if batch.messages]
    assert len(in_memory) == 2
    assert [journal.read([n])[0].number for n in range(1, 11)] == list(range(1, 11))
    assert len([batch for batch in journal._batches if batch.messages]) == 2
