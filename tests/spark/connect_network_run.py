"""format("palio") on Spark Connect, in a process of its own.

`python connect_network_run.py SOURCE SINK FOLDER` copies what waits at one broker to another as a
stream, replays the copies as a batch, and writes what it read to FOLDER/copies.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.spark.connect_run import connected
from tests.spark_network import network_job


def main(source: str, sink: str, folder: Path) -> None:
    spark = connected()
    query = network_job.start(spark, source, sink, folder, availableNow=True)
    query.awaitTermination(180)
    log = (
        spark.read.format("palio")
        .option("url", sink)
        .option("startingTime", "2020-01-01T00:00:00Z")
    )
    rows = log.schema("copy BIGINT").load().where("copy < 300").orderBy("copy").collect()
    found = {"session": type(spark).__module__, "copies": [row["copy"] for row in rows]}
    (folder / "copies.json").write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
