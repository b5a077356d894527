"""From pivots back to columns, a whole table at once and without an object a filter.

    posting    alone ...                 entries ...              one filter each
    rows       pivot                     pivot  head  rest ...    its constraints, in columns

The pivot is left out where the posting has none (`always`), and where it only stands for the
constraint that comes first inline. A filter that was filed under a set has a posting for each
member; these become one filter with a set again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from palio.matching.encode import codes
from palio.matching.encode.arrays import Strings
from palio.matching.encode.columns import ConstraintColumns, Ints, Sets
from palio.matching.pivot.arrays import Pivots, PivotTable

_PIECE = 4096  # strings at a time, so that other threads get their turn


@dataclass(frozen=True, slots=True)
class _StoredPostings:
    """Filters, each with what it is filed under and where its inline constraints are."""

    owner: Ints
    name: Ints
    op: Ints
    domain: Ints
    key: Ints
    entry: Ints  # -1 for those that are alone

    def __getitem__(self, rows: Ints) -> _StoredPostings:
        return _StoredPostings(
            self.owner[rows],
            self.name[rows],
            self.op[rows],
            self.domain[rows],
            self.key[rows],
            self.entry[rows],
        )


def pivot_columns(table: PivotTable, interfaces: Any) -> ConstraintColumns:
    """The columns that a table was compiled from, up to the order of its filters."""
    pivots = table.pivots
    postings = _postings(pivots)
    sets = Sets(pivots.set_at, pivots.set_split, pivots.set_keys)
    if not pivots.once[0]:
        postings, sets = _regrouped(pivots, postings, sets)
    filter, name, op, domain, key = _rows(pivots, postings)
    return ConstraintColumns(
        filter=filter.astype(np.int32),
        name=name.astype(np.int32),
        op=op.astype(np.uint8),
        domain=domain.astype(np.uint8),
        key=key,
        owner=postings.owner.astype(np.int32),
        sets=sets,
        names=table.names,
        strings=_texts(table.strings),
        interfaces=interfaces,
    )


def constrained_names(table: PivotTable) -> frozenset[str]:
    """The names that some constraint of the table asks for; it may know others."""
    pivots = table.pivots
    is_asked = np.zeros(len(table.names), bool)
    is_asked[: len(pivots.directory_at) - 1] = np.diff(pivots.directory_at) > 0
    is_asked[pivots.entries[:, 2] >> codes.NAME_SHIFT] = True
    is_asked[pivots.rest[:, 0] >> codes.NAME_SHIFT] = True
    is_asked[pivots.missing_name] = True
    return frozenset(table.names[number] for number in np.flatnonzero(is_asked).tolist())


def asking_for_presence(pivots: Pivots) -> Ints:
    """Whose filters ask for nothing but the presence of attributes: once for each such filter."""
    of_keys = np.repeat(pivots.kind == codes.ANY, np.diff(pivots.keys_at))
    alone = pivots.alone[np.repeat(of_keys, np.diff(pivots.alone_at))]
    entries = pivots.entries[np.repeat(of_keys, np.diff(pivots.entries_at))]
    further = _further(pivots, entries)
    ask_more = np.concatenate([[0], np.cumsum(_head(pivots.rest[:, 0])[1] != codes.ANY)])
    begin = np.where(further > 0, entries[:, 1], 0)
    is_presence = _head(entries[:, 2])[1] == codes.ANY
    is_presence &= ask_more[begin + further] == ask_more[begin]
    return np.concatenate([alone, entries[is_presence, 0]])


def compared_types(table: PivotTable) -> dict[str, frozenset[str]]:
    """For each name that constraints compare with literals: the types of these, `number` for both. What is
    filed under no name (`always`) comes before all directories of names."""
    pivots = table.pivots
    names = np.repeat(np.arange(len(pivots.directory_at) - 1), np.diff(pivots.directory_at))
    filed = (pivots.kind.astype(np.int64) << codes.OP_SHIFT) | (
        pivots.domain.astype(np.int64) << codes.DOMAIN_SHIFT
    )
    heads = np.concatenate(
        [
            (names << codes.NAME_SHIFT) | filed[int(pivots.directory_at[0]) :],
            np.unique(pivots.entries[:, 2]) & ~1,
            np.unique(pivots.rest[:, 0]) & ~1,
        ]
    )
    found: dict[str, set[str]] = {}
    for name, op, domain in zip(*map(np.ndarray.tolist, _head(np.unique(heads))), strict=True):
        if op not in (codes.ANY, codes.ABSENT) and domain in _TYPE_WORDS:
            found.setdefault(table.names[name], set()).add(_TYPE_WORDS[domain])
    return {name: frozenset(types) for name, types in found.items()}


_TYPE_WORDS = {
    codes.BOOL: "bool",
    codes.INT: "number",
    codes.FLOAT: "number",
    codes.TIME: "time",
    codes.STRING: "string",
}


def _texts(strings: Strings) -> list[bytes]:
    begin, blob = strings.begin, strings.blob.tobytes()
    found: list[bytes] = []
    for low in range(0, len(begin) - 1, _PIECE):
        ends = begin[low : low + _PIECE + 1].tolist()
        found += [blob[a:b] for a, b in pairwise(ends)]
    return found


def _postings(pivots: Pivots) -> _StoredPostings:
    """All postings: those alone, then the entries."""
    directories = np.repeat(np.arange(len(pivots.kind)), np.diff(pivots.keys_at))
    keys = np.arange(len(pivots.keys))
    key = np.concatenate(
        [np.repeat(keys, np.diff(pivots.alone_at)), np.repeat(keys, np.diff(pivots.entries_at))]
    )
    directory = directories[key]
    name = np.searchsorted(pivots.directory_at, np.arange(len(pivots.kind)), side="right") - 1
    name[pivots.always] = -1
    entries = len(pivots.entries)
    return _StoredPostings(
        owner=np.concatenate([pivots.alone, pivots.entries[:, 0]]),
        name=name[directory],
        op=pivots.kind[directory].astype(np.int64),
        domain=pivots.domain[directory].astype(np.int64),
        key=pivots.keys[key],
        entry=np.concatenate([np.full(len(pivots.alone), -1), np.arange(entries)]),
    )


def _head(packed: Ints) -> tuple[Ints, Ints, Ints]:
    """The name, operator and domain of packed constraints."""
    return (
        packed >> codes.NAME_SHIFT,
        (packed >> codes.OP_SHIFT) & 15,
        (packed >> codes.DOMAIN_SHIFT) & 7,
    )


def _key(halves: Ints) -> Ints:
    return np.ascontiguousarray(halves).view(np.int64)[:, 0]


def _rows(pivots: Pivots, postings: _StoredPostings) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """The constraints of all postings: filter, name, op, domain, key."""
    has_entry = np.flatnonzero(postings.entry >= 0)
    entries = pivots.entries[postings.entry[has_entry]]
    further = _further(pivots, entries)
    filed = postings.name >= 0
    filed[has_entry] &= ~_stands_for(postings[has_entry], entries[:, 2])
    size = filed.astype(np.int64)
    size[has_entry] += 1 + further
    begin = np.cumsum(size) - size
    columns = [np.zeros(size.sum(), np.int64) for _ in range(4)]

    def put(at: Ints, *values: Ints) -> None:
        for column, part in zip(columns, values, strict=True):
            column[at] = part

    pivot = np.flatnonzero(filed)
    put(
        begin[pivot],
        postings.name[pivot],
        postings.op[pivot],
        postings.domain[pivot],
        postings.key[pivot],
    )
    first = begin[has_entry] + filed[has_entry]
    put(first, *_head(entries[:, 2]), _key(entries[:, 3:]))
    entry = _spread(further)
    step = np.arange(len(entry)) - (np.cumsum(further) - further)[entry]
    rest = pivots.rest[entries[:, 1][entry] + step]
    put((first + 1)[entry] + step, *_head(rest[:, 0]), _key(rest[:, 1:]))
    return _spread(size), *columns  # type: ignore[return-value]


def _spread(size: Ints) -> Ints:
    """Each position as often as its size says: np.repeat, which keeps other threads waiting."""
    some = np.flatnonzero(size)
    steps = np.zeros(size.sum(), np.int64)
    steps[(np.cumsum(size) - size)[some]] = np.diff(some, prepend=0)
    return np.cumsum(steps)


def _further(pivots: Pivots, entries: Ints) -> Ints:
    """How many constraints follow that of each entry: up to the next one marked as last."""
    last = np.flatnonzero(pivots.rest[:, 0] & 1)
    goes_on = np.flatnonzero((entries[:, 2] & 1) == 0)
    found = np.zeros(len(entries), np.int64)
    at = entries[goes_on, 1]
    found[goes_on] = last[np.searchsorted(last, at)] + 1 - at
    return found


def _stands_for(postings: _StoredPostings, heads: Ints) -> Ints:
    """Filed under the presence of a name, of which the first inline constraint says more."""
    name, op, domain = _head(heads)
    is_number = (domain == codes.INT) | (domain == codes.FLOAT)
    said = np.where(is_number, codes.NUMBER, domain)
    return np.asarray(
        (postings.op == codes.ANY)
        & np.isin(op, codes.KEPT_INLINE)
        & (name == postings.name)
        & (said == postings.domain)
    )


def _regrouped(
    pivots: Pivots, postings: _StoredPostings, sets: Sets
) -> tuple[_StoredPostings, Sets]:
    """Postings of one interface that differ in the operand of = only, as one with a set."""
    equal = np.flatnonzero((postings.op == codes.EQ) & (postings.name >= 0))
    often = np.bincount(postings.owner[equal], minlength=1) > 1
    equal = equal[often[postings.owner[equal]]]
    asked = postings[equal]
    is_float = asked.domain == codes.FLOAT
    domain = np.where(is_float, codes.INT, asked.domain)
    group = (*_inline_identity(pivots, asked.entry), domain, asked.name, asked.owner)
    order = np.lexsort((asked.key, is_float, *group))
    new = _changes(order, *group)
    kept = new | _changes(order, is_float, asked.key)  # nothing twice in a set
    order, new = order[kept], new[kept]
    first = np.flatnonzero(new)
    size = np.diff(np.append(first, len(order)))
    many = size > 1
    member = np.repeat(many, size)
    chosen = order[member]
    lengths = size[many]
    floats = np.add.reduceat(is_float[chosen], np.cumsum(lengths) - lengths) if len(lengths) else 0
    ends = len(sets.keys) + np.cumsum(lengths)
    grown = Sets(
        np.concatenate([sets.start, ends]),
        np.concatenate([sets.split, ends - floats]),
        np.concatenate([sets.keys, asked.key[chosen]]),
    )
    keep = np.ones(len(postings.owner), bool)
    keep[equal] = False
    keep[equal[order[first]]] = True
    op, domains, key = postings.op.copy(), postings.domain.copy(), postings.key.copy()
    leading = order[first[many]]
    op[equal[leading]] = codes.IN
    domains[equal[leading]] = domain[leading]
    key[equal[leading]] = len(sets.split) + np.arange(len(lengths))
    made = _StoredPostings(postings.owner, postings.name, op, domains, key, postings.entry)
    return made[np.flatnonzero(keep)], grown


def _inline_identity(pivots: Pivots, entry: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """What is equal for two postings just when the same constraints follow them inline."""
    found = np.full((len(entry), 4), -1, np.int64)
    has = entry >= 0
    found[has] = pivots.entries[entry[has], 1:]
    found[has & (found[:, 1] & 1 == 1), 0] = -1  # nothing follows the head
    return found[:, 0], found[:, 1], found[:, 2], found[:, 3]


def _changes(order: Ints, *columns: Ints) -> Ints:
    """Where one of the columns, in this order, differs from the row before."""
    changed = np.zeros(len(order), bool)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[order][1:] != column[order][:-1]
    return changed
