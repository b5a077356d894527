"""Benchmark of the model: predicates parsed a second, and how reduction grows.

Run as `python -m palio.lab.bench.model`; `--json` prints one object a line.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from rich.console import Console

import palio
from palio.lab.bench.harness import (
    Column,
    Progress,
    Repeated,
    Result,
    in_turns,
    report,
    silent,
    table,
    timed,
)
from palio.lab.data.workloads import disjunction_2006


@dataclass(frozen=True, slots=True)
class ParseResult(Result):
    """How fast predicates are parsed: the best of some repeats."""

    bench: str
    predicates: int
    shapes: int
    per_second: float


@dataclass(frozen=True, slots=True)
class ReduceResult(Result):
    """How long one disjunction takes to reduce, and its advantage alpha."""

    bench: str
    names: int
    distribution: str
    filters: int
    seconds: float
    alpha: float


def rule_texts(count: int, shapes: int) -> list[str]:
    """Rules as people have them: few shapes, many literals."""
    makers = [
        "dest = 'D{i}' AND price{k} < {i}",
        "carrier IN ('UA', 'AA', 'X{i}') AND delay{k} >= {i}",
        "user{k} = 'u{i}' AND (level > {j} OR kind LIKE 'err{j}%')",
        "tenant{k} = {i} AND NOT (status = 'ok' AND latency < {i}.5)",
    ]
    return [
        makers[i % len(makers)].format(i=i, j=i % 97, k=i % shapes // len(makers))
        for i in range(count)
    ]


def run(progress: Progress) -> Iterator[ParseResult | ReduceResult]:
    """Time parsing, then reduction."""
    yield from parsing(progress=progress)
    yield from reductions(progress=progress)


def parsing(
    count: int = 100_000, shapes: int = 100, repeats: int = 3, progress: Progress = silent
) -> Iterator[ParseResult]:
    """Predicates parsed a second."""
    texts = rule_texts(count, shapes)
    calls = {"parse": Repeated(lambda: [palio.parse(text) for text in texts])}
    best_s = in_turns(calls, repeats, progress).shortest("parse")
    yield ParseResult("parse", count, shapes, count / best_s)


def reductions(
    sizes: tuple[int, ...] = (1_000, 10_000, 100_000), progress: Progress = silent
) -> Iterator[ReduceResult]:
    """Seconds to reduce a disjunction of the 2006 workload, by its size."""
    for distribution in ("zipf", "uniform"):
        for size in sizes:
            progress(f"reducing {size:,} filters, {distribution}", None)
            given = disjunction_2006(size, names=500, zipf=distribution == "zipf")
            reduced, reduce_s = timed(partial(palio.reduce, given))
            yield ReduceResult(
                "reduce", 500, distribution, size, reduce_s, reduced.size / given.size
            )


_COLUMNS: list[Column[ReduceResult]] = [
    Column("names", lambda r: str(r.names), "left"),
    Column("distribution", lambda r: r.distribution, "left"),
    Column("filters", lambda r: f"{r.filters:,}", "left"),
    Column("seconds", lambda r: f"{r.seconds:.2f}", "left"),
    Column("alpha", lambda r: f"{r.alpha:.3f}", "left"),
]


def show(console: Console, results: Sequence[ParseResult | ReduceResult]) -> None:
    """A sentence on parsing and a table of reductions."""
    for result in results:
        if isinstance(result, ParseResult):
            rate = f"{result.per_second:,.0f} predicates/s of {result.shapes} shapes"
            console.print(f"parse: {rate}")
    reduced = [result for result in results if isinstance(result, ReduceResult)]
    console.print(table("reduce", _COLUMNS, reduced, title_justify="center"))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", action="store_true", help="one JSON object a line")
    chosen = options.parse_args()
    report(run, show, as_json=chosen.json)


if __name__ == "__main__":
    main()
