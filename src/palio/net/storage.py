"""The broker's disk: one table of keys and values in SQLite, committed in groups.

    put, delete ──▶ pending ──begin()──▶ leaving ──commit()──▶ entries (key, value)
    get, scan       look in pending, then leaving, then the table

    <data>/broker.sqlite    the table; write-ahead log, synchronous=FULL
    <data>/broker.lock      held by the broker that uses it, so that no other does

All is called by the loop's thread, except `commit` and `checkpoint`: each is for a worker thread,
one call at a time, and has a connection of its own. What always holds: a commit is one transaction
of all that was pending at `begin`; after a crash the table is the result of whole commits. A commit
that fails keeps what is leaving: it can be tried again, and is still seen.

A checkpoint brings the log into the table while commits go on. SQLite begins the log anew only when
the table has all of it, so the commit after a checkpoint brings the little that came meanwhile.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

from palio.errors import InvalidFile, InvalidValue, PalioError

FILE, LOCK = "broker.sqlite", "broker.lock"
FORMAT: Final = 1
_APPLICATION: Final = 0x50414C49
"""PALI: which program a SQLite file belongs to."""
_SCAN_ROWS: Final = 1000
_ROWS: Final = (512, 32, 1)
"""Rows a statement. Each statement gives the interpreter lock away and has to get it back from a
busy loop: a commit of 1000 puts beside one took 3 ms this way, and 12 ms with one row a statement."""
_PAGE_BYTES: Final = 16 << 10
"""Messages come in pieces of some hundred kilobytes: fewer pages are a fifth less work, and a commit
of one message is no slower."""
_CHECKPOINT_BYTES: Final = 16 << 20
_LOG_PAGES_MAX: Final = 8192
"""SQLite's own checkpoint, within a commit, should ours not keep up: 128 MiB."""

_CHECKPOINT: Final = "PRAGMA wal_checkpoint(PASSIVE)"

_Changes: TypeAlias = dict[str, bytes | None]


class StoreFailed(PalioError):
    """The disk did not take what it was given. Nothing is lost that was said to be safe."""


class StoreFull(StoreFailed):
    """No room is left: the commit may be tried again when there is."""


class _Buffer:
    """Changes by key (None: deleted), and their keys in order for those who scan."""

    __slots__ = ("_ordered", "changes", "size")

    def __init__(self) -> None:
        self.changes: _Changes = {}
        self.size = 0
        """Bytes of keys and values that were put, also those put over others."""
        self._ordered: list[str] = []

    def between(self, after: str, prefix: str) -> Iterator[tuple[str, bytes | None]]:
        """The changes of keys with this prefix, larger than `after`, in order."""
        ordered, changes = self._ordered, self.changes
        if len(ordered) != len(changes):
            # No key ever leaves: the new ones are the last. A sorted list and a tail sort fast.
            ordered = [*ordered, *islice(changes, len(ordered), None)]
            ordered.sort()
            self._ordered = ordered
        at = _first_larger(ordered, after, prefix)
        while at < len(ordered) and ordered[at].startswith(prefix):
            yield ordered[at], changes[ordered[at]]
            at += 1


