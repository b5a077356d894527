"""Forwarding limited to some interfaces gives those of the full answer that are among them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio import ForwardingTable, InvalidPredicate, Message, Predicate
from palio.lab.data import workloads
from palio.matching.counting.engine import CountingEngine
from palio.matching.encode.constraint_rows import from_constraint_rows
from tests.strategies import VALUES, constraints_on, filters_of, predicates_of

NAMES = st.sampled_from(["a", "b", "c"])
PREDICATES = predicates_of(filters_of(constraints_on(NAMES), max_size=3))
TABLES = st.lists(PREDICATES, max_size=8)
MESSAGES = st.dictionaries(NAMES, st.one_of(*VALUES.values()))
ENGINES: list[dict[str, Any]] = [
    {"engine": "naive"},
    {"engine": "pivot"},
    {"engine": "counting"},
    {"engine": "counting", "rounds": 3},
    {"engine": "counting", "variant": "2001"},
    {"engine": "counting", "strings": "tst"},
]


def check(table: ForwardingTable, among: list[str], messages: list[dict[str, Any]]) -> None:
    """Both paths, with names and ids, give those of the full answer that are among some."""
    texts = pa.table({"m": [Message(message).to_json() for message in messages]}, TEXTS)
    full = [table.forward(message) for message in messages]
    wanted = [[name for name in names if name in among] for names in full]
    assert [table.forward(message, among=among) for message in messages] == wanted
    assert table.forward_batch(texts, json="m", among=among).to_pylist() == wanted
    ids = table.forward_batch(texts, json="m", among=iter(among), ids=True).to_pylist()
    assert [[table.interfaces[i] for i in row] for row in ids] == wanted
    assert [table.forward(message) for message in messages] == full  # nothing is left behind


TEXTS = pa.schema([("m", pa.string())])


@settings(max_examples=120, deadline=None)
@given(TABLES, st.lists(MESSAGES, max_size=4), st.data())
def test_the_answer_is_that_part_of_the_full_one(
    table: list[Predicate], messages: list[dict[str, Any]], data: st.DataObject
) -> None:
    entries = {f"i{n}": p for n, p in enumerate(table)}
    among = data.draw(st.lists(st.sampled_from(list(entries)))) if entries else []
    for options in ENGINES:
        check(ForwardingTable.compile(entries, **options), among, messages)


@settings(max_examples=60, deadline=None)
@given(TABLES, TABLES, st.lists(MESSAGES, max_size=3), st.booleans(), st.data())
def test_so_it_is_after_updates(
    table: list[Predicate],
    added: list[Predicate],
    messages: list[dict[str, Any]],
    is_compiled: bool,
    data: st.DataObject,
) -> None:
    entries = {f"i{n}": p for n, p in enumerate(table)}
    removed = data.draw(st.lists(st.sampled_from(list(entries)), unique=True)) if entries else []
    more = {f"i{2 * n}": p for n, p in enumerate(added)}
    for engine in ("pivot", "counting", "naive"):
        made = ForwardingTable.compile(entries, engine).updated(add=more, remove=removed)
        if is_compiled:  # what is recent becomes a level
            made = ForwardingTable.of_version(made.versioned().settled())
        there = list(made.interfaces)
        among = data.draw(st.lists(st.sampled_from(there))) if there else []
        check(made, among, messages)


@pytest.mark.parametrize("interfaces", [3, 70, "all"])
def test_workloads(interfaces: int | str) -> None:
    load = workloads.sigcomm03(600, interfaces, 40, seed=3)
    messages = workloads.message_dicts(load)
    for options in ENGINES[1:]:
        table = ForwardingTable.compile(load.constraints, **options)
        for step in (1, 2, 7):
            check(table, list(table.interfaces[::-step]), messages)
        wide = table.forward_batch(load.messages, attributes="attributes", among=[])
        assert wide.to_pylist() == [[]] * len(messages)


def test_other_layouts_take_it_too() -> None:
    table = ForwardingTable.compile({"a": "x > 1", "b": "x > 2", "c": "x IS NULL"})
    wide = pa.table({"x": [1, 2, 3, None]})
    assert table.forward_batch(wide, among=["b", "c"]).to_pylist() == [[], [], ["b"], ["c"]]
    pairs = table.forward_batch(wide, among=["a"], pairs=True)
    assert pairs.column("row").to_pylist() == [1, 2]
    column = pa.array([{"x": 3}, {"y": 3}], pa.map_(pa.string(), pa.int64()))
    maps = table.forward_batch(pa.table({"m": column}), map="m", among=["c", "a"])
    assert maps.to_pylist() == [["a"], ["c"]]
    assert table.forward_json(b'{"x": 3}', among=["b"]) == ["b"]


def test_an_unknown_interface_is_an_error_that_names_it() -> None:
    table = ForwardingTable.compile({"ann": "x > 1", "bob": "x > 2"}).updated(remove=["bob"])
    for ask in (
        lambda: table.forward({"x": 3}, among=["ann", "bob"]),
        lambda: table.forward_batch(pa.table({"x": [3]}), among=["ann", "bob"]),
        lambda: table.forward_json(b'{"x": 3}', among=["ann", "bob"]),
    ):
        with pytest.raises(InvalidPredicate, match="no interface 'bob'"):
            ask()
    with pytest.raises(InvalidPredicate, match=r"among=\['ann'\]"):
        table.forward({"x": 3}, among="ann")


def test_bad_messages_are_errors_even_when_nobody_is_asked() -> None:
    for options in ENGINES:
        table = ForwardingTable.compile({"a": "x > 1"}, **options)
        with pytest.raises(ValueError, match="'x'"):
            table.forward({"x": 2**70}, among=[])
        with pytest.raises(ValueError, match="'x'"):
            table.forward_json(json.dumps({"x": 2**70}), among=[])


def test_counting_stops_when_those_that_are_asked_for_are_decided() -> None:
    """2003, figure 7: what is not in B is ignored from the start, so a message ends earlier."""
    load = workloads.sigcomm03(20_000, 20, 50, seed=4)
    engine = CountingEngine(from_constraint_rows(load.constraints))
    messages = workloads.message_dicts(load)
    batch = engine.encode([Message(m) for m in messages])
    engine.match_batch(batch)
    full = engine.counters
    engine.match_batch(batch, from_constraint_rows(load.constraints).owner[:1].astype("int64"))
    one = engine.counters
    assert one.rows_stopped >= full.rows_stopped
    assert one.increments < full.increments / 5
    assert one.constraints_touched < full.constraints_touched
