"""Sequences and records: what is acknowledged in any order comes back right after a crash."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from palio.protocol.durability import keys
from palio.protocol.durability import sequence as sequences
from palio.protocol.durability.sequence import (
    CommitRecord,
    CommitRecords,
    EntrySequence,
    EntrySpan,
    SequenceHead,
)

from .memory_store import MemoryStore


def record(spans: list[EntrySpan]) -> CommitRecord:
    return CommitRecord(0, 1, {"q": spans} if spans else {}, {}, [])


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("push"), st.integers(1, 5)),
            st.tuples(st.just("acknowledge"), st.integers(0, 30)),
            st.tuples(st.just("seal"), st.booleans()),
        ),
        max_size=60,
    ),
    st.sampled_from([2, 4096]),
)
@example([("push", 1), ("seal", False), ("push", 1), ("seal", False), ("acknowledge", 1)], 2)
def test_a_sequence_is_restored_as_it_was_settled(
    steps: list[tuple[str, int]], out_of_order_max: int
) -> None:
    """The model: what was pushed and sealed, without what was gone at the last settling."""
    before, sequences.OUT_OF_ORDER_MAX = sequences.OUT_OF_ORDER_MAX, out_of_order_max
    try:
        _check(steps)
    finally:
        sequences.OUT_OF_ORDER_MAX = before


def _check(steps: list[tuple[str, int]]) -> None:
    store = MemoryStore()
    records, sequence = CommitRecords(store), EntrySequence()
    sealed: dict[int, int] = {}
    settled: set[int] = set()
    for step, count in [*steps, ("seal", True)]:
        if step == "push":
            scattered = [100 + (n if count % 2 else 2 * n) for n in range(1, count + 1)]
            sequence.extend([10 * sequence.next + position for position in scattered])
        elif step == "acknowledge":
            for n in [n for n in sequence.entries if n in sealed][count : count + 3]:
                del sequence.entries[n]
                sequence.gone.append(n)
        else:
            ticket = records.ticket + 1
            spans: list[EntrySpan] = []
            if count:
                settled = sealed.keys() - sequence.entries.keys()
                records.release(sequence.settle())
                if sequence.is_sparse:
                    spans, released = sequence.rewrite(ticket)
                    records.release(released)
                records.put_head("h", sequence)
            spans = spans or sequence.chunk(ticket)
            sealed.update(sequence.entries)
            records.put(ticket, record(spans))
            if count:
                records.sweep()
            others = CommitRecords(store)
            restored = others.sequence("h")
            for ticket, found in others.read():
                restored.restore(ticket, found.entries.get("q", []))
            assert restored.entries == {n: p for n, p in sealed.items() if n not in settled}
            assert list(restored.entries) == sorted(restored.entries)
            assert restored.next == max(sealed, default=0) + 1
            assert others.ticket == records.ticket
    # A record whose only entries were acknowledged out of order lives until a rewrite, or until all
    # before them are acknowledged; and the newest stays.
    held_up = sum(last - first + 1 for first, last in sequence.head().gone)
    assert held_up <= sequences.OUT_OF_ORDER_MAX
    assert len(list(store.scan(keys.RECORDS))) <= len(sequence.entries) + held_up + 1


def test_numbers_that_are_gone_are_stored_as_ranges() -> None:
    sequence = EntrySequence()
    sequence.extend(range(1, 11))
    sequence.gone = [3, 9, 4, 5]
    for n in sequence.gone:
        del sequence.entries[n]
    sequence.settle()
    assert sequence.head() == SequenceHead(1, 11, 0, ((3, 5), (9, 9)))


def test_entries_are_written_as_spans() -> None:
    sequence = EntrySequence()
    sequence.extend(range(50, 60))
    sequence.extend([70, 72, 73, 74, 90])
    x, y = ("1@x",), ("1@x", "2@y")
    sequence.extend([100, 101, 102], [x, x, x])
    sequence.extend([103, 105], [x, y])
    spans = [
        EntrySpan(1, 10, (50,)),
        EntrySpan(11, 5, [70, 72, 73, 74, 90]),
        EntrySpan(16, 3, (100,), [x]),
        EntrySpan(19, 2, [103, 105], [x, y]),
    ]
    assert sequence.chunk(1) == spans
    assert sequence.chunk(2) == []
    restored = EntrySequence()
    assert restored.restore(1, spans)
    assert restored.entries == sequence.entries
    assert restored.labels == sequence.labels == {16: x, 17: x, 18: x, 19: x, 20: y}
    del restored.entries[4]
    rewritten = EntrySequence()
    assert rewritten.restore(3, restored.rewrite(3)[0])
    assert rewritten.entries == restored.entries
    assert rewritten.labels == restored.labels


def test_the_newest_record_stays() -> None:
    store = MemoryStore()
    records = CommitRecords(store)
    for ticket in (1, 2, 3):
        records.put(ticket, record([]))
    records.sweep()
    assert [key for key, _ in store.scan(keys.RECORDS)] == [keys.numbered(keys.RECORDS, 3)]
