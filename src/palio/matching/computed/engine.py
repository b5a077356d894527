"""The engine of tables with expressions: attributes are computed, candidates judged.

    messages ─▶ batch ─▶ + shared expressions, members ─▶ inner engine ─┬─ interfaces ───────────────┐
                                                                       └─ candidates ─▶ residuals ─┴─▶ answer

The inner engine is one of pivots. Its interfaces are those of the caller, and behind them one for
each filter with residuals. An attribute of a message whose name is that of an expression is left
out; only rows of `computed` layout bring such attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from palio.errors import InvalidValue
from palio.matching.computed.batches import with_columns
from palio.matching.computed.columns import ValueColumn, column_of
from palio.matching.computed.decimal_columns import decimal_columns
from palio.matching.computed.hidden import BatchColumns, HiddenFilters
from palio.matching.computed.members import Members
from palio.matching.computed.shapes import shapes_of
from palio.matching.encode.arrays import EncodedMessages
from palio.matching.encode.columns import ConstraintColumns, Ints
from palio.matching.encode.merging import joined
from palio.matching.encode.messages import encode_messages
from palio.matching.encode.names import NameIndex
from palio.matching.encode.rows import encode_rows
from palio.matching.expressions import (
    US_PER_CALL,
    ExpressionUse,
    OnFailure,
    TableExpressions,
)
from palio.matching.pairs import as_lists, pairs_of, rows_of, united
from palio.matching.pivot.arrays import PivotTable
from palio.matching.pivot.decoding import asking_for_presence, constrained_names
from palio.matching.pivot.engine import PivotEngine
from palio.matching.statistics import ExpressionStats, Reduction, Stats
from palio.model.arrays import Content
from palio.model.expressions.names import attributes_of, expression_of, is_computed, value_of
from palio.model.expressions.tree import Expression
from palio.model.long_decimals import LongDecimal
from palio.model.message import Message, as_message
from palio.model.predicate import Predicate
from palio.model.rows import messages as rows_as_messages


def _as_attribute(value: Any) -> Content:
    """What an expression computes; an object, which in a message would be its members, is only there."""
    return b"" if isinstance(value, dict) else value


def _kept(value: Any) -> Content:
    """As a message keeps it."""
    return float(value) if isinstance(value, LongDecimal) else value


def _untold(_reason: str) -> None:
    """Who samples is not told what could not be computed."""


_FEW = 16  # candidates of one message that are judged one by one
COMPUTED = "computed"
"""The layout of wide rows that bring the values of shared expressions."""


class ComputedEngine:
    """An engine around one of pivots; see the head of the module."""

    def __init__(
        self,
        inner: PivotEngine,
        hidden: HiddenFilters | None = None,
        use: ExpressionUse | None = None,
    ) -> None:
        self.inner = inner
        self.use = use or ExpressionUse()
        self.hidden = hidden
        self.interfaces = inner.interfaces - (len(hidden) if hidden else 0)
        names = inner.table.names
        shapes = shapes_of(names)
        self.members = Members.of({number: shape.member for number, shape in shapes.items()})
        self._shared: dict[int, Expression] = {
            number: expression_of(names[number])
            for number, shape in shapes.items()
            if shape.member is None
        }
        self._plain = {name: i for i, name in enumerate(names) if not is_computed(name)}

    # ---- what it computes

    def expressions(self) -> TableExpressions:
        hidden = self.hidden
        return TableExpressions(
            attributes=self.members.arrays | (hidden.read if hidden else frozenset()),
            read=self.read,
            shared=tuple(self.inner.table.names[number] for number in self._shared),
            names=frozenset(self._plain),
            plain=constrained_names(self.inner.table).intersection(self._plain),
            compared=self.inner.compared,
            members=len(self.members),
            residuals=len(hidden) if hidden else 0,
            shapes=hidden.groups if hidden else 0,
            unindexed=len(self._unindexed),
            unindexed_us=self._unindexed_us,
            failures=dict(self.use.failures),
        )

    @cached_property
    def _unindexed(self) -> Ints:
        """Filters with residuals that the inner engine finds by the presence of attributes alone."""
        if self.hidden is None:
            return np.zeros(0, np.int64)
        found = asking_for_presence(self.inner.table.pivots)
        return found[found >= self.interfaces] - self.interfaces

    @cached_property
    def _unindexed_us(self) -> float:
        return US_PER_CALL * self.hidden.calls(self._unindexed) if self.hidden else 0.0

    def _failed(
        self, on_failure: OnFailure | None, name: str, rows: Sequence[int], reason: str
    ) -> None:
        self.use.failures.add(name, len(rows))
        if on_failure is not None:
            on_failure(name, rows, reason)

    @cached_property
    def read(self) -> frozenset[str]:
        """The attributes that expressions read."""
        found = [attributes_of(expression) for expression in self._shared.values()]
        hidden = self.hidden.read if self.hidden else frozenset()
        return hidden.union(self.members.arrays, *found)

    def _columns_of(
        self, batch: EncodedMessages, decimals: Mapping[str, ValueColumn] | None = None
    ) -> BatchColumns:
        return BatchColumns(batch, self._plain, self.read, decimals or {})

    def _decimals_of(self, messages: Sequence[Message]) -> dict[str, ValueColumn]:
        """Columns of the attributes that are decimals in some of the messages."""
        names = self.read.intersection(chain.from_iterable(m.exact for m in messages))
        return {name: column_of([m.read.get(name) for m in messages]) for name in names}

    def _with_expressions(
        self,
        batch: EncodedMessages,
        columns: BatchColumns,
        brought: frozenset[str],
        failed: Callable[[str, Sequence[int], str], None],
    ) -> EncodedMessages:
        """The batch with the attributes that expressions compute, but those that it brings."""
        names = self.inner.table.names
        found = [
            (
                number,
                columns.computed(names[number], expression, partial(failed, names[number])),
            )
            for number, expression in self._shared.items()
            if names[number] not in brought
        ]
        if found:
            batch = with_columns(batch, found)
        return self.members.joined_to(batch, columns)

    # ---- matching

    def match_one(
        self,
        message: Mapping[str, Any],
        among: Ints | None = None,
        on_failure: OnFailure | None = None,
    ) -> Ints:
        known = as_message(message)

        def failed(name: str) -> Callable[[str], None]:
            return lambda reason: self._failed(on_failure, name, [0], reason)

        values = self._with_values(known, failed)
        read = {**values, **known.exact} if known.exact else values
        found = self.inner.match_one(values, self._inner_among(among))
        split = int(np.searchsorted(found, self.interfaces))
        if self.hidden is None or split == len(found):
            return found
        candidates = found[split:] - self.interfaces
        if len(candidates) <= _FEW:
            kept = [self.hidden.holds(number, read, failed) for number in candidates.tolist()]
            holds = np.array(kept, bool)
        else:
            columns = self._columns_of(self.encode([known]), self._decimals_of([known]))
            rows = np.zeros(len(candidates), np.int64)
            holds = self.hidden.judge(columns, rows, candidates, partial(self._failed, on_failure))
        owners = self.hidden.columns.owner[candidates[holds]]
        return np.union1d(found[:split], owners).astype(np.int32)

    def _with_values(
        self, message: Message, failed: Callable[[str], Callable[[str], None]]
    ) -> dict[str, Any]:
        """The attributes of a message, and what expressions compute of them."""
        names = self.inner.table.names
        values: dict[str, Any] = {n: v for n, v in message.compared.items() if not is_computed(n)}
        read = {**values, **message.exact} if message.exact else values
        more = {
            names[number]: _as_attribute(value)
            for number in self._shared
            if (value := value_of(names[number], read, failed(names[number]))) is not None
        }
        more |= dict.fromkeys((names[n] for n in self.members.numbers(values)), True)
        return {**values, **more}

    def match_text(
        self, text: Any, among: Ints | None = None, on_failure: OnFailure | None = None
    ) -> Ints:
        return self.match_one(Message.from_json(bytes(text)), among, on_failure)

    def match(self, messages: Sequence[Mapping[str, Content]]) -> tuple[Ints, Ints]:
        known = [*map(as_message, messages)]
        batch = self.encode(known)
        columns = self._columns_of(batch, self._decimals_of(known))
        return self._match_batch(batch, columns, frozenset(), None, None)

    def encode(self, messages: Sequence[Mapping[str, Content]]) -> EncodedMessages:
        return encode_messages(self._plain, messages)

    def match_rows(
        self,
        rows: Any,
        layout: str,
        column: str,
        among: Ints | None = None,
        on_failure: OnFailure | None = None,
    ) -> tuple[Ints, Ints]:
        batch, columns, brought = self._read(rows, layout, column)
        return self._match_batch(batch, columns, brought, among, on_failure)

    def encoded_rows(self, rows: Any, layout: str, column: str) -> EncodedMessages:
        """Arrow rows as the inner engine's kernels know them, with expressions."""
        batch, columns, brought = self._read(rows, layout, column)
        return self._with_expressions(batch, columns, brought, partial(self._failed, None))

    def _read(
        self, rows: Any, layout: str, column: str
    ) -> tuple[EncodedMessages, BatchColumns, frozenset[str]]:
        """Arrow rows, their columns, and the expressions whose values they bring."""
        has_shared = layout == COMPUTED
        index = self._computed_index if has_shared else self._name_index
        batch = encode_rows(index, rows, "wide" if has_shared else layout, column)
        columns = self._columns_of(batch, decimal_columns(rows, layout, column, self.read))
        return batch, columns, frozenset(rows.schema.names if has_shared else ())

    @cached_property
    def _name_index(self) -> NameIndex:
        return NameIndex.of(self._plain)

    @cached_property
    def _computed_index(self) -> NameIndex:
        names = self.inner.table.names
        return NameIndex.of({**self._plain, **{names[number]: number for number in self._shared}})

    def _inner_among(self, among: Ints | None) -> Ints | None:
        """The interfaces of the inner engine that can lead to some of the caller's."""
        if among is None or self.hidden is None:
            return among
        candidates = np.flatnonzero(np.isin(self.hidden.columns.owner, among))
        return np.concatenate([among, candidates + self.interfaces])

    def _match_batch(
        self,
        batch: EncodedMessages,
        columns: BatchColumns,
        brought: frozenset[str],
        among: Ints | None,
        on_failure: OnFailure | None,
    ) -> tuple[Ints, Ints]:
        failed = partial(self._failed, on_failure)
        batch = self._with_expressions(batch, columns, brought, failed)
        offsets, found = self.inner.match_batch(batch, among=self._inner_among(among))
        is_candidate = found >= self.interfaces
        if self.hidden is None or not is_candidate.any():
            return offsets, found
        rows = rows_of(offsets)
        messages, filters = rows[is_candidate], found[is_candidate] - self.interfaces
        holds = self.hidden.judge(columns, messages, filters, failed)
        owners = self.hidden.columns.owner[filters[holds]]
        pairs = pairs_of(rows[~is_candidate], found[~is_candidate])
        return as_lists(united(pairs, pairs_of(messages[holds], owners)), columns.count)

    # ---- back to predicates

    def predicates(self, interfaces: Iterable[int]) -> Iterator[Predicate]:
        wanted = list(interfaces)
        for interface, found in zip(wanted, self.inner.predicates(wanted), strict=True):
            yield found | self.hidden.predicate(interface) if self.hidden else found

    def columns(self, interfaces: Any) -> ConstraintColumns:
        if self.hidden is None:
            return self.inner.columns(interfaces)
        positions = np.arange(self.interfaces)
        everything = np.arange(self.inner.interfaces)
        parts = [
            (self.inner.columns(range(self.inner.interfaces)), everything),
            (self.hidden.columns, positions),
        ]
        return joined(parts, positions, interfaces)

    def stats(self, sample: Any = None, reduction: Reduction | None = None) -> Stats:
        found = self.inner.stats(None if sample is None else self.sampled(sample), reduction)
        known = self.expressions()
        return replace(
            found,
            interfaces=self.interfaces,
            expressions=ExpressionStats(
                len(known.shared),
                known.members,
                known.residuals,
                known.shapes,
                known.unindexed,
                known.unindexed_us,
            ),
        )

    def sampled(self, sample: Any) -> list[dict[str, Any]]:
        """Messages or Arrow rows with what expressions compute of them."""
        is_rows = isinstance(sample, pa.Table | pa.RecordBatch)
        is_list = isinstance(sample, Iterable) and not isinstance(sample, Mapping | str | bytes)
        if not (is_rows or is_list):
            raise InvalidValue(
                f"a sample is an Arrow table or a list of messages, not {type(sample).__name__}"
            )
        found = rows_as_messages(sample) if is_rows else map(as_message, sample)
        return [
            {
                name: _kept(value)
                for name, value in self._with_values(message, lambda _: _untold).items()
            }
            for message in found
        ]

    @property
    def table(self) -> PivotTable:
        """That of the inner engine."""
        return self.inner.table

    @property
    def nbytes(self) -> int:
        return self.inner.nbytes
