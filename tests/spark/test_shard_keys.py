"""Shards without Spark: a message finds in the shards it visits what it finds in the whole table."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.differential.generate import draw_predicates, draw_rows
from tests.seeds import seeds

import palio
import palio.spark
from palio.errors import InvalidFile
from palio.lab.data.workloads.paper_2003 import sigcomm03
from palio.lab.data.workloads.workload import json_messages
from palio.spark.partitioned import matched, scattered
from palio.spark.partitioned_table import PartitionedTable, TableParts
from palio.spark.shard_keys import Directory
from palio.spark.tables import file_location

AT = datetime(2013, 1, 31, 10, tzinfo=UTC)


def parts_of(table: PartitionedTable) -> TableParts:
    rest, directory = (table.path / name for name in ("rest.palio", "directory.npy"))
    files = tuple(file_location(path) for path in table.files)
    return TableParts(file_location(rest), file_location(directory), files)


def answers(
    table: PartitionedTable, columns: list[pa.Array], names: Any, output: str = "array"
) -> list[Any]:
    """What Spark would bring together: scatter, match the copies by shard, unite."""
    parts = parts_of(table)
    to = scattered(parts, columns, names, output, "error")
    found = [set(x) for x in to.field(1).to_pylist()]
    visits = [
        (shard, row) for row, own in enumerate(to.field(0).to_pylist()) for shard in own or []
    ]
    visits.sort()
    if visits:
        shard, row = (pa.array(x) for x in zip(*visits, strict=True))
        copies = [column.take(row) for column in columns]
        got = matched(parts, shard.cast(pa.int32()), copies, names, output)
        for r, names_found in zip(row.to_pylist(), got.to_pylist(), strict=True):
            found[r] |= set(names_found)
    return [[x[10:] if output == "array" else x for x in sorted(own)] for own in found]


@seeds(6, 100)
def test_shards_say_what_the_table_says(tmp_path: Path, seed: int) -> None:
    """All operators and types; interfaces come back, so they lie in several shards."""
    rng = random.Random(seed)
    shards, count = rng.randint(1, 12), rng.choice([0, 1, 20, 40, 60])
    drawn = [(f"i{n % 40}", t.spark) for n, t in enumerate(draw_predicates(rng, count))]
    table = palio.ForwardingTable.compile(drawn)
    rows = draw_rows(rng, 60)
    made = palio.spark.partition(table, tmp_path / "t", shards=shards)
    columns = [column.combine_chunks() for column in rows.columns]
    names = tuple(rows.column_names)
    assert answers(made, columns, names) == table.forward_batch(rows).to_pylist()
    ids = table.forward_batch(rows, ids=True).to_pylist()
    assert answers(made, columns, names, "ids") == ids


def test_equal_values_have_equal_keys(tmp_path: Path) -> None:
    """Whatever the types of filter and message: numbers are equal by value, other types never."""
    texts = [
        *("x = 1", "x = 1.0", "x = '1'", "x", "x = -0.0", "x = 0", "x = 2.5", "x IN (1, 2.5)"),
        *("x = 9007199254740993", "x = 9223372036854775807", "x = 1e300", "x = 9.3e18"),
        *("x IN ('1', 'é')", "x = 'é'", "x = ''", f"x = TIMESTAMP '{AT:%Y-%m-%d %H:%M:%S}'"),
    ]
    table = palio.ForwardingTable.compile({text: text for text in texts})
    made = palio.spark.partition(table, tmp_path / "t", shards=9)
    values: list[Any] = [
        *(1, 1.0, "1", True, 0, -0.0, 2.5, 2**53 + 1, float(2**53), 2**63 - 1, 2.0**63, 1e300),
        *(9.3e18, "é", "", AT, float("nan"), float("inf"), False),
    ]
    for value in values:
        row = pa.array([value], pa.timestamp("us", tz="UTC") if value is AT else None)
        assert answers(made, [row], ("x",)) == [table.forward({"x": value})], value


@pytest.mark.parametrize("interfaces", [20, None])
def test_the_workload_of_2003(tmp_path: Path, interfaces: int | None) -> None:
    work = sigcomm03(20_000, interfaces, messages=300)
    table = palio.ForwardingTable.compile(work.constraints)
    made = palio.spark.partition(table, tmp_path / "t", shards=8)
    messages = json_messages(work)
    column = messages.column(0).combine_chunks()
    expected = table.forward_batch(messages, json=messages.column_names[0]).to_pylist()
    assert answers(made, [column], None) == expected
    sizes = [path.stat().st_size for path in made.files]
    table.save(tmp_path / "whole")
    assert max(sizes) < (tmp_path / "whole").stat().st_size / 4


def test_a_hot_key_is_spread(tmp_path: Path) -> None:
    """Nine of ten filters under one key: no shard is much larger than the others."""
    entries = [
        (f"i{n}", f"x = {1 if n % 10 else n} AND y > {n % 97}" if n % 3 else f"x = {n}")
        for n in range(1000)
    ]
    hot = [(f"h{n}", f"x = 1 AND y > {n}") for n in range(9_000)]
    table = palio.ForwardingTable.compile([*entries, *hot])
    made = palio.spark.partition(table, tmp_path / "t", shards=10)
    sizes = np.array([path.stat().st_size for path in made.files])
    assert sizes.max() < 1.5 * sizes.mean()
    rows = pa.table({"x": [1, 1, 10, 11, None], "y": [40, 0, 3, None, 1]})
    columns = [column.combine_chunks() for column in rows.columns]
    assert answers(made, columns, ("x", "y")) == table.forward_batch(rows).to_pylist()


def test_messages_go_only_where_a_key_is(tmp_path: Path) -> None:
    table = palio.ForwardingTable.compile({f"i{n}": f"x = {n} AND y = 1" for n in range(1000)})
    made = palio.spark.partition(table, tmp_path / "t", shards=40)
    unknown = pa.array(range(10_000, 20_000))
    ones = pa.array([1] * len(unknown))
    to = scattered(parts_of(made), [unknown, ones], ("x", "y"), "array", "error")
    assert len(to.field(0).flatten()) < 0.03 * len(unknown)
    to = scattered(parts_of(made), [pa.array(range(1000))], ("x",), "array", "error")
    assert len(to.field(0).flatten()) < 1.02 * 1000


def test_a_large_rest_is_dealt_to_shards_of_its_own(tmp_path: Path) -> None:
    entries = {f"i{n}": f"x > {n}" if n % 2 else f"x = {n}" for n in range(4000)}
    table = palio.ForwardingTable.compile(entries)
    made = palio.spark.partition(table, tmp_path / "t", shards=10)
    assert made.shards == 15
    sizes = [path.stat().st_size for path in (*made.files, made.path / "rest.palio")]
    table.save(tmp_path / "whole")
    assert max(sizes) < (tmp_path / "whole").stat().st_size / 5
    rows = pa.table({"x": [7, 2000, None, -1]})
    assert answers(made, [rows["x"].combine_chunks()], ("x",)) == (
        table.forward_batch(rows).to_pylist()
    )


def test_more_shards_than_a_spread_can_say(tmp_path: Path) -> None:
    """A key may be spread over all of 300 shards, which is more than fits a byte."""
    table = palio.ForwardingTable.compile({f"i{n}": f"x = 1 AND y > {n}" for n in range(3000)})
    made = palio.spark.partition(table, tmp_path / "t", shards=300)
    rows = pa.table({"x": [1, 2], "y": [1500, 1]})
    columns = [column.combine_chunks() for column in rows.columns]
    assert answers(made, columns, ("x", "y")) == table.forward_batch(rows).to_pylist()
    directory = Directory.load(made.path / "directory.npy")
    assert directory.shards == 300


def test_directories_that_are_refused(tmp_path: Path) -> None:
    table = palio.ForwardingTable.compile({"a": "x = 1"})
    made = palio.spark.partition(table, tmp_path / "t", shards=2)
    with pytest.raises(InvalidFile, match="there is a partitioned table already"):
        palio.spark.partition(table, tmp_path / "t")
    with pytest.raises(palio.InvalidValue, match="1 to 10,000 shards, not 0"):
        palio.spark.partition(table, tmp_path / "u", shards=0)
    with pytest.raises(InvalidFile, match="there is no partitioned table here"):
        PartitionedTable(tmp_path / "nothing")
    manifest = made.path / "partitioned.json"
    whole = manifest.read_text()
    manifest.write_text(whole.replace('"format": 1', '"format": 9'))
    with pytest.raises(InvalidFile, match="has format 9"):
        PartitionedTable(made.path)
    manifest.write_text(whole[:20])
    with pytest.raises(InvalidFile, match=r"partitioned\.json is damaged"):
        PartitionedTable(made.path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidFile, match="cannot be written here"):
        palio.spark.partition(table, tmp_path / "file" / "t")
