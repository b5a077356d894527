"""Hot keys: groups and what is left give the answers of the oracle, wherever a table comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import inf, nan, nextafter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio import ForwardingTable, Message, Predicate
from palio.lab.data import workloads
from palio.matching.encode.columns import from_predicates
from palio.matching.encode.constraint_rows import from_constraint_rows
from palio.matching.naive import NaiveEngine
from palio.matching.pivot import hot_keys, masks
from palio.matching.pivot.engine import PivotEngine
from palio.model.operators import ORDER_OPS, Op
from palio.model.predicate import Constraint, Filter
from tests.strategies import VALUES, constraints_on

NOON = datetime(2013, 1, 31, 12, tzinfo=UTC)
POOLS: dict[str, list[Any]] = {  # operands near each other, and values on, between and beside them
    "ints": [-(2**63), -1, 0, 1, 2, 2**53, 2**53 + 1, 2**63 - 1],
    "numbers": [-inf, -0.5, 0, 0.5, 1, nextafter(1, 2), 2**53 + 1, 2.0**53, 2.0**63, inf],
    "times": [NOON + timedelta(microseconds=n) for n in (-1, 0, 1, 10**9)],
    "strings": ["", "a", "a\0", "ab", "b", "\U0001f600"],
    "bools": [False, True],
}
OPS = [Op.EQ, *sorted(ORDER_OPS)]


@pytest.fixture(autouse=True)
def _small_hot_keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(hot_keys, "HOT_KEY_MIN", 2)
        patch.setattr(hot_keys, "_GROUP_MIN", 1)
        yield


@pytest.fixture(params=["words", "no words"])
def has_words(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Few interfaces have words; here seven are many."""
    if request.param == "no words":
        monkeypatch.setattr(masks, "INTERFACES_MAX", 0)
    return bool(request.param == "words")


def assert_agrees(columns: Any, messages: list[Message], **options: Any) -> PivotEngine:
    """The engine gives what the oracle gives, in batches and one by one."""
    engine, oracle = PivotEngine.compile(columns, **options), NaiveEngine(columns)
    offsets, found = engine.match(messages)
    expected_offsets, expected = oracle.match(messages)
    assert offsets.tolist() == expected_offsets.tolist()
    assert found.tolist() == expected.tolist()
    for message in messages:
        assert engine.match_one(message).tolist() == oracle.match_one(message).tolist()
    return engine


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("longer", [False, True])
def test_every_operand_against_every_value(pool: str, longer: bool, has_words: bool) -> None:
    """Filters `k = 1 AND v op operand`, some with a third constraint, of seven interfaces."""
    operands = POOLS[pool]
    further = (Constraint("w", Op.GT, 0),) if longer else ()
    entries = [
        (f"i{(n + m) % 7}", Filter((Constraint("k", Op.EQ, 1), Constraint("v", op, x), *further)))
        for n, x in enumerate(operands)
        for m, op in enumerate(OPS if pool != "bools" else [Op.EQ])
    ] * 2
    columns = from_predicates((name, Predicate((f,))) for name, f in entries)
    values = [x for found in POOLS.values() for x in found]
    messages = [
        Message({"k": k, **v, "w": w})
        for k in (1, 2)
        for v in ({}, *({"v": x} for x in (*values, nan)))
        for w in (0, 1)
    ]
    rarely = [Message({"k": n, "w": 1, "v": x}) for x in operands for n in range(30)]
    engine = assert_agrees(columns, messages, sample=rarely)
    assert len(engine.hot_keys.head) >= (1 if pool == "bools" else len(OPS))
    assert bool(len(engine.hot_keys.words)) == has_words


PIVOTS = st.one_of(
    st.builds(Constraint, st.just("k"), st.sampled_from(OPS), st.integers(0, 1)),
    st.builds(Constraint, st.just("k"), st.just(Op.IN), st.just([0, 1, 2])),
    st.builds(Constraint, st.just("s"), st.just(Op.PREFIX), st.sampled_from(["a", "ab"])),
    st.builds(Constraint, st.just("k"), st.sampled_from([Op.ANY, Op.ABSENT])),
)
NEAR = st.one_of(*(st.sampled_from(pool) for pool in POOLS.values()))