class SqliteStore:
    """A `protocol.store.Store` in a directory, which is made when it is not there."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE
        self._lock = _locked(directory)
        self._pending, self._leaving = _Buffer(), _Buffer()
        self._since_checkpoint = 0  # bytes, about: two threads count
        self._is_copied = False  # the log, but for what came during the checkpoint
        self.failure: StoreFailed | None = None
        """Of a read. Whoever asked may have taken the error for one of its client; the host looks."""
        try:
            self._writer = _connected(self._path)
            _prepared(self._writer, self._path)
            self._reader = _connected(self._path)
            self._reader.execute("PRAGMA query_only = ON")
            self._copier = _connected(self._path)
        except sqlite3.Error as error:
            self._lock.close()
            raise _failure(error, self._path) from None
        except BaseException:
            self._lock.close()
            raise

    @property
    def pending_bytes(self) -> int:
        """How much waits in memory for its commit."""
        return self._pending.size + self._leaving.size

    @property
    def has_pending(self) -> bool:
        return bool(self._pending.changes)

    def put(self, key: str, value: bytes) -> None:
        if not key.isascii():
            _check_key(key)
        self._pending.changes[key] = value
        self._pending.size += len(key) + len(value)

    def delete(self, key: str) -> None:
        self._pending.changes[key] = None
        self._pending.size += len(key)

    def get(self, key: str) -> bytes | None:
        # In this order: the worker empties `leaving` only when the table has it.
        for buffer in (self._pending, self._leaving):
            if key in buffer.changes:
                return buffer.changes[key]
        try:
            row = self._reader.execute("SELECT value FROM entries WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            self.failure = _failure(error, self._path)
            raise self.failure from None
        return None if row is None else row[0]

    def scan(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Keys with this prefix, in order. What changes meanwhile is seen as it was or as it is."""
        after: str | None = ""
        while after is not None:
            part, after = self._part(prefix, after)
            yield from part

    def _part(self, prefix: str, after: str) -> tuple[list[tuple[str, bytes]], str | None]:
        """Some entries of a scan, and the key after which it goes on; None: these are the last.

        It is read to its end at once: a statement that stays open would hold all reads at the
        state of its beginning, while `leaving` is emptied by a commit.
        """
        buffers = (self._leaving, self._pending)
        found = self._rows(prefix, after)
        last = found[-1][0] if len(found) == _SCAN_ROWS else None
        merged: _Changes = dict(found)
        changed = False
        for buffer in buffers:
            for key, value in buffer.between(after, prefix):
                if last is not None and key > last:
                    break
                merged[key] = value
                changed = True
        if changed:
            merged = {key: merged[key] for key in sorted(merged)}
        return [(key, value) for key, value in merged.items() if value is not None], last

    def _rows(self, prefix: str, after: str) -> list[tuple[str, bytes]]:
        # `after` is empty or has the prefix, so that "> after" begins no earlier than it.
        low, compare = (after, ">") if after else (prefix, ">=")
        query = f"SELECT key, value FROM entries WHERE key {compare} ?"
        arguments: list[str | int] = [low]
        high = _after_all(prefix)
        if high is not None:
            query += " AND key < ?"
            arguments.append(high)
        try:
            rows = self._reader.execute(
                f"{query} ORDER BY key LIMIT ?", [*arguments, _SCAN_ROWS]
            ).fetchall()
        except sqlite3.Error as error:
            self.failure = _failure(error, self._path)
            raise self.failure from None
        return rows

    # ---- commits

    def begin(self) -> int:
        """Let all that is pending leave; tells how many keys. The next step is `commit`."""
        if self._leaving.changes:
            raise RuntimeError("a commit is under way; there is only one at a time")
        self._pending, self._leaving = _Buffer(), self._pending
        return len(self._leaving.changes)

    def commit(self) -> None:
        """Make safe what is leaving; after StoreFull it may be called again."""
        leaving, writer = self._leaving, self._writer
        if not leaving.changes:
            return
        try:
            writer.execute("BEGIN IMMEDIATE")
            _write(writer, leaving.changes)
            writer.execute("COMMIT")
        except sqlite3.Error as error:
            _roll_back(writer)
            raise _failure(error, self._path) from None
        self._since_checkpoint += leaving.size + 512 * len(leaving.changes)
        self._leaving = _Buffer()
        if self._is_copied:
            self._is_copied = False
            with contextlib.suppress(sqlite3.Error):  # the next checkpoint meets it, and says so
                writer.execute(_CHECKPOINT).fetchall()

    @property
    def wants_checkpoint(self) -> bool:
        return self._since_checkpoint >= _CHECKPOINT_BYTES

    def checkpoint(self) -> None:
        """Bring what lies in the write-ahead log into the table."""
        self._since_checkpoint = 0
        try:
            self._copier.execute(_CHECKPOINT).fetchall()
        except sqlite3.Error as error:
            raise _failure(error, self._path) from None
        self._is_copied = True

    def close(self) -> None:
        """Let go of the files; what is pending and not committed is dropped."""
        for connection in (self._reader, self._copier, self._writer):
            connection.close()
        self._lock.close()


# ---- keys


