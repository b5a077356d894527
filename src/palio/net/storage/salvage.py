"""Reading a damaged database row by row: what SQLite can still read, and whose checksum is right.

    a ────rows, upwards────▶ ✗ ? ? ? ✗ ◀────rows, downwards──── z
                               └ looked into at points between, down to a few: each read upwards again

SQLite finds a row by the pages on the way to it. So rows beyond a page that cannot be read are found
from the other side, or from a key that lies beyond that page.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Final

from palio.net.storage.checked import without_checksum
from palio.net.storage.sqlite_database import READ_ERRORS
from palio.net.storage.store import StoreDamaged

_ROWS_MAX: Final = 8
_DEPTH_MAX: Final = 7
"""Of a gap between rows that can be read, 2 ** 7 points at most are tried."""
_LAST: Final = "\U0010ffff"


class Salvage:
    """`rows` gives what can be read, once. After that `damaged` has the keys of values that cannot.
    Without `has_checksums`, values are of the older format, which has none."""

    def __init__(self, connection: sqlite3.Connection, path: Path, has_checksums: bool) -> None:
        self._connection, self._path = connection, path
        self._has_checksums = has_checksums
        self._seen: set[str] = set()
        self.damaged: set[str] = set()
        self.has_gaps = False
        """Some pages of the table cannot be read: nobody knows which keys they had."""

    def rows(self) -> Iterator[tuple[str, bytes]]:
        yield from self._between("", _LAST, 0)

    def _between(self, low: str, high: str, depth: int) -> Iterator[tuple[str, bytes]]:
        """The rows after `low` and before `high`."""
        low = yield from self._walk(low, high, is_upwards=True)
        if low >= high:
            return
        high = yield from self._walk(low, high, is_upwards=False)
        self.has_gaps = True
        middle = _middle(low, high)
        if low < middle < high and depth < _DEPTH_MAX:
            yield from self._between(low, middle, depth + 1)
            yield from self._between(middle, high, depth + 1)

    def _walk(
        self, low: str, high: str, is_upwards: bool
    ) -> Generator[tuple[str, bytes], None, str]:
        """Rows until one cannot be found; the return value is where that was, or the other end."""
        at, end = (low, high) if is_upwards else (high, low)
        count = _ROWS_MAX
        while True:
            bounds = (at, end) if is_upwards else (end, at)
            rows = self._read("key, value", bounds, is_upwards, count)
            if rows is None and count > 1:
                count = 1
                continue
            if rows is None:  # without its value?
                rows = self._read("key, NULL", bounds, is_upwards, 1)
            if rows is None:
                return at
            if not rows:
                return end
            for key, stored in rows:
                if not isinstance(key, str) or not bounds[0] < key < bounds[1]:
                    return at  # the order of keys is broken
                at = key
                yield from self._checked(key, stored)
            count = min(2 * count, _ROWS_MAX)

    def _read(
        self, columns: str, bounds: tuple[str, str], is_upwards: bool, count: int
    ) -> list[tuple[object, object]] | None:
        order = "ASC" if is_upwards else "DESC"
        query = f"SELECT {columns} FROM entries WHERE key > ? AND key < ? ORDER BY key {order}"
        try:
            return self._connection.execute(f"{query} LIMIT {count}", bounds).fetchall()
        except READ_ERRORS:
            return None

    def _checked(self, key: str, stored: object) -> Iterator[tuple[str, bytes]]:
        if key in self._seen:
            return
        self._seen.add(key)
        try:
            value = without_checksum(key, stored, self._path) if self._has_checksums else stored
        except StoreDamaged:
            self.damaged.add(key)
            return
        if isinstance(value, bytes):
            yield key, value
        else:
            self.damaged.add(key)


def _middle(low: str, high: str) -> str:
    """A text about in the middle of two: as numbers of base 128, after the part that they share.

    >>> _middle("store/r/10", "store/r/30")
    'store/r/20'
    """
    shared = 0
    while shared < min(len(low), len(high)) and low[shared] == high[shared]:
        shared += 1
    digits = 4
    a, b = (_number(text[shared : shared + digits], digits) for text in (low, high))
    middle, text = (a + b) // 2, ""
    for _ in range(digits):
        middle, digit = divmod(middle, 128)
        text = chr(digit) + text
    return low[:shared] + text.rstrip("\0")


def _number(text: str, digits: int) -> int:
    number = 0
    for place in range(digits):
        number = number * 128 + (min(ord(text[place]), 127) if place < len(text) else 0)
    return number
