"""Matches as pairs of message and interface, one number each, so that answers of several parts become one.

offsets  0 2 2 3      found  0 2 1          pairs  (0, 0) (0, 2) (2, 1)       ascending
"""

from __future__ import annotations

import numpy as np

from palio.matching.encode.columns import Ints


def rows_of(offsets: Ints) -> Ints:
    """The message of each match."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))


def pairs_of(rows: Ints, found: Ints) -> Ints:
    """Pairs, in the order of the matches."""
    return np.asarray((rows << 32) | found)


def united(pairs: Ints, more: Ints) -> Ints:
    """Ascending pairs and any others: ascending, nothing twice."""
    more = np.unique(more)
    at = np.searchsorted(pairs, more)
    is_new = np.append(pairs, -1)[at] != more
    return np.insert(pairs, at[is_new], more[is_new])


def as_lists(pairs: Ints, count: int) -> tuple[Ints, Ints]:
    """Ascending pairs of so many messages as offsets and matches."""
    ends = np.searchsorted(pairs, np.arange(1, count + 1) << 32)
    return np.concatenate([[0], ends]), (pairs & 0xFFFFFFFF).astype(np.int32)
