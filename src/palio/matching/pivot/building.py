"""Compiling for the pivot engine: each filter is filed once, under its least likely constraint.

Compiling sorts; nothing is a Python object per filter. `arrays` draws what is built here, and
`forward_kernels` walks it.

How likely a constraint is to hold is guessed from the predicates (`likelihood`), or counted on a
sample of messages (`sample`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from palio.matching.encode import codes
from palio.matching.encode.columns import ConstraintColumns, Ints
from palio.matching.pivot.arrays import Pivots
from palio.matching.pivot.hot_keys import order_within
from palio.matching.pivot.likelihood import Constraints, guess
from palio.matching.pivot.masks import are_few

_ALWAYS = -1  # the name under which filters without a pivot lie


@dataclass(frozen=True, slots=True)
class _FiledFilters:
    """Where each filter is filed: one row for each, more for a filter under a set."""

    filter: Ints
    name: Ints
    kind: Ints
    domain: Ints
    key: Ints

    def __getitem__(self, rows: Ints) -> _FiledFilters:
        return _FiledFilters(
            self.filter[rows], self.name[rows], self.kind[rows], self.domain[rows], self.key[rows]
        )


def build_pivots(columns: ConstraintColumns, chance: Ints | None = None) -> Pivots:
    """File all filters; `chance` is how likely each constraint is, a guess unless it is given."""
    if chance is None:
        chance = guess(Constraints.of(columns))
    order = np.lexsort((chance, columns.filter))  # least likely first within each filter
    first = np.flatnonzero(
        np.r_[True, columns.filter[order][1:] != columns.filter[order][:-1]]
        if len(order)
        else np.zeros(0, bool)
    )
    pivot = order[first]
    inline = np.ones(len(order), bool)
    inline[pivot] = np.isin(columns.op[pivot], codes.KEPT_INLINE)
    rest = order[inline[order]]  # what is verified, grouped by filter, least likely first
    rest_size = np.bincount(columns.filter[rest], minlength=columns.filters)
    postings = _postings(columns, pivot)
    alone = rest_size[postings.filter] == 0
    singles = postings[np.flatnonzero(alone)]
    others = postings[np.flatnonzero(~alone)]
    return _assemble(columns, singles, others, rest, rest_size)


def _postings(columns: ConstraintColumns, pivot: Ints) -> _FiledFilters:
    """The directory and key of each pivot; a set has one posting for each member."""
    filed = Constraints(
        columns.name[pivot], columns.op[pivot], columns.domain[pivot], columns.key[pivot],
        columns.sets, len(columns.names),
    ).filed()  # fmt: skip
    kind, domain, key = filed.op, filed.domain, filed.key
    filters, names = columns.filter[pivot], filed.name
    plain = kind != codes.IN
    parts = [_FiledFilters(filters[plain], names[plain], kind[plain], domain[plain], key[plain])]
    sets = np.flatnonzero(~plain)
    if len(sets):
        parts += _set_postings(columns, filters[sets], names[sets], domain[sets], key[sets])
    bare = np.flatnonzero(np.bincount(columns.filter, minlength=columns.filters) == 0)  # TRUE
    if len(bare):
        zeros = np.zeros(len(bare), np.int64)
        parts.append(
            _FiledFilters(bare, zeros + _ALWAYS, zeros + codes.ANY, zeros + codes.EVERY, zeros)
        )
    return _FiledFilters(
        *(
            np.concatenate([getattr(part, field) for part in parts]).astype(np.int64)
            for field in ("filter", "name", "kind", "domain", "key")
        )
    )


def _set_postings(
    columns: ConstraintColumns, filters: Ints, names: Ints, domain: Ints, key: Ints
) -> list[_FiledFilters]:
    parts = []
    sets = columns.sets
    for low, high, where in (
        (sets.start[key], sets.split[key], domain),
        (sets.split[key], sets.start[key + 1], np.full_like(domain, codes.FLOAT)),
    ):
        count = high - low
        at = np.repeat(low - np.r_[0, np.cumsum(count)[:-1]], count) + np.arange(count.sum())
        parts.append(
            _FiledFilters(
                np.repeat(filters, count),
                np.repeat(names, count),
                np.full(count.sum(), codes.EQ),
                np.repeat(where, count),
                sets.keys[at],
            )
        )
    return parts


def _assemble(
    columns: ConstraintColumns,
    singles: _FiledFilters,
    others: _FiledFilters,
    rest: Ints,
    rest_size: Ints,
) -> Pivots:
    """Sort both kinds of postings into common directories of keys."""
    columns_of = ("name", "kind", "domain", "key")
    joined = [np.concatenate([getattr(singles, c), getattr(others, c)]) for c in columns_of]
    order = np.lexsort((joined[3], joined[2], joined[1], joined[0]))
    name, kind, domain, key = (column[order] for column in joined)
    is_single = order < len(singles.filter)
    new_directory = _changes(name, kind, domain)
    new_key = new_directory | _changes(key)
    keys_first = np.flatnonzero(new_key)
    directories = np.flatnonzero(new_directory)
    positions = np.append(keys_first, len(order))
    seen_single = np.r_[0, np.cumsum(is_single)]
    single_filters = singles.filter[order[is_single]]
    other_filters = others.filter[order[~is_single] - len(singles.filter)]
    inline = _inline(columns, rest, rest_size)
    owners = columns.owner[np.concatenate([single_filters, other_filters])]
    is_once = bool(np.bincount(owners).max(initial=0) <= 1)
    next_inline = inline[(np.cumsum(rest_size) - rest_size)[other_filters]]
    own_key, owner = np.cumsum(new_key)[~is_single], columns.owner[other_filters]
    has_words = are_few(len(columns.interfaces), is_once)
    other_filters = other_filters[order_within(own_key, owner, next_inline, has_words)]
    names = name[directories]
    known = np.flatnonzero(names >= 0)
    missing = np.flatnonzero(kind[directories] == codes.ABSENT)
    entries, further = _entries(columns, other_filters, inline, rest_size)
    return Pivots(
        directory_at=(
            np.searchsorted(names[known], np.arange(len(columns.names) + 1))
            + len(names)
            - len(known)
        ).astype(np.int32),
        kind=kind[directories].astype(np.uint8),
        domain=domain[directories].astype(np.uint8),
        keys_at=np.searchsorted(keys_first, np.append(directories, len(order))).astype(np.int32),
        keys=key[keys_first].astype(np.int64),
        alone_at=seen_single[positions].astype(np.int32),
        alone=columns.owner[single_filters].astype(np.int32),
        entries_at=(positions - seen_single[positions]).astype(np.int32),
        entries=entries,
        rest=further,
        missing=missing.astype(np.int32),
        missing_name=names[missing].astype(np.int32),
        always=np.flatnonzero(names < 0).astype(np.int32),
        set_at=columns.sets.start,
        set_split=columns.sets.split,
        set_keys=columns.sets.keys,
        once=np.array([is_once], np.uint8),
    )


def _changes(*columns: Ints) -> Ints:
    changed = np.zeros(len(columns[0]), bool)
    if len(changed):
        changed[0] = True
        for column in columns:
            changed[1:] |= column[1:] != column[:-1]
    return changed


def _inline(columns: ConstraintColumns, rest: Ints, rest_size: Ints) -> Ints:
    """What is verified, packed; the last constraint of each filter is marked."""
    last = np.zeros(len(rest), np.int64)
    last[np.cumsum(rest_size)[rest_size > 0] - 1] = 1
    return _packed(columns, rest, last)


def _entries(
    columns: ConstraintColumns, filters: Ints, inline: Ints, rest_size: Ints
) -> tuple[Ints, Ints]:
    """The candidates with their next constraint, and the further ones in the same order.

    The postings of one filter (it lies under a set) share what follows the entry.
    """
    begin = np.r_[0, np.cumsum(rest_size)]
    unique, first_use, which = np.unique(filters, return_index=True, return_inverse=True)
    by_use = np.argsort(first_use, kind="stable")
    size = rest_size[unique[by_use]] - 1
    starts = np.r_[0, np.cumsum(size)]
    source = np.repeat(begin[unique[by_use]] + 1 - starts[:-1], size) + np.arange(starts[-1])
    place = np.empty(len(unique), np.int64)
    place[by_use] = starts[:-1]
    entries = np.empty((len(filters), 5), np.int32)
    entries[:, 0] = columns.owner[filters]
    entries[:, 1] = place[which]
    entries[:, 2:] = inline[begin[filters]]
    return entries, inline[source]


def _packed(columns: ConstraintColumns, rows: Ints, last: Ints) -> Ints:
    """Constraints as three ints: head, and the two halves of the key."""
    out = np.empty((len(rows), 3), np.int32)
    out[:, 0] = (
        (columns.name[rows].astype(np.int64) << codes.NAME_SHIFT)
        | (columns.op[rows].astype(np.int64) << codes.OP_SHIFT)
        | (columns.domain[rows].astype(np.int64) << codes.DOMAIN_SHIFT)
        | last
    )
    out[:, 1:] = columns.key[rows].view(np.int32).reshape(-1, 2)
    return out