@st.composite
def _seconds(draw: st.DrawFn) -> Constraint:
    value = draw(NEAR)
    ops = [Op.EQ, Op.NE] if isinstance(value, bool) else [*OPS, Op.NE]
    return Constraint(draw(st.sampled_from("vw")), draw(st.sampled_from(ops)), value)


FURTHER = st.lists(
    st.one_of(_seconds(), constraints_on(st.sampled_from("vw"))), min_size=1, max_size=2
)
FILTERS = st.builds(lambda pivot, more: Filter((pivot, *more)), PIVOTS, FURTHER)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "k": st.integers(0, 2),
        "s": st.sampled_from(["", "a", "ab", "abc"]),
        "v": st.one_of(NEAR, st.just(nan), *VALUES.values()),
        "w": st.one_of(NEAR, st.just(nan)),
    },
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), FILTERS), min_size=6, max_size=40),
    st.lists(MESSAGES, min_size=1, max_size=8),
)
def test_any_hot_key(entries: list[tuple[int, Filter]], found: list[dict[str, Any]]) -> None:
    columns = from_predicates((f"i{n}", Predicate((f,))) for n, f in entries)
    assert_agrees(columns, [Message(m) for m in found])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 4), FILTERS), min_size=6, max_size=40),
    st.lists(MESSAGES, min_size=1, max_size=8),
    st.integers(1, 3),
    st.booleans(),
)
def test_any_hot_key_of_many_interfaces(
    entries: list[tuple[int, Filter]], found: list[dict[str, Any]], group_min: int, is_once: bool
) -> None:
    """An interface a filter, or several filters of one."""
    named = ((f"i{i if is_once else n}", Predicate((f,))) for i, (n, f) in enumerate(entries))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(masks, "INTERFACES_MAX", 0)
        patch.setattr(hot_keys, "_GROUP_MIN", group_min)
        assert_agrees(from_predicates(named), [Message(m) for m in found])


def test_a_row_that_hits_many_groups() -> None:
    """More groups than a key may have: it is walked."""
    names = [f"n{n}" for n in range(1, 1200)]
    filters = [
        Filter((Constraint("k", Op.EQ, 1), Constraint(name, Op.GT, n % 5)))
        for name in names
        for n in range(5)
    ]
    columns = from_predicates((f"i{n}", Predicate((f,))) for n, f in enumerate(filters))
    always = dict.fromkeys(names, 3)
    sample = [Message({**always, "k": n}) for n in range(30)]
    for count in (len(names), 900):
        kept = {f"i{n}" for n in range(5 * count)}
        some = from_predicates(
            (f"i{n}", Predicate((f,))) for n, f in enumerate(filters) if f"i{n}" in kept
        )
        engine = assert_agrees(some, sample[:3], sample=sample)
        assert len(engine.hot_keys.head) == (count if count <= 1000 else 0)
    assert columns.filters == len(filters)


