"""The demo without Spark: flights routed to those who asked for them, in this process.

Flights are Arrow rows, subscriptions are SQL texts. Everything goes through the public contract:
parse, compile, forward_batch.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from palio.lab.demo.opening import compile_subscriptions, load_flights
from palio.matching.encode.columns import Ints
from palio.matching.table import ForwardingTable

ROWS_AT_ONCE = 10_000


def run(console: Console, subscriptions: int, messages: int | None) -> None:
    """Route flights to subscriptions with a progress bar, then show a table."""
    data = load_flights(console, messages)
    texts, table = compile_subscriptions(console, subscriptions, "compiling the subscriptions")
    table.forward_batch(data.table.slice(0, 1))  # kernels are compiled once and kept
    started = time.perf_counter()
    counts = _route(console, table, data.table)
    _show(console, texts, counts, data.table.num_rows, time.perf_counter() - started)


def _route(console: Console, table: ForwardingTable, rows: pa.Table) -> Ints:
    """How many messages each interface gets."""
    counts = np.zeros(len(table.interfaces), np.int64)
    columns = (TextColumn("routing"), BarColumn(None), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("routing", total=rows.num_rows)
        for begin in range(0, rows.num_rows, ROWS_AT_ONCE):
            part = rows.slice(begin, ROWS_AT_ONCE)
            interface_ids = table.forward_batch(part, ids=True).values.to_numpy()
            counts += np.bincount(interface_ids, minlength=len(counts))
            bar.advance(task, part.num_rows)
    return counts


def _show(
    console: Console, texts: dict[str, str], counts: Ints, messages: int, seconds: float
) -> None:
    names = list(texts)
    top = Table(title="Who got the most", title_justify="left")
    top.add_column("interface")
    top.add_column("messages", justify="right")
    top.add_column("predicate")
    for i in np.argsort(-counts, kind="stable")[:10]:
        top.add_row(names[i], f"{counts[i]:,}", texts[names[i]])
    console.print(top)
    console.print(
        f"{messages:,} messages x {len(names):,} predicates: {counts.sum():,} deliveries in "
        f"{seconds:.1f} s ({messages / seconds:,.0f} messages/s, "
        f"{counts.sum() / seconds:,.0f} deliveries/s); "
        f"{np.count_nonzero(counts == 0):,} predicates matched nothing."
    )
