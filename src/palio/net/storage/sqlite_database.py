"""A broker's database in SQLite: its tables, how it is made and opened, and what its errors mean.

    entries   key TEXT, value BLOB     each value with its checksum (checked.py)
    state     one row                  identity, commits, rows, digest

The state is written by each commit, in the same transaction: the number of commits so far, and the
number of rows and the sum of the CRC-32 of all keys after it. So a row that gets lost is noticed by
reading the keys alone (inspection.py).
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Final
from urllib.parse import quote
from zlib import crc32

import msgspec

from palio.net.storage.buffer import Changes
from palio.net.storage.checked import with_checksum, without_checksum
from palio.net.storage.private_files import open_private
from palio.net.storage.store import StoreDamaged, StoreFailed, StoreFull

FILE: Final = "broker.sqlite"
COMPANIONS: Final = (f"{FILE}-wal", f"{FILE}-shm")
"""SQLite's own files beside it: the write-ahead log and the index of that."""
FORMAT: Final = 2
FORMAT_WITHOUT_CHECKSUMS: Final = 1
APPLICATION: Final = 0x50414C49
"""The letters PALI: SQLite files say which program they belong to."""
PAGE_BYTES: Final = 16 << 10
"""The journal writes values of some hundred kilobytes: larger pages save a fifth of the work, and a
commit of one message is no slower."""
_LOG_PAGES_MAX: Final = 8192
"""If our checkpoints do not keep up, SQLite makes its own, within a commit: at 128 MiB."""
_LOG_BYTES_KEPT: Final = 64 << 20
_STATE_KEY: Final = "state"


class StoreState(msgspec.Struct, frozen=True):
    """What the database says about itself."""

    identity: str
    commits: int = 0
    rows: int = 0
    digest: int = 0
    """The sum of the CRC-32 of all keys."""

    def after(self, changes: Changes, existing: set[str]) -> StoreState:
        """The state after a commit of these changes, if these of their keys exist before it."""
        rows, digest = self.rows, self.digest
        for key, value in changes.items():
            if (value is not None) != (key in existing):
                sign = -1 if value is None else 1
                rows += sign
                digest += sign * crc32(key.encode())
        return StoreState(self.identity, self.commits + 1, rows, digest)


_encode_state = msgspec.json.encode
_state_decoder = msgspec.json.Decoder(StoreState)


# ---- opening


def connected(path: Path) -> sqlite3.Connection:
    """Open a database to read and write; the file is made if there is none."""
    os.close(open_private(path))  # SQLite gives its own files the mode of this one
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")  # only a new file takes it
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreFailed(
            f"{path} lies on a file system where SQLite cannot keep a write-ahead log (a network "
            f"share?); choose a directory on a local disk (data, in [broker])"
        )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES_MAX}").fetchall()
    connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES_KEPT}").fetchall()
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def connected_to_read(path: Path) -> sqlite3.Connection:
    """Open a database that exists, and change nothing: not even its write-ahead log is copied."""
    log = path.with_name(f"{path.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    name = quote(str(path.absolute()))
    return sqlite3.connect(
        f"file:{name}?mode=ro" + ("" if has_log else "&immutable=1"),
        uri=True,
        isolation_level=None,
        check_same_thread=False,
    )


# ---- making


def create_tables(connection: sqlite3.Connection) -> StoreState:
    """Make the tables in a new file."""
    state = StoreState(os.urandom(16).hex())
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE entries (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID")
    _create_state(connection, state)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute("COMMIT")
    # From the log into the file itself: if the log gets lost, the file still says whose it is.
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return state


def add_checksums(connection: sqlite3.Connection) -> StoreState:
    """Bring a database of format 1 to this format, in one transaction."""
    connection.create_function("with_checksum", 2, with_checksum, deterministic=True)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE entries SET value = with_checksum(key, value)")
    keys = [key for (key,) in connection.execute("SELECT key FROM entries")]
    digest = sum(crc32(key.encode()) for key in keys)
    state = StoreState(os.urandom(16).hex(), 0, len(keys), digest)
    _create_state(connection, state)
    connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return state


def _create_state(connection: sqlite3.Connection, state: StoreState) -> None:
    connection.execute("CREATE TABLE state (id INTEGER PRIMARY KEY, value BLOB)")
    put_state(connection, state)
    connection.execute(f"PRAGMA user_version = {FORMAT}")


# ---- the state


def put_state(connection: sqlite3.Connection, state: StoreState) -> None:
    value = with_checksum(_STATE_KEY, _encode_state(state))
    connection.execute("REPLACE INTO state (id, value) VALUES (1, ?)", (value,))


def read_state(connection: sqlite3.Connection, path: Path) -> StoreState:
    """Raises StoreDamaged."""
    row = connection.execute("SELECT value FROM state WHERE id = 1").fetchone()
    if row is None:
        raise StoreDamaged("the row that counts its commits is missing", path=path)
    return _state_decoder.decode(without_checksum(_STATE_KEY, row[0], path))


# ---- errors

_REASONS = {
    "SQLITE_READONLY": "it is read-only; let this user write it",
    "SQLITE_CANTOPEN": "it cannot be opened; let this user read and write it and its directory",
    "SQLITE_PERM": "this user may not open it",
    "SQLITE_IOERR": "the disk fails; look at the system's log",
    "SQLITE_BUSY": "another program holds it; close that one",
    "SQLITE_LOCKED": "another program holds it; close that one",
}

_FULL = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")
"""The second one: the file that processes share beside the database, a few KiB, could not grow."""

READ_ERRORS: Final = (sqlite3.Error, MemoryError)
"""What reading can raise: a length in which bits have flipped asks for more memory than there is."""


def failure(error: BaseException, path: Path) -> StoreFailed:
    """The error of SQLite as one of a store."""
    name = getattr(error, "sqlite_errorname", None) or ""
    if name in _FULL:
        return StoreFull(f"no room is left for {path}; free some on its disk")
    for key, reason in _REASONS.items():
        if name.startswith(key):
            return StoreFailed(f"{path} cannot be used: {reason} ({name})")
    if isinstance(error, sqlite3.ProgrammingError):
        return StoreFailed(f"{path} cannot be used: {error}")
    if name == "SQLITE_NOTADB":
        return StoreDamaged("it is not a database, or its head is damaged", path=path)
    return StoreDamaged(
        f"the database is damaged: {error} ({name or type(error).__name__})", path=path
    )
