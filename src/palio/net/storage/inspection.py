"""The inspection of a broker's database before it is used: is all there, and can it be read?

    marker            the file exists, is the one that belongs here, and has all commits
    quick_check       pages are used once, and in order               files up to 256 MiB
    keys              all rows are there, by their number and digest
    values            the checksum of each                            files up to 256 MiB

In a larger file the values are not read here: the core reads all but the segments of the journal
when it starts, and a segment when it is needed; a checksum is verified whenever a value is read.
Nothing is changed: what was found damaged must stay as it is for a repair.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from palio.errors import InvalidFile
from palio.net.storage.checked import without_checksum
from palio.net.storage.marker import FILE as MARKER
from palio.net.storage.marker import DamagedMarker, MarkerContents, read_marker
from palio.net.storage.sqlite_database import (
    APPLICATION,
    COMPANIONS,
    FILE,
    FORMAT,
    FORMAT_WITHOUT_CHECKSUMS,
    READ_ERRORS,
    StoreState,
    connected_to_read,
    failure,
    read_state,
)
from palio.net.storage.store import StoreDamaged
from palio.protocol.durability.keys import check_format

READ_BYTES_MAX: Final = 256 << 20
"""A larger database is not read as a whole when it is opened."""


class Inspection(NamedTuple):
    """`format` 0: there is no database yet. Without `state` it has none: it is new, or of format 1."""

    format: int
    state: StoreState | None
    has_marker: bool


def inspect(directory: Path, read_bytes_max: int | None = None) -> Inspection:
    """Raises StoreDamaged if something is damaged or missing, InvalidFile if it is no store."""
    path, marker = directory / FILE, read_marker(directory)
    if not path.exists() or not path.stat().st_size:
        if marker is not None:
            raise _lost(path, marker)
        return Inspection(0, None, False)
    try:
        with contextlib.closing(connected_to_read(path)) as connection:
            found = identified(connection, path, marker)
            if found.format:
                most = READ_BYTES_MAX if read_bytes_max is None else read_bytes_max
                is_small = _size(directory) <= most
                if is_small:
                    _check_pages(connection, path)
                if found.state is not None:
                    _check_rows(connection, path, found.state, is_small)
    except READ_ERRORS as error:
        raise failure(error, path) from None
    return found


def _lost(path: Path, marker: MarkerContents | DamagedMarker) -> StoreDamaged:
    what = "is empty" if path.exists() else "is missing"
    count = f": {_commits(marker.commits)} missing" if isinstance(marker, MarkerContents) else ""
    return StoreDamaged(
        f"the directory held a broker's data ({MARKER} says so), and {FILE} {what}{count}",
        path=path,
    )


def _commits(count: int) -> str:
    return "1 commit is" if count == 1 else f"{count:,} commits are"


def identified(
    connection: sqlite3.Connection, path: Path, marker: MarkerContents | DamagedMarker | None
) -> Inspection:
    """Is it ours, of a format that can be read, the one that belongs here, and not an older copy?"""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if not tables and application in (0, APPLICATION):
        if marker is not None:
            raise _lost(path, marker)
        return Inspection(0, None, False)
    if isinstance(marker, MarkerContents) and (application, version) != (APPLICATION, FORMAT):
        if application != APPLICATION or marker.format != version:
            raise StoreDamaged(f"its head is damaged, or it is not what {MARKER} says", path=path)
    elif application != APPLICATION:
        raise InvalidFile(
            f"{path} is a database of another program; give the broker a directory of its own "
            f"(data, in [broker])"
        )
    if version == FORMAT_WITHOUT_CHECKSUMS:
        # Now: with checksums, the older version could no longer deliver what waits in it.
        check_format(_UncheckedEntries(connection))
        return Inspection(version, None, False)
    if version != FORMAT:
        raise InvalidFile(
            f"{path} has format {version}; this Palio reads and writes format {FORMAT}: "
            f"use the Palio that wrote it"
        )
    state = read_state(connection, path)
    if isinstance(marker, MarkerContents):
        _compare(path, state, marker)
    return Inspection(version, state, isinstance(marker, MarkerContents))


class _UncheckedEntries:
    """The entries of a database without checksums."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get(self, key: str) -> bytes | None:
        query = "SELECT value FROM entries WHERE key = ?"
        row = self._connection.execute(query, (key,)).fetchone()
        return None if row is None else bytes(row[0])

    def scan(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        query = "SELECT key, value FROM entries WHERE substr(key, 1, ?) = ? ORDER BY key"
        for key, value in self._connection.execute(query, (len(prefix), prefix)):
            yield key, bytes(value)


def _compare(path: Path, state: StoreState, marker: MarkerContents) -> None:
    if state.identity != marker.identity:
        raise StoreDamaged(
            f"it is another database than the one that belongs here ({MARKER} says so)", path=path
        )
    if state.commits < marker.commits:
        missing = _commits(marker.commits - state.commits)
        raise StoreDamaged(
            f"it is older than {MARKER} says: {missing} missing (is {COMPANIONS[0]} lost or "
            f"damaged, or was an old copy put here?)",
            path=path,
        )


def _size(directory: Path) -> int:
    files = [directory / name for name in (FILE, COMPANIONS[0])]
    return sum(file.stat().st_size for file in files if file.exists())


def _check_pages(connection: sqlite3.Connection, path: Path) -> None:
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone() or ("nothing is found",)
    if found != "ok":
        reason = str(found).splitlines()[-1]  # the first line is a title
        raise StoreDamaged(f"the database is damaged: {reason}", path=path)


def _check_rows(
    connection: sqlite3.Connection, path: Path, state: StoreState, has_values: bool
) -> None:
    rows = digest = 0
    for key, stored in _rows(connection, has_values):
        if type(key) is not str:
            raise StoreDamaged("a key is no text: rows are damaged", path=path)
        if has_values:
            without_checksum(key, stored, path)
        rows += 1
        digest += crc32(key.encode())
    check_counts(path, state, rows, digest)


def check_counts(path: Path, state: StoreState, rows: int, digest: int) -> None:
    """Raises StoreDamaged if these are not all the rows and keys that were committed."""
    if rows < state.rows:
        missing = state.rows - rows
        raise StoreDamaged(f"{missing:,} of {state.rows:,} rows are missing", path=path)
    if (rows, digest) != (state.rows, state.digest):
        raise StoreDamaged("its keys are not those that were written", path=path)


def _rows(connection: sqlite3.Connection, has_values: bool) -> Iterator[tuple[object, object]]:
    # With its key alone, a row is read without the pages on which the rest of a large value lies.
    return connection.execute(f"SELECT key, {'value' if has_values else 'NULL'} FROM entries")
