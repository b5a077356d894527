"""In every engine an array, or bytes, is there for `any` of every type and for `absent`, and matches
nothing else; what no filter asks for is not read."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import palio
from palio import ForwardingTable, InvalidValue, Message, Predicate
from palio.model.predicate import Constraint, Filter
from tests.strategies import VALUES, constraints_on, filters_of, predicates_of

NAMES = st.sampled_from(["a", "b", "c"])
FILTERS = filters_of(constraints_on(NAMES), min_size=0, max_size=4)
TABLES = st.lists(predicates_of(FILTERS), max_size=12)
HELD = st.sampled_from([["x"], [], [1, None, {"k": "ab"}], b"ab", "ab", 1, [["ab"]]])
MESSAGES = st.lists(st.dictionaries(NAMES, st.one_of(HELD, *VALUES.values())), max_size=5)
ENGINES: list[tuple[str, dict[str, Any]]] = [
    ("pivot", {}),
    ("naive", {}),
    ("counting", {}),
    ("counting", {"strings": "tst"}),
    ("counting", {"strings": "scan"}),
    ("counting", {"strings": "operators", "variant": "2001"}),
    ("counting", {"rounds": 2}),
]


def forwarded(table: ForwardingTable, messages: list[Message]) -> list[list[list[str]]]:
    """By every way into the table."""
    texts = [message.to_json() for message in messages]
    rows = pa.table({"m": pa.array(texts, pa.string())})
    return [
        [table.forward(message) for message in messages],
        [table.forward(dict(message)) for message in messages],
        [table.forward(json.loads(text)) for text in texts],
        [table.forward_json(text) for text in texts],
        table.forward_batch(rows, json="m").to_pylist(),
    ]


@settings(max_examples=60, deadline=None)
@given(TABLES, MESSAGES)
def test_engines_agree_with_matching(table: list[Predicate], found: list[dict[str, Any]]) -> None:
    messages = [Message(m) for m in found]
    entries = {f"i{n}": p for n, p in enumerate(table)}
    expected = [[n for n, p in entries.items() if p.matches(m)] for m in messages]
    for engine, options in ENGINES:
        compiled = ForwardingTable.compile(entries, engine, **options)
        for answer in forwarded(compiled, messages):
            assert answer == expected, (engine, options)
    updated = ForwardingTable.compile(dict(list(entries.items())[::2])).updated(add=entries)
    assert [sorted(updated.forward(m)) for m in messages] == list(map(sorted, expected))


def test_few_interfaces_of_many_filters() -> None:
    """Masks and hot keys, in batches of many rows."""
    kinds = [None, "string", "int"]
    constraints = [Constraint("a", "any", None, kind) for kind in kinds]
    constraints += [Constraint("a", op, f"x{i}") for op in ("=", "<", "prefix") for i in range(40)]
    second = [Constraint("b", "<", i) for i in range(40)]
    filters = [Filter((c,)) for c in constraints[1:]]
    filters += [Filter((constraints[0], c)) for c in second]
    entries = {f"i{n}": Predicate(tuple(filters[n::3])) for n in range(3)}
    entries["absent"] = Predicate.of(Constraint("a", "absent"))
    held: list[Any] = [["x1"], b"x1", "x1", None, 5, [], ["x1"] * 50]
    rows: list[dict[str, Any]] = [{"a": held[i % 7], "b": i % 50} for i in range(500)]
    messages = [Message(row) for row in rows]
    expected = [[n for n, p in entries.items() if p.matches(m)] for m in messages]
    for engine, options in ENGINES:
        compiled = ForwardingTable.compile(entries, engine, **options)
        assert forwarded(compiled, messages) == [expected] * 5, (engine, options)


def test_a_sample_and_its_statistics_take_arrays() -> None:
    rows = [{"a": ["x"], "b": 1}, {"a": "x"}, {"a": b"", "b": [1]}] * 20
    entries = {"p": "a = 'x' AND b > 0", "q": "a IS NOT NULL", "r": "a LIKE 'x%'"}
    table = ForwardingTable.compile(entries, sample=rows)
    assert [table.forward(row) for row in rows[:3]] == [["q"], ["q", "r"], ["q"]]
    assert table.stats(rows).row()


def test_what_nobody_asks_for_never_fails_and_is_not_read() -> None:
    entries = {"p": "x > 1 AND o.y IS NULL"}
    endless: list[Any] = []
    endless.append(endless)
    for engine, options in ENGINES[:1]:
        table = ForwardingTable.compile(entries, engine, **options)
        assert table.forward({"x": 2, "q": endless, "r": [{1, 2}], "s": b""}) == ["p"]
        assert table.forward({"x": 2, "o": {"z": endless}}) == ["p"]
        assert table.forward({"x": 2, "o": {"y": 5}}) == []
        with pytest.raises(InvalidValue, match="of type set"):
            table.forward({"x": 2, "q": {1}})
        with pytest.raises(InvalidValue, match="at most 64 levels"):
            table.forward({"x": 2, "o": {"y": endless}})
    clock = pa.array([0], pa.time64("us"))
    wide = pa.table({"x": [2], "q": pa.array([[1]]), "t": clock, "z": pa.array([b""])})
    for engine, options in ENGINES:
        table = ForwardingTable.compile(entries, engine, **options)
        assert table.forward_batch(wide).to_pylist() == [["p"]]
    with pytest.raises(InvalidValue, match="column 't'"):
        ForwardingTable.compile({"p": "t IS NULL"}, "naive").forward_batch(wide)


COMPUTED = {
    "c": "array_contains(tags, 'a')",
    "z": "size(tags) = 2",
    "e": "tags[0] = 'a'",
    "o": "arrays_overlap(tags, array('b', 'q'))",
    "x": "exists(tags, t -> t = 'b')",
    "b": "blob IS NOT NULL AND size(blob) = 1",
    "l": "lower(blob) = 'x' OR blob = 'x' OR blob = tags",
    "m": "m.k > 1 AND m['k'] = 2",
    "d": "price * 2 = 25",
    "t": "items[0].p = 1.5",
}


def test_expressions_of_arrays_in_every_layout() -> None:
    rows: list[dict[str, Any]] = [
        {"tags": ["a", "b"], "blob": b"x", "price": 12.5, "m.k": 2, "items": [{"p": 1.5}]},
        {"tags": [], "m.k": 1},
        {"blob": b""},
        {"tags": ["b", None, "a"]},
    ]
    messages = [Message(row) for row in rows]
    parsed = {name: palio.parse(text) for name, text in COMPUTED.items()}
    expected = [[n for n, p in parsed.items() if p.matches(m)] for m in messages]
    assert expected == [["c", "z", "e", "o", "x", "m", "d", "t"], [], [], ["c", "o", "x"]]
    wide = pa.table(
        {
            "tags": pa.array([row.get("tags") for row in rows]),
            "blob": pa.array([row.get("blob") for row in rows]),
            "price": pa.array([Decimal("12.50"), None, None, None]),
            "m": pa.array([[("k", 2)], [("k", 1)], None, None], pa.map_(pa.string(), pa.int64())),
            "items": pa.array([[{"p": Decimal("1.50")}], None, None, None]),
            "odd": pa.array([1, 2, 3, 4], pa.duration("s")),
        }
    )
    for engine in ("pivot", "naive"):
        table = ForwardingTable.compile(COMPUTED, engine)
        assert forwarded(table, messages) == [expected] * 5
        assert table.forward_batch(wide).to_pylist() == expected
