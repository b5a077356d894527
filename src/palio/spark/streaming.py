"""Routing a stream by a table that changes: one version for each micro-batch.

    source ──foreachBatch──▶ version of the batch ──forward──▶ rows + table_version ──▶ sink
                                │
                  recorded before anything is written (batches.py)

The driver asks the directory of tables once a batch, so all rows of a batch are routed by one
version, and a new version is used from the next batch on. A batch that Spark repeats after a crash
is routed by the version that it had. A partitioned table has no versions: it is 0. Into files
(sinks.py) every row comes exactly once, into a callback at least once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.sql import functions as F  # noqa: N812

from palio.carried_errors import carried
from palio.errors import InvalidFile, InvalidValue
from palio.spark.batches import BatchRecord, BatchRecords
from palio.spark.forwarding import forward
from palio.spark.messages import quoted
from palio.spark.partitioned_table import PartitionedTable, is_partitioned
from palio.spark.progress import ProgressListener, StreamProgress
from palio.spark.sinks import FileSink
from palio.spark.table_directory import TableDirectory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

Callback: TypeAlias = "Callable[[DataFrame, int, int], Any]"
VERSION = "table_version"
OUTPUTS = {"array": "interfaces", "pairs": "interface"}
_COUNTS_S_MAX = 5.0  # counts come with the first action on the rows, or not at all


def route_stream(
    source: DataFrame,
    tables: TableDirectory | PartitionedTable | str | Path,
    sink: FileSink | Callback | str | Path,
    *,
    checkpoint: str | Path | None = None,
    output: str = "pairs",
    trigger: dict[str, Any] | None = None,
    name: str | None = None,
    progress: Callable[[StreamProgress], Any] | None = None,
    **options: Any,
) -> StreamingQuery:
    """Start a query that routes a streaming DataFrame by the tables of a directory, or by a
    partitioned table, which stays as it is.

    `sink`: a directory for files, or a FileSink; or a function of (rows, batch number, version),
    called once a batch or, after a crash, again with the same batch: it needs a `checkpoint`
    directory. Files keep theirs. Both resume where they stopped when they are started again.

    `output`: "pairs", a row for each message and interface; "array", a row for each message, with
    its interfaces. Each row has the version of the table that routed it, `table_version`.
    `trigger` is that of Spark, `{"availableNow": True}` or `{"processingTime": "1 second"}`.
    `progress` is called with a StreamProgress after each batch. `options` are those of `forward`:
    strategy, json, columns, invalid, ...
    """
    if not source.isStreaming:
        raise InvalidValue(
            "route_stream takes a streaming DataFrame (spark.readStream)",
            remedy="forward takes others",
        )
    if isinstance(sink, str | Path):
        sink = FileSink(sink)
    if isinstance(sink, FileSink) and checkpoint is not None:
        raise InvalidValue(
            f"the checkpoint of files is inside them, in {sink.own}", remedy="leave it out"
        )
    router = BatchRouter(tables, sink, output, options, checkpoint)
    router.check(source)

    def route_batch(rows: DataFrame, batch: int) -> None:
        with carried():
            router(rows, batch)

    writer = source.writeStream.foreachBatch(route_batch).option(
        "checkpointLocation", str(router.own / "checkpoint")
    )
    if name is not None:
        writer = writer.queryName(name)
    writer = writer.trigger(**(trigger or {"processingTime": "0 seconds"}))
    if progress is None:
        return writer.start()
    listener = ProgressListener(router.records, progress)
    source.sparkSession.streams.addListener(listener)
    query = writer.start()
    listener.follow(query.id)
    return query


@dataclass(frozen=True, slots=True)
class _Unversioned:
    """A partitioned table in the place of a directory of versions."""

    path: Path

    def current(self) -> tuple[int, Path]:
        return 0, PartitionedTable(self.path).path

    def file(self, version: int) -> Path:
        return self.path


def versions_of(
    tables: TableDirectory | PartitionedTable | str | Path,
) -> TableDirectory | _Unversioned:
    """What says which version is current and where it lies; paths become absolute."""
    path = Path(tables if isinstance(tables, str | Path) else tables.path).absolute()
    return _Unversioned(path) if is_partitioned(path) else TableDirectory(path)


def _checkpoint(path: str | Path | None) -> Path:
    if path is None:
        raise InvalidValue("a callback needs a directory for its checkpoint: checkpoint=")
    if "://" in str(path) and not str(path).startswith("file://"):
        raise InvalidValue(
            f"{path}: the versions of batches are recorded beside the checkpoint, on a path that "
            "is mounted"
        )
    own = Path(str(path).removeprefix("file://")).absolute()
    try:
        own.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidFile(f"the checkpoint cannot be written: {error.strerror}", path=own) from None
    return own


class BatchRouter:
    """Routes one micro-batch after the other; what Spark calls, on the driver."""

    def __init__(
        self,
        tables: TableDirectory | PartitionedTable | str | Path,
        sink: FileSink | Callback,
        output: str,
        options: dict[str, Any],
        checkpoint: str | Path | None = None,
    ) -> None:
        if output not in OUTPUTS:
            raise InvalidValue(f"no output {output!r}", remedy=f"there are {', '.join(OUTPUTS)}")
        if isinstance(sink, FileSink) and sink.partition_by is not None:
            if output != "pairs":
                raise InvalidValue("files by interface or group hold pairs: output='pairs'")
            if options.get("into"):
                raise InvalidValue(
                    "files by interface or group have the column 'interface': no into="
                )
        self.own = sink.own if isinstance(sink, FileSink) else _checkpoint(checkpoint)
        self.records = BatchRecords(self.own / "batches")
        self._tables = versions_of(tables)
        self._sink = sink
        self._output = output
        self._options = options
        self._counts = True  # until an action does not count its rows

    def check(self, source: DataFrame) -> None:
        """Raise now what would stop the first batch: no table, a schema that does not fit."""
        table = self._tables.current()[1]
        if is_partitioned(table) or self._options.get("strategy") == "partitioned":
            # Batches are plain DataFrames, and only those can be shuffled: ask about such a one.
            self.routed(source.sparkSession.createDataFrame([], source.schema), table)
        else:
            self.routed(source, table)
        if isinstance(self._sink, FileSink):
            self._sink.check(source.columns)
            self._sink.prepare()

    def __call__(self, rows: DataFrame, batch: int) -> None:
        if isinstance(self._sink, FileSink) and self._sink.has(batch):
            return
        started = time.monotonic()
        record = self.records.begin(batch, lambda: self._tables.current()[0])
        matched = self.routed(rows, self._file(record))
        counts = _Counts(matched) if self._counts else None
        out = self._rows_out(counts.rows if counts else matched, record.version)
        if isinstance(self._sink, FileSink):
            self._sink.stage(out, batch)
            self._finish(record, counts, started)  # before the commit: no batch without its counts
            self._sink.commit(batch)
        else:
            self._sink(out, batch, record.version)
            self._finish(record, counts, started)

    def routed(self, rows: DataFrame, table: Path) -> DataFrame:
        """The rows and an array of interfaces."""
        if VERSION in rows.columns:
            raise InvalidValue(
                f"the DataFrame has a column {VERSION!r} already", remedy="rename it"
            )
        into = self._options.get("into") or OUTPUTS[self._output]
        return forward(rows, table, **{**self._options, "output": "array", "into": into})

    def _rows_out(self, matched: DataFrame, version: int) -> DataFrame:
        if self._output == "pairs":
            into = matched.columns[-1]
            matched = matched.withColumn(into, F.explode(F.col(quoted(into))))
        return matched.withColumn(VERSION, F.lit(version))

    def _file(self, record: BatchRecord) -> Path:
        path = self._tables.file(record.version)
        if not path.exists():
            raise InvalidFile(
                f"batch {record.batch} is routed by version {record.version} of the table, "
                "and that was removed",
                remedy="restore the file (and prune less: keep more versions)",
                path=path,
            )
        return path

    def _finish(self, record: BatchRecord, counts: _Counts | None, started: float) -> None:
        found = counts.get() if counts else None
        self._counts = found is not None
        messages, matches = found or (None, None)
        seconds = round(time.monotonic() - started, 3)
        self.records.write(replace(record, messages=messages, matches=matches, seconds=seconds))


class _Counts:
    """Rows and matches, counted by the first action on the rows. An action that stops early, such
    as `first`, or none at all, leaves them unknown; so they are waited for, but not for long."""

    def __init__(self, matched: DataFrame) -> None:
        from pyspark.sql import Observation

        self._observation = Observation()
        size = F.size(F.col(quoted(matched.columns[-1])))  # NULL is a row that is no message
        self.rows = matched.observe(
            self._observation,
            F.count(F.lit(1)).alias("messages"),
            F.sum(F.greatest(size, F.lit(0))).alias("matches"),
        )

    def get(self) -> tuple[int, int] | None:
        found: list[tuple[int, int]] = []

        def wait() -> None:
            row = self._observation.get
            if "messages" in row:
                found.append((int(row["messages"]), int(row["matches"] or 0)))

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        thread.join(_COUNTS_S_MAX)
        return found[0] if found else None
