"""Databases that cannot be used: each is a sentence that names the place and the remedy."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import pytest

from palio.lab.bench.loopback.postgres import PostgresPair
from palio.net.cluster.ports import free_ports
from tests.cli.commands import palio as command

pytestmark = pytest.mark.xdist_group("postgres")


def ended(folder: Path, url: str) -> str:
    """What `palio broker` says about this URL."""
    path = folder / "milan.toml"
    path.write_text(f'[broker]\nname = "milan"\nlisten = "127.0.0.1:0"\n[storage]\nurl = "{url}"\n')
    done = command("broker", "--config", path)
    assert done.returncode == 2
    said = [line for line in done.stderr.splitlines() if line.startswith("palio: ")]
    assert len(said) == 1
    assert "hush" not in done.stderr, "no password is shown"
    assert f"url, in [storage] of {path}" in said[0] or "postgresql://127.0.0.1:" in said[0]
    return said[0]


def test_urls_that_lead_nowhere(tmp_path: Path, postgres: PostgresPair) -> None:
    (port,) = free_ports(0, 1)
    here = f"127.0.0.1:{postgres.ports['a']}"
    assert "this is no URL of PostgreSQL; it is postgresql://user@host" in ended(
        tmp_path, "postgresql://a:hush@[b"
    )
    said = ended(tmp_path, f"postgresql://x:hush@127.0.0.1:{port}/db")
    assert f"the database postgresql://127.0.0.1:{port}/db (" in said
    assert said.endswith("Connection refused; start the server, or correct host and port")
    said = ended(tmp_path, f"postgresql://postgres:hush@{here}/missing")
    assert 'database "missing" does not exist; create it (createuser, createdb)' in said
    said = ended(tmp_path, f"postgresql://stranger@{here}/postgres")
    assert 'role "stranger" does not exist' in said
    said = ended(tmp_path, "postgresql://x@no-such-host.invalid/db")
    assert "correct the host" in said
    said = ended(tmp_path, f"postgresql://postgres@127.0.0.1:{postgres.ports['b']}/postgres")
    assert "read-only" in said
    assert "add the host of the primary" in said


def test_a_wrong_password(tmp_path: Path, postgres: PostgresPair) -> None:
    postgres.sql("CREATE ROLE locked LOGIN PASSWORD 'right'")
    postgres.require_password("locked")
    url = f"postgresql://locked:hush@127.0.0.1:{postgres.ports['a']}/postgres"
    said = ended(tmp_path, url)
    assert 'password authentication failed for user "locked"; set the password in the URL' in said
    said = ended(tmp_path, url.replace(":hush", ":right"))
    assert "permission denied" in said
    assert "give the user the right (GRANT CREATE ON DATABASE" in said


def test_databases_that_are_not_ours(tmp_path: Path, postgres: PostgresPair) -> None:
    import psycopg

    postgres.sql("CREATE DATABASE other")
    with psycopg.connect(postgres.url("other"), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA palio")
        connection.execute("CREATE TABLE palio.photos (id int)")
        assert "has a schema palio of another program" in ended(tmp_path, postgres.url("other"))
        connection.execute("DROP TABLE palio.photos")
        connection.execute("CREATE TABLE palio.format (version int)")
        connection.execute("INSERT INTO palio.format VALUES (99)")
        said = ended(tmp_path, postgres.url("other"))
        assert "has format 99; this Palio reads and writes formats up to 2: use the Palio" in said
        connection.execute("UPDATE palio.format SET version = 0")
        connection.execute(
            "CREATE TABLE palio.lease AS SELECT 'rome' AS broker, now() + interval '1 h' AS expires"
        )
        assert "but brokers of the older version use it: rome; stop" in ended(
            tmp_path, postgres.url("other")
        )
        connection.execute("DELETE FROM palio.lease")
        assert "has format 0, which this Palio cannot bring to format 2" in ended(
            tmp_path, postgres.url("other")
        )
    postgres.sql("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    assert "has the encoding LATIN1; create a database with UTF8" in ended(
        tmp_path, postgres.url("latin")
    )


def test_without_psycopg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in list(sys.modules):
        if name.startswith(("palio.net.storage.database", "palio.net.storage.lease",
                            "palio.net.storage.postgres", "psycopg")):  # fmt: skip
            monkeypatch.delitem(sys.modules, name)
    usual = builtins.__import__

    def refusing(name: str, *arguments: Any, **options: Any) -> Any:
        if name.startswith("psycopg"):
            raise ImportError("No module named 'psycopg'")
        return usual(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refusing)
    said = ended(tmp_path, "postgresql://x/y")
    assert "needs the package psycopg" in said
    assert said.endswith("pip install 'palio[postgres]'")
