"""Few interfaces: filters that a simpler one covers are left out, and single ones become bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import palio
from palio import Message, Predicate
from palio.lab.data import workloads
from palio.matching.encode.columns import from_predicates
from palio.matching.encode.constraint_rows import from_constraint_rows
from palio.matching.encode.covered import uncovered
from palio.matching.encode.strings import build_strings
from palio.matching.naive import NaiveEngine
from palio.matching.pivot import masks
from palio.matching.pivot.engine import PivotEngine
from tests.strategies import VALUES, constraints_on, filters_of, predicates_of

NAMES = st.sampled_from(["a", "b"])
TEXTS = st.sampled_from(["", "a", "b", "ab", "ba", "abc", "bab"])
WIDE = predicates_of(filters_of(constraints_on(NAMES), min_size=0, max_size=2), max_size=12)
MESSAGES = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.one_of(*VALUES.values(), TEXTS, st.integers(-3, 3), st.just(float("nan"))),
)


def kept(*texts: str) -> int:
    """How many filters of one interface are compiled."""
    columns = from_predicates([("i", palio.parse(text)) for text in texts])
    return uncovered(columns, build_strings(columns)).filters


@settings(max_examples=400, deadline=None)
@given(st.lists(WIDE, min_size=1, max_size=3), st.lists(MESSAGES, min_size=1, max_size=6))
def test_many_filters_of_few_interfaces(
    table: list[Predicate], found: list[dict[str, object]]
) -> None:
    messages = [Message(m) for m in found]
    columns = from_predicates((f"i{n % 2}", p) for n, p in enumerate(table))
    engine, oracle = PivotEngine.compile(columns), NaiveEngine(columns)
    offsets, ids = engine.match(messages)
    expected_offsets, expected = oracle.match(messages)
    assert offsets.tolist() == expected_offsets.tolist()
    assert ids.tolist() == expected.tolist()
    for message in messages:
        assert engine.match_one(message).tolist() == oracle.match_one(message).tolist()


@pytest.mark.parametrize(
    ("simple", "covered"),
    [
        ("x > 3", "x > 3 AND y = 1"),
        ("x > 3", "x >= 4"),
        ("x > 3", "x = 4 AND y = 1"),
        ("x >= 3", "x = 3"),
        ("x < 3", "x <= 2 AND y = 1"),
        ("x IS NOT NULL", "x = 1 AND y = 2"),
        ("x IS NULL", "x IS NULL AND y = 2"),
        ("s LIKE 'ab%'", "s = 'abc'"),
        ("s LIKE 'ab%'", "s LIKE 'abc%' AND y = 1"),
        ("s LIKE '%b%'", "s LIKE 'abc%'"),
        ("s LIKE '%c'", "s LIKE '%bc'"),
        ("s LIKE '%b%'", "s LIKE '%abc%' AND y = 1"),
        ("TRUE", "x = 1"),
    ],
)
def test_a_simple_filter_covers(simple: str, covered: str) -> None:
    assert kept(simple, covered) == 1
    assert kept(covered, simple) == 1
    assert kept(simple, simple, covered) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x > 3", "x >= 3 AND y = 1"),
        ("x > 3", "x = 3"),
        ("x > 3", "z = 4 AND y = 1"),
        ("x = 3", "x > 3"),
        ("s LIKE 'ab%'", "s LIKE '%ab' AND y = 1"),
        ("s > 'a'", "s = 'a' AND y = 1"),
    ],
)
def test_others_stay(one: str, other: str) -> None:
    assert kept(one, other) == 2


def test_another_interface_covers_nothing() -> None:
    columns = from_predicates(
        [("i", palio.parse("x > 3")), ("j", palio.parse("x > 4")), ("j", palio.parse("x > 5"))]
    )
    left = uncovered(columns, build_strings(columns))
    assert left.owner.tolist() == [0, 1]


@pytest.mark.parametrize("interfaces", [3, 64, 70, 1500])
def test_masks_and_lists_agree(interfaces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    load = workloads.WORKLOADS["sigcomm03"](4000, interfaces, 300, seed=5)
    columns = from_constraint_rows(load.constraints)
    messages = [Message(m) for m in workloads.message_dicts(load)]
    offsets, ids = PivotEngine.compile(columns).match(messages)
    monkeypatch.setattr(masks, "INTERFACES_MAX", 0)
    other_offsets, other = PivotEngine.compile(columns).match(messages)
    assert np.array_equal(offsets, other_offsets)
    assert np.array_equal(ids, other)


def test_long_strings_get_room() -> None:
    """More hits and ranges than there is room for at first."""
    pieces = [f"s LIKE '%{a}{b}%'" for a in "abcdefgh" for b in "abcdefgh"]
    entries = {f"i{n}": f"{piece} AND x = 1" for n, piece in enumerate(pieces)}
    table = palio.ForwardingTable.compile(entries)
    text = "".join(a + b for a in "abcdefgh" for b in "abcdefgh")
    messages = [Message({"s": text + str(n), "x": 1}) for n in range(50)]
    columns = from_predicates((name, palio.parse(p)) for name, p in entries.items())
    offsets, ids = PivotEngine.compile(columns).match(messages)
    assert np.diff(offsets).tolist() == [64] * 50
    assert [table.interfaces[i] for i in ids[:64]] == list(entries)
