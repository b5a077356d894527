"""Pairs are the lists laid flat, and the large types take over at their limit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from palio import ForwardingTable
from palio.matching import answers

ENTRIES = {"ann": "x > 1", "böb": "x > 2", "cy": "x > 3", "none": "y = 0"}
ROWS = pa.table({"x": pa.array([3, None, 0, 9], pa.int64())})


def flat(lists: pa.ListArray) -> list[tuple[int, object]]:
    return [(row, v) for row, values in enumerate(lists.to_pylist()) for v in values]


def as_tuples(table: pa.Table) -> list[tuple[int, object]]:
    return list(zip(table["row"].to_pylist(), table["interface"].to_pylist(), strict=True))


@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("version", ["compiled", "updated", "loaded", "naive"])
def test_pairs_are_the_lists_laid_flat(ids: bool, version: str, tmp_path: Path) -> None:
    table = ForwardingTable.compile(ENTRIES, "naive" if version == "naive" else "pivot")
    if version == "updated":
        table = table.updated(add={"dee": "x IS NULL", "böb": "x = 0"}, remove=["ann"])
    if version == "loaded":
        table.save(tmp_path / "t")
        table = ForwardingTable.load(tmp_path / "t")
    lists = table.forward_batch(ROWS, ids=ids)
    pairs = table.forward_batch(ROWS, ids=ids, pairs=True)
    assert as_tuples(pairs) == flat(lists) != []
    assert pairs.column_names == ["row", "interface"]
    assert pairs.schema.field("row").type == pa.int32()
    if ids:
        assert pairs.schema.field("interface").type == pa.int32()
    else:
        assert pa.types.is_dictionary(pairs.schema.field("interface").type)


def test_pairs_of_nothing() -> None:
    table = ForwardingTable.compile(ENTRIES)
    assert table.forward_batch(ROWS.slice(0, 0), pairs=True).num_rows == 0
    assert ForwardingTable.compile({}).forward_batch(ROWS, pairs=True).num_rows == 0


def test_json_rows_in_pairs() -> None:
    table = ForwardingTable.compile(ENTRIES)
    rows = pa.table({"m": ['{"x": 3}', None, '{"y": 0}']})
    expected = [(0, "ann"), (0, "böb"), (2, "none")]
    assert as_tuples(table.forward_batch(rows, json="m", pairs=True)) == expected


def test_large_types_where_the_small_ones_end(monkeypatch: pytest.MonkeyPatch) -> None:
    table = ForwardingTable.compile(ENTRIES)
    small = table.forward_batch(ROWS)
    assert small.type == pa.list_(pa.string())
    monkeypatch.setattr(answers, "SMALL_MAX", 6)  # 5 pairs, of names of more bytes
    assert table.forward_batch(ROWS).type == pa.list_(pa.large_string())
    monkeypatch.setattr(answers, "SMALL_MAX", 3)
    large = table.forward_batch(ROWS)
    assert large.type == pa.large_list(pa.large_string())
    assert large.to_pylist() == small.to_pylist()
    assert table.forward_batch(ROWS, ids=True).type == pa.large_list(pa.int32())
    pairs = table.forward_batch(ROWS, pairs=True)
    assert pairs.schema.field("row").type == pa.int64()
    assert as_tuples(pairs) == flat(small)
