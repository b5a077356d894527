"""A check fails where the start would fail, and changes nothing."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import trustme

from palio.errors import MissingSoftware, PalioError
from palio.lab.bench.loopback.postgres import PostgresPair
from palio.net import config as configuration
from palio.net.broker import preflight
from palio.net.broker.server import serving
from palio.net.config import InvalidConfig
from palio.net.storage.sqlite import SqliteStore
from palio.protocol.durability.storage import DamagedStore
from tests.net.peers import METRICS, asked, configured, get, run
from tests.net.stand_in import Cores
from tests.net.storage.damage import contents, filled


def tree(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_nothing_is_changed(tmp_path: Path) -> None:
    config = configured(tmp_path, METRICS)
    before = tree(tmp_path)
    assert preflight.check(config) == []
    assert tree(tmp_path) == before
    store = SqliteStore(config.data)
    store.put("broker/name", b"milan")
    store.begin()
    store.commit()
    store.close()
    before, files = tree(tmp_path), contents(config.data)
    assert preflight.check(config) == []
    assert tree(tmp_path) == before
    assert contents(config.data) == files


@pytest.mark.parametrize("section", ["broker", "metrics"])
def test_a_busy_port(tmp_path: Path, section: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        endpoints = {"broker": 0, "metrics": 0, section: port}
        path = tmp_path / "milan.toml"
        path.write_text(
            f'[broker]\nname = "milan"\nlisten = "127.0.0.1:{endpoints["broker"]}"\n'
            f'[metrics]\nlisten = "127.0.0.1:{endpoints["metrics"]}"\n'
        )
        with pytest.raises(PalioError, match=rf"another program listens there.*\[{section}\]"):
            preflight.check(configuration.read(path))


def test_a_directory_in_use(tmp_path: Path) -> None:
    config = configured(tmp_path)
    store = SqliteStore(config.data)
    with pytest.raises(PalioError, match="another broker uses"):
        preflight.check(config)
    store.close()


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    config = configured(tmp_path, 'data = "file/milan"\n')
    with pytest.raises(PalioError, match="cannot hold a broker's data: Not a directory"):
        preflight.check(config)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    config = configured(tmp_path)
    config.data.mkdir(0o500)
    with pytest.raises(PalioError, match="cannot hold a broker's data: Permission denied"):
        preflight.check(config)


def test_the_store_of_another_broker(tmp_path: Path) -> None:
    filled(tmp_path / "milan", 10)
    store = SqliteStore(tmp_path / "milan")
    store.put("broker/name", b"rome")
    store.put("broker/epoch", b"ab")
    store.begin()
    store.commit()
    store.close()
    with pytest.raises(PalioError, match="belongs to broker 'rome'"):
        preflight.check(configured(tmp_path))


def test_a_certificate_that_cannot_be_used(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    issued.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    trustme.CA().issue_cert("x").private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    (tmp_path / "key.pem").chmod(0o600)
    config = configured(tmp_path, '[tls]\ncertificate = "cert.pem"\nkey = "key.pem"\n')
    with pytest.raises(InvalidConfig, match="cannot be used: KEY_VALUES_MISMATCH"):
        preflight.check(config)


def test_software_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = configured(tmp_path, METRICS)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(MissingSoftware, match="needs the package prometheus-client"):
        preflight.check(config)


def test_others_can_read_the_data(tmp_path: Path) -> None:
    config = configured(tmp_path)
    config.data.mkdir(0o755)
    config.data.chmod(0o755)
    (warning,) = preflight.check(config)
    assert f"chmod 700 {config.data}" in warning


def test_health_is_told_when_there_are_too_many_connections(tmp_path: Path, cores: Cores) -> None:
    async def scene() -> None:
        config = configured(tmp_path, f"{METRICS}[limits]\nconnections = 2\n")
        async with serving(config, cores) as server:
            held = [socket.create_connection(tuple(server.endpoint)) for _ in range(4)]
            for page in ("/healthz", "/readyz", "/metrics"):
                assert (await asked(server.metrics_endpoint, get(page)))[0] == 200
            for one in held:
                one.close()

    run(scene())


@pytest.mark.xdist_group("postgres")
def test_a_store_in_postgres(tmp_path: Path, postgres: PostgresPair) -> None:
    """The database is asked and not changed; the directory is not looked at."""
    postgres.sql("CREATE DATABASE untouched")
    config = configured(tmp_path, f'[storage]\nurl = "{postgres.url("untouched")}"\n')
    preflight.check(config)
    assert not config.data.exists()
    with psycopg_connection(postgres.url("untouched")) as connection:
        assert connection.execute("SELECT to_regnamespace('palio')").fetchone() == (None,)
        connection.execute("CREATE SCHEMA palio")
        connection.execute("CREATE TABLE palio.format AS SELECT 99 AS version")
    with pytest.raises(PalioError, match="has format 99"):
        preflight.check(config)
    with pytest.raises(PalioError, match="--repair is for data in SQLite"):
        preflight.repair(config)
    damage = preflight.with_remedy(DamagedStore("message 1 is gone"), config)
    assert "palio restore --force" in str(damage)
    assert "--repair" not in str(damage)


def psycopg_connection(url: str) -> Any:
    import psycopg

    return psycopg.connect(url, autocommit=True)
