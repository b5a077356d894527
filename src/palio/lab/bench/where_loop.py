"""What one does on Spark without an index: a boolean column for each rule."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812

import palio.spark
from palio.lab.bench.harness import seconds


def spark_loop(rules: list[str], rows: pa.Table, repeats: int) -> float:
    """The median seconds for all rows and rules, the columns compiled before, on one core."""
    spark = palio.spark.session("local[1]", "palio-bench-where")
    try:
        with tempfile.TemporaryDirectory(prefix="palio-bench-") as folder:
            pq.write_table(rows, Path(folder) / "rows.parquet")
            frame = spark.read.parquet(folder)
            matched = [F.when(F.expr(rule), F.lit(i)) for i, rule in enumerate(rules)]
            lists = frame.select(F.array_compact(F.array(*matched)).alias("rules"))

            def once() -> None:
                lists.write.format("noop").mode("overwrite").save()

            once()
            return statistics.median(seconds(once) for _ in range(repeats))
    finally:
        spark.stop()
