"""The application: its help and its version."""

from __future__ import annotations

from tests.cli.commands import palio

import palio as library


def test_help_names_every_command() -> None:
    done = palio("--help")
    assert done.returncode == 0
    for command in ("match", "parse", "covers", "demo"):
        assert command in done.stdout


def test_the_version() -> None:
    done = palio("--version")
    assert (done.returncode, done.stdout) == (0, f"palio {library.__version__}\n")
