"""Folders of messages for streams, and what comes out of them.

`python streams.py FOLDER` routes the stream of FOLDER into files, slowly, in a process that may be
killed: see `killed` in conftest.py.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import palio
import palio.spark
from palio.lab.data import flights

ROWS = 120
FIRST_WRITTEN = 1_750_000_000
KILLED_FILES = 6
"""Batches of the stream that is killed after two of them."""
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
    """The messages in so many files; one that is there is whole.

    Spark reads files by their times of modification, to the millisecond: each file is a second
    younger than the one before it, however quickly they are written.
    """
    rows = numbered() if rows is None else rows
    folder.mkdir(parents=True, exist_ok=True)
    size = len(rows) // files
    for i in range(files):
        beside = folder.parent / f"{folder.name}-{first + i}.new"
        pq.write_table(rows.slice(i * size, size), beside)
        os.utime(beside, (FIRST_WRITTEN + first + i,) * 2)
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


SETTINGS = [
    "spark.master",
    "spark.sql.shuffle.partitions",
    "spark.sql.session.timeZone",
    "spark.sql.execution.pyspark.udf.idleTimeoutSeconds",
    "spark.sql.execution.pyspark.udf.killOnIdleTimeout",
    "spark.python.daemon.module",
]


def main(folder: Path) -> None:
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    conf = {"spark.sql.shuffle.partitions": "3", "spark.driver.extraJavaOptions": quick}
    spark = palio.spark.session("local[2]", **conf)
    rows = spark.range(1, numPartitions=1).mapInArrow(who, "who string").collect()
    found = {**{name: spark.conf.get(name) for name in SETTINGS}, "worker": rows[0]["who"]}
    (folder / "session.json").write_text(json.dumps(found))
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


def who(batches: Any) -> Any:
    """The interpreter of a worker, and whether kernels are loaded before anything was matched."""
    for _ in batches:
        loaded = "palio.matching.pivot.forward_kernels" in sys.modules
        yield pa.RecordBatch.from_pydict({"who": [f"{sys.executable} {loaded}"]})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
