"""The application: its help."""

from __future__ import annotations

from tests.cli.commands import palio


def test_help_names_every_command() -> None:
    done = palio("--help")
    assert done.returncode == 0
    for command in ("match", "parse", "covers", "demo"):
        assert command in done.stdout
