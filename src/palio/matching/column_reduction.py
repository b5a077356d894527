"""Reduction before compiling: what other filters of an interface cover is not stored.

Predicates are reduced whole, interface by interface, by `model.reduction`. Constraint rows become
columns without an object a filter, and there only the plain cases are found, by sorting, which
takes seconds for millions:

    the same filter again                                 x = 1 AND y = 2      twice
    a constraint that is there twice in a filter          x = 1 AND x = 1
    a filter with a constraint that a filter of one       x < 5 AND y = 2      beside  x < 9
    constraint of the same interface allows too           x = 3 AND y = 2      beside  x IS NOT NULL
    anything beside TRUE

Nothing is dropped unless what covers it stays, so the answers are the same. Strings and sets that
no filter uses any more are still stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from palio.matching import codes
from palio.matching.columns import Columns, Ints, from_predicates
from palio.matching.statistics import Reduction
from palio.model.predicate import Filter, Predicate
from palio.model.reduction import reduce

_MIX = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_WHOLE = (codes.BOOL, codes.TIME, codes.STRING)  # domains that are a type's own


def reduce_predicates(pairs: Iterable[tuple[str, Predicate]]) -> tuple[Columns, Reduction]:
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


def reduce_columns(columns: Columns) -> tuple[Columns, Reduction]:
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
    kept &= ~_beside_true(columns, size)
    kept[columns.filter[rows[_dominated(columns, key, rows, size)]]] = False
    # The given order within a filter decides between constraints that are equally likely.
    rows = np.sort(rows[kept[columns.filter[rows]]])
    number = np.cumsum(kept) - 1
    reduced = replace(
        columns,
        filter=number[columns.filter[rows]].astype(columns.filter.dtype),
        name=columns.name[rows],
        op=columns.op[rows],
        domain=columns.domain[rows],
        key=columns.key[rows],
        owner=columns.owner[kept],
    )
    saved = Reduction(columns.filters, reduced.filters, len(columns.filter), len(reduced.filter))
    return reduced, saved


def _set_keys(columns: Columns) -> Ints:
    """The keys, with one number for all sets of the same members."""
    key = columns.key.copy()
    known: dict[tuple[int, bytes], int] = {}
    sets = columns.sets
    for row in np.flatnonzero(columns.op == codes.IN):
        s = key[row]
        members = sets.keys[sets.start[s] : sets.start[s + 1]].tobytes()
        key[row] = known.setdefault((int(sets.split[s] - sets.start[s]), members), int(s))
    return key


def _duplicates(columns: Columns, key: Ints, rows: Ints, size: Ints) -> Ints:
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


def _hashes(columns: Columns, key: Ints, rows: Ints) -> Ints:
    """A number of 64 bits for each row, the same for the same constraint."""
    head = columns.name[rows].astype(np.uint64) << np.uint64(8)
    head |= (columns.op[rows].astype(np.uint64) << np.uint64(4)) | columns.domain[rows]
    mixed = head * np.uint64(_MIX[0]) ^ (key[rows].view(np.uint64) * np.uint64(_MIX[1]))
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(_MIX[0])
    return np.asarray(mixed ^ (mixed >> np.uint64(32)))


def _beside_true(columns: Columns, size: Ints) -> Ints:
    """Filters of interfaces that have the empty filter, but for it."""
    bare = size == 0
    has_bare = np.zeros(len(columns.interfaces), bool)
    has_bare[columns.owner[bare]] = True
    return np.asarray(has_bare[columns.owner] & ~bare)


def _dominated(columns: Columns, keys: Ints, rows: Ints, size: Ints) -> Ints:
    """Rows that a filter of one constraint of the same interface, another one, allows too."""
    filter, name, op = columns.filter[rows], columns.name[rows], columns.op[rows]
    domain, key = columns.domain[rows], keys[rows]
    single = size[filter] == 1
    owner = columns.owner[filter].astype(np.int64)
    _, of_name = np.unique(owner * len(columns.names) + name, return_inverse=True)
    _, group = np.unique(of_name * 8 + domain, return_inverse=True)
    count = int(group.max()) + 1 if len(group) else 0
    every = np.zeros(count, bool)
    whole = single & (op == codes.ANY) & (domain == codes.EVERY)
    every[of_name[whole]] = True
    found = every[of_name] & (op != codes.ABSENT) & ~whole
    typed = np.zeros(count, bool)
    typed[group[single & (op == codes.ANY) & np.isin(domain, _WHOLE)]] = True
    found |= typed[group] & (op != codes.ANY)
    found |= ~single & _seen_alone(single, group, op, key)
    for strict, loose, sign in ((codes.LT, codes.LE, 1), (codes.GT, codes.GE, -1)):
        found |= _inside_ray(group, count, single, op, key, strict, loose, sign)
    return np.asarray(found)


def _seen_alone(single: Ints, group: Ints, op: Ints, key: Ints) -> Ints:
    """Rows whose constraint is a whole filter of their interface."""
    order = np.lexsort((key, op, group))
    new = np.ones(len(order), bool)
    if len(order):
        new[1:] = False
        for column in (group, op, key):
            new[1:] |= column[order][1:] != column[order][:-1]
    run = np.cumsum(new) - 1
    alone = np.zeros(len(order), bool)
    alone[run[single[order]]] = True
    found = np.empty(len(order), bool)
    found[order] = alone[run]
    return found


def _inside_ray(
    group: Ints, count: int, single: Ints, op: Ints, key: Ints, strict: int, loose: int, sign: int
) -> Ints:
    """Rows of =, < and <= (or > and >=) inside the widest single ray of their group."""
    is_ray = (op == strict) | (op == loose)
    rays = np.flatnonzero(single & is_ray)
    has = np.zeros(count, bool)
    has[group[rays]] = True
    widest = np.zeros(count, np.int64)
    order = rays[np.argsort(key[rays], kind="stable")[::sign]]
    widest[group[order]] = key[order]  # the last one written is the widest
    closed = np.zeros(count, bool)
    on_edge = rays[(op[rays] == loose) & (key[rays] == widest[group[rays]])]
    closed[group[on_edge]] = True
    edge, shut = widest[group], closed[group]
    inside = key < edge if sign > 0 else key > edge
    at_edge = (key == edge) & ((op == codes.EQ) & shut | (op == strict) & (shut | ~single))
    at_edge |= (key == edge) & (op == loose) & shut & ~single
    return np.asarray(has[group] & (is_ray | (op == codes.EQ)) & (inside | at_edge))
