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
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from palio.errors import InvalidFile, InvalidPredicate, InvalidValue, PalioError
from palio.spark.batches import BatchRecord, BatchRecords
from palio.spark.compiling import compile_with_rejects
from palio.spark.failures import sentence
from palio.spark.forwarding import STRATEGIES
from palio.spark.inputs import ENDINGS, read_messages, read_predicates
from palio.spark.progress import StreamProgress
from palio.spark.sessions import require_master, session
from palio.spark.sinks import FileSink
from palio.spark.streaming import BatchRouter, route_stream, versions_of
from palio.spark.table_directory import TableDirectory
from palio.spark.tasks import watched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from palio.spark.terminal import StreamBar

_POLL_S = 1.0
_REMEDY = "(invalid='null' gives such rows NULL)"  # of broadcast.py, for programs
_WORKERS_S_MAX = 60.0
_SHOWN_MAX = 5  # rejects in an error
_TOP_MAX = 10
_TOP_BATCHES_MAX = 100  # the last ones; a stream may have run for months
Tell = Callable[[StreamProgress], Any]
Say = Callable[[str], Any]


@dataclass(frozen=True)
class Job:
    """What to route, by what, into what. Predicates or a directory of tables, not both."""

    messages: str
    out: Path
    predicates: str | None = None
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


@dataclass(frozen=True, slots=True)
class Summary:
    """What one run of a job did."""

    messages: int
    matches: int
    seconds: float
    batches: int
    version: int | None
    rejects: int
    top: list[tuple[str, int]]
    out: str

    def row(self) -> dict[str, Any]:
        """For JSON."""
        rate = 1 / self.seconds if self.seconds else 0.0
        return {
            **asdict(self),
            "messages_per_s": round(self.messages * rate, 1),
            "matches_per_s": round(self.matches * rate, 1),
        }


def run(job: Job, master: str, *, stream: bool, once: bool, bar: StreamBar) -> Summary:
    """Do a job in a session of its own, from start to stop."""
    _check(job)
    require_master(master)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # what it says is raised as well
    bar.starting("starting Spark")
    with _in_sentences(f"no session on {master}"):
        spark = session(master, app="palio route")
    try:
        _require_workers(spark, master)
        bar.starting("reading predicates and messages")
        if stream:
            return route_folder(spark, job, once=once, progress=bar, say=bar.say)
        return route_files(spark, job, stage=bar.starting, tasks=bar.tasks)
    finally:
        with contextlib.suppress(Exception):  # what went wrong before is what counts
            spark.stop()


def _check(job: Job) -> None:
    """What can be said before Spark starts, which takes seconds."""
    if (job.predicates is None) == (job.tables is None):
        raise InvalidValue("predicates come from --predicates or from --table, one of them")
    if job.strategy not in ("auto", *STRATEGIES):
        raise InvalidValue(f"no strategy {job.strategy!r}; there are auto, {', '.join(STRATEGIES)}")
    for path in (job.predicates, job.messages):
        if path is not None and "://" not in path and not Path(path).exists():
            raise InvalidFile(f"{path}: there is no such file or folder")
    if job.rejects is not None and job.rejects.suffix.lower() not in ENDINGS:
        raise InvalidFile(f"{job.rejects}: the name ends in none of {', '.join(ENDINGS)}")
    if job.tables is not None:
        versions_of(job.tables).current()
    _sink(job)


def _require_workers(spark: SparkSession, master: str) -> None:
    """Raise when a master gives us no worker: a job would wait for ever."""
    if not master.startswith("spark://"):
        return
    job = threading.Thread(target=lambda: spark.range(1).count(), daemon=True)
    job.start()
    job.join(_WORKERS_S_MAX)
    if job.is_alive():
        raise PalioError(
            f"{master} has given no worker in {_WORKERS_S_MAX:.0f} s: it has none, or they are "
            "busy; start one, or wait for the others"
        )


def route_files(
    spark: SparkSession,
    job: Job,
    *,
    stage: Callable[[str], Any] = lambda name: None,
    tasks: Callable[[int, int], Any] = lambda done, known: None,
) -> Summary:
    """Route the messages that are there, once; the output must be new."""
    sink = _sink(job)
    tables, rejects = _tables(spark, job, sink)
    source = read_messages(spark, job.messages, format=job.format, types=job.types)
    options = {**source.options, "strategy": job.strategy, "invalid": job.invalid}
    router = BatchRouter(tables, sink, job.output, options)
    if any(sink.path.glob("batch=*")):
        raise InvalidFile(
            f"{sink.path}: there is output of an earlier run; choose another directory"
        )
    with _in_sentences():
        router.check(source.df)
        stage("routing")
        started = monotonic()
        with watched(spark, tasks):
            router(source.df, 0)
        return _summary(spark, job, sink, None, monotonic() - started, rejects)


