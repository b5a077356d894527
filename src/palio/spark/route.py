"""The job behind `palio route`: files of predicates and messages in, routed files out.

    predicates ──compile──▶ out/_palio/tables ─┐
    messages ──────────────────────────────────┴──BatchRouter──▶ out/batch=.../

A batch job is one batch of the same router, so both kinds of job write, count and check alike. While
a stream runs, predicates whose file changes are compiled again and published as the next version.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from palio.carried_errors import recovered
from palio.errors import InvalidFile, InvalidMessage, InvalidValue, PalioError
from palio.spark.batches import BatchRecords
from palio.spark.compiling import compile_with_rejects, rejected
from palio.spark.failures import sentence
from palio.spark.forwarding import STRATEGIES
from palio.spark.inputs import ENDINGS, read_messages, read_predicates
from palio.spark.progress import StreamProgress
from palio.spark.sessions import require_master, session
from palio.spark.sinks import FileSink
from palio.spark.streaming import BatchRouter, route_stream, versions_of
from palio.spark.summary import RouteSummary, last_batch, summary_of
from palio.spark.table_directory import TableDirectory
from palio.spark.tasks import watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_S = 1.0
_WORKERS_S_MAX = 60.0
Tell = Callable[[StreamProgress], Any]
Say = Callable[[str], Any]


@dataclass(frozen=True)
class Job:
    """What to route, by what, into what. Predicates or a directory of tables, not both."""

    messages: str
    out: Path
    predicates: str | None = None
    dialect: str = "sql"
    tables: Path | None = None
    rejects: Path | None = None
    strategy: str = "auto"
    output: str = "pairs"
    invalid: str = "error"  # a row that is no message; null: no interfaces
    format: str | None = None  # of the messages
    write: str = "parquet"
    by_interface: bool = False
    types: dict[str, str] | None = None
    files_per_batch: int | None = None


class JobWatcher(Protocol):
    """What a job tells about itself while it runs; `terminal.StreamBar` shows it."""

    def starting(self, text: str) -> None:
        """The job begins its next stage."""

    def tasks(self, done: int, known: int) -> None:
        """So many of the known tasks of a batch job are done."""

    def say(self, text: str) -> None:
        """A line for people."""

    def __call__(self, progress: StreamProgress) -> None:
        """The stream has routed a micro-batch."""


def run(job: Job, master: str, *, stream: bool, once: bool, watcher: JobWatcher) -> RouteSummary:
    """Run a job in a session of its own, which is stopped at the end."""
    _check(job)
    require_master(master)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # its errors are raised as well
    watcher.starting("starting Spark")
    with _failing_as(f"no session on {master}"):
        spark = session(master, app="palio route")
    try:
        _require_workers(spark, master)
        watcher.starting("reading predicates and messages")
        if stream:
            return route_folder(spark, job, once=once, progress=watcher, say=watcher.say)
        return route_files(spark, job, stage=watcher.starting, tasks=watcher.tasks)
    finally:
        with contextlib.suppress(Exception):  # an error of the job matters more
            spark.stop()


def _check(job: Job) -> None:
    """Raise what can be known before Spark starts, which takes seconds."""
    if (job.predicates is None) == (job.tables is None):
        raise InvalidValue("predicates come from --predicates or from --table, one of them")
    if job.strategy not in ("auto", *STRATEGIES):
        raise InvalidValue(
            f"no strategy {job.strategy!r}", remedy=f"there are auto, {', '.join(STRATEGIES)}"
        )
    for path in (job.predicates, job.messages):
        if path is not None and "://" not in path and not Path(path).exists():
            raise InvalidFile("there is no such file or folder", path=path)
    if job.rejects is not None and job.rejects.suffix.lower() not in ENDINGS:
        raise InvalidFile(f"the name ends in none of {', '.join(ENDINGS)}", path=job.rejects)
    if job.tables is not None:
        versions_of(job.tables).current()
    _sink(job)


def _require_workers(spark: SparkSession, master: str) -> None:
    """Raise when a master gives the session no worker: a job would wait forever."""
    if not master.startswith("spark://"):
        return
    job = threading.Thread(target=lambda: spark.range(1).count(), daemon=True)
    job.start()
    job.join(_WORKERS_S_MAX)
    if job.is_alive():
        raise PalioError(
            f"{master} has given no worker in {_WORKERS_S_MAX:.0f} s: it has none, or they are "
            "busy",
            remedy="start one, or wait for the others",
        )


def route_files(
    spark: SparkSession,
    job: Job,
    *,
    stage: Callable[[str], Any] = lambda name: None,
    tasks: Callable[[int, int], Any] = lambda done, known: None,
) -> RouteSummary:
    """Route the messages that are there, once; the output must be new."""
    sink = _sink(job)
    tables, rejects = _tables(spark, job, sink)
    source = read_messages(spark, job.messages, format=job.format, types=job.types)
    options = {**source.options, "strategy": job.strategy, "invalid": job.invalid}
    router = BatchRouter(tables, sink, job.output, options)
    if any(sink.path.glob("batch=*")):
        raise InvalidFile(
            "there is output of an earlier run", remedy="choose another directory", path=sink.path
        )
    with _failing_as():
        router.check(source.df)
        stage("routing")
        started = monotonic()
        with watched(spark, tasks):
            router(source.df, 0)
        seconds = monotonic() - started
        return summary_of(spark, sink, job.output, None, seconds=seconds, rejects=rejects)


def route_folder(
    spark: SparkSession, job: Job, *, once: bool, progress: Tell, say: Say
) -> RouteSummary:
    """Route the messages of a folder, and with `once=False` those that come, until Ctrl-C."""
    sink = _sink(job)
    tables, rejects = _tables(spark, job, sink)
    source = read_messages(
        spark, job.messages, format=job.format, types=job.types, stream=True,
        files_per_batch=job.files_per_batch,
    )  # fmt: skip
    before = last_batch(sink)
    with _failing_as():
        started = monotonic()
        query = route_stream(
            source.df,
            tables,
            sink,
            output=job.output,
            trigger={"availableNow": True} if once else None,
            progress=progress,
            strategy=job.strategy,
            invalid=job.invalid,
            **source.options,
        )
        with _republishing(spark, job, TableDirectory(tables), say), _interrupt() as interrupted:
            while not query.awaitTermination(1):
                if interrupted.is_set():
                    say("stopping; an unfinished batch is routed at the next start")
                    query.stop()
                    break
        seconds = monotonic() - started
        return summary_of(spark, sink, job.output, before, seconds=seconds, rejects=rejects)


def _sink(job: Job) -> FileSink:
    sink = FileSink(
        job.out, format=job.write, partition_by="interface" if job.by_interface else None
    )
    sink.prepare()
    return sink


@contextlib.contextmanager
def _failing_as(what: str = "the job failed") -> Iterator[None]:
    """Whatever fails in a query or in a worker becomes a PalioError that begins with `what`."""
    try:
        yield
    except (PalioError, KeyboardInterrupt):
        raise
    except Exception as error:
        ours = recovered(error)
        if isinstance(ours, InvalidMessage):
            ours = ours.at(remedy="--invalid null continues without such rows")
        raise PalioError(f"{what}: {sentence(ours or error)}") from None


@contextlib.contextmanager
def _interrupt() -> Iterator[threading.Event]:
    """Ctrl-C sets the event; an exception could come in the middle of a call of Java."""
    event = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield event
        return
    before = signal.signal(signal.SIGINT, lambda number, frame: event.set())
    try:
        yield event
    finally:
        signal.signal(signal.SIGINT, before)


# ---- tables


def _tables(spark: SparkSession, job: Job, sink: FileSink) -> tuple[Path, int]:
    """The directory to route by, and how many predicates were rejected."""
    if job.tables is not None:
        return job.tables, 0
    tables = TableDirectory(sink.own / "tables")
    return tables.path, _publish(spark, job, tables)


def _publish(spark: SparkSession, job: Job, tables: TableDirectory) -> int:
    assert job.predicates is not None
    rows = read_predicates(spark, job.predicates)
    try:
        with _failing_as():
            compiled = compile_with_rejects(rows, dialect=job.dialect)
    except PalioError as error:
        raise InvalidFile(str(error), path=job.predicates) from None
    count: int = compiled.rejects.num_rows
    if count and job.rejects is None:
        raise rejected(compiled.rejects).at(
            source=job.predicates, remedy="--rejects FILE writes them there and continues"
        )
    if job.rejects is not None:
        _write_rejects(compiled.rejects, job.rejects)
    version = tables.publish(compiled.table)
    last = BatchRecords(tables.path.parent / "batches").last()
    # The last batch may be repeated, by its own version.
    tables.prune(keep=max(2, version - (last.version if last else version) + 1))
    return count


def _write_rejects(rejects: pa.Table, path: Path) -> None:
    kind = ENDINGS.get(path.suffix.lower())
    try:
        if kind == "csv":
            import pyarrow.csv

            pyarrow.csv.write_csv(rejects, path)
        elif kind == "jsonl":
            import json

            path.write_text("".join(json.dumps(row) + "\n" for row in rejects.to_pylist()))
        elif kind == "parquet":
            import pyarrow.parquet

            pyarrow.parquet.write_table(rejects, path)
        else:
            raise InvalidFile(f"the name ends in none of {', '.join(ENDINGS)}", path=path)
    except OSError as error:
        raise InvalidFile(f"the rejects cannot be written: {error}", path=path) from None


@contextlib.contextmanager
def _republishing(
    spark: SparkSession, job: Job, tables: TableDirectory, say: Say
) -> Iterator[None]:
    """While the block runs, a change of the file of predicates makes a new version."""
    if job.predicates is None or "://" in job.predicates:
        yield
        return
    path, stop = Path(job.predicates), threading.Event()

    def watch() -> None:
        known = _stamp(path)
        while not stop.wait(_POLL_S):
            now = _stamp(path)
            if now == known or not now:
                continue
            known = now
            try:
                rejects = _publish(spark, job, tables)
                told = f" ({rejects:,} rows rejected)" if rejects else ""
                say(f"{path} has changed: version {tables.current()[0]} is used from now on{told}")
            except PalioError as error:
                say(f"{path} has changed and is not used, the version before stays: {error}")

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(60)


def _stamp(path: Path) -> list[tuple[str, int, int]]:
    """The names, times and sizes of a file, or of the files of a folder."""
    found = []
    with contextlib.suppress(OSError):
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            stat = os.stat(file)
            found.append((file.name, stat.st_mtime_ns, stat.st_size))
    return found
