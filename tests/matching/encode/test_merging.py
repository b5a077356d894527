"""Compiled arrays give their columns back, and columns of several tables are those of one."""

from __future__ import annotations

import bisect

from hypothesis import given, settings
from hypothesis import strategies as st

import palio
from palio import ForwardingTable, Message, Predicate
from palio.lab.data import workloads
from palio.matching.encode.columns import ConstraintColumns, from_predicates
from palio.matching.encode.decoding import column_predicates
from palio.matching.encode.merging import merged_strings
from palio.matching.pivot.engine import PivotEngine
from tests.strategies import VALUES, constraints_on, filters_of, predicates_of

NAMES = st.sampled_from(["a", "b", "c"])
TABLES = st.lists(
    predicates_of(filters_of(constraints_on(NAMES), min_size=0, max_size=4)), max_size=8
)
MESSAGES = st.lists(
    st.dictionaries(NAMES, st.one_of(*VALUES.values(), st.just(float("nan")))), max_size=4
)


def decoded(columns: ConstraintColumns) -> ConstraintColumns:
    """Compiled and given back."""
    engine = PivotEngine.compile(columns)
    return engine.columns(columns.interfaces)


def filters_of_table(table: ForwardingTable) -> dict[str, set[frozenset[object]]]:
    return {
        name: {frozenset(f.constraints) for f in table.predicate(name).filters}
        for name in table.interfaces
    }


@settings(max_examples=300, deadline=None)
@given(TABLES, MESSAGES)
def test_columns_come_back(table: list[Predicate], found: list[dict[str, object]]) -> None:
    columns = from_predicates((f"i{n}", p) for n, p in enumerate(table))
    back = decoded(columns)
    assert back.filters <= columns.filters
    again = list(column_predicates(back))
    twice = list(column_predicates(decoded(back)))
    for message in map(Message, found):
        for p, q, r in zip(table, again, twice, strict=True):
            assert p.matches(message) == q.matches(message) == r.matches(message)


def test_a_filter_that_lies_under_a_set_is_one_filter_again() -> None:
    texts = [
        "a IN (1, 2, 3.5) AND b = 7 AND c != 'x'",
        "a IN (1, 2, 3.5) AND b > 7",
        "s IN ('p', 'q') AND t LIKE 'u%' OR s IN ('q', 'r') AND t LIKE 'v%'",
        "a IN (4, 5, 6)",
        "a = 4 AND b > 1 OR a = 5 AND b > 2",
        "TRUE",
    ]
    columns = from_predicates((f"i{n}", palio.parse(text)) for n, text in enumerate(texts))
    back = decoded(columns)
    assert back.filters == columns.filters
    for text, p in zip(texts, column_predicates(back), strict=True):
        assert {frozenset(f.constraints) for f in p.filters} == {
            frozenset(f.constraints) for f in palio.parse(text).filters
        }


def test_a_compacted_table_has_the_predicates_of_a_fresh_one() -> None:
    load = workloads.sigcomm03(3000, 900, 1, seed=41)
    entries = dict(workloads.predicates(load))
    more = dict(workloads.predicates(workloads.sigcomm03(600, 200, 1, seed=42)))
    table = ForwardingTable.compile(load.constraints)
    for n, (name, predicate) in enumerate(more.items()):
        gone = f"i{(7 * n) % 900}"
        target = name if n % 3 else f"new {n}"
        remove = [gone] if gone in entries else []
        table = table.updated(add={target: predicate}, remove=remove)
        for old in remove:
            del entries[old]
        entries[target] = entries[target] | predicate if target in entries else predicate
    fresh = ForwardingTable.compile(entries)
    assert table.interfaces == table.compacted().interfaces == fresh.interfaces
    assert filters_of_table(table.compacted()) == filters_of_table(fresh)


@given(st.lists(st.sets(st.binary(max_size=2)), max_size=4))
def test_strings_of_several_tables(found: list[set[bytes]]) -> None:
    merged, ranks = merged_strings([sorted(part) for part in found])
    assert merged == sorted(set().union(*found))
    for part, rank in zip(found, ranks, strict=True):
        assert rank.tolist() == [bisect.bisect_left(merged, text) for text in sorted(part)]
