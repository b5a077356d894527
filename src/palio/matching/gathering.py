"""Gathers what kernels found, row by row, into offsets and one flat array.

A kernel writes into a buffer that stays in the cache, as many rows as fit; from there matches go to
one array, made as large as the first rows let expect.

    buffer    a c b | b | ...          found     a c b b ...
    ends          2   3                offsets   0 2 3 ...
"""

from __future__ import annotations

import threading

import numpy as np

from palio.matching.encode.columns import Ints

_ROOM = 1 << 18  # matches of a buffer beyond one row
_buffers = threading.local()


def buffer(interfaces: int) -> Ints:
    """A buffer of this thread, with room for any row; what was in it is lost."""
    needed = interfaces + _ROOM
    known: Ints | None = getattr(_buffers, "known", None)
    if known is None or len(known) < needed:
        known = _buffers.known = np.empty(needed, np.int32)
    return known


class Gathering:
    """The answers for so many rows."""

    def __init__(self, rows: int) -> None:
        self.offsets = np.zeros(rows + 1, np.int64)
        self._found = np.empty(0, np.int32)

    def take(self, row: int, done: int, ends: Ints, out: Ints) -> None:
        """Rows [row, done) end in out where `ends` says."""
        self.offsets[row + 1 : done + 1] = self.offsets[row] + ends[row:done]
        begin, end = int(self.offsets[row]), int(self.offsets[done])
        if end > len(self._found):
            self._grow(begin, end, done)
        self._found[begin:end] = out[: end - begin]

    def _grow(self, begin: int, end: int, done: int) -> None:
        """Room for what is to come, if it is like what has been; seldom needed twice."""
        rows = len(self.offsets) - 1
        larger = np.empty(end + int(1.1 * end / done * (rows - done)), np.int32)
        larger[:begin] = self._found[:begin]
        self._found = larger

    @property
    def found(self) -> Ints:
        """The matches of all rows."""
        return self._found[: self.offsets[-1]]
