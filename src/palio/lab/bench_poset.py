"""Benchmark of posets: how an insertion and a removal grow with the poset (2006 workload).

One poset grows from nothing. At 1,000, 10,000, ... filters and at the end a sample of items is taken
out and put in again. Single operations are timed by the processor time they take, so that other
work on the machine counts little; the total is there in seconds of the clock as well.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from palio.errors import InvalidValue
from palio.lab.workloads import disjunction_2006
from palio.model.predicate import Filter
from palio.routing.poset import SUBSCRIPTIONS, Poset

_REMOVED = 500
_STEPS = 200  # reports of progress


@dataclass(frozen=True, slots=True)
class Result:
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

    def row(self) -> dict[str, object]:
        return asdict(self)


def run(
    filters: int,
    *,
    names: int = 500,
    zipf: bool = True,
    seed: int = 1,
    progress: Callable[[str, float], None] = lambda _text, _share: None,
) -> Iterator[Result]:
    """Grow a poset to this many filters; a result at each power of ten from 1,000, and at the end."""
    if filters < 10 or names < 1:
        raise InvalidValue("a benchmark of posets takes at least 10 filters and one name")
    progress(f"drawing {filters:,} filters", 0.0)
    drawn = disjunction_2006(filters, names=names, zipf=zipf, seed=seed).filters
    poset = Poset(SUBSCRIPTIONS)
    done, total_s, total_cpu_s = 0, 0.0, 0.0
    for size in _sizes(filters):
        tail = size - size // 10
        for part in (drawn[done:tail], drawn[tail:size]):
            share = max(1, filters // _STEPS)
            part_s, part_cpu_s = 0.0, 0.0
            for start in range(0, len(part), share):
                progress(f"{len(poset):,} filters are in", (done + start) / filters)
                clock, cpu = time.perf_counter(), time.process_time()
                for item in part[start : start + share]:
                    poset.insert(item)
                part_cpu_s += time.process_time() - cpu
                part_s += time.perf_counter() - clock
            done += len(part)
            total_s, total_cpu_s = total_s + part_s, total_cpu_s + part_cpu_s
        remove_us = _removal_us(poset, seed)
        yield Result(
            names=names,
            distribution="zipf" if zipf else "uniform",
            filters=size,
            items=len(poset),
            total_s=total_s,
            total_cpu_s=total_cpu_s,
            insert_us=part_cpu_s / len(part) * 1e6,
            remove_us=remove_us,
            roots=len(poset.roots()),
            edges=sum(len(poset.successors(item)) for item in poset),
            depth=depth(poset),
        )


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


def show(console: Console, results: list[Result]) -> None:
    """A table for people."""
    first = results[0]
    table = Table(
        title=f"poset: 2006 workload, {first.names} names, {first.distribution}",
        title_justify="left",
    )
    headings = ("filters", "in the poset", "seconds", "cpu s", "us/insertion", "us/removal")
    for heading in (*headings, "roots", "edges", "depth"):
        table.add_column(heading, justify="right")
    for r in results:
        times = (f"{r.total_s:.2f}", f"{r.total_cpu_s:.2f}")
        single = (f"{r.insert_us:,.0f}", f"{r.remove_us:,.0f}")
        shape = (f"{r.roots:,}", f"{r.edges:,}", f"{r.depth:,}")
        table.add_row(f"{r.filters:,}", f"{r.items:,}", *times, *single, *shape)
    console.print(table)
