"""The two sides of the counting table, built from columns: sorting, no object a filter.

`arrays` draws what is built here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from palio.errors import InvalidPredicate
from palio.matching.counting.arrays import ConstraintIndex, FilterNetwork
from palio.matching.encode import codes
from palio.matching.encode.arrays import empty
from palio.matching.encode.columns import ConstraintColumns, Ints, Sets

NARROW = 7  # bits of a counter in a cell of 32 bits
WIDE = 20  # and of 64
_POSITIVE = {
    codes.NOT_PREFIX: codes.PREFIX,
    codes.NOT_SUFFIX: codes.SUFFIX,
    codes.NOT_CONTAINS: codes.CONTAINS,
}


def for_pieces(columns: ConstraintColumns) -> ConstraintColumns:
    """For the pool of strings: a negated operator needs the same look-ups as its opposite."""
    op = columns.op.copy()
    for negated, positive in _POSITIVE.items():
        op[op == negated] = positive
    return replace(columns, op=op)


def for_order(columns: ConstraintColumns) -> ConstraintColumns:
    """For the pool of strings: nothing but their order."""
    return replace(columns, op=np.full_like(columns.op, codes.EQ))


def for_nothing(columns: ConstraintColumns) -> ConstraintColumns:
    """For the pool of strings: none, since trees have them."""
    return replace(for_order(columns), strings=[])


@dataclass(frozen=True, slots=True)
class DistinctConstraints:
    """Distinct constraints by name, domain, operator and key, and each one's filters."""

    slot: Ints  # of constraints: name * 8 + domain
    op: Ints
    key: Ints  # for `in`: a set, the first of all that are equal
    at: Ints  # constraint -> postings
    filters: Ints  # ascending within a constraint

    @classmethod
    def of(cls, columns: ConstraintColumns) -> DistinctConstraints:
        op, key = columns.op.astype(np.int64), columns.key.copy()
        key[(op == codes.ANY) | (op == codes.ABSENT)] = 0
        is_set = op == codes.IN
        key[is_set] = _first_equal(columns.sets)[key[is_set]]
        head = ((columns.name.astype(np.int64) * 8 + columns.domain) << 4) | op
        order = np.lexsort((key, head))
        head, key, filters = head[order], key[order], columns.filter[order]
        new = _changes(head, key)
        kept = new | _changes(filters)  # a filter counts a repeated constraint once
        first = np.flatnonzero(new)
        return cls(
            slot=head[first] >> 4,
            op=head[first] & 15,
            key=key[first],
            at=np.append(np.cumsum(kept)[first] - 1, kept.sum()),
            filters=filters[kept],
        )

    def sizes(self, filters: int) -> Ints:
        """How many constraints each filter has."""
        return np.bincount(self.filters, minlength=filters)


def _first_equal(sets: Sets) -> Ints:
    """For each set, the first one with the same members."""
    known: dict[tuple[bytes, int], int] = {}
    found = np.zeros(len(sets.split), np.int64)
    for i in range(len(found)):
        low, high = sets.start[i], sets.start[i + 1]
        members = sets.keys[low:high].tobytes()
        found[i] = known.setdefault((members, int(sets.split[i] - low)), i)
    return found


def _changes(*columns: Ints) -> Ints:
    changed = np.zeros(len(columns[0]), bool)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return changed


def build_index(columns: ConstraintColumns, postings: DistinctConstraints) -> ConstraintIndex:
    slots = np.arange(len(columns.names) * 8 + 1)
    directories = np.flatnonzero(_changes(postings.slot, postings.op))
    member_slot, member_key, link = _members(columns.sets, postings)
    members = np.flatnonzero(_changes(member_slot, member_key))
    return ConstraintIndex(
        directory_at=np.searchsorted(postings.slot[directories], slots).astype(np.int32),
        kind=postings.op[directories].astype(np.uint8),
        keys_at=np.append(directories, len(postings.key)).astype(np.int32),
        keys=postings.key,
        members_at=np.searchsorted(member_slot[members], slots).astype(np.int32),
        member_keys=member_key[members],
        links_at=np.append(members, len(link)).astype(np.int32),
        links=link.astype(np.int32),
    )


