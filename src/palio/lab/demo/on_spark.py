"""The demo on Spark: a year of real flights as a stream, each routed to those who asked for it.

    flights, a file a month ──▶ Spark, a micro-batch a month ──▶ files: flight, interfaces, version
    subscriptions (SQL) ──compile──▶ table ─┘

Everything goes through what users call: compile, `palio.spark.route_stream`.
"""

from __future__ import annotations

import tempfile
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet
from rich.console import Console

from palio.errors import InvalidFile
from palio.lab.demo.opening import compile_subscriptions, load_flights
from palio.matching.table import ForwardingTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from palio.spark.summary import RouteSummary


FILES_A_MONTH = 2  # each is a task of its own
_NEW_YORK = pa.scalar(timedelta(hours=5))  # behind UTC, by which months are counted


def run(console: Console, subscriptions: int, messages: int | None, out: Path | None) -> None:
    """Route flights through a stream with a progress bar, then show a table."""
    from palio.spark import terminal

    began = time.monotonic()
    folder = _folder(out)
    starting = _StartingSession()
    data = load_flights(console, messages)
    texts, table = compile_subscriptions(
        console, subscriptions, "compiling the subscriptions, while Spark starts"
    )
    months = write_months(data.table, folder / "flights")
    with console.status("starting Spark"):
        spark = starting.session()
    try:
        summary = _route(console, spark, table, folder, data.table.num_rows)
    finally:
        spark.stop()
    terminal.show(console, summary, texts)
    console.print(
        f"Spark routed {months} months (UTC) of flights, a micro-batch each, to {len(texts):,} predicates "
        f"in {time.monotonic() - began:.0f} s, its start included; "
        f"a flight went to {summary.matches / max(1, summary.messages):,.0f} of them on average."
    )


def _route(
    console: Console, spark: SparkSession, table: ForwardingTable, folder: Path, total: int
) -> RouteSummary:
    from palio.spark import TableDirectory, route, terminal

    tables = TableDirectory(folder / "tables")
    tables.publish(table)
    job = route.Job(
        messages=str(folder / "flights"),
        out=folder / "routed",
        tables=tables.path,
        output="array",
        format="parquet",
        files_per_batch=FILES_A_MONTH,
    )
    with terminal.StreamBar(console, total) as bar:
        return route.route_folder(spark, job, once=True, progress=bar, say=bar.say)


def write_months(table: pa.Table, folder: Path) -> int:
    """FILES_A_MONTH files for each month of departures; how many months."""
    folder.mkdir(parents=True, exist_ok=True)
    month = pc.strftime(pc.subtract(table["scheduled"], _NEW_YORK), "%Y-%m")
    names: list[str] = sorted(pc.unique(month).to_pylist())
    for name in names:
        part = table.filter(pc.equal(month, name))
        size = -(-part.num_rows // FILES_A_MONTH)
        for i in range(FILES_A_MONTH):
            rows = part.slice(i * size, size)
            pa.parquet.write_table(rows, folder / f"{name}-{i}.parquet")
    if not names:
        pa.parquet.write_table(table, folder / "none.parquet")
    return len(names)


def _folder(out: Path | None) -> Path:
    if out is None:
        return Path(tempfile.mkdtemp(prefix="palio-demo-"))
    if (out / "routed").exists():
        raise InvalidFile(f"{out}: there is output of an earlier demo; choose another directory")
    return out


class _StartingSession:
    """Spark starts in a thread, since it takes as long as compiling does."""

    def __init__(self) -> None:
        self._found: list[SparkSession] = []
        self._failed: list[BaseException] = []
        self._thread = threading.Thread(target=self._start, daemon=True)
        self._thread.start()

    def _start(self) -> None:
        from palio.spark import session

        try:
            spark = session(app="palio demo")
            spark.range(1).mapInArrow(lambda batches: batches, "id bigint").collect()  # and Python
            self._found.append(spark)
        except BaseException as error:
            self._failed.append(error)

    def session(self) -> SparkSession:
        self._thread.join()
        if self._failed:
            raise self._failed[0]
        return self._found[0]
