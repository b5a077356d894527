"""The application that commands join, and what several of them share."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import typer
from rich.console import Console
from rich.progress import Progress

from palio.errors import PalioError
from palio.model.message import Message

app = typer.Typer(
    help="Palio, a content-based network for data: messages reach those whose predicate they match.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
NO, BAD_INPUT = 1, 2


def _announce_compiling() -> None:
    """Say why a command takes so long, when it is the first one after a change."""
    from palio.matching import warmup

    reason = warmup.waiting()
    if reason is not None:
        print(f"palio: {reason}", file=sys.stderr, flush=True)


def _pair(entry: str) -> tuple[str, str]:
    name, equals, type = entry.partition("=")
    if not equals:
        raise PalioError(f"--types takes name=type, got {entry!r}")
    return name, type


def _progress(rows: Iterable[Message], title: str, total: int | None) -> Iterator[Message]:
    """Show progress on a terminal; stay silent otherwise."""
    with Progress(console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
        yield from bar.track(rows, total=total, description=title)
