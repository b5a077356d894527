"""Strict types (2000, 3.1): an attribute matches a constraint only if the types are equal.

The papers' notation says the type of each constraint. Whatever becomes of such a filter afterwards
(SQL, JSON, rows, tables, files, covering, reduction, a broker) selects the same messages.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.net.peers import configured, run

import palio
from palio import Filter, ForwardingTable, Message, Predicate, covers
from palio.lab.data.workloads import constraint_rows
from palio.model import json_form, notation
from palio.net.broker.server import serving

CASES = [
    ("integer level > 3", {"level": 4}, True),
    ("integer level > 3", {"level": 4.5}, False),
    ("integer level > 3", {"level": 4.0}, False),
    ("float level = 3", {"level": 3.0}, True),
    ("float level = 3", {"level": 3}, False),
    ("float level != 3", {"level": 4}, False),
    ("integer level in [3, 4]", {"level": 4.0}, False),
    ("number level > 3", {"level": 4}, True),
    ("number level > 3", {"level": 4.5}, True),
    ("string level = 3", {"level": 3}, False),
    ("string level = 3", {"level": "3"}, True),
    ("integer level > 3\nfloat level < 7", {"level": 5}, False),
    ("integer level > 3\nfloat level < 7", {"level": 5.0}, False),
    ("integer level > 3\nor\nfloat level < 7", {"level": 5.0}, True),
]


@pytest.mark.parametrize(("text", "message", "matches"), CASES)
def test_the_types_must_be_equal(text: str, message: dict[str, object], matches: bool) -> None:
    assert notation.parse_predicate(text).matches(message) is matches


def test_sql_compares_numbers_by_value() -> None:
    """Beyond the paper: in SQL an int and a float compare as in Spark SQL and DuckDB."""
    assert palio.parse("level > 3").matches({"level": 4.5})
    assert palio.parse("level = 3.0").matches({"level": 3})


lines = st.builds(
    "{} {} {}".format,
    st.sampled_from(["int", "float", "number"]),
    st.sampled_from(["x", "y"]),
    st.sampled_from(["= 3", "!= 3", "< 4", "> 2", "<= 3", ">= 3", "in [2, 4]"]),
)
texts = st.lists(
    st.lists(lines, min_size=1, max_size=3).map("\n".join), min_size=1, max_size=3
).map("\nor\n".join)
values = st.sampled_from([2, 3, 4, 2.0, 3.0, 4.0, 3.5, float("nan"), "3", True, None])
messages = st.fixed_dictionaries({"x": values, "y": values}).map(Message)


@given(texts, messages)
def test_every_form_means_the_same(text: str, message: Message) -> None:
    predicate = notation.parse_predicate(text)
    expected = predicate.matches(message)
    assert notation.parse_predicate(notation.print_predicate(predicate)) == predicate
    assert palio.parse(str(predicate)) == predicate
    assert json_form.from_json(json_form.to_json(predicate)) == predicate
    assert palio.reduce(predicate).matches(message) is expected
    assert palio.reduce(predicate, exact=True).matches(message) is expected


@given(st.lists(texts, min_size=1, max_size=4), messages)
def test_every_engine_agrees(table: list[str], message: Message) -> None:
    predicates = {f"i{n}": notation.parse_predicate(text) for n, text in enumerate(table)}
    expected = [name for name, one in predicates.items() if one.matches(message)]
    for engine in ("naive", "counting", "pivot"):
        assert ForwardingTable.compile(predicates, engine=engine).forward(message) == expected
    assert ForwardingTable.compile(constraint_rows(predicates.items())).forward(message) == expected


def test_a_table_file_keeps_the_types(tmp_path: Path) -> None:
    ForwardingTable.compile(
        {
            "ints": notation.parse_predicate("integer level > 3"),
            "floats": notation.parse_predicate("float level > 3"),
            "numbers": notation.parse_predicate("number level > 3"),
        }
    ).save(tmp_path / "table")
    table = ForwardingTable.load(tmp_path / "table")
    assert table.forward({"level": 4}) == ["ints", "numbers"]
    assert table.forward({"level": 4.5}) == ["floats", "numbers"]


def one(text: str) -> Filter:
    return notation.parse_filter(text)


def test_covering_knows_the_type() -> None:
    """3.3: with a type an int is discrete, and filters of other types do not cover."""
    assert covers(one("integer x > 3"), one("integer x > 4"))
    assert covers(one("integer x >= 4"), one("integer x > 3"))
    assert covers(one("integer x = 4"), one("integer x > 3\ninteger x < 5"))
    assert covers(one("number x > 3"), one("integer x > 3"))
    assert not covers(one("integer x > 3"), one("number x > 3"))
    assert not covers(one("integer x > 3"), one("float x > 4"))
    both = Predicate((one("integer x > 3"), one("float x > 3")))
    assert covers(both, palio.parse("x > 3"))


@given(texts, texts, messages)
def test_covering_is_sound(a: str, b: str, message: Message) -> None:
    wide, narrow = notation.parse_predicate(a), notation.parse_predicate(b)
    if covers(wide, narrow, exact=True):
        assert wide.matches(message) or not narrow.matches(message)
    else:
        missed = palio.model.covering.witness(wide, narrow)
        assert missed is None or (narrow.matches(missed) and not wide.matches(missed))


def test_a_broker_keeps_the_types(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path)) as server:
            url = f"palio://127.0.0.1:{server.endpoint.port}"
            async with palio.connect(url) as client:
                strict = notation.parse_predicate("integer level > 3")
                async with client.subscribe(strict) as notes:
                    for level in (4.5, 3, 5.0, 5):
                        await client.publish({"level": level})
                    assert str((await anext(notes)).attributes["level"]) == "5"

    run(scene())
