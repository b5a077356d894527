"""Which demo runs: the one on Spark where Java is there, otherwise the one in this process."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from palio.errors import MissingSoftware
from palio.lab.demo import embedded as embedded_demo
from palio.lab.demo import on_spark


def run(
    console: Console,
    subscriptions: int,
    messages: int | None,
    *,
    out: Path | None = None,
    embedded: bool = False,
) -> None:
    """Route flights to subscriptions with a progress bar, then show a table."""
    if not embedded:
        try:
            from palio.spark.sessions import require_java

            require_java()
        except MissingSoftware as error:
            console.print(f"{error}. Here is the demo without Spark.", markup=False, soft_wrap=True)
            embedded = True
    if embedded:
        embedded_demo.run(console, subscriptions, messages)
    else:
        on_spark.run(console, subscriptions, messages, out)
