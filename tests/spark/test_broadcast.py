"""What the function does in a worker with rows that are no messages, in every layout."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import palio
from palio.spark.broadcast import matches

ATTRIBUTES = pa.list_(pa.struct([(n, pa.string()) for n in ("name", "type", "value")]))
LATE = 10**18  # microseconds: long after the year 9999


def attribute(value: str) -> list[dict[str, str]]:
    return [{"name": "x", "type": "int", "value": value}]


LAYOUTS: dict[str, tuple[Any, str]] = {
    "json": (pa.array(['{"x": 1}', "{", None, '{"x": 7}', "[]"]), "not JSON: .*, in { "),
    "attributes": (
        pa.array([attribute("1"), attribute("?"), None, attribute("7"), attribute("")], ATTRIBUTES),
        "attribute 'x': ",
    ),
    "map": (
        pa.array(
            [[("x", 1)], [("x", 2), ("x", 3)], None, [("x", 7)], [("", 1)]],
            pa.map_(pa.string(), pa.int64()),
        ),
        "'x' is there twice ",
    ),
    "wide": (
        pa.StructArray.from_arrays(
            [
                pa.array([1, 2, None, 7, 3]),
                pa.array([0, LATE, None, 0, LATE], pa.timestamp("us", tz="UTC")),
            ],
            ["x", "t"],
        ),
        "attribute 't': the instant lies outside",
    ),
}


@pytest.fixture(scope="module")
def table() -> palio.ForwardingTable:
    return palio.ForwardingTable.compile(
        {"a": "x > 0", "b": "x = 7", "t": "t > TIMESTAMP '2013-01-01 00:00:00'"}
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bad_rows(table: palio.ForwardingTable, layout: str) -> None:
    column, message = LAYOUTS[layout]
    found = matches(table, [column], None, "array", "null")
    assert found.to_pylist() == [["a"], None, [], ["a", "b"], None]
    assert matches(table, [column], None, "ids", "null").to_pylist()[3] == [0, 1]
    flags = matches(table, [column], None, "flag", "null")
    assert flags.to_pylist() == [True, None, False, True, None]
    with pytest.raises(palio.InvalidValue, match=f"a row is no message: .*{message}"):
        matches(table, [column], None, "array", "error")


def test_a_wrong_type_is_an_error_even_where_bad_rows_are_null(
    table: palio.ForwardingTable,
) -> None:
    with pytest.raises(palio.InvalidValue, match="JSON messages holds strings"):
        matches(table, [pa.array([1, 2])], None, "array", "null")
    lists = pa.StructArray.from_arrays([pa.array([1], pa.time64("us"))], ["x"])
    with pytest.raises(palio.InvalidValue, match="column 'x'"):
        matches(table, [lists], None, "array", "null")
    with pytest.raises(palio.InvalidValue, match=r"struct\(\*\) makes one"):
        matches(table, [pa.array(["{}"])] * 2, None, "array", "error")
