"""A routing job on the terminal: a bar while it runs, a table when it is done."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from palio.spark.progress import StreamProgress
from palio.spark.summary import RouteSummary

if TYPE_CHECKING:
    from rich.console import Console


class StreamBar:
    """Follows a stream or a batch job; `total` messages where that is known. Silent when there is no terminal."""

    def __init__(self, console: Console, total: int | None = None) -> None:
        self._started = time.monotonic()
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(None if total else 20),
            TextColumn("{task.fields[rates]}"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("starting", total=total, rates="")
        self._first: int | None = None  # messages of earlier runs

    def __enter__(self) -> StreamBar:
        self._bar.start()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._bar.stop()

    def say(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False)

    def starting(self, text: str) -> None:
        self._bar.update(self._task, description=text)

    def tasks(self, done: int, known: int) -> None:
        """While a batch job runs."""
        self._bar.update(
            self._task, completed=done, total=known, rates=f"{done:,} of {known:,} tasks"
        )

    def __call__(self, progress: StreamProgress) -> None:
        """After each micro-batch."""
        if self._first is None:
            self._first = progress.messages_total - progress.messages
        rates = f"{progress.messages_per_s:,.0f} messages/s"
        if progress.matches_per_s is not None:
            rates += f", {progress.matches_per_s:,.0f} matches/s"
        rates += f", lag {progress.lag_s:.1f} s"
        if progress.behind is not None:
            rates += f", {progress.behind:,} behind"
        self._bar.update(
            self._task,
            description=f"batch {progress.batch} by version {progress.version}",
            completed=progress.messages_total - self._first,
            rates=rates,
        )


def show(
    console: Console, summary: RouteSummary, predicates: Mapping[str, str] | None = None
) -> None:
    """The summary of a job; `predicates` tells what the top interfaces asked for."""
    row = summary.row()
    table = Table(title="Routed", title_justify="left", show_header=False)
    table.add_column("what")
    table.add_column("how many", justify="right")
    table.add_row("messages", f"{summary.messages:,}")
    table.add_row("matches", f"{summary.matches:,}")
    table.add_row("throughput", f"{row['messages_per_s']:,.0f} messages/s")
    table.add_row("", f"{row['matches_per_s']:,.0f} matches/s")
    table.add_row("time", f"{summary.seconds:,.1f} s")
    table.add_row("micro-batches", f"{summary.batches:,}")
    table.add_row("table version", str(summary.version or "none"))
    if summary.rejects:
        table.add_row("rejected predicates", f"{summary.rejects:,}")
    console.print(table)
    if summary.top:
        top = Table(title="Who got the most", title_justify="left")
        top.add_column("interface")
        top.add_column("messages", justify="right")
        if predicates is not None:
            top.add_column("predicate")
        for name, count in summary.top:
            asked = [predicates.get(name, "")] if predicates is not None else []
            top.add_row(name, f"{count:,}", *asked)
        console.print(top)
    console.print(f"The output is in {summary.out}", markup=False, highlight=False, soft_wrap=True)
