"""Benchmark of forwarding: engines side by side, interleaved in one process.

Ratios within one run hold on a noisy machine; absolute times do not. Messages are encoded once,
before the clock runs; what is measured is the kernel on a batch, with each distinct string looked
up once. The time of an engine is the median over the repeats.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from palio.errors import InvalidValue
from palio.lab import workloads
from palio.matching.columns import Columns
from palio.matching.constraint_rows import from_constraint_rows
from palio.matching.counting import CountingEngine
from palio.matching.engines import PivotEngine
from palio.matching.naive import NaiveEngine
from palio.model.message import Message


@dataclass(frozen=True, slots=True)
class Result:
    """One engine on one workload."""

    workload: str
    engine: str
    filters: int
    constraints: int
    interfaces: int
    messages: int
    us_per_message: float
    matches_per_message: float
    build_s: float
    table_bytes: int

    def row(self) -> dict[str, object]:
        return asdict(self)


def _pivot(columns: Columns, _rounds: int) -> Any:
    return PivotEngine.compile(columns)


def _naive(columns: Columns, _rounds: int) -> Any:
    return NaiveEngine(columns)


def _counting(columns: Columns, rounds: int) -> Any:
    return CountingEngine(columns, rounds=rounds)


def _counting_2001(columns: Columns, _rounds: int) -> Any:
    return CountingEngine(columns, variant="2001")


ENGINES: dict[str, Callable[[Columns, int], Any]] = {
    "pivot": _pivot,
    "counting": _counting,
    "counting2001": _counting_2001,
    "naive": _naive,
}


def run(
    workload: str,
    filters: int,
    interfaces: int | str,
    engines: list[str],
    *,
    rounds: int = 0,
    messages: int = 100,
    repeats: int = 5,
    seed: int = 1,
    progress: Callable[[str], None] = lambda _text: None,
) -> Iterator[Result]:
    """Build each engine, then time them in turns."""
    if workload not in workloads.WORKLOADS:
        raise InvalidValue(f"no workload {workload!r}; there are {', '.join(workloads.WORKLOADS)}")
    unknown = [name for name in engines if name not in ENGINES]
    if unknown:
        raise InvalidValue(f"no engine {unknown[0]!r}; there are {', '.join(ENGINES)}")
    progress(f"drawing {filters:,} filters")
    load = workloads.WORKLOADS[workload](filters, interfaces, messages, seed=seed)
    sent = [Message(m) for m in workloads.message_dicts(load)]
    columns = from_constraint_rows(load.constraints)
    built: dict[str, tuple[Any, Any, float]] = {}
    for name in engines:
        progress(f"building {name}")
        started = time.perf_counter()
        engine = ENGINES[name](columns, rounds)
        seconds = time.perf_counter() - started
        built[name] = engine, _runner(engine, sent), seconds
    times: dict[str, list[float]] = {name: [] for name in engines}
    matches: dict[str, int] = {}
    for turn in range(repeats + 1):  # the first turn compiles and warms up
        for name, (_, forward, _) in built.items():
            progress(f"forwarding, turn {turn} of {repeats}: {name}")
            started = time.perf_counter()
            matches[name] = forward()
            if turn:
                times[name].append(time.perf_counter() - started)
    for name, (engine, _, seconds) in built.items():
        yield Result(
            workload=workload,
            engine=name,
            filters=columns.filters,
            constraints=load.constraints.num_rows,
            interfaces=len(columns.interfaces),
            messages=len(sent),
            us_per_message=statistics.median(times[name]) / len(sent) * 1e6,
            matches_per_message=matches[name] / len(sent),
            build_s=seconds,
            table_bytes=int(getattr(engine, "nbytes", 0)),
        )


def _runner(engine: Any, messages: list[Message]) -> Callable[[], int]:
    """A function that forwards all messages and says how many matches there were."""
    if not hasattr(engine, "match_batch"):
        return lambda: len(engine.match(messages)[1])
    batch = engine.encode(messages)
    if isinstance(engine, PivotEngine):
        return lambda: len(engine.match_batch(batch, ordered=False)[1])
    return lambda: len(engine.match_batch(batch)[1])


def show(console: Console, results: list[Result]) -> None:
    """A table for people, with each engine's time as a multiple of the fastest."""
    best = min(result.us_per_message for result in results)
    table = Table(title=f"forward: {results[0].workload}", title_justify="left")
    for heading in ("engine", "filters", "interfaces", "us/message", "x", "matches/message"):
        table.add_column(heading, justify="left" if heading == "engine" else "right")
    table.add_column("build s", justify="right")
    table.add_column("bytes/constraint", justify="right")
    for r in results:
        table.add_row(
            r.engine,
            f"{r.filters:,}",
            f"{r.interfaces:,}",
            f"{r.us_per_message:,.1f}",
            f"{r.us_per_message / best:,.1f}",
            f"{r.matches_per_message:,.1f}",
            f"{r.build_s:.1f}",
            f"{r.table_bytes / r.constraints:.1f}" if r.table_bytes else "",
        )
    console.print(table)
