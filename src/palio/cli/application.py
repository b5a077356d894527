"""The application that commands join, and their exit codes."""

from __future__ import annotations

from typing import Annotated

import typer

from palio import __version__

app = typer.Typer(
    help="Palio, a content-based network for data: messages reach those whose predicate they match.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
NO, BAD_INPUT = 1, 2
LEASE_LOST = 3
"""A broker ended because another process has taken the lease on its name."""


def _print_version(is_asked: bool) -> None:
    if is_asked:
        print(f"palio {__version__}")
        raise typer.Exit


@app.callback()
def _application(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Palio, a content-based network for data: messages reach those whose predicate they match."""
