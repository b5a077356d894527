"""A table ten times as large as what a worker may have: made and used, in a process of its own.

`python limited_run.py FOLDER` writes what it found to FOLDER/answers.json.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import palio
import palio.spark

FILTERS = 40_000
TEXT = 10_000  # characters of an operand: few filters make a large table
SHARDS = 100
ALLOWED = 36 << 20


def main(folder: Path) -> None:
    os.environ["PALIO_TEST_ALLOWED"] = str(ALLOWED)
    spark = palio.spark.session(
        "local[2]",
        **{
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.driver.memory": "2g",
            "spark.python.daemon.module": "tests.spark.limited_daemon",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "100",
            "spark.sql.shuffle.partitions": "4",
        },
    )
    operand = f"concat(id, repeat('-', {TEXT}))"
    rows = spark.range(FILTERS, numPartitions=4).selectExpr(
        "concat('i', id) AS interface",
        "0 AS filter",
        "'x' AS name",
        "'=' AS op",
        "'string' AS type",
        f"{operand} AS value",
    )
    made = palio.spark.partition(rows, folder / "parts", shards=SHARDS)
    messages = spark.range(0, FILTERS, 100).selectExpr("id", f"{operand} AS x")
    routed = palio.spark.forward(messages, made, columns=["x"]).select("id", "interfaces")
    answers = {str(row["id"]): row["interfaces"] for row in routed.collect()}
    found = {
        "allowed_bytes": ALLOWED,
        "table_bytes": sum(path.stat().st_size for path in made.files),
        "shard_bytes_max": max(path.stat().st_size for path in made.files),
        "answers": answers,
        "expected": {str(n): [f"i{n}"] for n in range(0, FILTERS, 100)},
        "broadcast": broadcast(spark, folder),
    }
    (folder / "answers.json").write_text(json.dumps(found))
    spark.stop()


def broadcast(spark: object, folder: Path) -> str:
    """What a worker says to a table of more bytes than it may have."""
    texts = {f"i{n}": f"x = '{n}{'-' * 100_000}'" for n in range(ALLOWED // 100_000 + 1)}
    palio.ForwardingTable.compile(texts).save(folder / "whole.palio")
    frame = spark.range(2).selectExpr("'0' AS x")  # type: ignore[attr-defined]
    try:
        palio.spark.forward(frame, folder / "whole.palio", strategy="broadcast").collect()
    except Exception as error:
        return str(error)
    return "a worker had it all"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
