"""Columns of several tables as one: what levels and compaction are made with.

    part 0    strings  ab  cd  ef         part 1    strings  bc  cd
    rank              0   2   3                             1   2         ab bc cd ef

Each part says at which position its interfaces are. Filters of interfaces that are gone are left
out, with the strings and sets that nobody else has; the others are renumbered. The order of the
parts does not matter, since filters of an interface are a disjunction.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np

from palio.errors import InvalidPredicate
from palio.matching.encode import codes
from palio.matching.encode.columns import ConstraintColumns, Ints, Sets


def joined(
    parts: Sequence[tuple[ConstraintColumns, Ints]], positions: Ints, interfaces: Any
) -> ConstraintColumns:
    """One set of columns from parts, each with the positions of its interfaces.

    `positions`, ascending, are those that stay, and `interfaces` their names.
    """
    kept = [_kept(columns, at, positions) for columns, at in parts]
    strings, ranks = merged_strings([part.strings for part in kept])
    names: dict[str, int] = {}
    made: list[ConstraintColumns] = []
    sets = filters = 0
    for part, rank in zip(kept, ranks, strict=True):
        own = [names.setdefault(name, len(names)) for name in part.names]
        made.append(_renumbered(part, np.array(own, np.int32), rank, sets, filters))
        sets += len(part.sets.split)
        filters += part.filters
    if len(names) > codes.NAMES_MAX:
        raise InvalidPredicate(f"{len(names):,} attribute names; a table takes {codes.NAMES_MAX:,}")

    def all_of(field: str) -> Ints:
        return np.concatenate([getattr(part, field) for part in made])

    return ConstraintColumns(
        filter=all_of("filter"),
        name=all_of("name"),
        op=all_of("op"),
        domain=all_of("domain"),
        key=all_of("key"),
        owner=all_of("owner"),
        sets=_joined_sets([part.sets for part in made]),
        names=list(names),
        strings=strings,
        interfaces=interfaces,
    )


def _kept(columns: ConstraintColumns, at: Ints, positions: Ints) -> ConstraintColumns:
    """The filters whose interfaces stay; owners become places among those."""
    place = np.searchsorted(positions, at)
    stays = np.append(positions, -1)[place] == at
    return filters_of(columns, stays[columns.owner], place)


def filters_of(columns: ConstraintColumns, filters: Ints, place: Ints) -> ConstraintColumns:
    """Some filters, with what they use of names, strings and sets; `place` renumbers the owners."""
    rows = filters[columns.filter]
    number = np.cumsum(filters) - 1
    op, domain, key = columns.op[rows], columns.domain[rows], columns.key[rows].copy()
    sets, is_text = _used_sets(columns.sets, op, domain, key)
    name, names = _used_names(columns.name[rows], columns.names)
    strings = _used_strings(columns.strings, _texts(op, domain), key, sets, is_text)
    return ConstraintColumns(
        filter=number[columns.filter[rows]].astype(np.int32),
        name=name,
        op=op,
        domain=domain,
        key=key,
        owner=place[columns.owner[filters]].astype(np.int32),
        sets=sets,
        names=names,
        strings=strings,
        interfaces=(),
    )


def _texts(op: Ints, domain: Ints) -> Ints:
    """Which constraints have a string as operand."""
    return np.asarray((domain == codes.STRING) & (op != codes.ANY) & (op != codes.IN))


def _used_names(name: Ints, names: list[str]) -> tuple[Ints, list[str]]:
    used = np.flatnonzero(np.bincount(name, minlength=len(names)))
    if len(used) == len(names):
        return name, names
    place = np.zeros(len(names), np.int32)
    place[used] = np.arange(len(used))
    return place[name], [names[i] for i in used.tolist()]


def _used_sets(sets: Sets, op: Ints, domain: Ints, key: Ints) -> tuple[Sets, Ints]:
    """The sets that constraints still have; their keys are renumbered in place.

    Which members are strings is the second result.
    """
    rows = np.flatnonzero(op == codes.IN)
    used, first, which = np.unique(key[rows], return_index=True, return_inverse=True)
    key[rows] = which
    begin = sets.start[used]
    size = sets.start[used + 1] - begin
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])
    source = np.repeat(begin - start[:-1], size) + np.arange(start[-1])
    made = Sets(start, start[:-1] + sets.split[used] - begin, sets.keys[source])
    return made, np.repeat(domain[rows[first]] == codes.STRING, size)


def _used_strings(
    strings: list[bytes], texts: Ints, key: Ints, sets: Sets, is_text: Ints
) -> list[bytes]:
    """The strings that constraints still have; ranks in keys and sets are renumbered in place."""
    uses = np.zeros(len(strings), bool)
    uses[key[texts]] = True
    uses[sets.keys[is_text]] = True
    used = np.flatnonzero(uses)
    if len(used) == len(strings):
        return strings
    rank = np.cumsum(uses) - 1
    key[texts] = rank[key[texts]]
    sets.keys[is_text] = rank[sets.keys[is_text]]
    return [strings[i] for i in used.tolist()]


def merged_strings(lists: Sequence[list[bytes]]) -> tuple[list[bytes], list[Ints]]:
    """Sorted lists as one, and for each the ranks of its strings in that.

    The longest stays as it is and the others are inserted, since a base is much longer than what
    is merged into it.
    """
    longest = max(range(len(lists)), key=lambda i: len(lists[i]), default=0)
    base = lists[longest] if lists else []
    others = sorted(set().union(*(part for i, part in enumerate(lists) if i != longest)))
    places = [bisect_left(base, text) for text in others]
    is_new = [at == len(base) or base[at] != text for at, text in zip(places, others, strict=True)]
    merged: list[bytes] = []
    done = 0
    for at, text, new in zip(places, others, is_new, strict=True):
        if new:
            merged += base[done:at]
            merged.append(text)
            done = at
    merged += base[done:]
    inserted = np.array(places, np.int64)[np.array(is_new, bool)]
    base_rank = np.arange(len(base)) + np.searchsorted(inserted, np.arange(len(base)), "right")
    before = np.cumsum(is_new) - is_new
    rank = dict(zip(others, (np.array(places, np.int64) + before).tolist(), strict=True))
    ranks = [
        base_rank if i == longest else np.array([rank[text] for text in part], np.int64)
        for i, part in enumerate(lists)
    ]
    return merged, ranks


def _renumbered(
    part: ConstraintColumns, names: Ints, rank: Ints, sets: int, filters: int
) -> ConstraintColumns:
    """A part in the numbers of the whole: its names, strings, sets and filters come after others."""
    key, members = part.key, part.sets.keys
    texts = _texts(part.op, part.domain)
    key[texts] = rank[key[texts]]
    in_set = part.op == codes.IN
    of_text = np.zeros(len(part.sets.split), bool)
    of_text[key[in_set & (part.domain == codes.STRING)]] = True
    is_text = np.repeat(of_text, np.diff(part.sets.start))
    members[is_text] = rank[members[is_text]]
    key[in_set] += sets
    return ConstraintColumns(
        filter=part.filter + np.int32(filters),
        name=names[part.name],
        op=part.op,
        domain=part.domain,
        key=key,
        owner=part.owner,
        sets=part.sets,
        names=part.names,
        strings=part.strings,
        interfaces=part.interfaces,
    )


def _joined_sets(parts: list[Sets]) -> Sets:
    offsets = np.cumsum([0, *(len(part.keys) for part in parts)])
    pairs = list(zip(parts, offsets.tolist(), strict=False))
    return Sets(
        np.concatenate([np.zeros(1, np.int64), *(part.start[1:] + at for part, at in pairs)]),
        np.concatenate([np.zeros(0, np.int64), *(part.split + at for part, at in pairs)]),
        np.concatenate([np.zeros(0, np.int64), *(part.keys for part in parts)]),
    )
