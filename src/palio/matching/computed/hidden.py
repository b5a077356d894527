"""Filters with residuals, and judging them for the messages that are candidates.

    filter        0                1              ConstraintColumns: all constraints of these filters
    constraints   a = 1 | R0       R1 | R2        residuals are marked
    groups        (abs(lat - #0), <)   R0 R2      of one shape and operator: judged at once
                  (name LIKE #0, =)    R1

A residual is true for a pair of message and filter when its expression, with the filter's own
literals in its slots, satisfies the constraint. All pairs of a group are one call of `vectors`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from palio.errors import InvalidPredicate
from palio.matching.computed.batches import attribute_columns
from palio.matching.computed.columns import ABSENT, ValueColumn, column_of
from palio.matching.computed.shapes import Shape, shapes_of
from palio.matching.computed.vectors import Failed, compute
from palio.matching.encode.arrays import EncodedMessages
from palio.matching.encode.codes import BOOL
from palio.matching.encode.columns import ConstraintColumns, Ints
from palio.matching.encode.decoding import Decoder, column_predicates
from palio.model.arrays import Content
from palio.model.expression_costs import calls_in
from palio.model.expressions.decimals import Exact
from palio.model.expressions.evaluation import settled
from palio.model.expressions.names import attributes_of, value_of
from palio.model.expressions.tree import Call, Expression, Slot
from palio.model.long_decimals import written
from palio.model.operators import Op
from palio.model.predicate import Constraint, Predicate
from palio.model.values import shortened

OnResidualFailure: TypeAlias = Callable[[str, Sequence[int], str], None]
"""Told of an expression (its name), the messages that have no value of it, and why."""
_COMPARED = {
    Op.EQ: "equal", Op.NE: "not_equal", Op.LT: "less", Op.LE: "less_or_equal", Op.GT: "greater",
    Op.GE: "greater_or_equal",
}  # fmt: skip


class BatchColumns(Mapping[str, ValueColumn]):
    """The attributes of a batch as columns, and expressions of them, each computed once when it is
    asked for."""

    def __init__(
        self,
        batch: EncodedMessages,
        names: Mapping[str, int],
        read: frozenset[str],
        decimals: Mapping[str, ValueColumn],
    ) -> None:
        self.count = len(batch.row_at) - 1
        self._attributes = attribute_columns(batch, names, read.difference(decimals))
        self._attributes |= decimals
        self._computed: dict[str, ValueColumn] = {}

    def __getitem__(self, name: str) -> ValueColumn:
        return self._attributes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)

    def computed(self, name: str, expression: Expression, failed: Failed | None) -> ValueColumn:
        """The expression of a name for all messages."""
        found = self._computed.get(name)
        if found is None:
            found = compute(expression, self._attributes, self.count, (), failed)
            self._computed[name] = found
        return found


@dataclass(slots=True)
class _Residuals:
    """Residuals of one shape and one operator."""

    shape: Shape
    op: Op
    rows: list[int] = field(default_factory=list)  # of the constraints
    constraints: list[Constraint] = field(default_factory=list)
    literals: list[tuple[Any, ...]] = field(default_factory=list)
    slots: tuple[ValueColumn, ...] = ()
    expression: Expression | None = None  # the whole condition, where it is one

    def settle(self) -> None:
        """Make columns of the literals and operands."""
        slots = [column_of([own[i] for own in self.literals]) for i in range(len(self.literals[0]))]
        compared = _COMPARED.get(self.op)
        if compared is not None:
            self.expression = Call(compared, (self.shape.expression, Slot(len(slots))))
            slots.append(column_of([_operand(constraint.value) for constraint in self.constraints]))
        self.slots = tuple(slots)

    def judge(
        self, columns: BatchColumns, messages: Ints, which: Ints, failed: OnResidualFailure
    ) -> Ints:
        """Which pairs satisfy the residual: message i and the group's residual `which[i]`."""
        read = attributes_of(self.shape.expression)
        attributes = {name: columns[name].take(messages) for name in read}
        slots = [slot.take(which) for slot in self.slots]

        def tell(pairs: Ints, reason: str) -> None:
            for place in np.unique(which[pairs]).tolist():
                own = pairs[which[pairs] == place]
                failed(self.constraints[place].name, messages[own].tolist(), reason)

        if self.expression is not None:
            found = compute(self.expression, attributes, len(messages), slots, tell)
            return np.asarray((found.type == BOOL) & (found.raw == 1))
        found = compute(self.shape.expression, attributes, len(messages), slots, tell)
        if self.op is Op.ABSENT:
            return np.asarray(found.type == ABSENT)
        constraints = [self.constraints[i] for i in which.tolist()]
        pairs = zip(constraints, map(settled, found.values), strict=True)
        return np.fromiter((c.matches(value) for c, value in pairs), bool, len(messages))


