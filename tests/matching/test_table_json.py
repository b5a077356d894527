"""`forward_json`: one text is read as a row of `forward_batch(json=...)`, and as a dict is."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio import ForwardingTable, InvalidValue, Message, Predicate
from palio.lab.data import workloads
from tests.matching.encode.json_texts import ODD_TEXTS, PLAIN_TEXTS
from tests.matching.test_engine import MESSAGES, TABLES

ENGINES = ("pivot", "counting", "naive")
WANTED = {"a": "a IS NOT NULL", "b": "b = 'x'", "c": "a.b > 0", "p": "price < 2", "no": "q IS NULL"}


@settings(max_examples=150, deadline=None)
@given(TABLES, st.lists(MESSAGES, max_size=4))
def test_a_text_goes_where_its_message_goes(
    table: list[Predicate], found: list[dict[str, Any]]
) -> None:
    entries = {f"i{n}": p for n, p in enumerate(table)}
    made = [ForwardingTable.compile(entries, engine) for engine in ENGINES]
    made.append(made[0].updated(add={"new": "a IS NULL"}))
    for each in made:
        for message in map(Message, found):
            text = message.to_json()
            expected = each.forward(message)
            assert each.forward_json(text.encode()) == each.forward_json(text) == expected


@pytest.mark.parametrize("engine", ENGINES)
def test_workload(engine: str) -> None:
    load = workloads.sigcomm03(1_500, 30, 100, seed=8)
    table = ForwardingTable.compile(load.constraints, engine)
    for message in workloads.message_dicts(load):
        assert table.forward_json(Message(message).to_json().encode()) == table.forward(message)


def outcome(ask: Any) -> Any:
    """An answer, or an error with what it names."""
    try:
        return ask()
    except InvalidValue as error:
        return error.reason, error.attribute


def test_the_rules_and_errors_are_those_of_a_column() -> None:
    tables = [ForwardingTable.compile(WANTED, engine) for engine in ENGINES]
    updated = tables[0].updated(add={"new": "c = 5"})
    for text in (*PLAIN_TEXTS, *ODD_TEXTS):
        for table in (*tables, updated):
            column = pa.table({"m": pa.array([text.encode("utf-8", "surrogatepass")])})
            single = outcome(lambda: table.forward_json(text))  # noqa: B023
            rows = outcome(lambda: table.forward_batch(column, json="m").to_pylist()[0])  # noqa: B023
            assert single == rows, text


@pytest.mark.parametrize("engine", ENGINES)
def test_errors_name_the_attribute_and_no_row(engine: str) -> None:
    table = ForwardingTable.compile(WANTED, engine)
    with pytest.raises(InvalidValue, match="attribute 'price'") as caught:
        table.forward_json(b'{"price": 18446744073709551616}')
    assert caught.value.row is None
    for text in (b"", b"5", b"[]", b'{"a": 1', b'{"a": "\xff"}'):
        with pytest.raises(InvalidValue) as caught:
            table.forward_json(text)
        assert caught.value.row is None
    with pytest.raises(InvalidValue, match="bytes or text, not dict; `forward` takes a mapping"):
        table.forward_json({"a": 1})  # type: ignore[arg-type]


def test_any_buffer_is_read_where_it_lies() -> None:
    table = ForwardingTable.compile(WANTED)
    text = b'{"b": "x", "price": 1.5}'
    expected = ["b", "p", "no"]
    assert table.forward_json(bytearray(text)) == expected
    assert table.forward_json(memoryview(b"..." + text)[3:]) == expected
