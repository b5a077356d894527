"""Databases of an older format, and their files."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from palio.net.storage.inspection import inspect
from palio.net.storage.sqlite import SqliteStore
from palio.net.storage.sqlite_database import APPLICATION, FILE, FORMAT, connected, failure
from palio.net.storage.sqlite_reading import InspectedStore
from palio.net.storage.store import StoreFull
from palio.protocol.durability.keys import UnknownFormat
from tests.net.storage.damage import contents


def old_store(directory: Path, values: dict[str, bytes]) -> None:
    """As it was written before values had checksums."""
    directory.mkdir(exist_ok=True)
    connection = sqlite3.connect(directory / FILE, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE entries (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID")
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute("PRAGMA user_version = 1")
    connection.executemany("INSERT INTO entries VALUES (?, ?)", values.items())
    connection.close()


def test_values_without_checksums_get_theirs(tmp_path: Path) -> None:
    values = {f"é/{number}": os.urandom(number * 100) for number in range(300)}
    old_store(tmp_path, values)
    assert inspect(tmp_path).format == 1
    for _ in range(2):
        store = SqliteStore(tmp_path)
        assert dict(store.scan("")) == values
        store.close()
    found = inspect(tmp_path)
    assert found.format == FORMAT
    assert found.state is not None
    assert found.state.rows == 300


def test_a_message_store_of_an_older_version_is_left_as_it_is(tmp_path: Path) -> None:
    """The older version must still be able to deliver what waits in it."""
    old_store(tmp_path, {"deposit/p/ann/1": b"1"})
    before = contents(tmp_path)
    for opened in (SqliteStore, InspectedStore):
        with pytest.raises(UnknownFormat, match="Let the older version deliver what waits in it"):
            opened(tmp_path)
        assert contents(tmp_path)[FILE] == before[FILE]


def test_a_commit_waits_for_the_disk(tmp_path: Path) -> None:
    SqliteStore(tmp_path).close()
    connection = connected(tmp_path / FILE)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,), "FULL"
    connection.close()


@pytest.fixture(params=[0o000, 0o022, 0o377])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_files_are_for_their_user_alone(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    store = SqliteStore(directory)
    store.put("a", b"1")
    store.begin()
    store.commit()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}
    assert modes == dict.fromkeys(
        [FILE, f"{FILE}-wal", f"{FILE}-shm", "broker.id", "broker.lock"], 0o600
    )
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    store.close()


@pytest.mark.parametrize("name", ["SQLITE_FULL", "SQLITE_IOERR_SHMSIZE"])
def test_a_full_disk_is_told_as_that(name: str, tmp_path: Path) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = name
    assert isinstance(failure(error, tmp_path / "broker.sqlite"), StoreFull)
    error.sqlite_errorname = "SQLITE_IOERR_READ"
    assert "the disk fails" in str(failure(error, tmp_path / "broker.sqlite"))
