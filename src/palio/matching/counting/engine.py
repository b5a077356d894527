"""The counting engine: the papers' own algorithms, the baseline that others are compared with.

The table has two sides (2003, figure 3). The left one is an index of constraints, each distinct
one stored once; the right one is a network that knows the filters of each constraint, and each
filter's size and interface. A message counts its filters down; a filter that comes to 0 decides
its interface, filters of decided interfaces are skipped, and a row ends when all are decided.

- "2001" (sections 3 and 4): type, name, operator, value; a sorted set for each operator, searched
  by bisection. prefix, suffix and contains, which that paper leaves to others, compare the value
  with each operand of the name.
- "2003" (section 4): a multi-operator index for strings, and the selectivity table (4.3): names by
  how many interfaces have them in all their filters; the first `rounds` of them that the message
  lacks eliminate those interfaces before matching.

How strings find their constraints can be chosen (`strings`), whatever the variant:

- "tst", the index of the 2003 paper (4.2): an extended ternary search tree for each name (`trees`),
  with partial matches, crown lists and backtracking, and a plain one for the names of messages.
- "pool", the default of "2003": all string operands lie in one sorted pool whose pieces are hashed.
  One look-up of a value gives its rank (which serves =, != and the orders, as the crown lists do)
  and the operands that it begins with, ends with and contains, whatever the names.
- "operators", the default of "2001": a sorted list for each operator, as above.
- "scan": no index, each operand of the name is compared with the value.

A call may be limited to some interfaces (2003, figure 7): the others are decided from the start.

With `prefetch`, which no paper has, counters are asked for before their turn: a third less time
when they do not fit the cache. Beyond the papers, `in` is a sorted list of members, each with its
sets, and `absent` constraints lie in a list that is read after the attributes. `arrays` draws the
table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from palio.errors import InvalidPredicate
from palio.matching.counting import forward_kernels, index_kernels
from palio.matching.counting.arrays import CountingScratch, FilterNetwork
from palio.matching.counting.building import (
    NARROW,
    DistinctConstraints,
    build_index,
    build_network,
    for_nothing,
    for_order,
    for_pieces,
    runs_max,
)
from palio.matching.counting.counter_kernels import BLOCK
from palio.matching.counting.trees import NameTree, StringTrees, build_trees, no_trees
from palio.matching.encode.arrays import EncodedMessages
from palio.matching.encode.columns import ConstraintColumns, Ints
from palio.matching.encode.decoding import column_predicates
from palio.matching.encode.messages import encode_messages
from palio.matching.encode.names import NameIndex
from palio.matching.encode.rows import encode_rows
from palio.matching.encode.strings import build_strings
from palio.matching.encode.texts import unresolved, with_room
from palio.matching.expressions import OnFailure, TableExpressions
from palio.matching.gathering import Gathering, buffer
from palio.matching.limits import excluded_bits
from palio.matching.statistics import Reduction, Stats, no_statistics
from palio.model.arrays import Content
from palio.model.message import Message, as_message
from palio.model.predicate import Predicate

VARIANTS = {"2001": "operators", "2003": "pool"}  # and how strings find their constraints
STRINGS = {
    "pool": (index_kernels.POOL, for_pieces),
    "operators": (index_kernels.OPERATORS, for_order),
    "tst": (index_kernels.TREE, for_nothing),
    "scan": (index_kernels.SCAN, for_order),
}

_AHEAD, _NEVER = 16, 1 << 40  # postings


@dataclass(frozen=True, slots=True)
class MatchCounters:
    """The work of one call of match, summed over its messages: what the papers argue with."""

    constraints_touched: int  # satisfied constraints that the index found
    increments: int  # of counters of filters
    interfaces_eliminated: int  # by pre-processing
    rows_stopped: int  # messages that ended because all interfaces were decided
    tree_nodes: int  # visited in ternary search trees, on the way down and back
    partial_matches: int  # nodes of them where prefixes or parts were found
    crown_links: int  # leaves visited on crown lists
    strings_compared: int  # operands that "scan" compared with values


class CountingEngine:
    """Matching by counting; see the head of the module. Several threads may match at once."""

    def __init__(
        self,
        columns: ConstraintColumns,
        *,
        variant: str = "2003",
        rounds: int = 0,
        strings: str | None = None,
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
        strings = strings or VARIANTS[variant]
        if strings not in STRINGS:
            raise InvalidPredicate(
                f"no index of strings {strings!r}; there are {', '.join(STRINGS)}"
            )
        self._columns = columns
        self._names = {name: i for i, name in enumerate(columns.names)}
        self._way, pooled = STRINGS[strings]
        self._strings = build_strings(pooled(columns))
        postings = DistinctConstraints.of(columns)
        self.index = build_index(columns, postings)
        self.network = build_network(columns, postings, rounds, _AHEAD if prefetch else _NEVER)
        self._trees: StringTrees | None = no_trees() if strings == "scan" else None
        self._name_tree: NameTree | None = None
        if strings == "tst":
            self._trees = build_trees(columns, postings, self.index)
            self._name_tree = NameTree(columns.names)
        self._has_filter = np.bincount(columns.owner, minlength=len(columns.interfaces)) > 0
        self._sizes = postings.sizes(columns.filters).astype(np.int32)
        self._runs = runs_max(self.index)
        self._spare: list[CountingScratch] = []
        self.counters = MatchCounters(0, 0, 0, 0, 0, 0, 0, 0)

    @property
    def nbytes(self) -> int:
        """The size of the table; what matching writes to is not counted."""
        arrays = (*self.index, *self.network[:-4], *self._strings, *(self._trees or no_trees()))
        return sum({id(array): array.nbytes for array in arrays}.values()) + self._sizes.nbytes

    def match(self, messages: Sequence[Mapping[str, Content]]) -> tuple[Ints, Ints]:
        """Offsets (one more than messages) and interfaces."""
        return self.match_batch(self.encode(messages))

    def match_one(
        self,
        message: Mapping[str, object],
        among: Ints | None = None,
        on_failure: OnFailure | None = None,
    ) -> Ints:
        """The interfaces of one message."""
        return self.match_batch(self.encode([as_message(message)]), among)[1]

    def match_text(
        self, text: Any, among: Ints | None = None, on_failure: OnFailure | None = None
    ) -> Ints:
        """The interfaces of one message in JSON."""
        return self.match_one(Message.from_json(bytes(text)), among)

    def match_rows(
        self,
        rows: Any,
        layout: str,
        column: str,
        among: Ints | None = None,
        on_failure: OnFailure | None = None,
    ) -> tuple[Ints, Ints]:
        """The interfaces of Arrow rows; `layout` says where the attributes are."""
        batch = encode_rows(NameIndex.of(self._names), rows, layout, column)
        return self.match_batch(batch, among)

    def columns(self, interfaces: Any) -> ConstraintColumns:
        """The constraints that were compiled."""
        return replace(self._columns, interfaces=interfaces)

    def stats(self, sample: Any, reduction: Reduction | None) -> Stats:
        raise no_statistics("counting")

    def expressions(self) -> TableExpressions:
        """None: it is compiled without them."""
        return TableExpressions()

    def predicates(self, interfaces: Iterable[int]) -> Iterator[Predicate]:
        """What the interfaces at these positions select."""
        known = list(column_predicates(self._columns))
        return (known[i] for i in interfaces)

    def encode(self, messages: Sequence[Mapping[str, Content]]) -> EncodedMessages:
        """Messages as this table's kernels know them."""
        if self._name_tree is None:
            return encode_messages(self._names, messages)
        used = dict.fromkeys(name for message in messages for name in message)
        return encode_messages(self._name_tree.numbers(used), messages)

    def match_batch(self, batch: EncodedMessages, among: Ints | None = None) -> tuple[Ints, Ints]:
        """The interfaces of the rows of a batch; `counters` then tells the work it took."""
        batch = batch._replace(floor=batch.floor.copy(), place=batch.place.copy())
        texts = unresolved(self._strings, batch.text_begin, 16 * len(batch.text_begin))
        rows, interfaces = len(batch.row_at) - 1, self.network.interfaces
        ends, gathered, out = np.zeros(rows, np.int64), Gathering(rows), buffer(interfaces)
        tally = np.zeros(8, np.int64)
        network = self.network if among is None else self._limited(among)
        scratch = self._take_scratch()
        row = 0
        while row < rows:
            done = forward_kernels.forward(
                self.index, network, self._strings, self._trees, batch, texts, scratch, self._way,
                row, ends, tally, out,
            )  # fmt: skip
            if done == row:  # the strings of this row may have more hits than there is room for
                texts = with_room(texts)
                continue
            gathered.take(row, done, ends, out)
            row = done
        self._spare.append(scratch)
        self.counters = MatchCounters(*tally.tolist())
        return gathered.offsets, gathered.found

    def _limited(self, among: Ints) -> FilterNetwork:
        """The network for calls that leave out all interfaces but those at some positions."""
        return self.network._replace(
            excluded=excluded_bits(self.network.interfaces, among),
            decidable=int(np.count_nonzero(self._has_filter[among])),
        )

    def _take_scratch(self) -> CountingScratch:
        """Arrays that no other call uses: those of an earlier one, or new ones."""
        try:
            return self._spare.pop()
        except IndexError:
            words = (self.network.interfaces + 63) // 64
            cell = np.int32 if self.network.width == NARROW else np.int64
            return CountingScratch(
                cells=np.left_shift(self._sizes, self.network.width, dtype=cell),
                clock=np.zeros(1, np.int64),
                present=np.zeros(len(self._names) + 1, np.uint8),
                skip=np.zeros(len(self._strings.begin), np.uint8),
                struck=np.zeros(len(self.index.keys), np.uint8),
                passed=np.zeros(2, np.int64),
                runs=np.zeros((self._runs, 2), np.int64),
                ignored=np.zeros(words, np.uint64),
                matched=np.zeros(words, np.uint64),
                summary=np.zeros(words // 64 + 1, np.uint64),
                block=np.zeros(BLOCK, np.int64),
            )
