"""The connection options: declared once, and seen by every command that talks to a broker."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from palio.cli import app as palio_app
from palio.cli.connection import ConnectionOptions, with_connection
from palio.errors import PalioError

OPTIONS = ("--url", "--token", "--authority", "--certificate", "--key", "--wait")


@pytest.fixture
def seen() -> list[tuple[list[str], bool, ConnectionOptions]]:
    return []


@pytest.fixture
def app(seen: list[tuple[list[str], bool, ConnectionOptions]]) -> typer.Typer:
    made = typer.Typer()

    @made.command()
    @with_connection
    def ask(words: list[str], loud: bool = False, *, connection: ConnectionOptions) -> None:
        """Ask a broker."""
        seen.append((words, loud, connection))

    return made


def test_a_command_gets_what_was_given(
    app: typer.Typer, seen: list[tuple[list[str], bool, ConnectionOptions]]
) -> None:
    given = ["a", "b", "--url", "palio://x:1", "--loud", "--key", "k.pem", "--wait", "2.5"]
    done = CliRunner().invoke(app, given, env={"PALIO_TOKEN": "secret"})
    assert done.exit_code == 0, done.output
    expected = ConnectionOptions("palio://x:1", "secret", None, None, Path("k.pem"), 2.5)
    assert seen == [(["a", "b"], True, expected)]


def test_what_is_not_given_has_its_default(
    app: typer.Typer, seen: list[tuple[list[str], bool, ConnectionOptions]]
) -> None:
    names = ("PALIO_URL", "PALIO_TOKEN", "PALIO_AUTHORITY")
    done = CliRunner().invoke(app, ["a"], env=dict.fromkeys(names))
    assert done.exit_code == 0, done.output
    assert seen == [(["a"], False, ConnectionOptions())]


@pytest.mark.parametrize(
    "command", ["publish", "subscribe", "advertise", "topology", "explain", "forget"]
)
def test_every_command_of_clients_has_them(command: str) -> None:
    shown = CliRunner().invoke(palio_app, [command, "--help"], env={"COLUMNS": "200"})
    assert all(option in shown.output for option in OPTIONS)


def test_a_certificate_needs_its_key() -> None:
    with pytest.raises(PalioError, match="belong together"):
        ConnectionOptions(certificate=Path("c.pem")).client()
