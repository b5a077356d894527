"""The broker's disk against a dictionary, and against processes that are killed."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from palio.errors import InvalidFile, InvalidValue
from palio.net import storage
from palio.net.storage import FILE, SqliteStore, StoreFailed, StoreFull

# Few letters, so that keys meet; the last code points, so that prefixes have no successor.
KEYS = st.text(st.sampled_from("ab/é\ud7ff\ue000\U0010ffff"), max_size=4)


class StoreMachine(RuleBasedStateMachine):
    """`safe` is what whole commits made, `seen` what a reader must see."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        self.store = SqliteStore(Path(self.folder.name))
        self.safe: dict[str, bytes] = {}
        self.leaving: dict[str, bytes] | None = None
        self.seen: dict[str, bytes] = {}

    @rule(key=KEYS, value=st.binary(max_size=20))
    def put(self, key: str, value: bytes) -> None:
        self.store.put(key, value)
        self.seen[key] = value

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        self.store.delete(key)
        self.seen.pop(key, None)

    @precondition(lambda self: self.leaving is None)
    @rule()
    def begin(self) -> None:
        if self.store.begin():
            self.leaving = dict(self.seen)

    @precondition(lambda self: self.leaving is not None)
    @rule()
    def commit(self) -> None:
        worker = threading.Thread(target=self.store.commit)
        worker.start()
        worker.join()
        assert self.leaving is not None
        self.safe, self.leaving = self.leaving, None
        self.store.checkpoint()

    @rule()
    def crash(self) -> None:
        self.store.close()
        self.store = SqliteStore(Path(self.folder.name))
        self.leaving, self.seen = None, dict(self.safe)

    @rule(key=KEYS)
    def get(self, key: str) -> None:
        assert self.store.get(key) == self.seen.get(key)

    @invariant()
    def everything_is_scanned_in_order(self) -> None:
        expected = sorted(self.seen.items(), key=lambda item: item[0].encode())
        assert list(self.store.scan("")) == expected

    @rule(prefix=KEYS)
    def scan(self, prefix: str) -> None:
        expected = sorted(key for key in self.seen if key.startswith(prefix))
        assert [key for key, _ in self.store.scan(prefix)] == expected

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path)
    yield made
    made.close()


def commit(store: SqliteStore) -> None:
    store.begin()
    store.commit()


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_scans_in_parts_are_whole(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(storage, "_SCAN_ROWS", rows)
    keys = [f"{letter}/{number}" for letter in "abc" for number in range(7)]
    for key in keys[::2]:
        store.put(key, b"safe")
    commit(store)
    for key in keys[1::4]:
        store.put(key, b"leaving")
    store.begin()
    for key in keys[3::4]:
        store.put(key, b"pending")
    store.delete(keys[8])
    left = [key for key in keys if key != keys[8]]
    assert [key for key, _ in store.scan("")] == left
    assert [key for key, _ in store.scan("b/")] == [key for key in left if key.startswith("b/")]


def test_a_scan_goes_on_while_a_commit_ends(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_SCAN_ROWS", 2)
    for number in range(6):
        store.put(f"k{number}", b"old")
    commit(store)
    for number in range(6):
        store.put(f"k{number}", b"new")
    store.begin()
    scan = store.scan("k")
    first = next(scan)
    store.commit()
    assert [first, *scan] == [(f"k{number}", b"new") for number in range(6)]
    assert store.get("k5") == b"new"


def test_large_groups_are_one_transaction(store: SqliteStore, tmp_path: Path) -> None:
    for number in range(1700):
        store.put(f"{number:05}", b"x" * (number % 9))
    commit(store)
    for number in range(0, 1700, 2):
        store.delete(f"{number:05}")
    commit(store)
    assert [key for key, _ in store.scan("")] == [f"{n:05}" for n in range(1, 1700, 2)]
    found = sqlite3.connect(tmp_path / FILE).execute("SELECT count(*) FROM entries").fetchone()
    assert found == (850,)


def test_pending_bytes_are_told_until_they_are_safe(store: SqliteStore) -> None:
    store.put("ab", b"12345678")
    assert store.pending_bytes == 10
    store.begin()
    assert store.pending_bytes == 10
    store.commit()
    assert store.pending_bytes == 0


WRITER = """
import sys
from pathlib import Path
from palio.net.storage import SqliteStore

store = SqliteStore(Path(sys.argv[1]))
number = 0
while True:
    for part in range(10):
        store.put(f"group/{part}", str(number).encode())
        store.put(f"log/{number:08}/{part}", b"x" * 500)
    store.begin()
    store.commit()
    print(number, flush=True)
    number += 1
"""


@pytest.mark.parametrize("groups", [1, 20, 60])
def test_what_was_committed_survives_a_kill(tmp_path: Path, groups: int) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    for _ in range(groups):
        writer.stdout.readline()
    os.kill(writer.pid, signal.SIGKILL)
    told = [int(line) for line in writer.stdout.read().splitlines()]
    writer.wait()
    last = max(told, default=groups - 1)
    store = SqliteStore(tmp_path)  # the lock went with the process
    group = {value for _, value in store.scan("group/")}
    assert len(group) == 1, "a commit is whole or not there"
    (number,) = map(int, group)
    assert number in (last, last + 1)
    assert len(list(store.scan("log/"))) == 10 * (number + 1)
    store.close()


def test_two_brokers_cannot_share_a_directory(store: SqliteStore, tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match=rf"another broker uses .*{FILE}; stop it"):
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
    with pytest.raises(StoreFailed, match="it is not a database; move it away"):
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
    with pytest.raises(InvalidFile, match="has format 99; this Palio reads and writes format 1"):
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
    with pytest.raises(StoreFailed, match="it is damaged; move it away"):
        list(SqliteStore(tmp_path).scan(""))


def test_a_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(StoreFailed, match="cannot hold a broker's data"):
        SqliteStore(tmp_path / "data")


def test_keys_that_are_no_text(store: SqliteStore) -> None:
    with pytest.raises(InvalidValue, match="not valid Unicode"):
        store.put("\ud800", b"")


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
