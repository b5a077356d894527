"""Benchmark of updates: a live table takes them one by one while another thread forwards.

Half of the updates add an interface, half remove one, in turns; the added predicates are texts of a
thousand shapes, parsed within the time that is measured. First come updates each of which is seen
by a message at once; then a stream of them, as fast as it goes, with merging and compaction in the
background and a reader beside it.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from rich.console import Console
from rich.table import Table

from palio.errors import InvalidValue
from palio.lab.bench.harness import Progress, Result, seconds, silent, timed
from palio.lab.data import workloads
from palio.matching.table import ForwardingTable
from palio.matching.versions.live import LiveTable
from palio.model.language import parse
from palio.model.message import Message

_SHAPES = 1000
_PAUSE_S = 0.01  # of the reader between two messages
_VISIBLE = 1000  # updates that are followed by a message each


@dataclass(frozen=True, slots=True)
class UpdateResult(Result):
    """Updates of one table."""

    workload: str
    filters: int
    interfaces: int
    updates: int
    first_update_ms: float
    visible_ms_median: float
    visible_ms_p99: float
    visible_ms_max: float
    updates_per_s: float
    update_us_median: float
    update_ms_max: float
    forward_us_before: float
    forward_us_median: float
    forward_ms_max: float
    compactions: int
    compaction_s: float
    build_s: float


def run(
    workload: str,
    filters: int,
    updates: int,
    *,
    share: float = 0.25,
    seed: int = 1,
    progress: Progress = silent,
) -> Iterator[UpdateResult]:
    """Build a table of one interface a filter, and update it; there is one result."""
    make = workloads.generator(workload)
    if updates < 1 or filters < 1:
        raise InvalidValue("a benchmark of updates takes at least one filter and one update")
    progress(f"drawing {filters:,} filters", None)
    load = make(filters, "all", 100, seed=seed)
    messages = [Message(m) for m in workloads.message_dicts(load)]
    texts = [str(p) for _, p in workloads.predicates(make(_SHAPES, "all", 1, seed=seed + 1))]
    for text in texts:
        parse(text)
    progress("building", None)
    table, build_s = timed(partial(ForwardingTable.compile, load.constraints))
    before = [seconds(partial(table.forward, m)) for m in messages * 2][len(messages) :]
    changes = _changes(table.interfaces, texts)
    with LiveTable(table, share=share, least=min(4096, filters)) as live:
        progress("updates, each seen by a message", None)
        first_s = seconds(lambda: live.update(*next(changes)))
        seen = (messages[i % len(messages)] for i in range(_VISIBLE))
        visible = [seconds(partial(_update_and_see, live, next(changes), m)) for m in seen]
        with _ConcurrentReader(live, messages) as reader:
            times, total_s = _stream(live, changes, updates, progress)
        progress("compacting", None)
        compaction_s = seconds(live.table.compacted)
    yield UpdateResult(
        workload=workload,
        filters=filters,
        interfaces=len(table.interfaces),
        updates=updates,
        first_update_ms=first_s * 1e3,
        visible_ms_median=statistics.median(visible) * 1e3,
        visible_ms_p99=statistics.quantiles(visible, n=100)[98] * 1e3,
        visible_ms_max=max(visible) * 1e3,
        updates_per_s=updates / total_s,
        update_us_median=statistics.median(times) * 1e6,
        update_ms_max=max(times) * 1e3,
        forward_us_before=statistics.median(before) * 1e6,
        forward_us_median=statistics.median(reader.times) * 1e6,
        forward_ms_max=max(reader.times) * 1e3,
        compactions=live.compactions,
        compaction_s=compaction_s,
        build_s=build_s,
    )


def _update_and_see(
    live: LiveTable, change: tuple[dict[str, str], list[str]], message: Message
) -> None:
    live.update(*change)
    live.table.forward(message)


def _changes(
    interfaces: tuple[str, ...], texts: list[str]
) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Additions and removals in turns; of two removed ones, one is old and one was added here."""
    old = iter(interfaces)
    number = 0
    while True:
        yield {f"added {number}": texts[number % len(texts)]}, []
        yield {}, [next(old, f"added {number}") if number % 2 else f"added {number}"]
        number += 1


def _stream(
    live: LiveTable,
    changes: Iterator[tuple[dict[str, str], list[str]]],
    updates: int,
    progress: Progress,
) -> tuple[list[float], float]:
    """The time of each update, and of all together."""
    times = []
    started = time.perf_counter()
    for i in range(updates):
        if i % 10_000 == 0:
            progress(f"{i:,} of {updates:,} updates, {live.compactions} compactions", i / updates)
        add, remove = next(changes)
        begun = time.perf_counter()
        live.update(add, remove)
        times.append(time.perf_counter() - begun)
    return times, time.perf_counter() - started


class _ConcurrentReader:
    """A thread that forwards now and then through the current version, and notes how long it took."""

    def __init__(self, live: LiveTable, messages: list[Message]) -> None:
        self.times: list[float] = []
        self._live, self._messages = live, messages
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def _read(self) -> None:
        while not self._done.wait(_PAUSE_S) or not self.times:
            message = self._messages[len(self.times) % len(self._messages)]
            self.times.append(seconds(partial(self._live.table.forward, message)))

    def __enter__(self) -> _ConcurrentReader:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._done.set()
        self._thread.join()


def show(console: Console, results: Sequence[UpdateResult]) -> None:
    """A table for people: a line a figure."""
    (result,) = results
    table = Table(
        title=f"update: {result.workload}, {result.filters:,} filters, {result.updates:,} updates",
        title_justify="left",
        show_header=False,
    )
    table.add_column()
    table.add_column(justify="right")
    for what, figure in (
        ("the first update, ms", f"{result.first_update_ms:.2f}"),
        ("from update to visible, ms, median", f"{result.visible_ms_median:.2f}"),
        ("from update to visible, ms, 99th percentile", f"{result.visible_ms_p99:.2f}"),
        ("from update to visible, ms, max", f"{result.visible_ms_max:.2f}"),
        ("updates a second, sustained", f"{result.updates_per_s:,.0f}"),
        ("an update of these, us, median", f"{result.update_us_median:,.0f}"),
        ("an update of these, ms, max", f"{result.update_ms_max:,.1f}"),
        ("a message before, us, median", f"{result.forward_us_before:,.0f}"),
        ("a message meanwhile, us, median", f"{result.forward_us_median:,.0f}"),
        ("a message meanwhile, ms, max", f"{result.forward_ms_max:,.1f}"),
        ("compactions in the background", f"{result.compactions:,}"),
        ("a compaction by itself, s", f"{result.compaction_s:.2f}"),
        ("compiling the table, s", f"{result.build_s:.2f}"),
    ):
        table.add_row(what, figure)
    console.print(table)
