"""Ranges of a table that were read lately, for reads one by one.

A point read of a database is a round trip. Keys are mostly read in their order (the heads of queues at
a start, the segments of a journal by a consumer that is behind), so a read takes what follows along.

    range   low ≤ key ≤ high: every key of the table between them is in `rows`, with its value

What always holds: a range says what the table says once the commit that is under way has ended.
Everything here is called by one thread.
"""

from __future__ import annotations

from palio.net.storage.buffer import Changes
from palio.net.storage.buffered import Rows

RANGES_MAX = 8


class RangeCache:
    """At most RANGES_MAX ranges; the one that was used least lately goes first."""

    def __init__(self) -> None:
        self._ranges: list[tuple[str, str, Changes]] = []

    def get(self, key: str) -> tuple[bool, bytes | None]:
        """Whether the key is in a known range, and its value; None: the table does not have it."""
        for at, (low, high, rows) in enumerate(self._ranges):
            if low <= key <= high:
                if at:
                    self._ranges.insert(0, self._ranges.pop(at))
                return True, rows.get(key)
        return False, None

    def add(self, low: str, rows: Rows, changes: Changes) -> None:
        """Rows that were read from `low` on, without a gap; `changes` are being committed."""
        high = max(low, rows[-1][0]) if rows else low
        known: Changes = dict(rows)
        known.update((key, value) for key, value in changes.items() if low <= key <= high)
        self._ranges = [(low, high, known), *self._ranges[: RANGES_MAX - 1]]

    def change(self, changes: Changes) -> None:
        """These changes are being committed."""
        for low, high, rows in self._ranges:
            for key, value in changes.items():
                if low <= key <= high:
                    rows[key] = value