def _operand(value: Any) -> Any:
    """A double as the decimal that it stands for: a double that is compared with this is compared with it."""
    if isinstance(value, float) and math.isfinite(value):
        return Exact.of_decimal(written(value)) or value
    return value


class HiddenFilters:
    """Filters with residuals; `columns.owner` says whose each of them is."""

    def __init__(self, columns: ConstraintColumns, is_residual: Ints) -> None:
        self.columns = columns
        self.is_residual = is_residual

    def __len__(self) -> int:
        return self.columns.filters

    @cached_property
    def _begin(self) -> Ints:
        """Where the residuals of each filter begin."""
        filters = self.columns.filter[self.is_residual]
        return np.searchsorted(filters, np.arange(len(self) + 1))

    @cached_property
    def shapes(self) -> dict[int, Shape]:
        return shapes_of(self.columns.names)

    @cached_property
    def _groups(self) -> tuple[list[_Residuals], Ints, Ints]:
        """The groups, and for each residual its group and its place there."""
        columns = self.columns
        sets = (columns.sets.start, columns.sets.split, columns.sets.keys)
        decoder = Decoder(columns.names, columns.strings, sets)
        known: dict[tuple[str, Op], int] = {}
        groups: list[_Residuals] = []
        rows = np.flatnonzero(self.is_residual)
        group_of, place = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        for i, row in enumerate(rows.tolist()):
            constraint = decoder.constraint(
                *(int(c[row]) for c in (columns.name, columns.op, columns.domain, columns.key))
            )
            shape = self.shapes[int(columns.name[row])]
            number = known.setdefault((shape.text, constraint.op), len(groups))
            if number == len(groups):
                groups.append(_Residuals(shape, constraint.op))
            group = groups[number]
            group_of[i], place[i] = number, len(group.rows)
            group.rows.append(row)
            group.constraints.append(constraint)
            group.literals.append(shape.literals)
        for group in groups:
            group.settle()
        return groups, group_of, place

    def check(self) -> None:
        """Raise InvalidPredicate where a residual is none; a file may say so."""
        names = np.unique(self.columns.name[self.is_residual]).tolist()
        if wrong := [number for number in names if number not in self.shapes]:
            raise InvalidPredicate(
                f"{shortened(self.columns.names[wrong[0]])} is no expression, and a residual"
            )
        _ = self._groups

    @property
    def groups(self) -> int:
        """How many shapes and operators its residuals have."""
        return len(self._groups[0])

    def calls(self, filters: Ints) -> int:
        """How many functions and operators it takes to judge these filters."""
        groups, group_of, _ = self._groups
        own = np.array([1 + calls_in(group.shape.expression) for group in groups], np.int64)
        before = np.concatenate([[0], np.cumsum(own[group_of])])
        return int((before[self._begin[filters + 1]] - before[self._begin[filters]]).sum())

    @cached_property
    def read(self) -> frozenset[str]:
        """The attributes that residuals read."""
        groups, _, _ = self._groups
        return frozenset().union(*(attributes_of(group.shape.expression) for group in groups))

    def judge(
        self, columns: BatchColumns, messages: Ints, filters: Ints, failed: OnResidualFailure
    ) -> Ints:
        """Which pairs of message and filter have all residuals satisfied."""
        groups, group_of, place = self._groups
        size = np.diff(self._begin)[filters]
        pair = np.repeat(np.arange(len(filters)), size)
        first = np.cumsum(size) - size
        residual = self._begin[filters][pair] + np.arange(len(pair)) - first[pair]
        holds = np.ones(len(filters), bool)
        of_group = group_of[residual]
        for number in np.unique(of_group).tolist():
            own = np.flatnonzero((of_group == number) & holds[pair])
            at = residual[own]
            found = groups[number].judge(columns, messages[pair[own]], place[at], failed)
            holds[pair[own[~found]]] = False
        return holds

    def holds(
        self,
        number: int,
        message: Mapping[str, Content],
        failed: Callable[[str], Callable[[str], None]],
    ) -> bool:
        """Are the residuals of a filter satisfied by one message?"""
        groups, group_of, place = self._groups
        for residual in range(int(self._begin[number]), int(self._begin[number + 1])):
            constraint = groups[group_of[residual]].constraints[place[residual]]
            if not constraint.matches(value_of(constraint.name, message, failed(constraint.name))):
                return False
        return True

    @cached_property
    def _predicates(self) -> list[Predicate]:
        interfaces = range(int(self.columns.owner.max(initial=-1)) + 1)
        return list(column_predicates(replace(self.columns, interfaces=interfaces)))  # type: ignore[arg-type]

    def predicate(self, interface: int) -> Predicate:
        """What the hidden filters of an interface select."""
        found = self._predicates
        return found[interface] if interface < len(found) else Predicate(())
