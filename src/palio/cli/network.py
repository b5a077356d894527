"""The network on the command line: a broker as a process."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from palio.cli.application import app
from palio.errors import PalioError

_LEVELS = ("debug", "info", "warning", "error")


@app.command()
def broker(
    config: Annotated[Path | None, typer.Option(help="The configuration, a TOML file.")] = None,
    init: Annotated[bool, typer.Option("--init", help="Print an example configuration.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only check the configuration, and say what is odd.")
    ] = False,
    log: Annotated[str, typer.Option(help="Lines for people or for machines: human, json.")] = (
        "human"
    ),
    level: Annotated[str, typer.Option(help=f"Least level: {', '.join(_LEVELS)}.")] = "info",
) -> None:
    """Run a broker until SIGTERM; SIGHUP reads identities and grants again.

    `palio broker --init > broker.toml` makes a configuration to begin with.
    """
    from palio.net import config as configuration
    from palio.net import logs

    if init:
        print(configuration.example(), end="")
        return
    if config is None:
        raise PalioError(
            "palio broker takes --config FILE; `palio broker --init > broker.toml` makes one"
        )
    if log not in logs.FORMS:
        raise PalioError(f"--log is {' or '.join(logs.FORMS)}, not {log!r}")
    if level not in _LEVELS:
        raise PalioError(f"--level is one of {', '.join(_LEVELS)}, not {level!r}")
    settings = configuration.read(config)
    if check:
        for warning in settings.warnings():
            print(warning)
        print(f"{config}: broker {settings.name} on {settings.listen}")
        return
    from palio.net.broker import hosted
    from palio.net.server import run

    logs.start(log, getattr(logging, level.upper()))
    run(settings, hosted)
