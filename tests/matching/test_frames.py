"""Rows in the frames that people hold them in: one answer, whatever library made them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from palio import ForwardingTable
from palio.errors import InvalidValue

RULES = {"ann": "x > 1", "bob": "name = 'a' OR x IS NULL", "cy": "d = 0.1 AND x > 1"}
MESSAGES: list[dict[str, Any]] = [{"x": 1, "name": "a"}, {"x": 2, "name": "b"}, {"name": "c"}]
EXPECTED = [["bob"], ["ann"], ["bob"]]
TABLE = pa.Table.from_pylist(
    [{"x": 1, "name": "a"}, {"x": 2, "name": "b"}, {"x": None, "name": "c"}]
)


class Capsules:
    """A library that nobody here has heard of."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


class OneBatch:
    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return TABLE.to_batches()[0].__arrow_c_array__(requested_schema)


@pytest.mark.parametrize(
    "rows",
    [
        MESSAGES,
        tuple(MESSAGES),
        TABLE,
        TABLE.to_reader(),
        TABLE.to_pandas(),
        TABLE.to_pandas().set_index("name", drop=False),
        duckdb.sql("SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (NULL, 'c')) AS t(x, name)"),
        Capsules(),
        OneBatch(),
    ],
    ids=["dicts", "tuple", "table", "reader", "pandas", "index", "duckdb", "stream", "array"],
)
def test_one_answer(rows: Any) -> None:
    table = ForwardingTable.compile(RULES)
    assert table.forward_batch(rows).to_pylist() == EXPECTED


def test_a_missing_number_of_pandas_is_null() -> None:
    frame = pd.DataFrame({"x": [1.5, None], "name": [None, "a"]})
    table = ForwardingTable.compile({"ann": "x IS NULL", "bob": "name IS NULL"})
    assert table.forward_batch(frame).to_pylist() == [["bob"], ["ann"]]


def test_lists_of_messages_have_all_options() -> None:
    table = ForwardingTable.compile(RULES)
    exact = [{"x": 2, "d": Decimal("0.1")}]
    assert table.forward_batch(exact).to_pylist() == [["ann", "cy"]]
    assert table.forward_batch(MESSAGES, among=["ann"]).to_pylist() == [[], ["ann"], []]
    assert table.forward_batch(MESSAGES, ids=True).to_pylist() == [[1], [0], [1]]
    assert table.forward_batch([]).to_pylist() == []
    assert table.forward_batch([], among=["ann"]).to_pylist() == []
    failing = ForwardingTable.compile({"ann": "1 / x > 0"})
    with pytest.raises(InvalidValue, match="division by zero"):
        failing.forward_batch([{"x": 0}], strict=True)


@pytest.mark.parametrize("rows", [5, "text", b"text", {"x": 1}, None, [5]])
def test_what_is_no_frame(rows: Any) -> None:
    with pytest.raises(InvalidValue):
        ForwardingTable.compile(RULES).forward_batch(rows)


def test_a_frame_without_the_column() -> None:
    with pytest.raises(InvalidValue, match="no column 'm'; there are x, name"):
        ForwardingTable.compile(RULES).forward_batch(TABLE.to_pandas(), json="m")