@pytest.mark.parametrize("interfaces", [3, 64, 70, 600])
@pytest.mark.parametrize("workload", ["flights", "sigcomm03", "rules"])
def test_groups_and_walks_agree(
    workload: str, interfaces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    load = workloads.WORKLOADS[workload](6_000, interfaces, 300, seed=7)
    columns = from_constraint_rows(load.constraints)
    messages = [Message(m) for m in workloads.message_dicts(load)]
    engine = PivotEngine.compile(columns)
    assert len(engine.hot_keys.head) or workload == "sigcomm03"  # few keys are hot in that
    offsets, found = engine.match(messages)
    monkeypatch.setattr(masks, "INTERFACES_MAX", 0)
    without_words = PivotEngine.compile(columns)
    assert len(without_words.hot_keys.head) or workload == "sigcomm03"
    with pytest.MonkeyPatch.context() as patch:  # undone before that of all tests here
        patch.setattr(hot_keys, "HOT_KEY_MIN", 1 << 30)
        plain = PivotEngine.compile(columns)
    assert not len(plain.hot_keys.key)
    for other in (without_words, plain):
        other_offsets, other_found = other.match(messages)
        assert np.array_equal(offsets, other_offsets)
        assert np.array_equal(found, other_found)
    for message, low, high in list(zip(messages, offsets[:-1], offsets[1:], strict=True))[:40]:
        assert np.array_equal(without_words.match_one(message), found[low:high])


def test_a_file_and_what_it_is_updated_to(tmp_path: Path) -> None:
    load = workloads.flights(3_000, 20, 200, seed=3)
    messages = workloads.message_dicts(load)
    table = ForwardingTable.compile(load.constraints)
    table.save(tmp_path / "table.palio")
    loaded = ForwardingTable.load(tmp_path / "table.palio")
    assert all(
        np.array_equal(a, b)
        for a, b in zip(table._engine.hot_keys, loaded._engine.hot_keys, strict=True)  # type: ignore[attr-defined]
    )
    gone = table.interfaces[4]
    updated = loaded.updated(add={"new": "dest = 'ORD' AND dep_delay > 5"}, remove=[gone])
    compact = updated.compacted()
    for message in messages:
        expected = [name for name in table.forward(message) if name != gone]
        is_new = message.get("dest") == "ORD" and message.get("dep_delay", 0) > 5
        expected += ["new"] * is_new
        assert loaded.forward(message) == table.forward(message)
        assert updated.forward(message) == expected
        assert compact.forward(message) == expected


def test_entries_in_another_order_are_walked() -> None:
    """As a file of an earlier version has them: no groups, the same answers."""
    load = workloads.flights(3_000, 20, 200, seed=3)
    engine = PivotEngine.compile(from_constraint_rows(load.constraints))
    at = engine.table.pivots.entries_at
    turned = np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in pairwise(at)])
    pivots = engine.table.pivots._replace(
        entries=np.ascontiguousarray(engine.table.pivots.entries[turned])
    )
    other = PivotEngine(replace(engine.table, pivots=pivots))
    assert len(other.hot_keys.key) < len(engine.hot_keys.key)
    messages = [Message(m) for m in workloads.message_dicts(load)]
    for one, two in zip(engine.match(messages), other.match(messages), strict=True):
        assert np.array_equal(one, two)


def test_more_hot_keys_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of a row are verified part by part."""
    monkeypatch.setattr("palio.matching.pivot.engine._RANGES", 8)
    filters = [
        Filter((Constraint("k", Op.GT, n), Constraint(name, op, n), Constraint("z", Op.GT, n)))
        for n in range(30)
        for name in "vw"
        for op in OPS
    ]
    columns = from_predicates((f"i{n % 9}", Predicate((f,))) for n, f in enumerate(filters))
    messages = [Message({"k": k, "v": k, "w": 5, "z": z}) for k in range(40) for z in (0, 9, 50)]
    assert_agrees(columns, messages)


def test_stats_tell_them() -> None:
    load = workloads.flights(3_000, 20, 10, seed=3)
    stats = ForwardingTable.compile(load.constraints).stats()
    assert 0 < stats.hot_keys <= stats.grouped <= stats.filters
    assert f"hot keys: {stats.hot_keys:,}, with {stats.grouped:,} filters" in str(stats)
    assert ForwardingTable.compile({"a": "x = 1 AND y = 2"}).stats().hot_keys == 0


def test_stats_count_candidates_of_groups() -> None:
    """2,000 filters lie under `k = 1`; of 20 values of `v` a message has one."""
    rows = {f"i{n}": f"k = 1 AND v = {n % 20} AND z > {n}" for n in range(2000)}
    sample = [{"k": n % 100, "v": n % 20, "z": 5000} for n in range(1000)]
    stats = ForwardingTable.compile(rows, sample=sample).stats([{"k": 1, "v": 3, "z": 5000}])
    assert (stats.under_keys, stats.candidates, stats.matches) == (2000, 100, 100)
    assert "1,900 more are passed over in groups" in str(stats)
