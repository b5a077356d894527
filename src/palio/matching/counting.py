"""The counting engine: the papers' own algorithms, the baseline that others are compared with.

The table has two sides (2003, figure 3). The left one is an index of constraints, each distinct
one stored once; the right one is a network that knows the filters of each constraint, and each
filter's size and interface. A message counts its filters down; a filter that comes to 0 decides
its interface, filters of decided interfaces are skipped, and a row ends when all are decided.

- "2001" (sections 3 and 4): type, name, operator, value; a sorted set for each operator, searched
  by bisection. prefix, suffix and contains, which that paper leaves to others, compare the value
  with each operand of the name.
- "2003" (section 4): a multi-operator index for strings. In place of a ternary trie with crown
  lists, all string operands lie in one sorted pool whose pieces are hashed: one look-up of a value
  gives its rank (which serves =, != and the orders, as the crown lists do) and the operands that
  it begins with, ends with and contains, whatever the names. Then the selectivity table (4.3):
  names by how many interfaces have them in all their filters; the first `rounds` of them that the
  message lacks eliminate those interfaces before matching.

With `prefetch`, which no paper has, counters are asked for before their turn: a third less time when
they do not fit the cache. Beyond the papers, `in` is a sorted list of members, each with its sets, and `absent` constraints
lie in a list that is read after the attributes. `counting_kernels` draws the arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from palio.errors import InvalidPredicate
from palio.matching import codes, counting_kernels
from palio.matching.arrays import Batch, empty
from palio.matching.columns import Columns, Ints, Sets
from palio.matching.decoding import column_predicates
from palio.matching.encoding import encode_messages, unresolved, with_room
from palio.matching.engines import encode_rows
from palio.matching.gathering import Gathering, buffer
from palio.matching.json_encoding import NameIndex
from palio.matching.pivot import build_strings
from palio.model.message import as_message
from palio.model.predicate import Predicate
from palio.model.values import Value

VARIANTS = ("2001", "2003")

_NARROW = 7  # bits of a counter in a cell of 32 bits
_AHEAD, _NEVER = 16, 1 << 40  # postings
_WIDE = 20  # and of 64
_POSITIVE = {
    codes.NOT_PREFIX: codes.PREFIX,
    codes.NOT_SUFFIX: codes.SUFFIX,
    codes.NOT_CONTAINS: codes.CONTAINS,
}


@dataclass(frozen=True, slots=True)
class Counters:
    """The work of one call of match, summed over its messages: what the papers argue with."""

    constraints_touched: int  # satisfied constraints that the index found
    increments: int  # of counters of filters
    interfaces_eliminated: int  # by pre-processing
    rows_stopped: int  # messages that ended because all interfaces were decided


class Index(NamedTuple):
    """The left side: from a name, a domain and a value to constraints."""

    directory_at: Ints  # int32: name * 8 + domain -> directories
    kind: Ints  # uint8
    keys_at: Ints  # int32: directory -> keys
    keys: Ints  # int64: one a constraint
    members_at: Ints  # int32: name * 8 + domain -> members of sets
    member_keys: Ints  # int64
    links_at: Ints  # int32: member -> links
    links: Ints  # int32: constraints


class Network(NamedTuple):
    """The right side: from constraints to filters and interfaces."""

    filters_at: Ints  # int32: constraint -> postings
    filters: Ints  # uint32: an index that cannot be negative needs no check
    owners: Ints  # uint32: the interface of each posting's filter
    always: Ints  # int32: interfaces of empty filters
    absent: Ints  # int32: constraints `absent`
    absent_name: Ints  # int32
    required_name: Ints  # int32: the selectivity table, as many entries as there are rounds
    required: Ints  # uint64 [round, word]
    interfaces: int
    decidable: int  # interfaces that have a filter
    width: int  # bits of a counter
    ahead: int  # how far ahead counters are asked for


class Work(NamedTuple):
    """What one call at a time writes to."""

    cells: Ints  # int32 or int64: one a filter
    clock: Ints  # int64: the stamp of the last row
    present: Ints  # uint8: names
    skip: Ints  # uint8: strings
    runs: Ints  # int64 [run, 2]
    ignored: Ints  # uint64: interfaces
    matched: Ints  # uint64
    summary: Ints  # uint64: words of matched
    block: Ints  # int64: postings


class CountingEngine:
    """Matching by counting; see the head of the module. Several threads may match at once."""

    def __init__(
        self,
        columns: Columns,
        *,
        variant: str = "2003",
        rounds: int = 0,
        prefetch: bool = False,
    ) -> None:
        if variant not in VARIANTS:
            raise InvalidPredicate(
                f"no variant {variant!r} of counting; there are {' and '.join(VARIANTS)}"
            )
        if rounds < 0 or (rounds and variant == "2001"):
            raise InvalidPredicate(
                f"{rounds} rounds of pre-processing; 2003 takes 0 or more, 2001 has none"
            )
        self._columns = columns
        self._names = {name: i for i, name in enumerate(columns.names)}
        self._has_pieces = variant == "2003"
        self._strings = build_strings(_indexed(columns) if self._has_pieces else _ordered(columns))
        postings = _Postings.of(columns)
        self.index = _build_index(columns, postings)
        self.network = _build_network(columns, postings, rounds, _AHEAD if prefetch else _NEVER)
        self._sizes = postings.sizes(columns.filters).astype(np.int32)
        self._runs = _runs_max(self.index)
        self._spare: list[Work] = []
        self.counters = Counters(0, 0, 0, 0)

    @property
    def nbytes(self) -> int:
        """The size of the table; what matching writes to is not counted."""
        arrays = (*self.index, *self.network[:-4], *self._strings)
        return sum({id(array): array.nbytes for array in arrays}.values()) + self._sizes.nbytes

    def match(self, messages: Sequence[Mapping[str, Value]]) -> tuple[Ints, Ints]:
        """Offsets (one more than messages) and interfaces."""
        return self.match_batch(self.encode(messages))

    def match_one(self, message: Mapping[str, object]) -> Ints:
        """The interfaces of one message."""
        return self.match([as_message(message)])[1]

    def match_rows(self, rows: Any, layout: str, column: str) -> tuple[Ints, Ints]:
        """The interfaces of Arrow rows; `layout` says where the attributes are."""
        return self.match_batch(encode_rows(NameIndex.of(self._names), rows, layout, column))

    def predicates(self, interfaces: Iterable[int]) -> Iterator[Predicate]:
        """What the interfaces at these positions select."""
        known = list(column_predicates(self._columns))
        return (known[i] for i in interfaces)

    def encode(self, messages: Sequence[Mapping[str, Value]]) -> Batch:
        """Messages as this table's kernels know them."""
        return encode_messages(self._names, messages)

    def match_batch(self, batch: Batch) -> tuple[Ints, Ints]:
        """The interfaces of the rows of a batch; `counters` then tells the work it took."""
        batch = batch._replace(floor=batch.floor.copy(), place=batch.place.copy())
        texts = unresolved(self._strings, batch.text_begin, 16 * len(batch.text_begin))
        rows, interfaces = len(batch.row_at) - 1, self.network.interfaces
        ends, gathered, out = np.zeros(rows, np.int64), Gathering(rows), buffer(interfaces)
        tally = np.zeros(4, np.int64)
        work = self._take_work()
        row = 0
        while row < rows:
            done = counting_kernels.forward(
                self.index, self.network, self._strings, batch, texts, work, self._has_pieces,
                row, ends, tally, out,
            )  # fmt: skip
            if done == row:  # the strings of this row may have more hits than there is room for
                texts = with_room(texts)
                continue
            gathered.take(row, done, ends, out)
            row = done
        self._spare.append(work)
        self.counters = Counters(*tally.tolist())
        return gathered.offsets, gathered.found

    def _take_work(self) -> Work:
        """Arrays that no other call uses: those of an earlier one, or new ones."""
        try:
            return self._spare.pop()
        except IndexError:
            words = (self.network.interfaces + 63) // 64
            cell = np.int32 if self.network.width == _NARROW else np.int64
            return Work(
                cells=np.left_shift(self._sizes, self.network.width, dtype=cell),
                clock=np.zeros(1, np.int64),
                present=np.zeros(len(self._names) + 1, np.uint8),
                skip=np.zeros(len(self._strings.begin), np.uint8),
                runs=np.zeros((self._runs, 2), np.int64),
                ignored=np.zeros(words, np.uint64),
                matched=np.zeros(words, np.uint64),
                summary=np.zeros(words // 64 + 1, np.uint64),
                block=np.zeros(counting_kernels.BLOCK, np.int64),
            )


def _indexed(columns: Columns) -> Columns:
    """For the pool of strings: a negated operator needs the same look-ups as its opposite."""
    op = columns.op.copy()
    for negated, positive in _POSITIVE.items():
        op[op == negated] = positive
    return replace(columns, op=op)


def _ordered(columns: Columns) -> Columns:
    """For the pool of strings: nothing but their order."""
    return replace(columns, op=np.full_like(columns.op, codes.EQ))


@dataclass(frozen=True, slots=True)
class _Postings:
    """Distinct constraints by name, domain, operator and key, and each one's filters."""

    slot: Ints  # of constraints: name * 8 + domain
    op: Ints
    key: Ints  # for `in`: a set, the first of all that are equal
    at: Ints  # constraint -> postings
    filters: Ints  # ascending within a constraint

    @classmethod
    def of(cls, columns: Columns) -> _Postings:
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


def _build_index(columns: Columns, postings: _Postings) -> Index:
    slots = np.arange(len(columns.names) * 8 + 1)
    directories = np.flatnonzero(_changes(postings.slot, postings.op))
    member_slot, member_key, link = _members(columns.sets, postings)
    members = np.flatnonzero(_changes(member_slot, member_key))
    return Index(
        directory_at=np.searchsorted(postings.slot[directories], slots).astype(np.int32),
        kind=postings.op[directories].astype(np.uint8),
        keys_at=np.append(directories, len(postings.key)).astype(np.int32),
        keys=postings.key,
        members_at=np.searchsorted(member_slot[members], slots).astype(np.int32),
        member_keys=member_key[members],
        links_at=np.append(members, len(link)).astype(np.int32),
        links=link.astype(np.int32),
    )


def _members(sets: Sets, postings: _Postings) -> tuple[Ints, Ints, Ints]:
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


def _build_network(columns: Columns, postings: _Postings, rounds: int, ahead: int) -> Network:
    interfaces = len(columns.interfaces)
    sizes = postings.sizes(columns.filters)
    longest = int(sizes.max(initial=0))
    if longest >= 1 << _WIDE:
        raise InvalidPredicate(
            f"a filter of {longest:,} constraints; counting takes fewer than {1 << _WIDE:,}"
        )
    absent = np.flatnonzero(postings.op == codes.ABSENT)
    filters = postings.filters.astype(np.uint32)
    is_owner = np.array_equal(columns.owner, np.arange(columns.filters))  # one array serves both
    required_name, required = _selectivity(columns, rounds) if rounds else _no_selectivity()
    return Network(
        filters_at=postings.at.astype(np.int32),
        filters=filters,
        owners=filters if is_owner else columns.owner[postings.filters].astype(np.uint32),
        always=np.unique(columns.owner[sizes == 0]).astype(np.int32),
        absent=absent.astype(np.int32),
        absent_name=(postings.slot[absent] >> 3).astype(np.int32),
        required_name=required_name,
        required=required,
        interfaces=interfaces,
        decidable=int(np.count_nonzero(np.bincount(columns.owner, minlength=interfaces))),
        width=_NARROW if longest < 1 << _NARROW else _WIDE,
        ahead=ahead,
    )


def _no_selectivity() -> tuple[Ints, Ints]:
    return empty(np.int32), np.zeros((0, 0), np.uint64)


def _selectivity(columns: Columns, rounds: int) -> tuple[Ints, Ints]:
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


def _runs_max(index: Index) -> int:
    """The most runs of constraints that one attribute can have: all that its name has."""
    keys = index.keys_at[index.directory_at]
    directories, links = index.directory_at, index.links_at[index.members_at]
    total = (keys + 2 * directories + links).astype(np.int64)
    return int(np.diff(total[::8]).max(initial=0)) + 1