def route_folder(spark: SparkSession, job: Job, *, once: bool, progress: Tell, say: Say) -> Summary:
    """Route the messages of a folder, and with `once=False` those that come, until Ctrl-C."""
    sink = _sink(job)
    tables, rejects = _tables(spark, job, sink)
    source = read_messages(
        spark, job.messages, format=job.format, types=job.types, stream=True,
        files_per_batch=job.files_per_batch,
    )  # fmt: skip
    before = _done(sink)
    with _in_sentences():
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
                    say("stopping; a batch that is not whole is routed again at the next start")
                    query.stop()
                    break
        return _summary(spark, job, sink, before, monotonic() - started, rejects)


def _sink(job: Job) -> FileSink:
    sink = FileSink(
        job.out, format=job.write, partition_by="interface" if job.by_interface else None
    )
    sink.prepare()
    return sink


@contextlib.contextmanager
def _in_sentences(what: str = "the job failed") -> Iterator[None]:
    """What fails in a query or in a worker is one of our errors."""
    try:
        yield
    except (PalioError, KeyboardInterrupt):
        raise
    except Exception as error:
        said = sentence(error).replace(_REMEDY, "(--invalid null goes on without such rows)")
        raise PalioError(f"{what}: {said}") from None


@contextlib.contextmanager
def _interrupt() -> Iterator[threading.Event]:
    """Set by Ctrl-C, instead of an exception in the midst of talking to Java."""
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
        with _in_sentences():
            compiled = compile_with_rejects(rows)
    except PalioError as error:
        raise InvalidFile(f"{job.predicates}: {error}") from None
    count: int = compiled.rejects.num_rows
    if count and job.rejects is None:
        raise InvalidPredicate(_complaint(job.predicates, compiled.rejects))
    if job.rejects is not None:
        _write_rejects(compiled.rejects, job.rejects)
    version = tables.publish(compiled.table)
    last = BatchRecords(tables.path.parent / "batches").last()
    # The last batch may be repeated, by its own version.
    tables.prune(keep=max(2, version - (last.version if last else version) + 1))
    return count


def _complaint(path: str, rejects: pa.Table) -> str:
    shown = rejects.slice(0, _SHOWN_MAX).to_pylist()
    lines = "\n".join(f"interface {r['interface']!r}: {r['error']}" for r in shown)
    more = rejects.num_rows - len(shown)
    what = "row is no predicate" if rejects.num_rows == 1 else "rows are no predicates"
    return (
        f"{path}: {rejects.num_rows:,} {what}; --rejects FILE writes them there and goes on\n"
        f"{lines}" + (f"\n... and {more:,} more" if more else "")
    )


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
            raise InvalidFile(f"{path}: the name ends in none of {', '.join(ENDINGS)}")
    except OSError as error:
        raise InvalidFile(f"{path}: the rejects cannot be written: {error}") from None


@contextlib.contextmanager
def _republishing(
    spark: SparkSession, job: Job, tables: TableDirectory, say: Say
) -> Iterator[None]:
    """Meanwhile, a change of the file of predicates makes a new version."""
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
    """What a file, or the files of a folder, were when last written."""
    found = []
    with contextlib.suppress(OSError):
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            stat = os.stat(file)
            found.append((file.name, stat.st_mtime_ns, stat.st_size))
    return found


# ---- the summary


def _done(sink: FileSink) -> BatchRecord | None:
    """The last batch that readers see."""
    records = BatchRecords(sink.own / "batches")
    last = records.last()
    while last is not None and not sink.has(last.batch):
        last = records.of(last.batch - 1)
    return last


def _summary(
    spark: SparkSession,
    job: Job,
    sink: FileSink,
    before: BatchRecord | None,
    seconds: float,
    rejects: int,
) -> Summary:
    """Of the batches after `before`, the last one of an earlier run."""
    first = before.batch + 1 if before else 0
    done = _done(sink)
    end = done.batch + 1 if done else 0
    counted = range(max(first, end - _TOP_BATCHES_MAX), end)
    return Summary(
        messages=_since(done, before, "messages_total"),
        matches=_since(done, before, "matches_total"),
        seconds=round(seconds, 3),
        batches=end - first,
        version=done.version if done else None,
        rejects=rejects,
        top=top_interfaces(spark, sink, list(counted), job.output),
        out=str(sink.path),
    )


def _since(done: BatchRecord | None, before: BatchRecord | None, total: str) -> int:
    return int(getattr(done, total, 0)) - int(getattr(before, total, 0))


def top_interfaces(
    spark: SparkSession, sink: FileSink, batches: list[int], output: str
) -> list[tuple[str, int]]:
    """The interfaces that got most in these batches."""
    paths = [str(sink.file(batch)) for batch in batches if sink.is_filled(batch)]
    if not paths:
        return []
    reader = spark.read.format(sink.format).option("basePath", str(sink.path))
    rows: DataFrame = reader.load(paths)
    name = F.explode("interfaces") if output == "array" else F.col("interface")
    if {"interfaces", "interface"}.isdisjoint(rows.columns):
        return []  # JSON of no rows has no columns
    counts = rows.select(name.alias("interface")).groupBy("interface").count()
    top = counts.orderBy(F.desc("count"), "interface").limit(_TOP_MAX).collect()
    return [(str(row["interface"]), int(row["count"])) for row in top]
