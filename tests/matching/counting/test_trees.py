"""The ternary search trees of strings and of names give the oracle's answers, at the work that the
2003 paper states (section 4.2)."""

from __future__ import annotations

from itertools import pairwise
from math import log2
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.errors import InvalidPredicate
from palio.lab.data.workloads import message_dicts, sigcomm03
from palio.matching.counting.engine import STRINGS, CountingEngine
from palio.matching.counting.trees import NameTree
from palio.matching.encode.columns import from_predicates
from palio.matching.encode.constraint_rows import from_constraint_rows
from palio.matching.naive import NaiveEngine
from palio.model.language import parse
from palio.model.operators import STRING_OPS
from palio.model.predicate import Constraint, Filter, Op, Predicate

# Shared beginnings, ends and middles; the empty string; bytes that signed characters, or END as 0 or
# 255, would put in the wrong order.
WORDS = st.one_of(
    st.text("ab", max_size=5),
    st.sampled_from(["", "\0", "a\0", "a\0b", "ab", "\x7f", "\u0080", "\u00e9", "\U0010ffff"]),
    st.text("a\0é\U0001f600", max_size=4),
)
SHORT = st.text("abcdé", max_size=4)
NAMES = st.sampled_from(["x", "y", "xy"])
OPS = st.sampled_from([*STRING_OPS, *(Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE)])
CONSTRAINTS = st.one_of(
    st.builds(Constraint, NAMES, OPS, WORDS),
    st.builds(Constraint, NAMES, st.just(Op.IN), st.lists(WORDS, min_size=1, max_size=4)),
    st.builds(Constraint, NAMES, st.just(Op.EQ), st.integers(0, 2)),
    st.builds(Constraint, NAMES, st.sampled_from([Op.ANY, Op.ABSENT])),
)
TABLES = st.lists(st.lists(CONSTRAINTS, min_size=1, max_size=3), max_size=40)
MESSAGES = st.lists(st.dictionaries(NAMES, WORDS | st.integers(0, 2)), max_size=6)


def compiled(constraints: list[list[Constraint]], strings: str) -> CountingEngine:
    pairs = [(f"i{n}", Predicate((Filter(tuple(found)),))) for n, found in enumerate(constraints)]
    return CountingEngine(from_predicates(pairs), strings=strings)


def answers(engine: Any, messages: list[Any]) -> list[list[int]]:
    offsets, found = engine.match(messages)
    return [found[a:b].tolist() for a, b in pairwise(offsets.tolist())]


@settings(max_examples=300, deadline=None)
@given(TABLES, MESSAGES)
def test_every_index_of_strings_gives_the_same_constraints(
    table: list[list[Constraint]], messages: list[Any]
) -> None:
    pairs = [(f"i{n}", Predicate((Filter(tuple(found)),))) for n, found in enumerate(table)]
    expected = answers(NaiveEngine(from_predicates(pairs)), messages)
    touched = set()
    for strings in STRINGS:
        engine = compiled(table, strings)
        assert answers(engine, messages) == expected, strings
        assert answers(engine, messages) == expected, strings  # what a search marks is cleared
        touched.add(engine.counters.constraints_touched)
    assert len(touched) == 1


@settings(max_examples=200, deadline=None)
@given(st.sets(st.tuples(OPS, SHORT), min_size=10, max_size=60), st.lists(SHORT, min_size=10))
def test_many_operands_of_one_name(found: set[tuple[Op, str]], texts: list[str]) -> None:
    """Trees with both sides at every depth, and texts that leave them anywhere."""
    constraints = [Constraint("s", op, operand) for op, operand in sorted(found)]
    engine = compiled([[constraint] for constraint in constraints], "tst")
    expected = [[i for i, c in enumerate(constraints) if c.matches(text)] for text in texts]
    assert answers(engine, [{"s": text} for text in texts]) == expected


@pytest.mark.parametrize("interfaces", [20, "all"])
def test_workload(interfaces: int | str) -> None:
    drawn = sigcomm03(2_000, interfaces, 100)
    columns, messages = from_constraint_rows(drawn.constraints), message_dicts(drawn)
    found = {s: answers(CountingEngine(columns, strings=s, rounds=2), messages) for s in STRINGS}
    assert all(answer == found["pool"] for answer in found.values())


