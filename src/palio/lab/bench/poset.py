"""Benchmark of posets: how an insertion and a removal grow with the poset (2006 workload).

One poset grows from nothing. At 1,000, 10,000, ... filters and at the end a sample of items is taken
out and put in again. Single operations are timed by the processor time they take, so that other
work on the machine counts little; the total is there in seconds of the clock as well.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console

from palio.errors import InvalidValue
from palio.lab.bench.harness import Column, Progress, Result, part_of, silent, table
from palio.lab.data.workloads import disjunction_2006
from palio.model.predicate import Filter
from palio.routing.poset import SUBSCRIPTIONS, Poset

_REMOVED = 500
_STEPS = 200  # reports of progress


@dataclass(frozen=True, slots=True)
class PosetResult(Result):
    """A poset of one size. Times of insertions are those of the last tenth."""

    names: int
    distribution: str
    filters: int
    items: int  # of equal filters one is there
    total_s: float
    total_cpu_s: float
    insert_us: float
    remove_us: float
    roots: int
    edges: int
    depth: int


def run(
    filters: int,
    *,
    names: int = 500,
    zipf: bool = True,
    seed: int = 1,
    progress: Progress = silent,
) -> Iterator[PosetResult]:
    """Grow a poset to this many filters; a result at each power of ten from 1,000, and at the end."""
    if filters < 10 or names < 1:
        raise InvalidValue("a benchmark of posets takes at least 10 filters and one name")
    progress(f"drawing {filters:,} filters", 0.0)
    drawn = disjunction_2006(filters, names=names, zipf=zipf, seed=seed).filters
    poset = Poset(SUBSCRIPTIONS)
    done, total = 0, _Spent()
    for size in _sizes(filters):
        tail = size - size // 10
        for begin, end in ((done, tail), (tail, size)):
            told = part_of(progress, begin / filters, end / filters)
            last = _insert(poset, drawn[begin:end], max(1, filters // _STEPS), told)
            total = total + last
        done = size
        yield PosetResult(
            names=names,
            distribution="zipf" if zipf else "uniform",
            filters=size,
            items=len(poset),
            total_s=total.clock_s,
            total_cpu_s=total.cpu_s,
            insert_us=last.cpu_s / (size - tail) * 1e6,
            remove_us=_removal_us(poset, seed),
            roots=len(poset.roots()),
            edges=sum(len(poset.successors(item)) for item in poset),
            depth=depth(poset),
        )


@dataclass(frozen=True, slots=True)
class _Spent:
    """Time of the clock and of the processor."""

    clock_s: float = 0.0
    cpu_s: float = 0.0

    def __add__(self, other: _Spent) -> _Spent:
        return _Spent(self.clock_s + other.clock_s, self.cpu_s + other.cpu_s)


def _insert(poset: Poset[Filter], items: Sequence[Filter], step: int, progress: Progress) -> _Spent:
    """Insert items; progress is told after each step, and its time does not count."""
    spent = _Spent()
    for start in range(0, len(items), step):
        progress(f"{len(poset):,} filters are in", start / len(items))
        clock, cpu = time.perf_counter(), time.process_time()
        for item in items[start : start + step]:
            poset.insert(item)
        spent = spent + _Spent(time.perf_counter() - clock, time.process_time() - cpu)
    return spent


def _sizes(filters: int) -> list[int]:
    sizes = [10**power for power in range(3, 10) if 10**power < filters]
    return [*sizes, filters]


def _removal_us(poset: Poset[Filter], seed: int) -> float:
    """Processor time of one removal. What was taken out is put in again."""
    some = random.Random(seed).sample(list(poset), min(_REMOVED, len(poset)))
    started = time.process_time()
    for item in some:
        poset.remove(item)
    spent = time.process_time() - started
    for item in some:
        poset.insert(item)
    return spent / len(some) * 1e6


def depth(poset: Poset[Filter]) -> int:
    """How many items the longest chain has."""
    open_above = {item: len(poset.predecessors(item)) for item in poset}
    deepest = dict.fromkeys(poset, 1)
    ready = list(poset.roots())
    while ready:
        item = ready.pop()
        for lower in poset.successors(item):
            deepest[lower] = max(deepest[lower], deepest[item] + 1)
            open_above[lower] -= 1
            if not open_above[lower]:
                ready.append(lower)
    return max(deepest.values(), default=0)


_COLUMNS: list[Column[PosetResult]] = [
    Column("filters", lambda r: f"{r.filters:,}"),
    Column("in the poset", lambda r: f"{r.items:,}"),
    Column("seconds", lambda r: f"{r.total_s:.2f}"),
    Column("cpu s", lambda r: f"{r.total_cpu_s:.2f}"),
    Column("us/insertion", lambda r: f"{r.insert_us:,.0f}"),
    Column("us/removal", lambda r: f"{r.remove_us:,.0f}"),
    Column("roots", lambda r: f"{r.roots:,}"),
    Column("edges", lambda r: f"{r.edges:,}"),
    Column("depth", lambda r: f"{r.depth:,}"),
]


def show(console: Console, results: Sequence[PosetResult]) -> None:
    """A table for people."""
    first = results[0]
    title = f"poset: 2006 workload, {first.names} names, {first.distribution}"
    console.print(table(title, _COLUMNS, results))
