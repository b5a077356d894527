"""Columns out of batches and into them, against batches of messages that have the values as attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from palio.matching.computed.batches import attribute_columns, with_columns
from palio.matching.computed.columns import column_of
from palio.matching.computed.vectors import compute
from palio.matching.encode.arrays import EncodedMessages
from palio.matching.encode.messages import encode_messages
from palio.model.expressions.decimals import Exact
from palio.model.expressions.number_functions import IntLiteral
from palio.model.expressions.tree import AttributeOf, Call, Constant
from palio.model.message import Message
from tests.matching.computed.test_vectors import shown
from tests.matching.encode.batches import decoded, shape
from tests.strategies import values

NAMES = {"a": 0, "b": 3, "c": 1, "=d": 2, "=e": 4}

rows = st.lists(st.dictionaries(st.sampled_from("abcxy"), values), max_size=8)
columns = st.lists(st.none() | values, min_size=8, max_size=8)


def plain(batch: EncodedMessages) -> list[frozenset[tuple[Any, ...]]]:
    """The attributes of rows, without those whose text is there twice."""
    return [*map(frozenset, decoded(batch))]


@given(rows)
def test_values_come_back(messages: Sequence[Mapping[str, Any]]) -> None:
    batch = encode_messages(NAMES, messages)
    found = attribute_columns(batch, NAMES, ["a", "b", "c", "x"])
    for name in "abc":
        wanted = [Message(message).get(name) for message in messages]
        assert shown(found[name].values) == shown(wanted)
    assert found["x"].values == [None] * len(messages)


@given(rows, columns, columns)
def test_columns_are_attributes(
    messages: Sequence[Mapping[str, Any]], first: list[Any], second: list[Any]
) -> None:
    count = len(messages)
    added = {"=d": first[:count], "=e": second[:count]}
    batch = with_columns(
        encode_messages(NAMES, messages),
        [(NAMES[name], column_of(column)) for name, column in added.items()],
    )
    wider = [
        {**message, "=d": first[row], "=e": second[row]} for row, message in enumerate(messages)
    ]
    oracle = encode_messages(NAMES, map(Message, wider))
    assert plain(batch) == plain(oracle)
    assert shape(batch) == shape(oracle)


def test_what_is_computed_goes_back() -> None:
    messages: list[dict[str, Any]] = [
        {"a": "Ann"},
        {},
        {"a": "BOB", "b": 2},
        {"a": "ann", "b": 2.5},
        {"a": 5},
    ]
    batch = encode_messages(NAMES, messages)
    found = attribute_columns(batch, NAMES, ["a", "b"])
    lower = compute(Call("lower", (AttributeOf("a"),)), found, 5)
    more = compute(Call("add", (AttributeOf("b"), Constant(Exact.of_text("0.5")))), found, 5)
    wider = with_columns(batch, [(2, lower), (4, more)])
    back = attribute_columns(wider, NAMES, ["=d", "=e", "a"])
    assert back["=d"].values == ["ann", None, "bob", "ann", None]
    assert back["=e"].values == [None, None, 2.5, 3.0, None]
    assert back["a"].values == found["a"].values


def test_literals_become_values() -> None:
    batch = encode_messages(NAMES, [{}, {}])
    column = column_of([IntLiteral(7), Exact.of_text("0.1")])
    found = attribute_columns(with_columns(batch, [(2, column)]), NAMES, ["=d"])["=d"]
    assert shown(found.values) == ["int 7", "float 0.1"]


def test_constants_are_values_of_all_rows() -> None:
    batch = encode_messages(NAMES, [{"a": 1}, {}])
    column = compute(Constant("x"), {}, 2)
    assert attribute_columns(with_columns(batch, [(2, column)]), NAMES, ["=d"])["=d"].values == [
        "x",
        "x",
    ]


def test_no_rows() -> None:
    batch = encode_messages(NAMES, [])
    found = attribute_columns(batch, NAMES, ["a"])
    column = compute(Call("lower", (AttributeOf("a"),)), found, 0)
    assert len(column) == 0
    assert plain(with_columns(batch, [(2, column)])) == []
