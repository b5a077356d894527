"""What both demos do first: load the flights, compile the subscriptions, and show some of each."""

from __future__ import annotations

import time

from rich.console import Console

from palio.lab.data import flights
from palio.matching.table import ForwardingTable

_SHOWN = 3  # subscriptions, as examples


def load_flights(console: Console, limit: int | None) -> flights.Flights:
    """The first `limit` flights, or all."""
    loaded = flights.load(limit)
    console.print(f"[bold]{loaded.table.num_rows:,}[/] messages: {loaded.source}")
    return loaded


def compile_subscriptions(
    console: Console, count: int, status: str
) -> tuple[dict[str, str], ForwardingTable]:
    """This many subscriptions, as SQL by interface, and their table."""
    texts = dict(flights.subscriptions(count))
    started = time.perf_counter()
    with console.status(status):
        table = ForwardingTable.compile(texts)
    console.print(
        f"[bold]{len(table.interfaces):,}[/] subscriptions, compiled in "
        f"{time.perf_counter() - started:.1f} s, such as:"
    )
    for name, text in list(texts.items())[:_SHOWN]:
        console.print(f"  {name}: [cyan]{text}[/]")
    return texts, table
