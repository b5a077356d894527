"""Live tables: readers see consistent versions while a writer updates and the table compacts."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import palio
from palio import ForwardingTable, Message
from palio.lab.data import workloads
from palio.matching.versions import updates, upkeep
from palio.matching.versions.live import LiveTable
from palio.matching.versions.updates import UpdatedEngine


def base(count: int = 40) -> dict[str, str]:
    return {f"i{n}": f"x >= {n}" for n in range(count)}


def wait_for(holds: Callable[[], bool]) -> None:
    """Until the background has done something; gives up after a minute."""
    pause = threading.Event()
    for _ in range(6000):
        if holds():
            return
        pause.wait(0.01)
    pytest.fail("the background did not do its work")


def test_readers_see_consistent_versions_while_the_table_compacts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In each version exactly one of two interfaces matches, and nothing else ever goes."""
    monkeypatch.setattr(updates, "RECENT_MAX", 4)
    wrong: list[object] = []
    done = threading.Event()
    with LiveTable(
        ForwardingTable.compile({**base(), "even": "y = 1"}), share=0.5, least=30
    ) as live:

        def read() -> None:
            last = 0
            while not done.is_set():
                table = live.table
                found = table.forward({"x": 100, "y": 1})
                turns = [name for name in found if name in ("even", "odd")]
                numbers = [int(name[1:]) for name in found if name.startswith("n")]
                latest = max(numbers, default=0)
                if len(turns) != 1 or len(found) != len(set(found)) or latest < last:
                    wrong.append(found)
                if [n for n in found if n.startswith("i")] != list(base()):
                    wrong.append(found)
                if turns != [("even", "odd")[latest % 2]] or table.interfaces != tuple(found):
                    wrong.append(found)
                last = latest

        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        turns = ("even", "odd")
        for n in range(1, 600):
            gone = [f"n{n - 20}"] if n > 20 else []
            add = {turns[n % 2]: "y = 1", f"n{n}": "x > 1"}
            live.update(add=add, remove=[turns[(n - 1) % 2], *gone])
        wait_for(lambda: live.compactions > 1)
        done.set()
        for reader in readers:
            reader.join()
        assert wrong == []
        assert live.table.forward({"x": 0, "y": 1}) == ["i0", "odd"]


def test_a_compacted_table_equals_the_same_updates_without() -> None:
    """Updates that come while the base is compacted are brought onto the new one."""
    load = workloads.sigcomm03(600, 300, 60, seed=31)
    pool = list(workloads.predicates(workloads.sigcomm03(2000, 2000, 1, seed=32)))
    messages = [Message(m) for m in workloads.message_dicts(load)]
    plain = ForwardingTable.compile(load.constraints)
    with LiveTable(plain, share=0.2, least=10) as live:
        for n, (_, predicate) in enumerate(pool):
            add = {f"n{n % 500}": predicate, f"i{n % 400}": predicate}
            remove = [name for name in (f"n{n % 250}", f"i{n % 90}") if name in expected(live)]
            live.update(add=add, remove=remove)
            plain = plain.updated(add=add, remove=remove)
        wait_for(lambda: live.compactions > 0)
        for table in (live.table, live.table.compacted(), plain.compacted()):
            assert table.interfaces == plain.interfaces
            for message in messages:
                assert table.forward(message) == plain.forward(message)


def expected(live: LiveTable) -> set[str]:
    return set(live.table.interfaces)


def test_what_fails_in_the_background_is_raised_by_the_next_update(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compacted = UpdatedEngine.compacted
    failed = threading.Event()

    def fail(self: UpdatedEngine) -> UpdatedEngine:
        failed.set()
        raise MemoryError("no room")

    monkeypatch.setattr(UpdatedEngine, "compacted", fail)
    with LiveTable(ForwardingTable.compile(base()), least=0) as live:
        for n in range(11):
            live.update(add={f"n{n}": "x = 1"})
        assert failed.wait(60)
        wait_for(lambda: live._failure is not None)
        with pytest.raises(palio.PalioError, match="compacted in the background: no room"):
            live.update(add={"late": "x = 1"})
        assert "late" not in live.table.interfaces
        monkeypatch.setattr(UpdatedEngine, "compacted", compacted)
        live.update(add={"late": "x = 1"})
        wait_for(lambda: live.compactions > 0)
        assert live.table.interfaces == (*base(), *(f"n{n}" for n in range(11)), "late")


def test_writers_merge_when_the_background_falls_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "RECENT_MAX", 2)
    monkeypatch.setattr(upkeep, "LEVELS_MAX", 3)
    with LiveTable(ForwardingTable.compile(base()), least=10**6) as live:
        for n in range(200):
            live.update(add={f"n{n}": f"x = {n}"})
        assert live.table.forward({"x": 7}) == [*(f"i{n}" for n in range(8)), "n7"]
        assert live.compactions == 0


def test_wrong_updates_and_closed_tables() -> None:
    live = LiveTable(ForwardingTable.compile(base()))
    with pytest.raises(palio.InvalidPredicate, match="nobody"):
        live.update(add={"n": "x = 1"}, remove=["nobody"])
    with pytest.raises(palio.ParseError):
        live.update(add={"n": "x ="})
    assert live.update(remove=["i0"]) is live.table
    live.close()
    with pytest.raises(palio.PalioError, match="closed"):
        live.update(add={"n": "x = 1"})
    assert live.table.forward({"x": 1}) == ["i1"]
    with pytest.raises(palio.InvalidValue, match="share"):
        LiveTable(live.table, share=0)
