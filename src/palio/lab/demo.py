"""The demo: a year of real flights, each routed to those who asked for it.

Flights come from `lab.flights`, as Arrow rows; subscriptions are SQL texts. Everything goes
through the public contract: parse, compile, forward.
"""

from __future__ import annotations

import time
from collections import Counter

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from palio.lab import flights
from palio.matching.table import ForwardingTable
from palio.model.rows import messages as arrow_messages


def run(console: Console, subscriptions: int, messages: int | None) -> None:
    """Route flights to subscriptions with a progress bar, then show a table."""
    started = time.perf_counter()
    data = flights.load(messages)
    texts = dict(flights.subscriptions(subscriptions))
    console.print(f"[bold]{data.table.num_rows:,}[/] messages: {data.source}")
    table = ForwardingTable.compile(texts)
    console.print(f"[bold]{len(table.interfaces):,}[/] subscriptions, such as:")
    for name, text in list(texts.items())[:3]:
        console.print(f"  {name}: [cyan]{text}[/]")
    ready = time.perf_counter()
    counts: Counter[str] = Counter()
    columns = (TextColumn("routing"), BarColumn(None), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("routing", total=data.table.num_rows)
        for batch in data.table.to_batches(max_chunksize=2_000):
            for message in arrow_messages(batch):
                counts.update(table.forward(message))
            bar.advance(task, batch.num_rows)
    seconds = time.perf_counter() - ready
    _show(console, texts, counts, data.table.num_rows, seconds, ready - started)


def _show(
    console: Console,
    texts: dict[str, str],
    counts: Counter[str],
    messages: int,
    seconds: float,
    prepared: float,
) -> None:
    top = Table(title="Who got the most", title_justify="left")
    for heading, justify in (("interface", "left"), ("messages", "right"), ("predicate", "left")):
        top.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for name, count in counts.most_common(10):
        top.add_row(name, f"{count:,}", texts[name])
    console.print(top)
    deliveries = sum(counts.values())
    silent = len(texts) - len(counts)
    console.print(
        f"{messages:,} messages x {len(texts):,} predicates: {deliveries:,} deliveries "
        f"in {seconds:.1f} s ({messages / seconds:,.0f} messages/s) after {prepared:.1f} s of "
        f"preparation; {silent:,} predicates matched nothing."
    )
