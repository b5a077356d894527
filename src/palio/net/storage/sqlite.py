"""The embedded store: one table of keys and values in SQLite.

    <data>/broker.sqlite    the table (sqlite_database.py); write-ahead log, synchronous=FULL
    <data>/broker.id        which database belongs here, and how far it had come (marker.py)
    <data>/broker.lock      held by the broker that uses the directory

`commit` and `checkpoint` run in worker threads and have a connection of their own. A commit is one
transaction, so after a crash the table is the result of whole commits. Values have a checksum, which
is verified when they are read (checked.py). The database is inspected before it is used
(inspection.py); what is damaged is not touched, and the store is not opened.

A checkpoint copies the write-ahead log into the table while commits go on. SQLite starts the log
anew only when the table holds all of it, so the commit after a checkpoint copies the little that came
meanwhile.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from zlib import crc32

from palio.net.monitoring.logs import log_event
from palio.net.storage.buffer import Changes, WriteBuffer
from palio.net.storage.buffered import BufferedStore
from palio.net.storage.checked import with_checksum
from palio.net.storage.directory_lock import DirectoryLock
from palio.net.storage.inspection import Inspection, inspect
from palio.net.storage.marker import MarkerContents, MarkerFile
from palio.net.storage.sqlite_database import (
    FILE,
    FORMAT,
    FORMAT_WITHOUT_CHECKSUMS,
    READ_ERRORS,
    StoreState,
    add_checksums,
    connected,
    create_tables,
    failure,
    put_state,
)
from palio.net.storage.sqlite_reading import ReadingStore
from palio.net.storage.sqlite_rows import delete_rows, put_rows
from palio.net.storage.store import StoreFailed

_CHECKPOINT_BYTES: Final = 64 << 20
"""Of the write-ahead log."""
_RETRY_BYTES: Final = 4 << 20
_CHANGE_BYTES, _COMMIT_BYTES = 4096, 4 * 4096
"""What a change and a commit take in it besides the values: whole pages."""
_CHECKPOINT: Final = "PRAGMA wal_checkpoint(PASSIVE)"


class SqliteStore(ReadingStore, BufferedStore):
    """A `CommittingStore` in a directory, which is made if it does not exist."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory / FILE)
        self._since_checkpoint = 0  # bytes of the log, roughly: two threads count
        self._is_copied = False  # a checkpoint has run since the last commit
        with contextlib.ExitStack() as undo:
            self._lock = DirectoryLock(directory)
            undo.callback(self._lock.close)
            found = inspect(directory)
            try:
                self._writer = connected(self._path)
                undo.callback(self._writer.close)
                self._state = _prepared(self._writer, found)
                self._reader = connected(self._path)
                undo.callback(self._reader.close)
                self._reader.execute("PRAGMA query_only = ON")
                self._copier = connected(self._path)
                undo.callback(self._copier.close)
                contents = MarkerContents(self._state.identity, FORMAT, self._state.commits)
                self._marker = MarkerFile(directory, contents)
                self._since_checkpoint = os.path.getsize(f"{self._path}-wal")
            except sqlite3.Error as error:
                raise failure(error, self._path) from None
            except OSError as error:
                raise StoreFailed(f"{directory} cannot be used: {error.strerror}") from None
            undo.pop_all()

    # ---- commits

    def commit(self) -> None:
        leaving, writer = self._leaving, self._writer
        if not leaving.changes:
            return
        try:
            writer.execute("BEGIN IMMEDIATE")
            state = _write(writer, leaving.changes, self._state)
            writer.execute("COMMIT")
        except READ_ERRORS as error:
            _roll_back(writer)
            raise failure(error, self._path) from None
        self._state = state
        self._mark(state.commits)
        self._since_checkpoint += (
            leaving.size + _CHANGE_BYTES * len(leaving.changes) + _COMMIT_BYTES
        )
        self._leaving = WriteBuffer()
        if self._is_copied:
            self._is_copied = False
            with contextlib.suppress(
                sqlite3.Error
            ):  # the next checkpoint meets the same error and reports it
                writer.execute(_CHECKPOINT).fetchall()

    def replace_all(self, entries: Iterable[tuple[str, bytes]]) -> None:
        """It counts as one more commit, so the marker belongs to the result."""
        writer = self._writer
        rows = _CountedRows(entries)
        try:
            writer.execute("BEGIN IMMEDIATE")
            writer.execute("DELETE FROM entries")
            writer.executemany("INSERT INTO entries (key, value) VALUES (?, ?)", rows)
            before = self._state
            state = StoreState(before.identity, before.commits + 1, rows.count, rows.digest)
            put_state(writer, state)
            writer.execute("COMMIT")
        except READ_ERRORS as error:
            _roll_back(writer)
            raise failure(error, self._path) from None
        except BaseException:
            _roll_back(writer)
            raise
        self._state = state
        self._mark(state.commits)

    def _mark(self, commits: int) -> None:
        try:
            self._marker.advance(commits)
        except OSError as error:
            raise StoreFailed(
                f"the marker beside {self._path} cannot be written: {error.strerror}"
            ) from None

    @property
    def wants_checkpoint(self) -> bool:
        return self._since_checkpoint >= _CHECKPOINT_BYTES

    def checkpoint(self) -> None:
        """Copy the write-ahead log into the table."""
        self._since_checkpoint = 0
        try:
            self._copier.execute(_CHECKPOINT).fetchall()
        except READ_ERRORS as error:  # soon again: else the log takes all the room that comes back
            self._since_checkpoint += _CHECKPOINT_BYTES - _RETRY_BYTES
            raise failure(error, self._path) from None
        self._marker.synchronise()
        self._is_copied = True

    def close(self) -> None:
        """Close the files. Changes that are not committed are lost."""
        for connection in (self._reader, self._copier, self._writer):
            connection.close()
        self._marker.close()
        self._lock.close()


# ---- the table


def _prepared(connection: sqlite3.Connection, found: Inspection) -> StoreState:
    """Make the tables in a new file; bring those of an older format to this one."""
    if found.format == FORMAT_WITHOUT_CHECKSUMS:
        log_event(logging.INFO, "the store gets checksums; this happens once")
        return add_checksums(connection)
    if found.state is None:
        return create_tables(connection)
    if not found.has_marker and found.state.commits:
        log_event(logging.WARNING, "the marker of the store was missing or damaged; it is new")
    return found.state


def _write(writer: sqlite3.Connection, changes: Changes, state: StoreState) -> StoreState:
    puts: list[tuple[str, bytes]] = []
    deletes: list[str] = []
    for key, value in changes.items():
        if value is None:
            deletes.append(key)
        else:
            puts.append((key, with_checksum(key, value)))
    existing = put_rows(writer, puts) | delete_rows(writer, deletes)
    state = state.after(changes, existing)
    put_state(writer, state)
    return state


class _CountedRows:
    """Rows as they are stored; when all were taken, their number and the digest of their keys."""

    def __init__(self, entries: Iterable[tuple[str, bytes]]) -> None:
        self._entries = entries
        self.count = self.digest = 0

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        for key, value in self._entries:
            self.count += 1
            self.digest += crc32(key.encode())
            yield key, with_checksum(key, value)


def _roll_back(writer: sqlite3.Connection) -> None:
    if writer.in_transaction:
        try:
            writer.execute("ROLLBACK")
        except sqlite3.Error:  # the first error is the one to report
            return
