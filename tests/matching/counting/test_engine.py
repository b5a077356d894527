"""The counting engine gives the oracle's answers, and its work shows what the papers report."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.errors import InvalidPredicate
from palio.lab.data.workloads import WORKLOADS, message_dicts, predicates, sigcomm03
from palio.matching.counting.engine import CountingEngine
from palio.matching.encode.columns import from_predicates
from palio.matching.encode.constraint_rows import from_constraint_rows
from palio.matching.pivot.engine import PivotEngine
from palio.model.language import parse
from palio.model.message import Message
from palio.model.predicate import Constraint, Filter, Predicate
from tests import strategies

ENGINES = [("2001", 0), ("2003", 0), ("2003", 1), ("2003", 10)]
each_engine = pytest.mark.parametrize(("variant", "rounds"), ENGINES)

few_names = st.sampled_from(["a", "b", "c"])
tables = st.lists(
    strategies.predicates_of(strategies.filters_of(strategies.constraints_on(few_names))),
    max_size=5,
)
few_messages = st.lists(st.dictionaries(few_names, strategies.values), max_size=5)


def oracle(table: Sequence[Predicate], messages: Sequence[Any]) -> list[list[int]]:
    return [
        [i for i, predicate in enumerate(table) if predicate.matches(Message(message))]
        for message in messages
    ]


def answers(engine: CountingEngine | PivotEngine, messages: Sequence[Any]) -> list[list[int]]:
    offsets, interfaces = engine.match(messages)
    assert offsets.dtype == np.int64
    assert interfaces.dtype == np.int32
    return [interfaces[a:b].tolist() for a, b in pairwise(offsets)]


def compiled(table: Sequence[Predicate], **options: Any) -> CountingEngine:
    pairs = ((f"i{n}", predicate) for n, predicate in enumerate(table))
    return CountingEngine(from_predicates(pairs), **options)


@lru_cache(maxsize=16)
def workload(name: str, filters: int, interfaces: int | str, messages: int = 60) -> Any:
    drawn = WORKLOADS[name](filters, interfaces, messages)
    return drawn, from_constraint_rows(drawn.constraints), message_dicts(drawn)


# ---- the same answers


@given(table=tables, messages=few_messages)
@settings(deadline=None)
def test_every_operator_and_type(table: list[Predicate], messages: list[Any]) -> None:
    expected = oracle(table, messages)
    for variant, rounds in ENGINES:
        assert answers(compiled(table, variant=variant, rounds=rounds), messages) == expected
    assert answers(compiled(table, prefetch=True), messages) == expected


@pytest.mark.parametrize("name", list(WORKLOADS))
@pytest.mark.parametrize("interfaces", [2, 20, "all"])
def test_workloads(name: str, interfaces: int | str) -> None:
    drawn, columns, messages = workload(name, 300, interfaces)
    table = [predicate for _, predicate in predicates(drawn)]
    expected = oracle(table, messages)
    assert answers(PivotEngine.compile(columns), messages) == expected
    for variant, rounds in ENGINES:
        engine = CountingEngine(columns, variant=variant, rounds=rounds)
        assert answers(engine, messages) == expected
        assert engine.match_one(messages[0]).tolist() == expected[0]


@each_engine
@pytest.mark.parametrize(
    ("text", "message", "expected"),
    [
        ("a = 1 AND a = 1", {"a": 1}, True),
        ("a = 1 AND a = 2", {"a": 1}, False),
        ("a IS NULL AND a = 1", {"a": 1}, False),
        ("a IS NULL AND b IS NULL", {}, True),
        ("a IS NULL AND b IS NULL", {"b": 1}, False),
        ("a != 1 AND a != 2 AND a != 2.5", {"a": 3}, True),
        ("a != 1 AND a != 2 AND a != 2.5", {"a": 2.5}, False),
        ("a != 1", {"a": "1"}, False),
        ("a != 1", {"b": 1}, False),
        ("a IN (1, 2.5) AND a IN (2.5, 7) AND a IN (1, 2.5)", {"a": 2.5}, True),
        ("a IN (1, 2.5)", {"a": 1.0}, True),
        ("a IN ('x', 'y')", {"a": "y"}, True),
        ("a NOT LIKE 'x%' AND a NOT LIKE '%x' AND a NOT LIKE '%yy%'", {"a": "ayz"}, True),
        ("a NOT LIKE 'x%' AND a NOT LIKE '%x' AND a NOT LIKE '%yy%'", {"a": "ayyz"}, False),
        ("a LIKE 'x%' AND a NOT LIKE '%x'", {"a": "xy"}, True),
        ("a IS NOT NULL AND a <= 2", {"a": 2}, True),
    ],
)
def test_repeated_contradictory_and_weak_constraints(
    variant: str, rounds: int, text: str, message: dict[str, Any], expected: bool
) -> None:
    table = [parse(text), parse("c = 5 AND " + text), parse(text + " OR d = 1")]
    assert parse(text).matches(message) is expected
    engine = compiled(table, variant=variant, rounds=rounds)
    assert answers(engine, [message]) == [[0, 2] if expected else []]


@each_engine
def test_empty_filters_predicates_and_tables(variant: str, rounds: int) -> None:
    one = Filter((Constraint("a", "=", 1),))
    table = [
        Predicate((Filter(()),)),
        Predicate(()),
        Predicate((one, Filter(()))),
        Predicate((one,)),
    ]
    engine = compiled(table, variant=variant, rounds=rounds)
    assert answers(engine, [{}, {"a": 1}, {"z": 1}]) == [[0, 2], [0, 2, 3], [0, 2]]
    assert answers(engine, []) == []
    assert answers(compiled([], variant=variant, rounds=rounds), [{"a": 1}]) == [[]]


@each_engine
def test_a_long_filter_and_many_rows(variant: str, rounds: int) -> None:
    """More constraints than a small counter holds, and more rows than it has stamps."""
    long = Predicate((Filter(tuple(Constraint("a", "!=", i) for i in range(200))),))
    for table, copies in (([long], 10), ([parse("a = 300 AND b = 1")], 140_000)):
        engine = compiled(table, variant=variant, rounds=rounds)
        offsets, _ = engine.match([{"a": 300, "b": 1}, {"a": 7, "b": 1}] * (copies // 2))
        assert np.array_equal(np.diff(offsets), np.tile([1, 0], copies // 2))


def test_threads_may_match_at_once() -> None:
    _, columns, messages = workload("sigcomm03", 300, "all")
    engine = CountingEngine(columns, rounds=1)
    expected = answers(engine, messages)
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda _: answers(engine, messages), range(40))
    assert all(answer == expected for answer in found)


def test_options_are_checked() -> None:
    with pytest.raises(InvalidPredicate, match="2001 and 2003"):
        compiled([], variant="1999")
    with pytest.raises(InvalidPredicate, match="2001 has none"):
        compiled([], variant="2001", rounds=3)


# ---- the papers' claims

FIGURE_4 = {
    "I1": "dest = 'Milano' AND price < 500 OR stock = 'DYS' AND quantity > 1000 AND price < 500",
    "I2": "airline = 'UA' AND orig = 'Denver' AND dest = 'Milano' "
    "OR dest = 'New York' AND price < 200 OR orig = 'Denver' "
    "OR airline = 'UA' AND upgradeable = true",
    "I3": "stock = 'MSFT' AND price < 200",
}


@each_engine
def test_figure_4_of_2001(variant: str, rounds: int) -> None:
    """2001, figures 4 and 5: three interfaces, seven filters, their constraints stored once."""
    columns = from_predicates((name, parse(text)) for name, text in FIGURE_4.items())
    engine = CountingEngine(columns, variant=variant, rounds=rounds)
    distinct = {c for text in FIGURE_4.values() for filter in parse(text) for c in filter}
    assert len(engine.index.keys) == len(distinct) == 10
    messages: list[dict[str, Any]] = [
        {"dest": "Milano", "price": 450},
        {"stock": "MSFT", "price": 150, "quantity": 2000},
        {"airline": "UA", "upgradeable": True},
        {"airline": "UA", "orig": "Denver", "dest": "Milano", "price": 100, "stock": "MSFT"},
        {"stock": "DYS", "quantity": 1000, "price": 100},
    ]
    assert answers(engine, messages) == [[0], [2], [1], [0, 1, 2], []]
    engine.match(messages[3:4])
    assert engine.counters.rows_stopped == 1


@pytest.mark.parametrize("variant", ["2001", "2003"])
def test_figure_7_of_2001(variant: str) -> None:
    """2001, figure 7 (2003, figure 5): quantity = 10 finds < 20, < 350, > 3 and > 0."""
    texts = [f"quantity < {n}" for n in (5, 20, 350)] + [f"quantity > {n}" for n in (0, 3, 50)]
    engine = compiled([parse(text) for text in [*texts, "quantity = 200"]], variant=variant)
    assert answers(engine, [{"product": "apples", "quantity": 10}]) == [[1, 2, 3, 4]]
    assert engine.counters.constraints_touched == engine.counters.increments == 4


def test_a_name_that_all_filters_need_eliminates_the_interface() -> None:
    """2003, section 3: (r AND s) OR (r AND t) cannot match without r; `absent` needs nothing."""
    table = [parse("r = 1 AND s = 1 OR r = 2 AND t = 1"), parse("r IS NULL"), parse("s = 1")]
    engine = compiled(table, rounds=1)
    assert answers(engine, [{"s": 1, "t": 1}]) == [[1, 2]]
    assert engine.counters.interfaces_eliminated == 1
    assert answers(engine, [{"r": 1, "s": 1}]) == [[0, 2]]
    assert engine.counters.interfaces_eliminated == 0


def test_a_few_rounds_eliminate_most_interfaces() -> None:
    """2003, section 3: 131,000 of 200,000 predicates after 10 of 1,000 entries."""
    _, columns, messages = workload("sigcomm03", 20_000, "all", 100)
    increments, eliminated = [], []
    for rounds in (0, 1, 2, 5, 10, 100):
        engine = CountingEngine(columns, rounds=rounds)
        engine.match(messages)
        increments.append(engine.counters.increments)
        eliminated.append(engine.counters.interfaces_eliminated / 20_000 / len(messages))
    assert increments == sorted(increments, reverse=True)
    assert eliminated == sorted(eliminated)
    assert eliminated[0] == 0
    assert 0.5 < eliminated[4] < 0.8
    assert increments[4] < 0.6 * increments[0]


@pytest.mark.parametrize("variant", ["2001", "2003"])
def test_short_circuit_flattens_the_curve_for_fixed_interfaces(variant: str) -> None:
    """2001 and 2003, evaluation: with I fixed the work hardly grows with the filters; I = F does."""
    scratch: dict[int | str, list[int]] = {}
    stopped = []
    for interfaces in (10, "all"):
        for filters in (4_000, 16_000, 64_000):
            drawn = sigcomm03(filters, interfaces, 50)
            engine = CountingEngine(from_constraint_rows(drawn.constraints), variant=variant)
            engine.match(message_dicts(drawn))
            scratch.setdefault(interfaces, []).append(engine.counters.increments)
            stopped.append(engine.counters.rows_stopped)
    assert scratch["all"][2] > 12 * scratch["all"][0]
    assert scratch[10][2] < 4 * scratch[10][0]
    assert scratch[10][2] < scratch["all"][2] / 10
    assert 0 <= stopped[0] <= stopped[1] <= stopped[2]
    assert stopped[2] > 25
