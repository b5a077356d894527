"""Benchmark of forwarding: engines side by side, interleaved in one process.

Messages are encoded once, before the clock runs; what is measured is the kernel on a batch, with
each distinct string looked up once. For pivot also: `rows_us`, Arrow rows in and interface ids out,
with encoding; `single_us`, forward(dict), names out, one message at a time. All are medians over
the repeats, in us a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Console

from palio.errors import InvalidValue
from palio.lab.bench.engines import matcher
from palio.lab.bench.harness import (
    Column,
    Progress,
    Repeated,
    Result,
    in_turns,
    part_of,
    silent,
    table,
    timed,
)
from palio.lab.data import workloads
from palio.matching.counting.engine import CountingEngine
from palio.matching.encode.columns import ConstraintColumns
from palio.matching.encode.constraint_rows import from_constraint_rows
from palio.matching.naive import NaiveEngine
from palio.matching.pivot.engine import PivotEngine
from palio.matching.table import ForwardingTable
from palio.matching.versions.interface_names import InterfaceNames, string_array
from palio.matching.versions.roster import Roster
from palio.model.message import Message

_TURN_S = 0.2
_BUILT = 0.4  # the share of the progress after which engines are timed


@dataclass(frozen=True, slots=True)
class ForwardResult(Result):
    """One engine on one workload. The fields are part of the public contract."""

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


def _pivot(columns: ConstraintColumns, _rounds: int) -> Any:
    return PivotEngine.compile(columns)


def _naive(columns: ConstraintColumns, _rounds: int) -> Any:
    return NaiveEngine(columns)


def _counting(columns: ConstraintColumns, rounds: int) -> Any:
    return CountingEngine(columns, rounds=rounds)


def _counting_ahead(columns: ConstraintColumns, rounds: int) -> Any:
    return CountingEngine(columns, rounds=rounds, prefetch=True)


def _counting_2001(columns: ConstraintColumns, _rounds: int) -> Any:
    return CountingEngine(columns, variant="2001")


def _counting_tst(columns: ConstraintColumns, rounds: int) -> Any:
    return CountingEngine(columns, rounds=rounds, strings="tst")


ENGINES: dict[str, Callable[[ConstraintColumns, int], Any]] = {
    "pivot": _pivot,
    "counting": _counting,
    "counting2001": _counting_2001,
    "counting-prefetch": _counting_ahead,
    "counting-tst": _counting_tst,
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
    options: workloads.DrawOptions = workloads.PLAIN,
    progress: Progress = silent,
) -> Iterator[ForwardResult]:
    """Build each engine, then time them in turns."""
    draw = workloads.generator(workload, options)
    unknown = [name for name in engines if name not in ENGINES]
    if unknown:
        raise InvalidValue(f"no engine {unknown[0]!r}; there are {', '.join(ENGINES)}")
    progress(f"drawing {filters:,} filters", 0.0)
    load = draw(filters, interfaces, messages, seed=seed)
    dicts = workloads.message_dicts(load)
    columns = from_constraint_rows(load.constraints)
    built: dict[str, tuple[Any, float]] = {}
    calls: dict[str, Repeated] = {}
    for i, name in enumerate(engines):
        progress(f"building {name}", 0.1 + (_BUILT - 0.1) * i / len(engines))
        engine, _ = built[name] = timed(partial(ENGINES[name], columns, rounds))
        calls[name] = _calls_on_batch(engine, dicts)
        if isinstance(engine, PivotEngine):
            calls[f"{name}, rows"] = _calls_on_rows(engine, load)
            calls[f"{name}, single"] = _calls_one_by_one(engine, columns.interfaces, dicts)
    times = in_turns(calls, repeats, part_of(progress, begin=_BUILT))
    us = {name: times.median(name) / len(dicts) * 1e6 for name in calls}
    for name, (engine, build_s) in built.items():
        yield ForwardResult(
            workload=workload,
            engine=name,
            filters=columns.filters,
            constraints=load.constraints.num_rows,
            interfaces=len(columns.interfaces),
            messages=len(dicts),
            us_per_message=us[name],
            matches_per_message=calls[name].answer / len(dicts),
            build_s=build_s,
            table_bytes=int(getattr(engine, "nbytes", 0)),
            rows_us=us.get(f"{name}, rows"),
            single_us=us.get(f"{name}, single"),
        )


# ---- calls that forward all messages and answer how many matches there were


def _calls_on_batch(engine: Any, messages: list[dict[str, Any]]) -> Repeated:
    match = matcher(engine, [Message(m) for m in messages])
    return Repeated(lambda: len(match()[1]), _TURN_S)


def _calls_on_rows(engine: PivotEngine, load: workloads.Workload) -> Repeated:
    """From Arrow rows, encoding included."""
    layout, column = ("attributes", "attributes") if load.is_sparse else ("wide", "")
    return Repeated(lambda: len(engine.match_rows(load.messages, layout, column)[1]), _TURN_S)


def _calls_one_by_one(
    engine: PivotEngine, interfaces: Sequence[str], messages: list[dict[str, Any]]
) -> Repeated:
    """From dicts to names."""
    forwarding = ForwardingTable(engine, Roster.of(InterfaceNames(string_array(interfaces))))
    return Repeated(lambda: sum(len(forwarding.forward(m)) for m in messages), _TURN_S)


def show(console: Console, results: Sequence[ForwardResult]) -> None:
    """A table for people, with each engine's time as a multiple of the fastest."""
    best = min(result.us_per_message for result in results)
    columns: list[Column[ForwardResult]] = [
        Column("engine", lambda r: r.engine, "left"),
        Column("filters", lambda r: f"{r.filters:,}"),
        Column("ifaces", lambda r: f"{r.interfaces:,}"),
        Column("us", lambda r: f"{r.us_per_message:,.2f}"),
        Column("x", lambda r: f"{r.us_per_message / best:,.1f}"),
        Column("matches", lambda r: f"{r.matches_per_message:,.1f}"),
        Column("build s", lambda r: f"{r.build_s:.1f}"),
        Column("B/constr.", _bytes_per_constraint),
    ]
    title = f"forward: {results[0].workload}, microseconds and matches a message"
    console.print(table(title, columns, results, no_wrap=True))
    for r in results:
        if r.rows_us is not None and r.single_us is not None:
            console.print(
                f"{r.engine}, Arrow rows with encoding: {r.rows_us:,.1f} us a message; "
                f"forward(dict): {r.single_us:,.1f} us, "
                f"{r.single_us - r.us_per_message:,.1f} over the kernel",
                highlight=False,
            )


def _bytes_per_constraint(result: ForwardResult) -> str:
    return f"{result.table_bytes / result.constraints:.1f}" if result.table_bytes else ""
