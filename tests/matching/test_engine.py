"""Engines agree: with the naive one, with matching predicates one by one, and with DuckDB."""

from __future__ import annotations

import threading

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import palio
from palio import ForwardingTable, Message, Predicate
from palio.lab.data import flights, workloads
from palio.matching.encode.columns import from_predicates
from palio.matching.encode.constraint_rows import from_constraint_rows
from palio.matching.pivot.engine import PivotEngine
from tests.strategies import TRICKY_STRINGS, VALUES, constraints_on, filters_of, predicates_of

NAMES = st.sampled_from(["a", "b", "c"])
FEW = st.sampled_from(["", "a", "b", "ab", "ba", "abc", *TRICKY_STRINGS[:6]])
TABLES = st.lists(
    predicates_of(filters_of(constraints_on(NAMES), min_size=0, max_size=4)),
    min_size=0,
    max_size=8,
)
MESSAGES = st.dictionaries(NAMES, st.one_of(*VALUES.values(), FEW, st.just(float("nan"))))


@settings(max_examples=300, deadline=None)
@given(TABLES, st.lists(MESSAGES, max_size=4))
def test_pivot_agrees_with_matching(table: list[Predicate], found: list[dict[str, object]]) -> None:
    messages = [Message(m) for m in found]
    entries = {f"i{n}": p for n, p in enumerate(table)}
    compiled = ForwardingTable.compile(entries)
    naive = ForwardingTable.compile(entries, engine="naive")
    for message in messages:
        expected = [name for name, p in entries.items() if p.matches(message)]
        assert compiled.forward(message) == expected
        assert naive.forward(message) == expected
    engine = PivotEngine.compile(from_predicates(entries.items()))
    offsets, ids = engine.match(messages)
    for i, message in enumerate(messages):
        expected = [name for name, p in entries.items() if p.matches(message)]
        assert [f"i{k}" for k in ids[offsets[i] : offsets[i + 1]]] == expected


@settings(max_examples=150, deadline=None)
@given(TABLES, MESSAGES)
def test_tables_give_their_predicates_back(
    table: list[Predicate], found: dict[str, object]
) -> None:
    message = Message(found)
    compiled = ForwardingTable.compile({f"i{n}": p for n, p in enumerate(table)})
    for n, p in enumerate(table):
        assert compiled.predicate(f"i{n}").matches(message) == p.matches(message), p


def operands(table: list[Predicate]) -> list[object]:
    """The values that constraints of a table name: where matching changes."""
    values: list[object] = []
    for p in table:
        for f in p.filters:
            for c in f.constraints:
                values.extend(c.value if isinstance(c.value, tuple) else [c.value])
    return values


@settings(max_examples=200, deadline=None)
@given(TABLES, st.data())
def test_pivot_agrees_at_the_operands(table: list[Predicate], data: st.DataObject) -> None:
    values = operands(table) or [None]
    message = Message({n: data.draw(st.sampled_from(values)) for n in "abc"})
    entries = {f"i{n}": p for n, p in enumerate(table)}
    expected = [name for name, p in entries.items() if p.matches(message)]
    assert ForwardingTable.compile(entries).forward(message) == expected


@pytest.mark.parametrize("name", ["sigcomm03", "tr2001", "flights"])
@pytest.mark.parametrize("interfaces", [2, 20, "all"])
def test_workloads(name: str, interfaces: int | str) -> None:
    load = workloads.WORKLOADS[name](1_500, interfaces, 60, seed=5)
    entries = list(workloads.predicates(load))
    engine = PivotEngine.compile(from_constraint_rows(load.constraints))
    messages = [Message(m) for m in workloads.message_dicts(load)]
    offsets, ids = engine.match(messages)
    _, loose = engine.match_batch(engine.encode(messages), ordered=False)
    for i, message in enumerate(messages):
        expected = [n for n, (_, p) in enumerate(entries) if p.matches(message)]
        assert ids[offsets[i] : offsets[i + 1]].tolist() == expected
        assert sorted(loose[offsets[i] : offsets[i + 1]].tolist()) == expected


@pytest.mark.parametrize("name", ["sigcomm03", "tr2001", "flights"])
def test_bulk_rows_give_the_same_columns(name: str) -> None:
    load = workloads.WORKLOADS[name](2_000, 50, 1, seed=6)
    bulk = from_constraint_rows(load.constraints)
    objects = from_predicates(workloads.predicates(load))
    for field in ("filter", "name", "op", "domain", "key", "owner"):
        np.testing.assert_array_equal(getattr(bulk, field), getattr(objects, field), field)
    for field in ("names", "strings", "interfaces"):
        assert getattr(bulk, field) == getattr(objects, field)
    for field in ("start", "split", "keys"):
        np.testing.assert_array_equal(getattr(bulk.sets, field), getattr(objects.sets, field))


@settings(max_examples=150, deadline=None)
@given(TABLES)
def test_bulk_rows_of_every_type_and_operator(table: list[Predicate]) -> None:
    entries = [(f"i{n}", Predicate(tuple(f for f in p if len(f)))) for n, p in enumerate(table)]
    entries = [(name, p) for name, p in entries if len(p)]
    bulk = from_constraint_rows(workloads.constraint_rows(entries))
    objects = from_predicates(entries)
    for field in ("filter", "name", "op", "domain", "key", "owner"):
        np.testing.assert_array_equal(getattr(bulk, field), getattr(objects, field), field)
    assert (bulk.strings, bulk.names) == (objects.strings, objects.names)


