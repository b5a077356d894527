"""Wide rows that lack columns that predicates ask for are said once."""

from __future__ import annotations

import warnings
from pathlib import Path

import pyarrow as pa
import pytest

from palio.matching.table import ForwardingTable

_ROWS = pa.Table.from_pylist([{"price": 3, "flight": {"dest": "MXP"}, "tags": ["a"]}])


def _warnings(table: ForwardingTable, rows: pa.Table | pa.RecordBatch = _ROWS) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table.forward_batch(rows)
    assert all(one.filename == __file__ for one in caught)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize(
    "rule",
    [
        "prise = 5",
        "lower(prise) = 'a'",
        "array_contains(prise, 'a')",
        "NOT (prise LIKE 'a_%b')",
        "price = 5 AND prise IS NULL",
    ],
)
def test_a_column_that_is_not_there_is_said_once_with_a_near_name(
    rule: str, tmp_path: Path
) -> None:
    table = ForwardingTable.compile({"ann": rule, "bob": "price > 2"})
    (said,) = _warnings(table)
    assert said == (
        "predicates ask about 'prise' (near it: 'price'), and the rows have no such column: "
        "for every row it is NULL"
    )
    assert _warnings(table) == []
    table.save(tmp_path / "table")
    assert _warnings(ForwardingTable.load(tmp_path / "table"), _ROWS.to_batches()[0]) == [said]


def test_fields_of_structs_and_keys_of_maps_are_attributes() -> None:
    kind = pa.map_(pa.string(), pa.int64())
    rows = _ROWS.append_column("m", pa.array([[("k", 1)]], kind))
    rule = "flight.dest = 'MXP' AND flight IS NOT NULL AND m['q'] = 1 AND tags IS NOT NULL"
    assert _warnings(ForwardingTable.compile({"ann": rule}), rows) == []
    table = ForwardingTable.compile({"ann": "flight.desk = 'MXP' AND n['q'] = 1"})
    (said,) = _warnings(table, rows)
    assert "'flight.desk' (near it: 'flight.dest', 'flight'), 'n.q'" in said


def test_other_layouts_say_nothing() -> None:
    table = ForwardingTable.compile({"ann": "prise = 5"})
    texts = pa.table({"message": ['{"price": 3}']})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.forward_batch(texts, json="message")
        table.forward_batch(_ROWS, computed=True)
        table.updated(add={"bob": "price > 2"}).forward_batch(_ROWS)
