"""Benchmark of forwarding: engines side by side, interleaved in one process.

Ratios within one run hold on a noisy machine; absolute times do not. Messages are encoded once,
before the clock runs; what is measured is the kernel on a batch, with each distinct string looked
up once. For pivot also: `rows_us`, Arrow rows in and interface ids out, with encoding; `single_us`,
forward(dict), names out, one message at a time. All are medians over the repeats, in us a message.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
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
from palio.matching.table import ForwardingTable
from palio.matching.versions import Names, Roster, string_array
from palio.model.message import Message

_TURN_S = 0.2


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
    rows_us: float | None
    single_us: float | None

    def row(self) -> dict[str, object]:
        return asdict(self)


def _pivot(columns: Columns, _rounds: int) -> Any:
    return PivotEngine.compile(columns)


def _naive(columns: Columns, _rounds: int) -> Any:
    return NaiveEngine(columns)


def _counting(columns: Columns, rounds: int) -> Any:
    return CountingEngine(columns, rounds=rounds)


def _counting_ahead(columns: Columns, rounds: int) -> Any:
    return CountingEngine(columns, rounds=rounds, prefetch=True)


def _counting_2001(columns: Columns, _rounds: int) -> Any:
    return CountingEngine(columns, variant="2001")


ENGINES: dict[str, Callable[[Columns, int], Any]] = {
    "pivot": _pivot,
    "counting": _counting,
    "counting2001": _counting_2001,
    "counting-prefetch": _counting_ahead,
    "naive": _naive,
}


def run(
    workload: str,
    filters: int,
    interfaces: int | str,
    engines: list[str],
    *,
    rounds: int = 0,
    messages: int = 1000,
    repeats: int = 5,
    seed: int = 1,
    progress: Callable[[str, float], None] = lambda _text, _share: None,
) -> Iterator[Result]:
    """Build each engine, then time them in turns."""
    if workload not in workloads.WORKLOADS:
        raise InvalidValue(f"no workload {workload!r}; there are {', '.join(workloads.WORKLOADS)}")
    unknown = [name for name in engines if name not in ENGINES]
    if unknown:
        raise InvalidValue(f"no engine {unknown[0]!r}; there are {', '.join(ENGINES)}")
    progress(f"drawing {filters:,} filters", 0.0)
    load = workloads.WORKLOADS[workload](filters, interfaces, messages, seed=seed)
    dicts = workloads.message_dicts(load)
    sent = [Message(m) for m in dicts]
    columns = from_constraint_rows(load.constraints)
    built: dict[str, tuple[Any, float]] = {}
    runners: dict[tuple[str, str], Callable[[], int]] = {}
    for i, name in enumerate(engines):
        progress(f"building {name}", 0.1 + 0.3 * i / len(engines))
        started = time.perf_counter()
        engine = ENGINES[name](columns, rounds)
        seconds = time.perf_counter() - started
        built[name] = engine, seconds
        runners[name, "kernel"] = _runner(engine, sent)
        if isinstance(engine, PivotEngine):
            runners[name, "rows"] = _rows_runner(engine, load)
            runners[name, "single"] = _single_runner(engine, columns.interfaces, dicts)
    times: dict[tuple[str, str], list[float]] = {key: [] for key in runners}
    loops: dict[tuple[str, str], int] = {}
    matches: dict[str, int] = {}
    for turn in range(repeats + 1):  # the first turn compiles and warms up
        for i, (key, forward) in enumerate(runners.items()):
            share = (turn + i / len(runners)) / (repeats + 1)
            progress(f"turn {turn} of {repeats}: {key[0]}", 0.4 + 0.6 * share)
            if turn == 0:
                matches[key[0]] = forward()
                loops[key] = _loops(forward)
                continue
            started = time.perf_counter()
            for _ in range(loops[key]):
                forward()
            times[key].append((time.perf_counter() - started) / loops[key])
    us = {key: statistics.median(found) / len(sent) * 1e6 for key, found in times.items()}
    for name, (engine, seconds) in built.items():
        yield Result(
            workload=workload,
            engine=name,
            filters=columns.filters,
            constraints=load.constraints.num_rows,
            interfaces=len(columns.interfaces),
            messages=len(sent),
            us_per_message=us[name, "kernel"],
            matches_per_message=matches[name] / len(sent),
            build_s=seconds,
            table_bytes=int(getattr(engine, "nbytes", 0)),
            rows_us=us.get((name, "rows")),
            single_us=us.get((name, "single")),
        )


def _loops(forward: Callable[[], int]) -> int:
    """How often a turn forwards all messages."""
    started = time.perf_counter()
    forward()
    return max(1, int(_TURN_S / (time.perf_counter() - started)))


def _runner(engine: Any, messages: list[Message]) -> Callable[[], int]:
    """A function that forwards all messages and says how many matches there were."""
    if not hasattr(engine, "match_batch"):
        return lambda: len(engine.match(messages)[1])
    batch = engine.encode(messages)
    if isinstance(engine, PivotEngine):
        return lambda: len(engine.match_batch(batch, ordered=False)[1])
    return lambda: len(engine.match_batch(batch)[1])


def _rows_runner(engine: PivotEngine, load: workloads.Workload) -> Callable[[], int]:
    """The same from Arrow rows, encoding included."""
    layout, column = ("attributes", "attributes") if load.is_sparse else ("wide", "")
    return lambda: len(engine.match_rows(load.messages, layout, column)[1])


def _single_runner(
    engine: PivotEngine, interfaces: Sequence[str], messages: list[dict[str, Any]]
) -> Callable[[], int]:
    """The same one by one, from dicts to names."""
    table = ForwardingTable(engine, Roster.of(Names(string_array(interfaces))))
    return lambda: sum(len(table.forward(message)) for message in messages)


def show(console: Console, results: list[Result]) -> None:
    """A table for people, with each engine's time as a multiple of the fastest."""
    best = min(result.us_per_message for result in results)
    table = Table(
        title=f"forward: {results[0].workload}, microseconds and matches a message",
        title_justify="left",
    )
    for heading in ("engine", "filters", "ifaces", "us", "x", "matches", "build s", "B/constr."):
        table.add_column(heading, justify="left" if heading == "engine" else "right", no_wrap=True)
    for r in results:
        table.add_row(
            r.engine,
            f"{r.filters:,}",
            f"{r.interfaces:,}",
            f"{r.us_per_message:,.2f}",
            f"{r.us_per_message / best:,.1f}",
            f"{r.matches_per_message:,.1f}",
            f"{r.build_s:.1f}",
            f"{r.table_bytes / r.constraints:.1f}" if r.table_bytes else "",
        )
    console.print(table)
    for r in results:
        if r.rows_us is not None and r.single_us is not None:
            console.print(
                f"{r.engine}, Arrow rows with encoding: {r.rows_us:,.1f} us a message; "
                f"forward(dict): {r.single_us:,.1f} us, "
                f"{r.single_us - r.us_per_message:,.1f} over the kernel",
                highlight=False,
            )
