"""A table ten times as large as what a worker may have, in a process of its own: workers build it,
from texts and from constraints, and forward through it.

`python limited_run.py FOLDER` writes what it found to FOLDER/answers.json.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa

import palio
import palio.spark

FILTERS = 20_000
TEXT = 17_000  # characters of an operand: few filters make a large table
SHARDS = 100
SHARDS_BUILT = 300  # compiling a shard takes about a dozen times its file, forwarding three or four
ALLOWED = 32 << 20
OPERAND = f"concat(id, repeat('-', {TEXT}))"


def main(folder: Path) -> None:
    os.environ["PALIO_TEST_ALLOWED"] = str(ALLOWED)
    spark = palio.spark.session(
        "local[2]",
        **{
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.driver.memory": "2g",
            "spark.python.daemon.module": "tests.spark.limited_daemon",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "20",
            "spark.sql.shuffle.partitions": "4",
        },
    )
    table = palio.ForwardingTable.compile(constraints())
    table.save(folder / "whole.palio")
    made = palio.spark.partition(table, folder / "parts", shards=SHARDS)
    answers = {"split": asked(spark, made)}
    for kind, rows in predicates(spark).items():
        built = palio.spark.partition(rows, folder / kind, shards=SHARDS_BUILT)
        answers[kind] = asked(spark, built)
    found = {
        "allowed_bytes": ALLOWED,
        "table_bytes": (folder / "whole.palio").stat().st_size,
        "shard_bytes_max": max(path.stat().st_size for path in made.files),
        "answers": answers,
        "expected": {str(n): [f"i{n}"] for n in range(0, FILTERS, 100)},
        "broadcast": broadcast(spark, folder),
    }
    (folder / "answers.json").write_text(json.dumps(found))
    spark.stop()


def asked(spark: Any, table: palio.spark.PartitionedTable) -> dict[str, list[str]]:
    """What some messages match."""
    messages = spark.range(0, FILTERS, 100).selectExpr("id", f"{OPERAND} AS x")
    routed = palio.spark.forward(messages, table, columns=["x"]).select("id", "interfaces")
    return {str(row["id"]): row["interfaces"] for row in routed.collect()}


def predicates(spark: Any) -> dict[str, Any]:
    """The filters of `constraints` as DataFrames; no process holds them all."""
    numbers = spark.range(0, FILTERS, numPartitions=4)
    texts = numbers.selectExpr(
        "concat('i', id) AS interface", f"concat('x = \\'', {OPERAND}, '\\'') AS predicate"
    )
    rows = numbers.selectExpr(
        "concat('i', id) AS interface", "id AS filter", "'x' AS name", "'=' AS op",
        "'string' AS type", f"{OPERAND} AS value",
    )  # fmt: skip
    return {"texts": texts, "constraints": rows}


def constraints() -> pa.Table:
    """`x = '17---...'` for the interface i17, and so on."""
    rows = {
        "interface": [f"i{n}" for n in range(FILTERS)],
        "filter": range(FILTERS),
        "name": ["x"] * FILTERS,
        "op": ["="] * FILTERS,
        "type": ["string"] * FILTERS,
        "value": [f"{n}{'-' * TEXT}" for n in range(FILTERS)],
    }
    return pa.table({name: pa.array(values) for name, values in rows.items()})


def broadcast(spark: Any, folder: Path) -> str:
    """What a worker says to all of the table."""
    frame = spark.range(2).selectExpr("'0' AS x")
    try:
        palio.spark.forward(frame, folder / "whole.palio", strategy="broadcast").collect()
    except Exception as error:
        return str(error)
    return "a worker had it all"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
