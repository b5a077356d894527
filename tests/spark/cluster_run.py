"""A job on a cluster, in a process of its own: `python cluster_run.py MASTER FOLDER NAME`.

It compiles the predicates of FOLDER on the cluster, saves the table, removes the file before any
worker can have read it, and so runs with what was shipped. What it found goes to NAME.json; it
asserts nothing itself.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.spark import encodings

import palio.spark
from palio.spark.tables import located, opened

SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.python.daemon.module": "palio.spark.daemon",
    "spark.sql.shuffle.partitions": "4",
}
PARTS = 8


def main(master: str, folder: Path, name: str) -> None:
    spark = palio.spark.session(master, **({} if master.startswith("sc:") else SETTINGS))
    (folder / f"{name}.json").write_text(json.dumps(run(spark, folder, name)))
    spark.stop()


def run(spark: Any, folder: Path, name: str) -> dict[str, Any]:
    predicates: dict[str, str] = json.loads((folder / "predicates.json").read_text())
    rows = spark.createDataFrame(list(predicates.items()), ["interface", "predicate"])
    frame = spark.read.parquet(str(folder / "messages")).repartition(PARTS)
    path = folder / f"{name}.palio"
    table = palio.spark.compile(rows, path=path)
    wide = palio.spark.forward(frame, path, columns=encodings.ENCODINGS["wide"]["columns"])
    texts = palio.spark.forward(frame, path, json="json")
    numbered = frame.select("number", "json")  # a pair is a row with all columns: few of them
    pairs = palio.spark.forward(numbered, path, json="json", output="pairs")
    location = located(spark, path)
    path.unlink()  # the workers have it, or they have nothing

    def where(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import SparkFiles

        list(batches)
        opened(location)
        shipped = str(Path(SparkFiles.get(str(location.artifact))).resolve())
        yield pa.RecordBatch.from_pydict({"folder": [os.getcwd()], "file": [shipped]})

    places = frame.select("number").mapInArrow(where, "folder string, file string").collect()
    return {
        "session": type(spark).__module__,
        "interfaces": table.interfaces,
        "wide": encodings.lists_of(wide.select("number", "interfaces").collect()),
        "json": encodings.lists_of(texts.select("number", "interfaces").collect()),
        "pairs": sorted([r["number"], r["interface"]] for r in pairs.collect()),
        "folders": sorted({row["folder"] for row in places}),
        "files": sorted({row["file"] for row in places}),
        "gone": not path.exists(),
    }


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
