"""Which strategy a table gets, and where its files are for it.

    strategy      the table is           what happens
    broadcast     a file or an object    shipped, and every worker maps all of it
    partitioned   in shards              as it is
                  a file or an object    split by the driver, once, into a temporary directory
    auto          in shards              partitioned
                  at most worker_memory  broadcast; of a stream, whatever the size
                  larger                 partitioned

Without `worker_memory` it is half of what an executor has: of `spark.executor.pyspark.memory` for
each of its cores, if that is set, since it limits workers; else of `spark.executor.memory`, which
all workers of the machine share as they share the pages of the table.
"""

from __future__ import annotations

import re
import tempfile
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

from palio.errors import InvalidFile, InvalidValue
from palio.spark.partitioned_table import PartitionedTable, TableParts, is_partitioned
from palio.spark.partitioning import SHARD_BYTES, SHARDS_MAX, split
from palio.spark.tables import Location, Table, driver_location, located, own_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SPLIT_MAX = 2  # tables that the driver has split and keeps
_split: OrderedDict[tuple[str, int], PartitionedTable] = OrderedDict()


def placed_for(
    df: DataFrame,
    table: Table | PartitionedTable,
    strategy: str,
    shared: bool | None,
    worker_memory: int | str | None,
) -> tuple[str, Location | TableParts]:
    """The strategy to use, "broadcast" or "partitioned", and where the table is for it."""
    spark = df.sparkSession
    room = memory(spark, worker_memory)
    if isinstance(table, PartitionedTable) or is_partitioned(table):
        if strategy == "broadcast":
            raise InvalidFile(
                "the table is partitioned, so it cannot be broadcast",
                remedy="choose strategy='partitioned', or give the table that it was made of",
                path=str(table),
            )
        _require_batch(df)
        whole = table if isinstance(table, PartitionedTable) else PartitionedTable(str(table))
        return "partitioned", whole.located(spark, shared)
    here = driver_location(table)
    fits = df.isStreaming or here.size <= room
    if strategy == "broadcast" or (strategy == "auto" and fits):
        return "broadcast", located(spark, table, shared=shared)
    _require_batch(df)
    # A worker has a shard and the rest, which is as large as two at most, and some room to work.
    bound = min(SHARD_BYTES, room // 4)
    shards = min(SHARDS_MAX, max(2, -(-here.size // max(1, bound))))
    return "partitioned", _split_table(here, shards).located(spark, shared)


def _require_batch(df: DataFrame) -> None:
    if df.isStreaming:
        raise InvalidValue(
            "the partitioned strategy groups the copies of a message, which a streaming DataFrame "
            "cannot do without state: forward each micro-batch (route_stream, or foreachBatch), or "
            "choose strategy='broadcast'"
        )


def memory(spark: SparkSession, worker_memory: int | str | None) -> int:
    """How many bytes a table may have to be broadcast."""
    if worker_memory is not None:
        return _bytes("worker_memory", worker_memory)
    limit = spark.conf.get("spark.executor.pyspark.memory", None)
    if limit:
        cores = int(spark.conf.get("spark.executor.cores", "1") or "1")
        return _bytes("spark.executor.pyspark.memory", f"{limit}", unit="m") // (2 * cores)
    heap = spark.conf.get("spark.executor.memory", "1g") or "1g"
    return _bytes("spark.executor.memory", heap) // 2


def _bytes(what: str, size: int | str, unit: str = "b") -> int:
    found = re.fullmatch(r"\s*(\d+)\s*([kmgt]?)i?b?\s*", str(size).lower())
    if not found:
        raise InvalidValue(f"{what} is a number of bytes, or a text such as '512m', not {size!r}")
    plain = found[2] or ("b" if isinstance(size, int) else unit)
    return int(found[1]) * _UNITS[plain]


def _split_table(location: Location, shards: int) -> PartitionedTable:
    key = location.key, shards
    known = _split.get(key)
    if known is None:
        folder = Path(tempfile.mkdtemp(dir=own_folder(), prefix="shards-"))
        known = _split[key] = split(location, folder, shards)
        while len(_split) > _SPLIT_MAX:
            _split.popitem(last=False)  # its files stay, since jobs may need them
    return known
