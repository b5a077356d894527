"""The partitioned strategy: messages travel to the shards that they can hit, by a shuffle.

    df ── row, id, message ──scatter──▶ [shards], what the rest says
       ──explode──▶ a copy for each shard; the first one carries the row (column `carrier`)
       ──rebalance and sort by shard──▶ match: a worker opens one shard after the other
       ──group by id──▶ row, interfaces of all copies, each once and in order

A worker holds the shard it is at, the rest and the directory of keys, however large the table is.
Hot keys of filters are spread over shards when the table is made. A shard that many messages visit
is split by the engine, which rebalances by size (adaptive execution): several tasks open it. Only
messages and interfaces travel to Python. The order of the rows is lost, and a streaming DataFrame
cannot be grouped so: `sizing` refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812

from palio.carried_errors import carried
from palio.matching.computed.compiling import CompiledEngine
from palio.matching.file.loading import loaded
from palio.matching.table import ForwardingTable
from palio.spark.arrow_functions import arrow_function
from palio.spark.broadcast import ARROW_TYPES, RETURNS, matches, rows_of
from palio.spark.messages import MessageColumns
from palio.spark.partitioned_table import PLACE_DIGITS, TableParts
from palio.spark.shard_keys import Directory, message_keys, name_hashes
from palio.spark.tables import Location, local_file, opened

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def with_matches(
    df: DataFrame, messages: MessageColumns, parts: TableParts, output: str, into: str, invalid: str
) -> DataFrame:
    """The DataFrame and a column of what each message matches; `output` is one of RETURNS."""
    columns = [f"m{i}" for i in range(len(messages.columns))]
    scatter, match = _functions(parts, messages.names, output, invalid)
    scattered = df.select(
        F.struct("*").alias("row"),
        F.monotonically_increasing_id().alias("id"),
        *(c.alias(name) for c, name in zip(messages.columns, columns, strict=True)),
    ).withColumn("to", scatter(*columns))
    copies = scattered.select(
        "row", "id", *columns, "to.found", F.posexplode_outer("to.shards").alias("copy", "shard")
    )
    visits = F.col("shard").isNotNull()
    travelling = copies.select(
        "id",
        "shard",
        F.coalesce("shard", F.pmod("id", F.lit(len(parts.shards))).cast("int")).alias("place"),
        F.when(F.coalesce("copy", F.lit(0)) == 0, F.struct("row", "found")).alias("carrier"),
        *(F.when(visits, F.col(name)).alias(name) for name in columns),
    )
    matched = (
        travelling.hint("rebalance", "place")
        .sortWithinPartitions("shard")
        .select("id", "carrier", match("shard", *columns).alias("got"))
    )
    together = F.max("got") if output == "flag" else F.collect_list("got")
    grouped = matched.groupBy("id").agg(
        F.first("carrier", ignorenulls=True).alias("carrier"), together.alias("got")
    )
    return grouped.select("carrier.row.*", _united(output).alias(into))


def _united(output: str) -> Column:
    """What the rest found, NULL for no message, and what all shards did."""
    if output == "flag":
        return F.col("carrier.found") | F.coalesce("got", F.lit(False))
    found = F.sort_array(F.array_distinct(F.concat("carrier.found", F.flatten("got"))))
    if output == "ids":
        return found
    return F.transform(found, lambda name: name.substr(F.lit(PLACE_DIGITS + 1), F.length(name)))


def _functions(
    parts: TableParts, names: tuple[str, ...] | None, output: str, invalid: str
) -> tuple[Any, Any]:
    kind = RETURNS[output]

    def palio_scatter(*columns: pa.Array) -> pa.Array:
        with carried():
            return scattered(parts, columns, names, output, invalid)

    def palio_match_shard(shard: pa.Array, *columns: pa.Array) -> pa.Array:
        with carried():
            return matched(parts, shard, columns, names, output)

    return (
        arrow_function(palio_scatter, f"struct<shards: array<int>, found: {kind}>"),
        arrow_function(palio_match_shard, kind),
    )


# ---- in the worker


def scattered(
    parts: TableParts,
    columns: Sequence[pa.Array],
    names: tuple[str, ...] | None,
    output: str,
    invalid: str,
) -> pa.StructArray:
    """The shards that each message visits, and what the rest says; no message visits none."""
    found = _found(opened(parts.rest), columns, names, output, invalid)
    valid = found.is_valid()
    some = [column.filter(valid) for column in columns] if found.null_count else columns
    rows, options = rows_of(some, names)
    layout, column = next(iter(options.items()), ("wide", ""))
    directory, engine, hashes = _directory(parts)
    batch = engine.encoded_rows(rows, layout, "" if layout == "computed" else column)
    shards = directory.of_messages(batch.row_at, message_keys(batch, hashes))
    if found.null_count:
        position = np.cumsum(valid.to_numpy(zero_copy_only=False)) - 1
        shards = shards.take(pc.if_else(valid, pa.array(position), None))
    return pa.StructArray.from_arrays([shards, found], ["shards", "found"])


def matched(
    parts: TableParts,
    shard: pa.Array,
    columns: Sequence[pa.Array],
    names: tuple[str, ...] | None,
    output: str,
) -> pa.Array:
    """What each message matches in its shard, NULL where it has none."""
    numbers = shard.fill_null(-1).to_numpy()
    ends = [*(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    pieces, first = [], 0
    for last in ends:
        number = int(numbers[first]) if last else -1
        here = [column.slice(first, last - first) for column in columns]
        if number < 0:
            pieces.append(pa.nulls(last - first, ARROW_TYPES[output]))
        else:
            table = _open_shard(parts.shards[number])
            pieces.append(_found(table, here, names, output, "error"))
        first = last
    return pa.concat_arrays(pieces)


def _found(
    table: ForwardingTable,
    columns: Sequence[pa.Array],
    names: tuple[str, ...] | None,
    output: str,
    invalid: str,
) -> pa.Array:
    """What a shard says, in terms of the whole table."""
    if output != "ids":
        return matches(table, columns, names, output, invalid)
    labels = matches(table, columns, names, "array", invalid)
    places = pc.utf8_slice_codeunits(labels.values, 0, PLACE_DIGITS).cast(pa.int32())
    mask = labels.is_null() if labels.null_count else None
    return pa.ListArray.from_arrays(labels.offsets, places, mask=mask)


_held: list[tuple[str, ForwardingTable]] = []  # the shard that this worker has open


def _open_shard(location: Location) -> ForwardingTable:
    """A shard, mapped into memory after the one before has been given up."""
    if not _held or _held[0][0] != location.key:
        _held.clear()
        _held.append((location.key, ForwardingTable.load(local_file(location))))
    return _held[0][1]


@lru_cache(maxsize=1)
def _directory(parts: TableParts) -> tuple[Directory, CompiledEngine, Any]:
    """The directory of keys, the engine that reads messages, which knows all names of keys, and the
    hashes of these."""
    engine, _ = loaded(local_file(parts.rest))
    return Directory.load(local_file(parts.directory)), engine, name_hashes(engine.table.names)
