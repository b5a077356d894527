"""What a Spark user would do without Palio, and what transport alone costs.

    identity       messages to Python and back, with answers as long as the real ones; no matching
    nested_loop    every message with every predicate, evaluated as an expression on a map
    equi_join      messages exploded to (name, value), joined with one equality of each predicate,
                   the other constraints checked on what is left

Both joins give rows of message id and interface. They take constraint rows whose values are
strings; `equi_join` needs an equality in every filter, and finds it first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Three-valued as WHERE: what is missing is NULL, and NULL is not selected.
_HOLDS = """forall({constraints}, c -> coalesce(CASE c.op
    WHEN '=' THEN {map}[c.name] = c.value
    WHEN '<' THEN {map}[c.name] < c.value
    WHEN '>' THEN {map}[c.name] > c.value
    WHEN 'prefix' THEN startswith({map}[c.name], c.value)
    WHEN 'suffix' THEN endswith({map}[c.name], c.value)
    WHEN 'contains' THEN contains({map}[c.name], c.value) END, false))"""


def identity(df: DataFrame, answers: pa.ListArray | None) -> DataFrame:
    """The columns through Python; with `answers` also a column `interfaces` that repeats them."""
    if answers is None:
        return df.mapInArrow(_same, df.schema)
    types = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in df.schema.fields)
    return df.mapInArrow(_with(answers), f"{types}, interfaces array<string>")


def _same(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _with(answers: pa.ListArray) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def with_answers(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        column, size = None, -1
        for batch in batches:
            if len(batch) != size:
                size = len(batch)
                column = answers.take(pa.array(np.arange(size) % len(answers)))
            names = [*batch.schema.names, "interfaces"]
            yield pa.RecordBatch.from_arrays([*batch.columns, column], names)

    return with_answers


def predicate_rows(constraints: DataFrame) -> DataFrame:
    """A row for each filter: interface, its constraints in order, the first apart."""
    each = F.struct("place", "name", "op", "value")
    listed = F.transform(F.array_sort(F.collect_list(each)), _without_place)
    return (
        constraints.withColumn("place", F.monotonically_increasing_id())
        .groupBy("filter")
        .agg(F.first("interface").alias("interface"), listed.alias("constraints"))
        .select(
            "interface",
            F.expr("constraints[0].name").alias("first_name"),
            F.expr("constraints[0].value").alias("first_value"),
            "constraints",
            F.expr("slice(constraints, 2, size(constraints))").alias("others"),
        )
    )


def _without_place(c: Column) -> Column:
    return F.struct(c["name"].alias("name"), c["op"].alias("op"), c["value"].alias("value"))


def nested_loop(messages: DataFrame, predicates: DataFrame) -> DataFrame:
    """Message id and interface, by comparing all with all; messages have `id` and a map `message`."""
    holds = F.expr(_HOLDS.format(map="message", constraints="constraints"))
    chosen = predicates.select("interface", "constraints")
    return messages.join(F.broadcast(chosen), holds).select("id", "interface")


def equi_join(messages: DataFrame, predicates: DataFrame) -> DataFrame:
    """The same by an equality of each predicate, where there is one."""
    exploded = messages.select("id", "message", F.explode("message").alias("name", "value"))
    holds = F.expr(_HOLDS.format(map="message", constraints="others"))
    same = (F.col("name") == F.col("first_name")) & (F.col("value") == F.col("first_value"))
    chosen = predicates.select("interface", "first_name", "first_value", "others")
    pairs = exploded.join(F.broadcast(chosen), same).where(holds)
    return pairs.select("id", "interface")


def run(df: DataFrame) -> None:
    """Compute every row and keep none."""
    df.write.format("noop").mode("overwrite").save()


def pair_set(df: DataFrame) -> set[tuple[Any, ...]]:
    """The rows of a small result."""
    return {tuple(row) for row in df.collect()}
