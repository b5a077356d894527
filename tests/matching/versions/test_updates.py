"""Updates: every version gives what a table compiled from scratch gives, and old ones stay."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import palio
from palio import ForwardingTable, Message
from palio.lab.data import workloads


def test_any_sequence_of_updates_equals_a_fresh_table() -> None:
    load = workloads.sigcomm03(400, 120, 60, seed=21)
    pool = dict(workloads.predicates(workloads.sigcomm03(300, 300, 1, seed=22)))
    spare = [(f"new{i}", p) for i, p in enumerate(pool.values())]
    messages = [Message(m) for m in workloads.message_dicts(load)]
    draw = random.Random(23)
    expected = dict(workloads.predicates(load))
    table = ForwardingTable.compile(load.constraints)
    for step in range(30):
        remove = draw.sample(sorted(expected), draw.randint(0, 3))
        add = dict(draw.sample(spare, draw.randint(0, 3)))
        if draw.random() < 0.3:  # an interface that is there gets more
            add[draw.choice(sorted(expected))] = draw.choice(spare)[1]
        table = table.updated(add=add, remove=remove)
        for name in remove:
            del expected[name]
        for name, p in add.items():
            expected[name] = expected[name] | p if name in expected else p
        if step % 10 == 9:
            table = table.compacted()
        assert set(table.interfaces) == set(expected)
        for message in messages:
            wanted = {name for name, p in expected.items() if p.matches(message)}
            got = table.forward(message)
            assert set(got) == wanted
            assert got == [name for name in table.interfaces if name in wanted]


def test_batches_of_an_updated_table() -> None:
    table = ForwardingTable.compile({"a": "x > 1", "b": "x > 2", "c": "x > 3"})
    newer = table.updated(add={"d": "x = 4", "a": "x = 0"}, remove=["b"])
    rows = pa.table({"x": [0, 2, 4, None]})
    assert newer.forward_batch(rows).to_pylist() == [["a"], ["a"], ["a", "c", "d"], []]
    ids = newer.forward_batch(rows, ids=True).to_pylist()
    assert [[newer.interfaces[i] for i in row] for row in ids] == [
        ["a"],
        ["a"],
        ["a", "c", "d"],
        [],
    ]
    assert table.forward_batch(rows).to_pylist() == [[], ["a"], ["a", "b", "c"], []]


def test_order_names_and_errors(tmp_path: Path) -> None:
    table = ForwardingTable.compile({"ann": "price < 500", "bob": "dest = 'MXP'"})
    newer = table.updated(add={"cy": "dest = 'LAX'"}, remove=["bob"])
    assert newer.interfaces == ("ann", "cy")
    assert table.interfaces == ("ann", "bob")
    assert newer.forward({"dest": "LAX", "price": 1}) == ["ann", "cy"]
    assert newer.predicate("cy") == palio.parse("dest = 'LAX'")
    assert newer.explain({"dest": "LAX"})["cy"].matches
    for name in ("bob", "dan"):
        with pytest.raises(palio.InvalidPredicate, match=name):
            newer.updated(remove=[name])
    back = newer.updated(add={"bob": "x = 1"})
    assert back.interfaces == ("ann", "cy", "bob")  # as a dict: it comes last
    assert back.forward({"dest": "MXP", "x": 1}) == ["bob"]
    newer.save(tmp_path / "t")
    assert ForwardingTable.load(tmp_path / "t").updated(remove=["ann"]).interfaces == ("cy",)


def test_readers_see_one_version() -> None:
    """While versions come, each reader's table keeps giving its own answer."""
    tables = [ForwardingTable.compile({"i0": "x >= 0"})]
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            known, table = len(tables), tables[-1]
            count = len(table.interfaces)  # version n has n + 1 interfaces, all of which match
            if len(table.forward({"x": 1})) != count or count < known:
                wrong.append(table)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for i in range(1, 60):
        tables.append(tables[-1].updated(add={f"i{i}": "x >= 0"}))
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_names_of_a_large_table_are_found(tmp_path: Path) -> None:
    """Names are searched, then indexed; strange ones too, and one is a prefix of another."""
    names = ["", "é", "a\0", *(f"i{n}" for n in range(6000))]
    compiled = ForwardingTable.compile({name: f"x = {n}" for n, name in enumerate(names)})
    compiled.save(tmp_path / "t")
    for table in (compiled, ForwardingTable.load(tmp_path / "t")):
        for n, name in enumerate([*names[:20], "i5999", "i599"]):
            assert table.forward({"x": names.index(name)}) == [name]
            with pytest.raises(palio.InvalidPredicate, match="no interface"):
                table = table.updated(remove=[f"{name}?"])
            table = table.updated(remove=[name])
            assert table.forward({"x": names.index(name)}) == []
            assert len(table.interfaces) == len(names) - n - 1
        assert table.updated(add={"i5": "x = 5"}).interfaces[-1] == "i5"


def test_more_interfaces_are_added_than_there_was_room_for() -> None:
    table = ForwardingTable.compile({"a": "x = 1"})
    for n in range(3):
        table = table.updated(add={f"{n} {k}": f"x = {k}" for k in range(3000)}, remove=["a"])
        table = table.updated(add={"a": "x = 2"})
    assert table.forward({"x": 2}) == ["0 2", "1 2", "2 2", "a"]
    rows = pa.table({"x": [1, 2]})
    wanted = [["0 1", "1 1", "2 1"], ["0 2", "1 2", "2 2", "a"]]
    assert table.forward_batch(rows).to_pylist() == wanted
    assert table.compacted().forward_batch(rows).to_pylist() == wanted


def test_saving_compacts(tmp_path: Path) -> None:
    table = ForwardingTable.compile({"a": "x = 1", "b": "s IN ('p', 'q') AND x > 2"})
    newer = table.updated(add={"a": "s LIKE 'o%'", "c": "x = 5"}).updated(remove=["b"])
    newer.save(tmp_path / "t")
    loaded = ForwardingTable.load(tmp_path / "t")
    assert loaded.interfaces == newer.interfaces == ("a", "c")
    for message in ({"x": 1}, {"x": 5, "s": "ok"}, {"x": 3, "s": "p"}):
        assert loaded.forward(message) == newer.forward(message)
    for engine in ("naive", "counting"):
        other = ForwardingTable.compile({"a": "x = 1"}, engine=engine)
        other.save(tmp_path / "t")
        assert ForwardingTable.load(tmp_path / "t").forward({"x": 1}) == ["a"]
        grown = other.updated(add={"a": "x = 2", "b": "x = 2"})
        assert grown.forward({"x": 2}) == grown.compacted().forward({"x": 2}) == ["a", "b"]
