"""The command line: thin; every command calls a function that a program could call.

Results go to standard output, progress and errors to standard error. Exit codes: 0 done (or yes),
1 no, 2 bad input, 3 another process runs this broker now. One module a group of commands; importing it adds them to the application.
"""

from __future__ import annotations

import sys

from palio.cli import (
    bench,
    broker_simulation,
    lab,
    matching,
    network,
    predicates,
    publishers,
    queues,
    simulation,
    spark,
    subscribers,
)
from palio.cli.application import BAD_INPUT, app
from palio.errors import PalioError

__all__ = [
    "app",
    "bench",
    "broker_simulation",
    "lab",
    "main",
    "matching",
    "network",
    "predicates",
    "publishers",
    "queues",
    "simulation",
    "spark",
    "subscribers",
]


def main() -> None:
    """Run the command line; every foreseen error is one sentence and exit code 2."""
    try:
        app()
    except PalioError as error:
        from rich.console import Console

        Console(stderr=True, highlight=False, soft_wrap=True).print(
            f"palio: {error}", markup=False, style="red"
        )
        sys.exit(BAD_INPUT)
    except BrokenPipeError:  # the reader had enough
        sys.stderr.close()
        sys.exit(0)
