"""Workloads, oracle runs and statistics as Spark jobs.

    messages, constraints    spark.range(parts) ──each part drawn by its own seed──▶ rows
    oracle                   messages ──brute force on executors──▶ (id, interfaces)
    matches_per_message      routed rows ──▶ how many messages have how many matches

The rows depend on the workload, the sizes and the seed, and on nothing else: not on how many cores
draw them, nor on the order in which they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from palio.errors import InvalidValue
from palio.lab.data import workloads
from palio.lab.data.oracle import Oracle
from palio.lab.data.workloads.recipe import interface_count, interface_names
from palio.model.message import Message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Batches = Iterable[pa.RecordBatch]
    Job = Callable[[Batches], Iterator[pa.RecordBatch]]

PART_ROWS = 50_000  # of messages or filters that one draw makes
_CONSTRAINTS_SQL = (
    "interface string, filter bigint, name string, op string, type string, value string"
)


def messages(spark: SparkSession, workload: str, rows: int, *, seed: int = 1) -> DataFrame:
    """Messages as JSON: `id` from 0 and `message`."""
    draw = workloads.part_generator(workload)

    def drawn(batches: Batches) -> Iterator[pa.RecordBatch]:
        for part in _parts(batches):
            start = part * PART_ROWS
            count = min(PART_ROWS, rows - start)
            made = workloads.json_messages(draw(1, "all", count, seed=seed, part=part))
            ids = pa.array(np.arange(start, start + count))
            texts = made["message"].combine_chunks()
            yield pa.RecordBatch.from_arrays([ids, texts], ["id", "message"])

    return _ranged(spark, rows).mapInArrow(drawn, "id bigint, message string")


def constraints(
    spark: SparkSession,
    workload: str,
    filters: int,
    interfaces: workloads.Interfaces = None,
    *,
    seed: int = 1,
) -> DataFrame:
    """Constraint rows, as `palio.spark.compile` takes them; filter f of F goes to f * I // F."""
    draw = workloads.part_generator(workload)
    count = interface_count(filters, interfaces)

    def drawn(batches: Batches) -> Iterator[pa.RecordBatch]:
        for part in _parts(batches):
            start = part * PART_ROWS
            load = draw(min(PART_ROWS, filters - start), "all", 0, seed=seed, part=part)
            numbers = load.constraints["filter"].to_numpy() + start
            names = interface_names(count).take(pa.array(numbers * count // filters))
            rest = [load.constraints[n] for n in ("name", "op", "type", "value")]
            table = pa.table(
                [names, pa.array(numbers), *(column.cast(pa.string()) for column in rest)],
                ["interface", "filter", "name", "op", "type", "value"],
            )
            yield from table.to_batches()

    return _ranged(spark, filters).mapInArrow(drawn, _CONSTRAINTS_SQL)


def oracle(df: DataFrame, constraints: pa.Table, *, json: str = "message") -> DataFrame:
    """The columns `id` and `interfaces`, by brute force; the constraints travel with the job."""

    def answered(batches: Batches) -> Iterator[pa.RecordBatch]:
        asked = Oracle(constraints)
        for batch in batches:
            texts = batch.column(1).to_pylist()
            interfaces = [asked.interfaces(dict(Message.from_json(text))) for text in texts]
            lists = pa.array(interfaces, pa.list_(pa.string()))
            yield pa.RecordBatch.from_arrays([batch.column(0), lists], ["id", "interfaces"])

    return df.select("id", json).mapInArrow(answered, "id bigint, interfaces array<string>")


def matches_per_message(routed: DataFrame, interfaces: str = "interfaces") -> DataFrame:
    """How many messages have how many matches: `matches`, `messages`, in the order of matches."""
    counted = routed.select(F.size(interfaces).alias("matches")).groupBy("matches")
    return counted.agg(F.count("*").alias("messages")).orderBy("matches")


def _ranged(spark: SparkSession, rows: int) -> DataFrame:
    """A row for each part, each in a task of its own."""
    if rows < 0:
        raise InvalidValue(f"there are 0 rows or more, not {rows}")
    parts = -(-rows // PART_ROWS)
    return spark.range(0, parts, 1, max(parts, 1))


def _parts(batches: Batches) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()
