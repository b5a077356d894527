"""Lines and records: what is acknowledged in any order comes back right after a crash."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from palio.protocol.durability import ledger as ledgers
from palio.protocol.durability.ledger import Head, Ledger, Line, Record

from .memory_store import MemoryStore


def record(queue: dict[int, int]) -> Record:
    return Record(0, 1, {"q": queue} if queue else {}, {}, {}, [])


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
def test_a_line_is_restored_as_it_was_settled(steps: list[tuple[str, int]], late_max: int) -> None:
    """The model: what was pushed and sealed, without what was gone at the last settling."""
    before, ledgers.LATE_MAX = ledgers.LATE_MAX, late_max
    try:
        _run(steps)
    finally:
        ledgers.LATE_MAX = before


def _run(steps: list[tuple[str, int]]) -> None:
    store = MemoryStore()
    ledger, line = Ledger(store, ""), Line[int]()
    sealed: dict[int, int] = {}
    settled: set[int] = set()
    for step, count in [*steps, ("seal", True)]:
        if step == "push":
            for _ in range(count):
                line.entries[line.next] = 100 + line.next
                line.next += 1
        elif step == "acknowledge":
            for n in [n for n in line.entries if n in sealed][count : count + 3]:
                del line.entries[n]
                line.gone.append(n)
        else:
            ticket = ledger.ticket + 1
            chunk: dict[int, int] = {}
            if count:
                settled = sealed.keys() - line.entries.keys()
                ledger.release(line.settle())
                if line.is_sparse:
                    chunk, released = line.rewrite(ticket)
                    chunk = dict(chunk)
                    ledger.release(released)
                ledger.put_head("h", line.head())
            chunk = chunk or line.chunk(ticket)
            if chunk:
                ledger.need(ticket)
            sealed.update({n: n + 100 for n in line.entries})
            ledger.put(ticket, record(chunk))
            if count:
                ledger.sweep()
            again = Ledger(store, "")
            restored: Line[int] = Line(again.head("h"))
            for ticket, found in again.records():
                restored.restore(ticket, found.queues.get("q", {}))
            assert restored.entries == {n: p for n, p in sealed.items() if n not in settled}
            assert list(restored.entries) == sorted(restored.entries)
            assert restored.next == max(sealed, default=0) + 1
            assert again.ticket == ledger.ticket
    assert len(list(store.scan("r/"))) <= len(line.entries) + 1


def test_late_numbers_are_stored_as_ranges() -> None:
    line = Line[int]()
    for n in range(1, 11):
        line.entries[n] = n
    line.next = 11
    line.gone = [3, 9, 4, 5]
    for n in line.gone:
        del line.entries[n]
    line.settle()
    assert line.head() == Head(1, 11, 0, ((3, 5), (9, 9)))


def test_the_newest_record_stays() -> None:
    store = MemoryStore()
    ledger = Ledger(store, "")
    for ticket in (1, 2, 3):
        ledger.put(ticket, record({}))
    ledger.sweep()
    assert [key for key, _ in store.scan("r/")] == [f"r/{3:016x}"]
