"""A Spark job between two brokers, in a process that may be killed.

`python network_job.py SOURCE SINK FOLDER` copies the messages of one broker to another, a few at a
time, with its checkpoint in FOLDER: see test_source.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import palio.spark

BATCH = 40


def start(spark: Any, source: str, sink: str, folder: Path, **trigger: Any) -> Any:
    """Each message x becomes a message (copy, body), after a shuffle: rows come in any order."""
    flights = (
        spark.readStream.format("palio")
        .schema("x BIGINT, body BINARY")
        .option("url", source)
        .option("predicate", "x >= 0")
        .option("durable", "spark job")
        .option("maxMessages", str(BATCH))
        .load()
    )
    return (
        flights.selectExpr("x AS copy", "body")
        .repartition(2)
        .writeStream.format("palio")
        .option("url", sink)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(**(trigger or {"processingTime": "0 seconds"}))
        .start()
    )


def main(source: str, sink: str, folder: Path) -> None:
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    conf = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": quick}
    spark = palio.spark.session("local[2]", **conf)
    start(spark, source, sink, folder).awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
