"""The embedded store: its files, full and damaged disks, the write-ahead log."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from palio.errors import InvalidFile
from palio.net.storage.sqlite import FILE, SqliteStore
from palio.net.storage.store import StoreFailed, StoreFull


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path)
    yield made
    made.close()


def commit(store: SqliteStore) -> None:
    store.begin()
    store.commit()


def test_two_brokers_cannot_share_a_directory(store: SqliteStore, tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match=rf"another broker uses {tmp_path}; stop it"):
        SqliteStore(tmp_path)
    store.close()
    SqliteStore(tmp_path).close()


def test_a_full_disk_keeps_what_is_leaving(store: SqliteStore, tmp_path: Path) -> None:
    store.put("before", b"1")
    commit(store)
    store._writer.execute("PRAGMA max_page_count = 4").fetchall()
    store.put("large", b"x" * 500_000)
    store.begin()
    store.put("later", b"2")
    with pytest.raises(StoreFull, match=rf"no room is left for .*{FILE}; free some"):
        store.commit()
    assert [key for key, _ in store.scan("")] == ["before", "large", "later"]
    store._writer.execute("PRAGMA max_page_count = 1000000").fetchall()
    store.commit()
    commit(store)
    store.close()
    again = SqliteStore(tmp_path)
    assert [key for key, _ in again.scan("")] == ["before", "large", "later"]
    again.close()


def test_a_read_only_file_is_a_sentence(store: SqliteStore) -> None:
    store._writer.execute("PRAGMA query_only = ON")
    store.put("a", b"")
    store.begin()
    with pytest.raises(StoreFailed, match="it is read-only; let this user write it"):
        store.commit()


def test_files_that_are_no_store(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"this is a text, and not a short one\n" * 100)
    with pytest.raises(StoreFailed, match="it is not a database, or its head is damaged"):
        SqliteStore(tmp_path)
    (tmp_path / FILE).unlink()
    other = sqlite3.connect(tmp_path / FILE)
    other.execute("CREATE TABLE photos (id INTEGER)")
    other.close()
    with pytest.raises(InvalidFile, match="a database of another program"):
        SqliteStore(tmp_path)
    (tmp_path / FILE).unlink()
    SqliteStore(tmp_path).close()
    later = sqlite3.connect(tmp_path / FILE)
    later.execute("PRAGMA user_version = 99")
    later.close()
    (tmp_path / "broker.id").unlink()
    with pytest.raises(InvalidFile, match="has format 99; this Palio reads and writes format 2"):
        SqliteStore(tmp_path)


def test_a_damaged_file_is_a_sentence(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path)
    for number in range(3000):
        store.put(f"{number:05}", b"x" * 100)
    commit(store)
    store.close()
    data = bytearray((tmp_path / FILE).read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    (tmp_path / FILE).write_bytes(data)
    with pytest.raises(StoreFailed, match=r"the database is damaged: .*SQLITE_CORRUPT"):
        list(SqliteStore(tmp_path).scan(""))


def test_a_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(StoreFailed, match="cannot hold a broker's data"):
        SqliteStore(tmp_path / "data")


def test_the_log_begins_anew_although_commits_never_pause(
    store: SqliteStore, tmp_path: Path
) -> None:
    """A checkpoint beside commits leaves what came meanwhile; the next commit brings that."""
    log, sizes = tmp_path / f"{FILE}-wal", []
    with ThreadPoolExecutor(1) as other:
        checkpoint: Future[None] | None = None
        for i in range(150):
            store.put(f"{i % 20}", bytes(1 << 20))
            commit(store)
            if checkpoint is not None and checkpoint.done():
                checkpoint.result()
                checkpoint = None
            if checkpoint is None and store.wants_checkpoint:
                checkpoint = other.submit(store.checkpoint)
            sizes.append(log.stat().st_size)
    assert max(sizes) < 100 << 20, "150 MiB were written"


def test_a_checkpoint_that_failed_is_tried_again_soon(store: SqliteStore) -> None:
    """Otherwise the log goes on to grow, and takes all the room that comes back."""
    rows = 0

    def write(count: int) -> None:
        nonlocal rows
        for _ in range(count):
            store.put(f"row/{rows}", bytes(100_000))
            rows += 1
        store.begin()
        store.commit()

    write(650)
    assert store.wants_checkpoint
    copier, store._copier = store._copier, FullDisk()  # type: ignore[assignment]
    with pytest.raises(StoreFull):
        store.checkpoint()
    assert not store.wants_checkpoint
    write(42)
    assert store.wants_checkpoint
    store._copier = copier
    store.checkpoint()
    assert not store.wants_checkpoint


class FullDisk:
    def execute(self, _statement: str) -> None:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorname = "SQLITE_FULL"
        raise error


def test_small_commits_count_as_the_log_grows(store: SqliteStore, tmp_path: Path) -> None:
    """Each takes whole pages, however little it stores; and what an earlier process wrote counts too."""
    for i in range(300):
        store.put(f"row/{i % 7}", b"small")
        store.begin()
        store.commit()
    log = (tmp_path / f"{FILE}-wal").stat().st_size
    assert 0.5 * log < store._since_checkpoint < 4 * log
    wrote = sqlite3.connect(tmp_path / FILE)  # keeps the log when the store closes
    wrote.execute("SELECT count(*) FROM entries").fetchone()
    store.close()
    again = SqliteStore(tmp_path)
    assert again._since_checkpoint >= log
    again.close()
    wrote.close()
