"""Benchmark of rules as people write them: expressions and residuals beside plain constraints.

    mixed     the rules as they are written      both in one process, on the same rows of flights,
    plain     with plain conditions instead      in turns
    loop      a column of Spark for each of some of the rules: what one does without an index

`loop` has fewer rules, of the same rows; it is compared by rules times rows in a second. The verdict says whether
the two goals are met: at most twice the time of the plain rules, and 200 times the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from rich.console import Console

from palio.errors import InvalidValue, PalioError
from palio.lab.bench.harness import (
    Column,
    Progress,
    Repeated,
    Result,
    in_turns,
    silent,
    table,
    timed,
)
from palio.lab.data import flights, where_rules
from palio.matching.table import ForwardingTable

CHECKED_RULES, CHECKED_ROWS = 1000, 100
GOAL_TIME, GOAL_LOOP = 2.0, 200.0


@dataclass(frozen=True, slots=True)
class WhereResult(Result):
    """One table of rules, beside the plain rules and beside a loop of Spark's columns."""

    rules: int
    rows: int
    us_per_message: float
    plain_us_per_message: float
    ratio: float  # of the times
    matches_per_message: float
    plain_matches_per_message: float
    shared: int
    residuals: int
    shapes: int
    build_s: float
    plain_build_s: float
    loop_rules: int
    loop_us_per_message: float | None
    times_loop: float | None  # rules times rows in a second
    checked: int
    verdict: str


def run(
    rules: int,
    rows: int,
    *,
    loop_rules: int = 1000,
    repeats: int = 5,
    seed: int = 1,
    progress: Progress = silent,
) -> Iterator[WhereResult]:
    """Compile the rules and time them in turns; there is one result."""
    if rules < 1 or rows < 1 or repeats < 1:
        raise InvalidValue("a benchmark of rules takes at least a rule, a row and a repeat")
    progress("reading flights", None)
    everything = flights.load().table
    some = everything.take(list(range(0, len(everything), max(1, len(everything) // rows)))[:rows])
    some = some.combine_chunks()
    drawn = where_rules.draw(everything, rules, seed)
    progress(f"compiling {rules:,} rules", None)
    mixed, build_s = timed(partial(ForwardingTable.compile, drawn.mixed))
    plain, plain_build_s = timed(partial(ForwardingTable.compile, drawn.plain))
    progress("comparing with the naive engine", None)
    checked = _checked(mixed, drawn.mixed, some)
    contestants: dict[str, Any] = {
        "mixed": Repeated(partial(mixed.forward_batch, some, ids=True)),
        "plain": Repeated(partial(plain.forward_batch, some, ids=True)),
    }
    loop_s = _loop_s(drawn.mixed, some, loop_rules, repeats, progress) if loop_rules else None
    times = in_turns(contestants, repeats, progress)
    mixed_s, plain_s = times.median("mixed"), times.median("plain")
    loop_us = None if loop_s is None else 1e6 * loop_s / len(some)
    us = 1e6 * mixed_s / len(some)
    times_loop = None if loop_us is None else (rules / us) / (min(loop_rules, rules) / loop_us)
    yield WhereResult(
        rules=rules,
        rows=len(some),
        us_per_message=us,
        plain_us_per_message=1e6 * plain_s / len(some),
        ratio=mixed_s / plain_s,
        matches_per_message=_matches(contestants["mixed"].answer),
        plain_matches_per_message=_matches(contestants["plain"].answer),
        shared=len(mixed.expressions.shared),
        residuals=mixed.expressions.residuals,
        shapes=mixed.expressions.shapes,
        build_s=build_s,
        plain_build_s=plain_build_s,
        loop_rules=min(loop_rules, rules),
        loop_us_per_message=loop_us,
        times_loop=times_loop,
        checked=checked,
        verdict=verdict(mixed_s / plain_s, times_loop),
    )


def verdict(ratio: float, times_loop: float | None) -> str:
    """Whether the goals are met, in words.

    >>> verdict(1.4, 350.0)
    'goals met'
    >>> verdict(2.5, None)
    'missed: 2.50 times the plain rules; no loop was timed'
    """
    missed = []
    if ratio > GOAL_TIME:
        missed.append(f"{ratio:.2f} times the plain rules")
    if times_loop is not None and times_loop < GOAL_LOOP:
        missed.append(f"{times_loop:,.0f} times the loop")
    found = f"missed: {' and '.join(missed)}" if missed else "goals met"
    return found if times_loop is not None else f"{found}; no loop was timed"


def _matches(lists: pa.ListArray) -> float:
    return len(lists.flatten()) / max(1, len(lists))


def _checked(mixed: ForwardingTable, rules: dict[str, str], rows: pa.Table) -> int:
    """Some rules on some rows, against the naive engine."""
    some = list(rules)[:: max(1, len(rules) // CHECKED_RULES)]
    few = rows.slice(0, CHECKED_ROWS)
    naive = ForwardingTable.compile({name: rules[name] for name in some}, engine="naive")
    if mixed.forward_batch(few, among=some).to_pylist() != naive.forward_batch(few).to_pylist():
        raise PalioError("the rules give other answers than those of the naive engine")
    return len(some) * len(few)


def _loop_s(
    rules: dict[str, str], rows: pa.Table, count: int, repeats: int, progress: Progress
) -> float | None:
    """Seconds of Spark for a boolean column of each of so many rules; None: there is no Spark."""
    try:
        from palio.lab.bench.where_loop import spark_loop
    except ImportError:
        return None
    progress("a column of Spark for each rule", None)
    return spark_loop(list(rules.values())[:count], rows, repeats)


_COLUMNS: tuple[Column[WhereResult], ...] = (
    Column("rules", lambda r: f"{r.rules:,}"),
    Column("us a message", lambda r: f"{r.us_per_message:.1f}"),
    Column("plain rules", lambda r: f"{r.plain_us_per_message:.1f}"),
    Column("ratio", lambda r: f"{r.ratio:.2f}"),
    Column("goal", lambda _: f"{GOAL_TIME:.1f}"),
    Column("matches", lambda r: f"{r.matches_per_message:.1f}"),
    Column("times a loop", lambda r: "-" if r.times_loop is None else f"{r.times_loop:,.0f}"),
    Column("goal", lambda _: f"{GOAL_LOOP:.0f}"),
    Column("verdict", lambda r: r.verdict, justify="left"),
)


def show(console: Console, results: Sequence[WhereResult]) -> None:
    """A table for people."""
    console.print(table("Rules with expressions and residuals, on flights", _COLUMNS, results))
