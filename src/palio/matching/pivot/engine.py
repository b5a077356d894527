"""The pivot engine, the default: a compiled table and the loop around its kernels.

A message touches the directories of its own names, takes the filters of one constraint under the
keys that it hits, and verifies the few others. `building` compiles a table, `arrays` draws it and
`forward_kernels` walks it; `single` forwards messages one at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from palio.matching.encode.arrays import EncodedMessages
from palio.matching.encode.columns import ConstraintColumns, Ints
from palio.matching.encode.covered import uncovered
from palio.matching.encode.messages import encode_messages
from palio.matching.encode.names import NameIndex
from palio.matching.encode.rows import encode_rows
from palio.matching.encode.strings import build_strings
from palio.matching.encode.texts import unresolved, with_room
from palio.matching.expressions import ExpressionUse, OnFailure, TableExpressions
from palio.matching.gathering import Gathering, buffer
from palio.matching.limits import excluded_bits
from palio.matching.pivot import forward_kernels
from palio.matching.pivot.arrays import CoveredRows, PivotScratch, PivotTable
from palio.matching.pivot.building import build_pivots
from palio.matching.pivot.decoding import compared_types, pivot_columns
from palio.matching.pivot.hot_keys import build_hot_keys, no_hot_keys
from palio.matching.pivot.likelihood import Constraints
from palio.matching.pivot.masks import build_masks, cover_rows, without_singles
from palio.matching.pivot.measuring import measure
from palio.matching.pivot.predicates import pivot_predicates
from palio.matching.pivot.sample import Sample, take_sample
from palio.matching.pivot.single import SingleMessages
from palio.matching.statistics import Reduction, Stats
from palio.model.arrays import Content
from palio.model.predicate import Predicate

_RANGES = 1 << 12  # candidates of a row, at first
_CHUNK = 1 << 12  # rows that are covered together
_NONE = np.empty(0, np.uint64)  # interfaces that are left out
_NOTHING = np.empty((1, 0), np.uint64), np.zeros(1, np.uint8)


class PivotEngine:
    """The default engine; see the head of the module. Several threads may match at once."""

    hidden = None  # filters with residuals: where there are any, another engine has them

    def __init__(self, table: PivotTable, sample: Sample | None = None) -> None:
        self.table = table
        self.sample = sample  # that chose the pivots, if there was one
        self.use = ExpressionUse()  # of later versions, which may have expressions
        self._masks = build_masks(table.pivots, table.interfaces)
        self.walked = without_singles(table.pivots) if self._masks else table.pivots
        self.hot_keys = build_hot_keys(self.walked, table.interfaces, bool(self._masks))
        self._positions = {name: i for i, name in enumerate(table.names)}
        self._local = threading.local()

    @classmethod
    def compile(cls, columns: ConstraintColumns, sample: Any = None) -> PivotEngine:
        """File all filters of the columns, by a sample of messages if there is one."""
        strings = build_strings(columns)
        names, interfaces = columns.names, len(columns.interfaces)
        columns = uncovered(columns, strings)
        if sample is None:
            return cls(PivotTable(names, interfaces, strings, build_pivots(columns)))
        known = take_sample(sample, names, strings)
        chance = known.likelihood(Constraints.of(columns))
        return cls(PivotTable(names, interfaces, strings, build_pivots(columns, chance)), known)

    @property
    def interfaces(self) -> int:
        return self.table.interfaces

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in (*self.table.pivots, *self.table.strings))

    def expressions(self) -> TableExpressions:
        """None: another engine is around it where there are any."""
        return TableExpressions(
            names=frozenset(self.table.names),
            plain=frozenset(self.table.names),
            compared=self.compared,
        )

    @cached_property
    def compared(self) -> dict[str, frozenset[str]]:
        """The types of the literals that names are compared with."""
        return compared_types(self.table)

    def predicates(self, interfaces: Iterable[int]) -> Iterator[Predicate]:
        return pivot_predicates(self.table, interfaces)

    def columns(self, interfaces: Any) -> ConstraintColumns:
        return pivot_columns(self.table, interfaces)

    def stats(self, sample: Any = None, reduction: Reduction | None = None) -> Stats:
        known = self.sample
        if sample is not None:
            known = take_sample(sample, self.table.names, self.table.strings)
        matches = None
        if known is not None and known.messages:
            matches = len(self.match_batch(known.batch, ordered=False)[1]) / known.messages
        return measure(self.table, self.walked, self.hot_keys, known, matches, reduction)

    def match(self, messages: Sequence[Mapping[str, Content]]) -> tuple[Ints, Ints]:
        return self.match_batch(self.encode(messages))

    def encode(self, messages: Sequence[Mapping[str, Content]]) -> EncodedMessages:
        """Messages as this table's kernels know them."""
        return encode_messages(self._positions, messages)

    def match_rows(
        self,
        rows: Any,
        layout: str,
        column: str,
        among: Ints | None = None,
        on_failure: OnFailure | None = None,
    ) -> tuple[Ints, Ints]:
        """The interfaces of Arrow rows; `layout` says where the attributes are."""
        return self.match_batch(self.encoded_rows(rows, layout, column), among=among)

    def encoded_rows(self, rows: Any, layout: str, column: str) -> EncodedMessages:
        """Arrow rows as this table's kernels know them."""
        return encode_rows(self._name_index, rows, layout, column)

    @cached_property
    def _name_index(self) -> NameIndex:
        return NameIndex.of(self._positions)

    def match_one(
        self,
        message: Mapping[str, object],
        among: Ints | None = None,
        on_failure: OnFailure | None = None,
    ) -> Ints:
        """The interfaces of one message."""
        return self._single.match(message, among)

    def match_text(
        self, text: Any, among: Ints | None = None, on_failure: OnFailure | None = None
    ) -> Ints:
        """The interfaces of one message in JSON."""
        return self._single.match_text(text, among)

    @cached_property
    def _single(self) -> SingleMessages:
        hot_keys = no_hot_keys() if self._masks else self.hot_keys
        return SingleMessages(self.table, hot_keys, self._name_index)

    def _scratch(self) -> PivotScratch:
        """Scratch buffers: those that kernels leave as they found them are kept by the thread."""
        known: tuple[Ints, Ints, Ints] | None = getattr(self._local, "known", None)
        if known is None:
            words = (self.table.interfaces + 63) // 64
            known = self._local.known = (
                np.zeros(len(self.table.names) + 1, np.int64),
                np.zeros(words + 1, np.uint64),
                np.zeros(words // 64 + 1, np.uint64),
            )
        slot, bits, summary = known
        ranges = np.empty((_RANGES, 2), np.int64)
        hot = np.empty(len(self.hot_keys.key), np.int32)
        return PivotScratch(slot, bits, summary, ranges, hot)

    def match_batch(
        self, batch: EncodedMessages, *, ordered: bool = True, among: Ints | None = None
    ) -> tuple[Ints, Ints]:
        """The interfaces of the rows of a batch; in any order where that is quicker."""
        batch = batch._replace(floor=batch.floor.copy(), place=batch.place.copy())
        strings, interfaces = self.table.strings, self.table.interfaces
        texts = unresolved(strings, batch.text_begin, 16 * len(batch.text_begin))
        rows = len(batch.row_at) - 1
        copying = not ordered and among is None and bool(self.table.pivots.once[0])
        scratch = self._scratch()
        excluded, reach = _NONE, interfaces
        if among is not None:
            excluded, reach = excluded_bits(interfaces, among), len(among)
            scratch = scratch._replace(bits=np.append(excluded, np.uint64(0)))
        covered = CoveredRows(0, reach, excluded, *_NOTHING)
        ends, gathered, out = np.zeros(rows, np.int64), Gathering(rows), buffer(interfaces)
        row = last = 0
        while row < rows:
            if row == last:
                last = min(row + _CHUNK, rows) if self._masks else rows
                if self._masks:
                    texts, covered = cover_rows(
                        self._masks, strings, batch, texts, row, last, scratch.slot, excluded
                    )
            done = forward_kernels.forward(
                self.walked, self.hot_keys, strings, batch, texts, covered, scratch, row, last,
                interfaces, copying, ends, out,
            )  # fmt: skip
            if done == row:  # this row may have more hits or ranges than there is room for
                texts = with_room(texts)
                ranges = np.empty((2 * len(scratch.ranges), 2), np.int64)
                scratch = scratch._replace(ranges=ranges)
                continue
            gathered.take(row, done, ends, out)
            row = done
        return gathered.offsets, gathered.found
