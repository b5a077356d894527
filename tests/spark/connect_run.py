"""Everything on Spark Connect, in a process of its own: one process cannot mix it with the classic.

`python connect_run.py FOLDER` starts a local Connect server, reads the messages of FOLDER (and what
is expected of them), and writes what it found to answers.json, and the answers in every encoding to
Parquet. It asserts nothing itself.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tests.spark import encodings

import palio
import palio.spark
from palio.spark.tasks import watched


def main(folder: Path) -> None:
    spark = connected()
    answers = run(spark, folder)
    (folder / "answers.json").write_text(json.dumps(answers))
    spark.stop()


def connected() -> Any:
    """A session of a Connect server that is started for it."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote("local[2]")
    for key, value in {
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.log.level": "OFF",
        "spark.python.daemon.module": "palio.spark.daemon",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def run(spark: Any, folder: Path) -> dict[str, Any]:
    texts: dict[str, dict[str, str]] = json.loads((folder / "predicates.json").read_text())
    case = encodings.Case(None, **texts)
    messages = str(folder / "messages")
    frame = encodings.with_variant(spark.read.parquet(messages))
    found: dict[str, Any] = {"session": type(spark).__module__}
    tasks: list[tuple[int, int]] = []
    with watched(spark, lambda *counts: tasks.append(counts)):
        pq.write_table(encodings.routed(frame, case).toArrow(), folder / "batch.parquet")
    found["tasks"] = tasks
    streamed(spark, case, messages, folder)
    rows = spark.createDataFrame(list(case.predicates.items()), ["interface", "predicate"])
    table = palio.spark.compile(rows)
    found["interfaces"] = table.interfaces
    shipped = folder / "shipped.palio"
    table.save(shipped)
    few = frame.select("number", "json").where(f"number < {encodings.FEW}")
    routed = palio.spark.forward(few, shipped, json="json")
    pairs = palio.spark.forward(few, table, json="json", output="pairs")
    shipped.unlink()  # the server has it
    found["shipped"] = encodings.lists_of(routed.collect())
    found["pairs"] = sorted([row["number"], row["interface"]] for row in pairs.collect())
    parts = palio.spark.partition(rows, folder / "parts", shards=2)
    routed = palio.spark.forward(few, parts, json="json")
    found["partitioned"] = encodings.lists_of(routed.collect())
    palio.spark.register(spark, "palio_match", table)
    few.createOrReplaceTempView("messages")
    query = "SELECT number, palio_match(json) AS interfaces FROM messages"
    found["sql"] = encodings.lists_of(spark.sql(query).collect())
    found["routed"], found["progress"] = routed_stream(spark, messages, table, folder)
    return found


def routed_stream(spark: Any, messages: str, table: Any, folder: Path) -> Any:
    """foreachBatch runs in a process of the server."""
    tables = palio.spark.TableDirectory(folder / "tables")
    tables.publish(table)
    told: list[Any] = []
    source = spark.readStream.schema(spark.read.parquet(messages).schema).parquet(messages)
    query = palio.spark.route_stream(
        source.select("number", "json").where(f"number < {encodings.FEW}"),
        tables,
        folder / "routed",
        output="array",
        json="json",
        trigger={"availableNow": True},
        progress=told.append,
    )
    query.awaitTermination(120)
    rows = spark.read.parquet(str(folder / "routed")).where("table_version = 1").collect()
    return encodings.lists_of(rows), [[p.version, p.matches] for p in told]


def streamed(spark: Any, case: encodings.Case, messages: str, folder: Path) -> None:
    schema = spark.read.parquet(messages).schema
    source = spark.readStream.schema(schema).parquet(messages)
    query = (
        encodings.routed(encodings.with_variant(source), case)
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(folder / "stream"))
    )
    query.awaitTermination(120)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