# As in figure 6, which has words that share their beginnings, and every operator.
FIGURE_6 = {
    "prefix 'an'": "s LIKE 'an%'",
    "part 'ne'": "s LIKE '%ne%'",
    "equal 'anne'": "s = 'anne'",
    "suffix 'ne'": "s LIKE '%ne'",
    "below 'ant'": "s < 'ant'",
    "below 'zeta'": "s < 'zeta'",
    "above 'alpha'": "s > 'alpha'",
    "above 'anne'": "s > 'anne'",
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("anne", {"prefix 'an'", "part 'ne'", "equal 'anne'", "suffix 'ne'", "below 'ant'",
                  "below 'zeta'", "above 'alpha'"}),
        ("an", {"prefix 'an'", "below 'ant'", "below 'zeta'", "above 'alpha'"}),
        ("anneli", {"prefix 'an'", "part 'ne'", "below 'ant'", "below 'zeta'", "above 'alpha'",
                    "above 'anne'"}),
        ("ant", {"prefix 'an'", "below 'zeta'", "above 'alpha'", "above 'anne'"}),
        ("zzz", {"above 'alpha'", "above 'anne'"}),
        ("", {"below 'ant'", "below 'zeta'"}),
        ("ne", {"part 'ne'", "suffix 'ne'", "below 'zeta'", "above 'alpha'", "above 'anne'"}),
    ],
)  # fmt: skip
def test_partial_matches_crown_lists_and_backtracking(value: str, expected: set[str]) -> None:
    pairs = [(name, parse(text)) for name, text in FIGURE_6.items()]
    engine = CountingEngine(from_predicates(pairs), strings="tst")
    (found,) = answers(engine, [{"s": value}])
    assert {list(FIGURE_6)[i] for i in found} == expected


def test_only_what_crown_lists_reach_is_visited() -> None:
    """One link for each order that holds, also after backtracking from where there is no leaf."""
    orders = [[Constraint("s", Op.LT, f"k{n:03}")] for n in range(500)]
    orders += [[Constraint("s", Op.GT, f"k{n:03}")] for n in range(500)]
    engine = compiled(orders, "tst")
    for value, below in (("k123", 123), ("k1234", 124), ("a", 0), ("z", 500)):
        (found,) = answers(engine, [{"s": value}])
        equal = value == "k123"
        assert sum(i >= 500 for i in found) == below
        assert sum(i < 500 for i in found) == 500 - below - equal
        assert engine.counters.crown_links == len(found)


def test_a_search_visits_few_nodes() -> None:
    """2003, 4.2: O(l (log N + l)) for a string of length l among N."""
    for count in (100, 1_000, 10_000):
        table = [[Constraint("s", Op.EQ, f"{n * 7919 % 100_003:06}")] for n in range(count)]
        engine = compiled(table, "tst")
        engine.match([{"s": f"{n * 7919 % 100_003:06}"} for n in range(100)])
        assert engine.counters.tree_nodes / 100 < 7 * (log2(count) + 7)


def test_work_is_counted() -> None:
    texts = ["s LIKE 'a%'", "s LIKE 'ab%'", "s LIKE '%b%'", "s = 'abc'", "s = 'x'"]
    pairs = [(text, parse(text)) for text in texts]
    counted = {}
    for strings in STRINGS:
        engine = CountingEngine(from_predicates(pairs), strings=strings)
        engine.match([{"s": "abb"}])
        counted[strings] = engine.counters
        assert engine.counters.constraints_touched == 3
    assert counted["tst"].partial_matches == 4  # a, ab, and b at two places
    assert counted["tst"].tree_nodes > 0
    assert counted["scan"].strings_compared == 5
    assert counted["pool"].tree_nodes == counted["pool"].strings_compared == 0


def test_an_unknown_index_of_strings() -> None:
    with pytest.raises(InvalidPredicate, match="'trie'; there are pool, operators, tst, scan"):
        compiled([], "trie")


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, unique=True), st.lists(WORDS))
def test_names_are_found_in_their_tree(names: list[str], asked: list[str]) -> None:
    tree = NameTree(names)
    known = {name: i for i, name in enumerate(names)}
    assert tree.numbers([*names, *asked]) == {n: known[n] for n in [*names, *asked] if n in known}
    assert (tree.nodes_visited > 0) == bool(names)
