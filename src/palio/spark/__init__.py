"""Content-based forwarding on Spark: functions from DataFrame to DataFrame.

    table = palio.spark.compile(predicates_df)          # (interface, predicate) rows
    routed = palio.spark.forward(messages_df, table)    # + column interfaces: array<string>

Batch and streaming DataFrames, classic Spark and Spark Connect: nothing here touches the
SparkContext or an RDD. PySpark comes with the extra: pip install 'palio[spark]'.
"""

from __future__ import annotations

import importlib.util

from palio.errors import MissingSoftware

if importlib.util.find_spec("pyspark") is None:
    raise MissingSoftware("palio.spark needs PySpark 4.1 or newer: pip install 'palio[spark]'")

from palio.spark.compiling import Compiled, compile, compile_with_rejects  # noqa: A004
from palio.spark.forwarding import forward, forwarder, register
from palio.spark.partitioned_table import PartitionedTable
from palio.spark.partitioning import partition
from palio.spark.sessions import session
from palio.spark.sinks import FileSink
from palio.spark.streaming import route_stream
from palio.spark.table_directory import TableDirectory

__all__ = [
    "Compiled",
    "FileSink",
    "PartitionedTable",
    "TableDirectory",
    "compile",
    "compile_with_rejects",
    "forward",
    "forwarder",
    "partition",
    "register",
    "route_stream",
    "session",
]
