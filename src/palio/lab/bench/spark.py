"""Benchmark of Spark: forwarding beside transport alone and beside joins, interleaved in one session.

Messages lie in parquet files, so every contestant reads the same; what it gives is computed and
dropped. A case times its contestants in turns, and the ratio is that of the medians. Before that the
answers of some hundred messages are compared with the oracle.

    wide, json          many predicates on 100 interfaces, against identity with the same columns:
                        alerts on real flights, and the workload of the 2003 paper
    wide-fields         the same on ten columns drawn alike, where hundreds are verified a message
    json-sparse         10,000 predicates, JSON of 10 of 1,000 attributes, against identity
    map, json-join      the same as pairs, against the joins of `spark_baselines`
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

import palio.spark
from palio.errors import InvalidValue, PalioError
from palio.lab.bench import spark_baselines as baselines
from palio.lab.bench.harness import (
    Column,
    Progress,
    Repeated,
    Result,
    in_turns,
    part_of,
    silent,
    table,
)
from palio.lab.bench.shared_memory import SharedTable, shared_table
from palio.lab.data import workloads
from palio.lab.data.oracle import Oracle
from palio.matching.table import ForwardingTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

INTERFACES = 100
FEW = 10_000  # predicates, where joins take part
CHECKED = 200  # messages that go to the oracle
LOOP_ROWS = 300  # messages for the nested loop, which takes milliseconds for each
SHARED_FILTERS = 300_000
FILES = 4


@dataclass(frozen=True, slots=True)
class SparkResult(Result):
    """One case: forwarding against one other way, in rows a second."""

    case: str
    filters: int
    interfaces: int
    rows: int
    matches_per_row: float
    table_bytes: int
    against: str
    rows_per_s: float
    against_rows_per_s: float
    bare_rows_per_s: float | None  # identity without the column of answers
    ratio: float
    target: float
    checked_rows: int


@dataclass(frozen=True, slots=True)
class _SparkCase:
    """A table, messages in files, and how they are read."""

    name: str
    load: workloads.Workload
    table: Path
    frame: DataFrame
    options: dict[str, str]
    matches: float
    answers: pa.ListArray  # of the first messages


def run(
    rows: int,
    filters: int,
    *,
    repeats: int = 5,
    seed: int = 1,
    progress: Progress = silent,
) -> Iterator[SparkResult | SharedTable]:
    """Yield the cases, then the memory of a shared table."""
    if rows < CHECKED or filters < INTERFACES or repeats < 1:
        raise InvalidValue(
            f"a benchmark of Spark takes at least {CHECKED} rows, {INTERFACES} filters and a repeat"
        )
    progress("starting Spark", None)
    with (
        tempfile.TemporaryDirectory(prefix="palio-bench-") as name,
        _session() as spark,
    ):
        bench = _SparkBench(spark, Path(name), rows, repeats, seed, progress)
        yield from bench.against_identity("wide", workloads.flights, filters, INTERFACES, 0.6)
        yield from bench.against_identity("wide-fields", workloads.fields, filters, INTERFACES, 0.6)
        yield from bench.against_identity("json", workloads.sigcomm03, filters, INTERFACES, 0.6)
        yield from bench.against_identity("json-sparse", workloads.texts, FEW, "all", 0.5)
        yield from bench.against_joins()
        progress("sharing a table", None)
        load = workloads.sigcomm03(min(filters, SHARED_FILTERS), "all", 0, seed=seed)
        yield shared_table(spark, ForwardingTable.compile(load.constraints))


@contextmanager
def _session() -> Iterator[SparkSession]:
    spark = palio.spark.session("local[2]", "palio-bench")
    try:
        yield spark
    finally:
        spark.stop()


class _SparkBench:
    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        rows: int,
        repeats: int,
        seed: int,
        progress: Progress,
    ) -> None:
        self._spark, self._folder = spark, folder
        self._rows, self._repeats, self._seed = rows, repeats, seed
        self._progress = progress

    # ---- cases

    def against_identity(
        self,
        name: str,
        draw: workloads.Generator,
        filters: int,
        interfaces: int | str,
        target: float,
    ) -> Iterator[SparkResult]:
        """Forwarding against the same columns through Python and back."""
        case = self._case(name, draw, filters, interfaces)
        contestants = {
            "palio": palio.spark.forward(case.frame, case.table, **case.options),  # type: ignore[arg-type]
            "identity": baselines.identity(case.frame, case.answers),
            "bare": baselines.identity(case.frame, None),
        }
        rates = self._timed(name, {k: (v, self._rows) for k, v in contestants.items()})
        yield self._result(case, "identity", rates, target)

    def against_joins(self) -> Iterator[SparkResult]:
        """Pairs of message and interface, by Palio and by the joins, on maps and on JSON."""
        maps = self._case("map", workloads.texts, FEW, "all")
        texts = self._case("json-join", workloads.texts, FEW, "all")
        constraints = self._folder / "constraints.parquet"
        pq.write_table(_plain(maps.load.constraints), constraints)
        predicates = baselines.predicate_rows(self._spark.read.parquet(str(constraints))).cache()
        predicates.count()
        few = maps.frame.where(f"id < {min(LOOP_ROWS, self._rows)}")
        parsed = texts.frame.selectExpr("id", "from_json(message, 'map<string,string>') AS message")
        contestants = {
            "palio on maps": self._pairs(maps),
            "palio on JSON": self._pairs(texts),
            "join, maps": baselines.equi_join(maps.frame, predicates),
            "join, JSON": baselines.equi_join(parsed, predicates),
        }
        loop = baselines.nested_loop(few, predicates)
        expected = self._pairs(maps).where(f"id < {CHECKED}")
        wanted = baselines.pair_set(expected)
        for other, pairs in (*contestants.items(), ("nested loop", loop)):
            if baselines.pair_set(pairs.where(f"id < {CHECKED}")) != wanted:
                raise PalioError(f"{other} gives other pairs than Palio on maps: this is a bug")
        timed = {k: (v, self._rows) for k, v in contestants.items()}
        rates = self._timed("joins", timed)
        slow = self._timed("nested loop", {"loop": (loop, min(LOOP_ROWS, self._rows))}, repeats=1)
        for case, against, ours, rate, target in (
            (maps, "loop, maps", "palio on maps", slow["loop"], 200.0),
            (maps, "join, maps", "palio on maps", rates["join, maps"], 1.0),
            (texts, "join, JSON", "palio on JSON", rates["join, JSON"], 1.0),
            (texts, "join, maps", "palio on JSON", rates["join, maps"], 1.0),
        ):
            both = {"palio": rates[ours], against: rate}
            yield self._result(case, against, both, target)
        predicates.unpersist()

    def _pairs(self, case: _SparkCase) -> DataFrame:
        routed = palio.spark.forward(case.frame, case.table, output="pairs", **case.options)  # type: ignore[arg-type]
        return routed.select("id", "interface")

    def _result(
        self, case: _SparkCase, against: str, rates: dict[str, float], target: float
    ) -> SparkResult:
        return SparkResult(
            case=case.name,
            filters=case.load.filters,
            interfaces=case.load.interfaces,
            rows=self._rows,
            matches_per_row=case.matches,
            table_bytes=case.table.stat().st_size,
            against=against,
            rows_per_s=rates["palio"],
            against_rows_per_s=rates[against],
            bare_rows_per_s=rates.get("bare"),
            ratio=rates["palio"] / rates[against],
            target=target,
            checked_rows=CHECKED,
        )

    # ---- making a case

    def _case(
        self, name: str, draw: workloads.Generator, filters: int, interfaces: int | str
    ) -> _SparkCase:
        self._progress(f"{name}: drawing {filters:,} filters and {self._rows:,} messages", None)
        load = draw(filters, interfaces, self._rows, seed=self._seed)
        encoding = name.partition("-")[0]
        rows = _ENCODED[encoding](load)
        rows = rows.append_column("id", pa.array(range(self._rows), pa.int64()))
        folder = self._folder / name
        folder.mkdir()
        step = -(-self._rows // FILES)
        for number in range(FILES):
            pq.write_table(rows.slice(number * step, step), folder / f"{number}.parquet")
        self._progress(f"{name}: compiling", None)
        compiled = ForwardingTable.compile(load.constraints)
        table = self._folder / f"{name}.palio"
        compiled.save(table)
        frame = self._spark.read.parquet(str(folder))
        options = {} if encoding == "wide" else {encoding: "message"}
        self._progress(f"{name}: asking the oracle", None)
        answers = self._checked(name, load, palio.spark.forward(frame, table, **options))  # type: ignore[arg-type]
        matches = len(answers.flatten()) / len(answers)
        return _SparkCase(name, load, table, frame, options, matches, answers)

    def _checked(self, name: str, load: workloads.Workload, routed: DataFrame) -> pa.ListArray:
        """The answers of the first messages, which are those of the oracle."""
        first = routed.where(f"id < {CHECKED}").select("id", "interfaces").toArrow().sort_by("id")
        oracle = Oracle(load.constraints)
        messages = workloads.message_dicts(load, CHECKED)
        for row, (interfaces, message) in enumerate(
            zip(first["interfaces"].to_pylist(), messages, strict=True)
        ):
            if interfaces != oracle.interfaces(message):
                raise PalioError(f"{name}: the answer for message {row} is wrong: this is a bug")
        return first["interfaces"].combine_chunks()

    # ---- time

    def _timed(
        self,
        name: str,
        contestants: dict[str, tuple[DataFrame, int]],
        repeats: int | None = None,
    ) -> dict[str, float]:
        """Rows a second, in turns."""
        calls = {
            key: Repeated(partial(baselines.run, frame)) for key, (frame, _) in contestants.items()
        }
        told = part_of(self._progress, prefix=f"{name}, ")
        times = in_turns(calls, repeats or self._repeats, told)
        return {key: rows / times.median(key) for key, (_, rows) in contestants.items()}


# ---- encodings


def _maps(load: workloads.Workload) -> pa.Table:
    lists = load.messages["attributes"].combine_chunks()
    names, _, values = lists.flatten().flatten()
    made = pa.MapArray.from_arrays(lists.offsets, names.dictionary_decode(), values)
    return pa.table({"message": made})


def _wide(load: workloads.Workload) -> pa.Table:
    return load.messages


_ENCODED: dict[str, Callable[[workloads.Workload], pa.Table]] = {
    "wide": _wide,
    "json": workloads.json_messages,
    "map": _maps,
}


def _plain(constraints: pa.Table) -> pa.Table:
    """Without dictionaries, which Spark cannot read from parquet of some types."""
    fields = [
        pa.field(f.name, f.type if f.name == "filter" else pa.string()) for f in constraints.schema
    ]
    return constraints.cast(pa.schema(fields))


# ---- output


_COLUMNS: list[Column[SparkResult]] = [
    Column("case", lambda r: r.case, "left"),
    Column("filters", lambda r: f"{r.filters:,}"),
    Column("matches", lambda r: f"{r.matches_per_row:,.1f}"),
    Column("rows/s", lambda r: f"{r.rows_per_s:,.0f}"),
    Column("against", lambda r: r.against, "left"),
    Column("rows/s", lambda r: f"{r.against_rows_per_s:,.0f}"),
    Column("ratio", lambda r: f"{r.ratio:,.2f}"),
    Column("target", lambda r: f"{r.target:g}"),
]


def show(console: Console, results: Sequence[SparkResult | SharedTable]) -> None:
    """A table for people, and a sentence on the shared table."""
    cases = [result for result in results if isinstance(result, SparkResult)]
    console.print(table("forward on Spark, local[2]", _COLUMNS, cases))
    for result in results:
        if isinstance(result, SharedTable):
            console.print(str(result), highlight=False)
