"""What commands tell people on standard error, beside their results on standard output.

Rich is imported where it is used: it takes longer to load than most commands to run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")


def say(text: str) -> None:
    """A line for people."""
    print(text, file=sys.stderr, flush=True)


def announce_compiling() -> None:
    """Say that kernels have to be compiled first, when that is so."""
    from palio.matching import warmup

    reason = warmup.waiting()
    if reason is not None:
        say(f"palio: {reason}")


def progress_bar() -> Progress:
    """A bar on standard error, where there is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    return Progress(console=Console(stderr=True), disable=not sys.stderr.isatty())


def tracked(rows: Iterable[T], title: str, total: int | None) -> Iterator[T]:
    """The rows, with a progress bar where there is a terminal."""
    with progress_bar() as bar:
        yield from bar.track(rows, total=total, description=title)
