"""The process that Spark forks Python workers from, with the kernels loaded before the first fork.

A process needs seconds to load them, and Spark ends a worker after a minute of idleness. A worker
that is forked from here has them loaded and shares their memory. Our local sessions use it
(`spark.python.daemon.module`). Without it everything works, but the first batches wait.
"""

from __future__ import annotations

import contextlib

import pyarrow as pa

from palio.matching.table import ForwardingTable
from palio.spark.broadcast import matches


def warm() -> None:
    """Match a message of each layout, so that what workers call is loaded."""
    table = ForwardingTable.compile({"a": "x = 1 AND s LIKE 'a%' OR s = 'b'"})
    wide = [pa.array([1, None]), pa.array(["a", "b"])]
    matches(table, wide, ("x", "s"), "array", "error")
    matches(table, [pa.array(['{"x": 1, "s": "a"}'])], None, "array", "error")


if __name__ == "__main__":
    from pyspark.daemon import manager

    with contextlib.suppress(Exception):  # a worker that fails in the same way reports it
        warm()
    manager()