def _members(sets: Sets, postings: DistinctConstraints) -> tuple[Ints, Ints, Ints]:
    """Slot, key and constraint of each member of each set; numbers lie in two slots."""
    constraints = np.flatnonzero(postings.op == codes.IN)
    numbers = postings.key[constraints]
    size = sets.start[numbers + 1] - sets.start[numbers]
    which = np.repeat(np.arange(len(numbers)), size)
    at = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size - sets.start[numbers], size)
    slot = postings.slot[constraints][which]
    slot += np.where(at >= sets.split[numbers][which], codes.FLOAT - codes.INT, 0)
    key = sets.keys[at]
    order = np.lexsort((key, slot))
    return slot[order], key[order], constraints[which][order]


def build_network(
    columns: ConstraintColumns, postings: DistinctConstraints, rounds: int, ahead: int
) -> FilterNetwork:
    interfaces = len(columns.interfaces)
    sizes = postings.sizes(columns.filters)
    longest = int(sizes.max(initial=0))
    if longest >= 1 << WIDE:
        raise InvalidPredicate(
            f"a filter of {longest:,} constraints; counting takes fewer than {1 << WIDE:,}"
        )
    absent = np.flatnonzero(postings.op == codes.ABSENT)
    filters = postings.filters.astype(np.uint32)
    is_owner = np.array_equal(columns.owner, np.arange(columns.filters))  # one array serves both
    required_name, required = _selectivity(columns, rounds) if rounds else _no_selectivity()
    return FilterNetwork(
        filters_at=postings.at.astype(np.int32),
        filters=filters,
        owners=filters if is_owner else columns.owner[postings.filters].astype(np.uint32),
        always=np.unique(columns.owner[sizes == 0]).astype(np.int32),
        absent=absent.astype(np.int32),
        absent_name=(postings.slot[absent] >> 3).astype(np.int32),
        required_name=required_name,
        required=required,
        excluded=empty(np.uint64),
        interfaces=interfaces,
        decidable=int(np.count_nonzero(np.bincount(columns.owner, minlength=interfaces))),
        width=NARROW if longest < 1 << NARROW else WIDE,
        ahead=ahead,
    )


def _no_selectivity() -> tuple[Ints, Ints]:
    return empty(np.int32), np.zeros((0, 0), np.uint64)


def _selectivity(columns: ConstraintColumns, rounds: int) -> tuple[Ints, Ints]:
    """The names that eliminate most interfaces, and the bits of those (2003, 4.3).

    A name is required by an interface when each of its filters has a constraint on it that a
    message without it cannot satisfy: any but `absent`.
    """
    names = len(columns.names)
    asks = np.flatnonzero(columns.op != codes.ABSENT)
    pairs = np.unique(columns.filter[asks].astype(np.int64) * names + columns.name[asks])
    owned = columns.owner[pairs // max(names, 1)].astype(np.int64) * names + pairs % max(names, 1)
    needs, filters = np.unique(owned, return_counts=True)
    owner, name = needs // max(names, 1), needs % max(names, 1)
    everywhere = filters == np.bincount(columns.owner, minlength=len(columns.interfaces))[owner]
    owner, name = owner[everywhere], name[everywhere]
    eliminates = np.bincount(name, minlength=names)
    order = np.argsort(-eliminates, kind="stable")[:rounds]
    order = order[eliminates[order] > 0]
    rows = np.full(names, -1)
    rows[order] = np.arange(len(order))
    words = (len(columns.interfaces) + 63) // 64
    required = np.zeros((len(order), words * 64), bool)
    listed = rows[name] >= 0
    required[rows[name[listed]], owner[listed]] = True
    bits = np.packbits(required, axis=1, bitorder="little")
    return order.astype(np.int32), bits.view(np.uint64).reshape(len(order), words)


def runs_max(index: ConstraintIndex) -> int:
    """The most runs of constraints that one attribute can have: all that its name has."""
    keys = index.keys_at[index.directory_at]
    directories, links = index.directory_at, index.links_at[index.members_at]
    total = (keys + 2 * directories + links).astype(np.int64)
    return int(np.diff(total[::8]).max(initial=0)) + 1
