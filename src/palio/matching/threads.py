"""A batch matched by several threads, a run of rows each: kernels hold no lock of Python.

    rows     [0 ......... 999][1000 ........ 1999] ...     a run for each thread
    answers   offsets, found   offsets, found              joined in the order of the rows

Errors and failures of expressions tell rows of the whole batch, and of several the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import Any

import numpy as np

from palio.errors import InvalidValue
from palio.matching.encode.columns import Ints
from palio.matching.expressions import OnFailure

THREADS_MAX = 256
_ROWS_MIN = 256
"""Rows for which a thread pays."""

Match = Callable[[Any, OnFailure | None], tuple[Ints, Ints]]


def checked(threads: object) -> int:
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise InvalidValue(f"threads are a number from 1 on, not {threads!r}")
    return min(threads, THREADS_MAX)


def matched(match: Match, rows: Any, threads: int, failed: OnFailure | None) -> tuple[Ints, Ints]:
    """The interfaces of each row: offsets, and all of them."""
    size = -(-len(rows) // threads)
    if threads == 1 or size < _ROWS_MIN:
        return match(rows, failed)
    lock = Lock()
    starts = range(0, len(rows), size)
    with ThreadPoolExecutor(threads, "palio-match") as pool:
        runs = list(pool.map(partial(_run, match, rows, size, failed, lock), starts))
    counts = np.concatenate([np.diff(offsets) for offsets, _ in runs])
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return offsets, np.concatenate([found for _, found in runs])


def _run(
    match: Match, rows: Any, size: int, failed: OnFailure | None, lock: Lock, first: int
) -> tuple[Ints, Ints]:
    def told(name: str, places: Sequence[int], reason: str) -> None:
        assert failed is not None
        with lock:
            failed(name, [first + int(place) for place in places], reason)

    try:
        return match(rows.slice(first, size), None if failed is None else told)
    except InvalidValue as error:
        if error.row is None or failed is not None:
            raise
        raise error.at(row=first + error.row) from None