def _check_key(key: str) -> None:
    try:
        key.encode()
    except UnicodeEncodeError:
        raise InvalidValue(f"the key {key!r} is not valid Unicode and cannot be stored") from None


def _after_all(prefix: str) -> str | None:
    """The least text that is larger than all with this prefix; None: there is none.

    Texts are ordered by code points, which is the order of their UTF-8 bytes.
    """
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    if following == 0xD800:  # surrogates are no characters
        following = 0xE000
    return kept[:-1] + chr(following)


def _first_larger(ordered: list[str], after: str, prefix: str) -> int:
    return bisect_right(ordered, after) if after else bisect_left(ordered, prefix)


# ---- the table


def _write(writer: sqlite3.Connection, changes: _Changes) -> None:
    puts: list[str | bytes] = []
    deletes: list[str] = []
    for key, value in changes.items():
        if value is None:
            deletes.append(key)
        else:
            puts += (key, value)
    _in_groups(writer, "REPLACE INTO entries (key, value) VALUES ", "(?, ?)", 2, puts)
    _in_groups(writer, "DELETE FROM entries WHERE key IN (VALUES ", "(?)", 1, deletes, ")")


def _in_groups(
    writer: sqlite3.Connection,
    head: str,
    row: str,
    width: int,
    values: list[str] | list[str | bytes],
    tail: str = "",
) -> None:
    at = 0
    for rows in _ROWS:
        statement = head + ", ".join([row] * rows) + tail
        while len(values) - at >= rows * width:
            writer.execute(statement, values[at : at + rows * width])
            at += rows * width


def _roll_back(writer: sqlite3.Connection) -> None:
    if writer.in_transaction:
        try:
            writer.execute("ROLLBACK")
        except sqlite3.Error:  # the first error is the one to tell
            return


# ---- files


def _locked(directory: Path) -> Lock:
    path = directory / LOCK
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreFailed(
            f"the directory {directory} cannot hold a broker's data: {error.strerror}; "
            f"choose another one (data, in [broker]) or let this user write there"
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise StoreFailed(
            f"another broker uses {directory / FILE}; stop it, or give this one another "
            f"directory (data, in [broker])"
        ) from None
    return Lock(descriptor)


class Lock:
    """Held until it is closed, or the process ends in whatever way."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")  # of a new file
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreFailed(
            f"{path} lies on a file system where SQLite cannot keep a write-ahead log (a network "
            f"share?); choose a directory on a local disk (data, in [broker])"
        )
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES_MAX}").fetchall()
    connection.execute(f"PRAGMA journal_size_limit = {4 * _CHECKPOINT_BYTES}").fetchall()
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def _prepared(connection: sqlite3.Connection, path: Path) -> None:
    """Make the table in a new file; refuse one that is not ours."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if application == _APPLICATION and version == FORMAT:
        return
    if application == _APPLICATION:
        raise InvalidFile(
            f"{path} has format {version}; this Palio reads and writes format {FORMAT}: "
            f"use the Palio that wrote it"
        )
    if tables:
        raise InvalidFile(
            f"{path} is a database of another program; give the broker a directory of its own "
            f"(data, in [broker])"
        )
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE entries (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID")
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("COMMIT")


_REASONS = {
    "SQLITE_READONLY": "it is read-only; let this user write it",
    "SQLITE_CANTOPEN": "it cannot be opened; let this user read and write it and its directory",
    "SQLITE_PERM": "this user may not open it",
    "SQLITE_CORRUPT": "it is damaged; move it away (it may be worth a `sqlite3 FILE .recover`)",
    "SQLITE_NOTADB": "it is not a database; move it away",
    "SQLITE_IOERR": "the disk fails; look at the system's log",
    "SQLITE_BUSY": "another program holds it; close that one",
}


def _failure(error: sqlite3.Error, path: Path) -> StoreFailed:
    name = getattr(error, "sqlite_errorname", None) or ""
    if name == "SQLITE_FULL":
        return StoreFull(f"no room is left for {path}; free some on its disk")
    reason = next((text for key, text in _REASONS.items() if name.startswith(key)), str(error))
    return StoreFailed(f"{path} cannot be used: {reason} ({name or type(error).__name__})")
