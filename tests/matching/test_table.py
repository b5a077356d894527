"""Samples and reduction change how a table is laid out, never what it answers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import palio
from palio import ForwardingTable, Message, Predicate
from palio.lab.data import workloads
from palio.matching.encode.column_reduction import reduce_columns
from palio.matching.encode.columns import from_predicates
from palio.matching.encode.decoding import column_predicates
from tests.matching.test_engine import MESSAGES, TABLES, operands


@settings(max_examples=200, deadline=None)
@given(TABLES, st.lists(MESSAGES, max_size=5), st.lists(MESSAGES, max_size=3), st.booleans())
def test_a_sample_never_changes_answers(
    table: list[Predicate],
    sample: list[dict[str, object]],
    found: list[dict[str, object]],
    reduced: bool,
) -> None:
    entries = {f"i{n}": p for n, p in enumerate(table)}
    made = ForwardingTable.compile(entries, sample=sample, reduce=reduced)
    naive = ForwardingTable.compile(entries, engine="naive")
    for message in (*found, *sample):
        assert made.forward(message) == naive.forward(message)
        for name, p in entries.items():
            assert made.predicate(name).matches(Message(message)) == p.matches(Message(message))


@settings(max_examples=300, deadline=None)
@given(TABLES, st.lists(st.integers(0, 2), min_size=8, max_size=8), st.data())
def test_reduction_never_changes_answers(
    table: list[Predicate], owners: list[int], data: st.DataObject
) -> None:
    """Few interfaces with many filters, and messages at the operands."""
    entries = [(f"i{owner}", p) for owner, p in zip(owners, table, strict=False)]
    naive = ForwardingTable.compile(entries, engine="naive")
    reduced = ForwardingTable.compile(entries, reduce=True)
    columns, saved = reduce_columns(from_predicates(entries))
    bulk = dict(zip(columns.interfaces, column_predicates(columns), strict=True))
    values = operands(table) or [None]
    for _ in range(3):
        message = Message({n: data.draw(st.sampled_from(values)) for n in "abc"})
        expected = naive.forward(message)
        assert reduced.forward(message) == expected
        assert [name for name, p in bulk.items() if p.matches(message)] == expected
    assert saved.filters == columns.filters <= saved.filters_before
    assert saved.constraints == len(columns.filter) <= saved.constraints_before


@pytest.mark.parametrize(
    ("predicate", "filters", "constraints"),
    [
        ("x = 1 AND y = 2 OR y = 2 AND x = 1", 1, 2),
        ("x = 1 AND x = 1 AND y = 2", 1, 2),
        ("x < 5 AND y = 2 OR x < 9", 1, 1),
        ("x < 9 AND y = 2 OR x < 9", 1, 1),
        ("x <= 9 AND y = 2 OR x < 9", 2, 3),
        ("x < 9 OR x <= 9 OR x <= 8 AND y = 1", 1, 1),
        ("x > 5 OR x >= 5 AND y = 2", 2, 3),
        ("x >= 5 OR x > 5 OR x = 5 AND y = 2", 1, 1),
        ("x = 3 AND y = 2 OR x IS NOT NULL", 1, 1),
        ("x IS NULL AND y = 2 OR x IS NOT NULL", 2, 3),
        ("s LIKE 'a%' AND y = 2 OR s LIKE 'a%'", 1, 1),
        ("x IN (1, 2) AND y = 2 OR x IN (2, 1) AND y = 2", 1, 2),
        ("x IN (1, 2) AND y = 2 OR x IN (1, 2)", 1, 1),
        ("x < 5 AND y = 2 OR s < 'a'", 2, 3),
        ("x < 5 OR TRUE OR y = 1 AND z = 2", 1, 0),
    ],
)
def test_plain_cases_of_constraint_rows(predicate: str, filters: int, constraints: int) -> None:
    parsed = palio.parse(predicate)
    columns, saved = reduce_columns(from_predicates([("a", parsed), ("b", parsed)]))
    assert (saved.filters, saved.constraints) == (2 * filters, 2 * constraints)
    assert columns.interfaces == ["a", "b"]


def test_reduction_of_constraint_rows_is_told() -> None:
    load = workloads.WORKLOADS["sigcomm03"](3_000, 5, 60, seed=2)
    made = ForwardingTable.compile(load.constraints, reduce=True)
    plain = ForwardingTable.compile(load.constraints)
    reduction = made.stats().reduction
    assert reduction is not None
    assert reduction.filters_before == 3_000
    assert reduction.filters < 2_000
    assert plain.stats().reduction is None
    assert "reduced from 3,000 filters" in str(made.stats())
    for message in workloads.message_dicts(load):
        assert made.forward(message) == plain.forward(message)


def test_a_sample_lowers_the_candidates() -> None:
    """On flights the sample knows what the predicates do not: how often delays are long."""
    load = workloads.WORKLOADS["flights"](3_000, "all", 600, seed=2)
    seen, unseen = load.messages.slice(0, 300), load.messages.slice(300)
    guessed = ForwardingTable.compile(load.constraints).stats(unseen)
    chosen = ForwardingTable.compile(load.constraints, sample=seen).stats(unseen)
    assert chosen.matches == guessed.matches
    assert chosen.candidates < 0.9 * guessed.candidates


def test_a_weak_constraint_is_no_pivot_because_it_never_holds() -> None:
    """x != 5 lies under the presence of x, so that it never holds is of no use there."""
    rows = [{"x": 5, "y": n} for n in range(20)]
    made = ForwardingTable.compile({"a": "x != 5 AND y = 3"}, sample=rows)
    assert [p.name for p in made.stats().pivots] == ["y"]


def test_presence_of_another_type_comes_back() -> None:
    text = "typeof(a) = 'bool' AND a NOT LIKE '% %'"
    for sample in (None, [{"a": ""}]):
        made = ForwardingTable.compile({"i": text}, sample=sample)
        assert not made.predicate("i").matches({"a": ""})
        assert made.forward({"a": ""}) == []
