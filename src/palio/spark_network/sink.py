"""Publishing rows, each once, however often Spark repeats a task or a batch.

    stream   tasks encode ──▶ driver: sort the whole micro-batch, publish as  spark-<query id>
                              numbers   (batch << 32) + 1, 2, 3, ...
    batch    each task: sort its partition, publish as  spark-<write id>-<partition>
                              numbers   1, 2, 3, ...

The broker keeps the last number of each publisher, tells it in its welcome, and stores no number
twice. The id of a query is in its checkpoint, so a micro-batch that is repeated after a crash gives
the same numbers to the same messages, and only the missing ones are sent.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from palio.carried_errors import carried
from palio.errors import PalioError
from palio.net.client.attributes import from_bytes
from palio.spark_network.options import Options
from palio.spark_network.rows import Encoded, Rows, in_order

if TYPE_CHECKING:
    import pyarrow as pa

_QUERY_ID = "sql.streaming.queryId"
_BATCH_BITS = 32


@dataclass
class TaskMessages(WriterCommitMessage):
    """What a task of a stream hands to the driver."""

    query: str
    encoded: list[Encoded]


@dataclass
class Count(WriterCommitMessage):
    """How many messages a task has published."""

    messages: int


class StreamWriter(DataSourceStreamArrowWriter):
    """`write` runs in tasks, `commit` in a Python process of the driver."""

    def __init__(self, options: Options, schema: Any) -> None:
        self._options = options
        self._rows = Rows(schema, options.order_by)

    @carried()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskMessages:
        return TaskMessages(_query_id(), list(self._rows.encode(iterator)))

    @carried()
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        shares = [share for share in messages if isinstance(share, TaskMessages) and share.encoded]
        if shares:
            encoded = (row for share in shares for row in share.encoded)
            name = f"spark-{shares[0].query}"
            _publish(self._options, name, (batchId << _BATCH_BITS) + 1, in_order(encoded))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing was published."""


class BatchWriter(DataSourceArrowWriter):
    """`write` runs in tasks; a repeated task continues behind what it has published."""

    def __init__(self, options: Options, schema: Any) -> None:
        self._options = options
        self._rows = Rows(schema, options.order_by)
        self._id = secrets.token_hex(8)

    @carried()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> Count:
        messages = in_order(self._rows.encode(iterator))
        if messages:
            name = f"spark-{self._id}-{_task().partitionId()}"
            _publish(self._options, name, 1, messages)
        return Count(len(messages))


def _publish(
    options: Options, name: str, first: int, messages: Iterable[tuple[bytes, bytes]]
) -> None:
    with options.connect(name, first) as client:
        client.publish_many((from_bytes(attributes), body) for attributes, body in messages)


def _task() -> TaskContext:
    task = TaskContext.get()
    if task is None:
        raise PalioError("rows are published by tasks of Spark, and this is not one")
    return task


def _query_id() -> str:
    query = _task().getLocalProperty(_QUERY_ID)
    if not query:
        raise PalioError(
            f"Spark does not tell the id of the query ({_QUERY_ID}), without which a restart would "
            "publish twice",
            remedy="write each batch with foreachBatch and write.format('palio') instead",
        )
    return query
