"""Folders of messages for streams, and what comes out of them.

`python streams.py FOLDER` routes the stream of FOLDER into files, slowly, in a process that may be
killed: see test_streaming.py.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import palio
import palio.spark
from palio.lab import flights

ROWS = 120
PREDICATES = {
    "late": "dep_delay > 15",
    "ua": "carrier = 'UA'",
    "jfk": "origin = 'JFK' AND distance > 500",
    "none": "flight < 0",
}
AVAILABLE: dict[str, Any] = {"trigger": {"availableNow": True}}


def numbered() -> pa.Table:
    rows = flights.generate(ROWS, 11)
    return rows.append_column("number", pa.array(range(ROWS), pa.int64()))


def write(folder: Path, files: int, first: int = 0, rows: pa.Table | None = None) -> None:
    """The messages in so many files; one that is there is whole."""
    rows = numbered() if rows is None else rows
    folder.mkdir(parents=True, exist_ok=True)
    size = len(rows) // files
    for i in range(files):
        beside = folder.parent / f"{folder.name}-{first + i}.new"
        pq.write_table(rows.slice(i * size, size), beside)
        beside.rename(folder / f"{first + i:03d}.parquet")


def source(spark: Any, folder: Path) -> Any:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def expected(predicates: dict[str, str] | None = None) -> list[tuple[int, str]]:
    """The pairs that the naive engine finds."""
    table = palio.ForwardingTable.compile(predicates or PREDICATES, "naive")
    rows = numbered()
    lists = table.forward_batch(rows).to_pylist()
    numbers = rows["number"].to_pylist()
    return sorted((n, name) for n, names in zip(numbers, lists, strict=True) for name in names)


def pairs(spark: Any, out: Path, **only: Any) -> list[tuple[int, str]]:
    rows = spark.read.parquet(str(out))
    for name, value in only.items():
        rows = rows.where(rows[name] == value)
    return sorted(
        (r["number"], r["interface"]) for r in rows.select("number", "interface").collect()
    )


def main(folder: Path) -> None:
    spark = palio.spark.session("local[2]", **{"spark.sql.shuffle.partitions": "2"})
    query = palio.spark.route_stream(
        source(spark, folder / "in"),
        folder / "tables",
        folder / "out",
        columns=flights.SCHEMA.names,
    )
    while True:
        time.sleep(1)
        if query.exception():
            raise SystemExit(str(query.exception()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
