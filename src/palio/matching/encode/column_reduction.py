"""Reduction before compiling: what other filters of an interface cover is not stored.

Predicates are reduced whole, interface by interface, by `model.reduction`. Constraint rows become
columns without an object a filter, and there only the plain cases are found, by sorting, which
takes seconds for millions:

    the same filter again                                 x = 1 AND y = 2      twice
    a constraint that is there twice in a filter          x = 1 AND x = 1

What a filter of one constraint covers is found too, as always (`covered`).
Nothing is dropped unless what covers it stays, so the answers are the same. Strings and sets that
no filter uses any more are still stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from palio.matching.encode import codes
from palio.matching.encode.columns import ConstraintColumns, Ints, from_predicates
from palio.matching.encode.covered import uncovered
from palio.matching.encode.strings import build_strings
from palio.matching.statistics import Reduction
from palio.model.predicate import Filter, Predicate
from palio.model.reduction import reduce

_MIX = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)


def reduce_predicates(
    pairs: Iterable[tuple[str, Predicate]],
) -> tuple[ConstraintColumns, Reduction]:
    """Columns of reduced predicates, and what that saved."""
    given: dict[str, list[Filter]] = {}
    for name, predicate in pairs:
        given.setdefault(name, []).extend(predicate.filters)
    filters = sum(map(len, given.values()))
    constraints = sum(len(f.constraints) for group in given.values() for f in group)
    columns = from_predicates(
        (name, reduce(Predicate(tuple(group)))) for name, group in given.items()
    )
    return columns, Reduction(filters, columns.filters, constraints, len(columns.filter))


def reduce_columns(columns: ConstraintColumns) -> tuple[ConstraintColumns, Reduction]:
    """Columns without what is plainly covered, and what that saved."""
    key = _set_keys(columns)
    order = np.lexsort((key, columns.domain, columns.op, columns.name, columns.filter))
    repeated = np.zeros(len(order), bool)
    repeated[1:] = True
    for column in (columns.filter, columns.name, columns.op, columns.domain, key):
        repeated[1:] &= column[order][1:] == column[order][:-1]
    rows = order[~repeated]
    size = np.bincount(columns.filter[rows], minlength=columns.filters)
    kept = ~_duplicates(columns, key, rows, size)
    rows = rows[kept[columns.filter[rows]]]
    # The given order within a filter decides between constraints that are equally likely.
    rows = np.sort(rows[kept[columns.filter[rows]]])
    number = np.cumsum(kept) - 1
    reduced = replace(
        columns,
        filter=number[columns.filter[rows]].astype(columns.filter.dtype),
        name=columns.name[rows],
        op=columns.op[rows],
        domain=columns.domain[rows],
        key=key[rows],
        owner=columns.owner[kept],
    )
    reduced = uncovered(reduced, build_strings(reduced))
    saved = Reduction(columns.filters, reduced.filters, len(columns.filter), len(reduced.filter))
    return reduced, saved


def _set_keys(columns: ConstraintColumns) -> Ints:
    """The keys, with one number for all sets of the same members."""
    key = columns.key.copy()
    known: dict[tuple[int, bytes], int] = {}
    sets = columns.sets
    for row in np.flatnonzero(columns.op == codes.IN):
        s = key[row]
        members = sets.keys[sets.start[s] : sets.start[s + 1]].tobytes()
        key[row] = known.setdefault((int(sets.split[s] - sets.start[s]), members), int(s))
    return key


def _duplicates(columns: ConstraintColumns, key: Ints, rows: Ints, size: Ints) -> Ints:
    """Filters that their interface has before; `rows` are sorted within each filter.

    Hashes bring equal filters together; then they are compared, so a collision does no harm.
    """
    place = np.cumsum(size) - size  # of the first row of each filter
    hashes = _hashes(columns, key, rows)
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes)])
    total = running[place + size] - running[place]
    order = np.lexsort((total, size, columns.owner))
    a, b = order[:-1], order[1:]
    alike = (columns.owner[a] == columns.owner[b]) & (size[a] == size[b]) & (total[a] == total[b])
    a, b = a[alike], b[alike]
    length = size[a]
    step = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
    left, right = rows[np.repeat(place[a], length) + step], rows[np.repeat(place[b], length) + step]
    differs = np.zeros(len(left), bool)
    for column in (columns.name, columns.op, columns.domain, key):
        differs |= column[left] != column[right]
    pair = np.repeat(np.arange(len(a)), length)
    same = np.bincount(pair[differs], minlength=len(a)) == 0
    found = np.zeros(len(size), bool)
    found[b[same]] = True
    return found


def _hashes(columns: ConstraintColumns, key: Ints, rows: Ints) -> Ints:
    """A number of 64 bits for each row, the same for the same constraint."""
    head = columns.name[rows].astype(np.uint64) << np.uint64(8)
    head |= (columns.op[rows].astype(np.uint64) << np.uint64(4)) | columns.domain[rows]
    mixed = head * np.uint64(_MIX[0]) ^ (key[rows].view(np.uint64) * np.uint64(_MIX[1]))
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(_MIX[0])
    return np.asarray(mixed ^ (mixed >> np.uint64(32)))
