"""Reading a broker's database: values are verified, and errors say what is damaged.

`snapshot` is what a backup holds. `ReadingStore` is what the store that commits (sqlite.py) is made of. `InspectedStore` only reads: a
core can be made of it to see whether a broker would start, and the files stay as they are.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote
from zlib import crc32

from palio.net.storage.buffer import after_all
from palio.net.storage.buffered import BufferedChanges, Rows
from palio.net.storage.checked import without_checksum
from palio.net.storage.inspection import Inspection, check_counts, identified, inspect
from palio.net.storage.marker import read_marker
from palio.net.storage.sqlite_database import (
    FILE,
    FORMAT,
    READ_ERRORS,
    connected_to_read,
    create_tables,
    failure,
)
from palio.net.storage.store import StoreDamaged, StoreFailed

_SCAN_ROWS: Final = 1000


class ReadingStore(BufferedChanges):
    """Subclasses open `_reader`."""

    _reader: sqlite3.Connection

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def _read_value(self, key: str) -> bytes | None:
        rows = self._rows("SELECT key, value FROM entries WHERE key = ?", [key])
        return rows[0][1] if rows else None

    def _read_rows(self, prefix: str, after: str) -> tuple[Rows, bool]:
        # `after` is empty or has the prefix, so "> after" never starts before the prefix.
        low, compare = (after, ">") if after else (prefix, ">=")
        query = f"SELECT key, value FROM entries WHERE key {compare} ?"
        arguments: list[str | int] = [low]
        high = after_all(prefix)
        if high is not None:
            query += " AND key < ?"
            arguments.append(high)
        rows = self._rows(f"{query} ORDER BY key LIMIT ?", [*arguments, _SCAN_ROWS])
        return rows, len(rows) == _SCAN_ROWS

    def _rows(self, query: str, arguments: Sequence[str | int]) -> Rows:
        # All rows in one go: a statement that stays open would pin all reads to the state at its
        # start, while a commit drops `leaving`.
        try:
            rows = self._reader.execute(query, arguments).fetchall()
            return [(key, without_checksum(key, stored, self._path)) for key, stored in rows]
        except READ_ERRORS as error:
            self.failure = failure(error, self._path)
            raise self.failure from None
        except StoreDamaged as error:
            self.failure = error
            raise


class InspectedStore(ReadingStore):
    """The data in a directory as it is, verified. What is put stays in memory.

    A directory without a database, or with one of an older format, is read as if it were empty.
    """

    def __init__(self, directory: Path, read_bytes_max: int | None = None) -> None:
        super().__init__(directory / FILE)
        found = inspect(directory, read_bytes_max)
        self.is_new = found.format != FORMAT
        if not self.is_new:
            self._reader = connected_to_read(self._path)
        else:
            self._reader = sqlite3.connect(":memory:", isolation_level=None)
            create_tables(self._reader)

    def close(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._reader.close()


def snapshot(directory: Path) -> Iterator[tuple[str, bytes]]:
    """All entries at one moment, in order, verified; a broker may use the directory meanwhile.

    Raises StoreDamaged: a backup that is not whole must not look like one, so an error may come at
    the end only.
    """
    path, marker = directory / FILE, read_marker(directory)  # before: the marker is never ahead
    if not path.is_file():
        raise StoreFailed(
            f"there is no store in {directory}: {FILE} is missing; start the broker once"
        )
    name = quote(str(path.absolute()))
    try:
        with contextlib.closing(
            sqlite3.connect(f"file:{name}?mode=rw", uri=True, isolation_level=None)
        ) as connection:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            found = identified(connection, path, marker)
            if found.format:
                yield from _verified(connection, path, found)
    except READ_ERRORS as error:
        raise failure(error, path) from None


def _verified(
    connection: sqlite3.Connection, path: Path, found: Inspection
) -> Iterator[tuple[str, bytes]]:
    rows = digest = 0
    for key, stored in connection.execute("SELECT key, value FROM entries ORDER BY key"):
        if type(key) is not str:
            raise StoreDamaged("a key is no text: rows are damaged", path=path)
        has_checksum = found.state is not None
        yield key, without_checksum(key, stored, path) if has_checksum else stored
        rows += 1
        digest += crc32(key.encode())
    if found.state is not None:
        check_counts(path, found.state, rows, digest)