def test_weak_filters_are_right_and_do_not_ruin_the_rest() -> None:
    entries = {
        "ne": "x != 5",
        "absent": "x IS NULL",
        "any": "x IS NOT NULL",
        "both": "x != 5 AND y IS NULL",
        "unlike": "s NOT LIKE 'a%' AND s NOT LIKE '%z'",
        "all": "TRUE",
        "none": "FALSE",
        "typed": "typeof(x) = 'float'",
        "exact": "x = 5",
    }
    table = ForwardingTable.compile(entries)
    assert table.forward({}) == ["absent", "all"]
    assert table.forward({"x": 5}) == ["any", "all", "exact"]
    assert table.forward({"x": 5.0}) == ["any", "all", "typed", "exact"]
    assert table.forward({"x": "5"}) == ["any", "all"]
    assert table.forward({"x": 6, "y": 1}) == ["ne", "any", "all"]
    assert table.forward({"x": 6, "s": "bz"}) == ["ne", "any", "both", "all"]
    assert table.forward({"s": "b"}) == ["absent", "unlike", "all"]


def test_forward_batch_agrees_with_duckdb_on_flights() -> None:
    rows = flights.load(2_000).table
    entries = dict(flights.subscriptions(1_000, seed=9))
    lists = ForwardingTable.compile(entries).forward_batch(rows)
    with duckdb.connect() as base:
        base.execute("SET TimeZone = 'UTC'")
        base.register("flights", rows)
        names = list(entries)
        for begin in range(0, len(names), 200):
            part = names[begin : begin + 200]
            shown = ", ".join(f"({entries[n]}) IS TRUE" for n in part)
            answers = base.sql(f"SELECT {shown} FROM flights").to_arrow_table()
            got = [set(row) for row in lists.to_pylist()]
            for name, column in zip(part, answers.columns, strict=True):
                assert [name in row for row in got] == column.to_pylist(), entries[name]


def test_threads_share_a_table() -> None:
    load = workloads.sigcomm03(3_000, None, 40, seed=7)
    table = ForwardingTable.compile(load.constraints)
    messages = workloads.message_dicts(load)
    expected = [table.forward(m) for m in messages]
    wrong: list[int] = []

    def run() -> None:
        for _ in range(10):
            wrong.extend(i for i, m in enumerate(messages) if table.forward(m) != expected[i])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_table_shows_its_predicates_and_explains() -> None:
    p = palio.parse("x IN (1, 2.5) AND s LIKE 'a%' OR t > TIMESTAMP '2013-01-01' AND b")
    table = ForwardingTable.compile({"ann": p, "bob": "x = 3"})
    assert palio.covers(p, table.predicate("ann"))
    assert palio.covers(table.predicate("ann"), p)
    assert ForwardingTable.compile({"ann": p}, engine="naive").predicate("ann") == p
    assert table.explain({"x": 3})["bob"].matches
    with pytest.raises(palio.InvalidPredicate, match="'cy'"):
        table.predicate("cy")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"op": ["~"]}, "no op '~'"),
        ({"type": ["decimal"]}, "no type 'decimal'"),
        ({"value": ["abc"]}, "row 0"),
        ({"value": [None]}, "no value"),
        ({"name": [None]}, "no name"),
        ({"op": ["prefix"]}, "prefix with int"),
        ({"value": ["99999999999999999999"]}, "64 bits"),
        ({"op": ["in"], "value": ["5"]}, "JSON list"),
    ],
)
def test_bad_constraint_rows(change: dict[str, list[object]], says: str) -> None:
    row = {"interface": ["a"], "filter": [0], "name": ["x"], "op": ["="]}
    row |= {"type": ["int"], "value": ["5"]}
    import pyarrow as pa

    with pytest.raises(palio.InvalidPredicate, match=says):
        ForwardingTable.compile(pa.table(row | change))
    with pytest.raises(palio.InvalidPredicate, match="no column filter"):
        ForwardingTable.compile(pa.table({k: v for k, v in row.items() if k != "filter"}))


def test_every_layout_of_a_batch_gives_the_same_answers() -> None:
    load = workloads.sigcomm03(2_000, 60, 200, seed=11)
    texts = workloads.json_messages(load)
    expected = ForwardingTable.compile(load.constraints, engine="naive").forward_batch(
        texts, json="message"
    )
    table = ForwardingTable.compile(load.constraints)
    assert table.forward_batch(texts, json="message").equals(expected)
    assert table.forward_batch(load.messages, attributes="attributes").equals(expected)
    ids = table.forward_batch(texts, json="message", ids=True).to_pylist()
    assert [[table.interfaces[i] for i in row] for row in ids] == expected.to_pylist()


def test_maps_and_wide_columns() -> None:
    import pyarrow as pa

    table = ForwardingTable.compile({"a": "x > 1", "b": "y IS NULL", "c": "z = 'q'"})
    wide = pa.table({"x": [1, 2, None], "y": [None, 1.5, None], "other": [[1], [2], []]})
    assert table.forward_batch(wide).to_pylist() == [["b"], ["a"], ["b"]]
    column = pa.array([{"x": 2.0}, None, {"y": 1.0}], pa.map_(pa.string(), pa.float64()))
    maps = pa.table({"m": column})
    assert table.forward_batch(maps, map="m").to_pylist() == [["a", "b"], ["b"], []]
    assert table.forward_batch(wide.slice(0, 0)).to_pylist() == []
    with pytest.raises(palio.InvalidValue, match="no column 'gone'"):
        table.forward_batch(wide, json="gone")
    with pytest.raises(palio.InvalidValue, match="not two"):
        table.forward_batch(wide, json="x", map="y")
