"""Real damage of a store's files, and stores to damage."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from palio.net.storage.sqlite import SqliteStore
from palio.net.storage.sqlite_database import FILE

LOG = f"{FILE}-wal"

KILLED_WRITER = """
import os, signal, sys
from pathlib import Path
from palio.net.storage.sqlite import SqliteStore

store = SqliteStore(Path(sys.argv[1]))
for number in range(int(sys.argv[2])):
    store.put(f"k/{number:04}", bytes([number % 256]) * 300)
    store.begin()
    store.commit()
os.kill(os.getpid(), signal.SIGKILL)
"""


def commit(store: SqliteStore) -> None:
    store.begin()
    store.commit()


def filled(directory: Path, count: int = 200, size: int = 300) -> None:
    """A store that was closed: everything is in the database itself."""
    store = SqliteStore(directory)
    for number in range(count):
        store.put(f"k/{number:04}", bytes([number % 256]) * size)
        if number % 10 == 9:
            commit(store)
    commit(store)
    store.close()


def killed(directory: Path, commits: int = 20) -> None:
    """A store whose process was killed: everything is in the write-ahead log."""
    words = [sys.executable, "-c", KILLED_WRITER, str(directory), str(commits)]
    done = subprocess.run(words, check=False)
    assert done.returncode == -signal.SIGKILL


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at, os.SEEK_SET if at >= 0 else os.SEEK_END)
        file.write(data)


def execute(directory: Path, statement: str, *arguments: object) -> None:
    """Change a database behind the back of its store."""
    connection = sqlite3.connect(directory / FILE, isolation_level=None)
    connection.execute(statement, arguments)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()


def execute_beside(directory: Path, statement: str, *arguments: object) -> None:
    """Change a database that a store has open."""
    connection = sqlite3.connect(directory / FILE, isolation_level=None)
    connection.execute(statement, arguments)
    connection.close()


def contents(directory: Path) -> dict[str, bytes]:
    """All files of a directory but the index of the log, which SQLite makes anew as it likes."""
    return {
        path.name: path.read_bytes()
        for path in directory.iterdir()
        if path.is_file() and not path.name.endswith("-shm")
    }
