"""Filters that need not be compiled, since a simpler one of the same interface covers them.

A filter with a constraint that a filter of one constraint implies selects nothing new: `x > 5 AND
y = 1` beside `x > 3`. When the interfaces are few this holds of most filters (of 1,000,000 of the
2003 workload over 20 interfaces 89 in 100), and one pass over the constraints finds them. Covering
by filters of several constraints is left to `palio.reduce`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from palio.matching.encode.arrays import Strings
from palio.matching.encode.columns import ConstraintColumns, Ints
from palio.matching.encode.cover_kernels import enter_singles, mark_covered
from palio.matching.encode.texts import resolve_operands


def uncovered(columns: ConstraintColumns, strings: Strings) -> ConstraintColumns:
    """The columns without filters that a filter of one constraint covers."""
    if len(columns.interfaces) == columns.filters:
        return columns
    gone = _covered(columns, strings)
    if not gone.any():
        return columns
    kept = ~gone
    number = np.cumsum(kept) - 1
    rows = kept[columns.filter]
    return replace(
        columns,
        filter=number[columns.filter[rows]].astype(np.int32),
        name=columns.name[rows],
        op=columns.op[rows],
        domain=columns.domain[rows],
        key=columns.key[rows],
        owner=columns.owner[kept],
    )


def _covered(columns: ConstraintColumns, strings: Strings) -> Ints:
    size = np.bincount(columns.filter, minlength=columns.filters)
    gone = np.zeros(columns.filters, np.uint8)
    bare = np.flatnonzero(size == 0)
    if len(bare):  # the empty filter covers all, and one is enough
        everything = np.zeros(len(columns.interfaces), bool)
        everything[columns.owner[bare]] = True
        gone[everything[columns.owner]] = 1
        gone[bare[np.unique(columns.owner[bare], return_index=True)[1]]] = 0
    singles = np.flatnonzero(size[columns.filter] == 1)
    if len(singles):
        owners = columns.owner[columns.filter]
        slots = np.zeros(1 << (2 * len(singles)).bit_length(), np.int32)
        facts = owners, columns.name, columns.op, columns.domain, columns.key
        enter_singles(singles, *facts, slots)
        pieces = resolve_operands(strings)
        mark_covered(columns.filter, *facts, pieces.at, pieces.hits, slots, gone)
    return gone.astype(bool)
