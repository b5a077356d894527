"""Computing an expression for many messages at once, with the meaning of `model/expressions/evaluation.py`.

Arguments become columns, constants columns of one row. What is not chosen is not computed: the parts of
`and`, `or`, `case` and `coalesce` get only the rows that need them. Functions are called by `calls`; a form
that is not known here is computed row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from palio.matching.computed.calls import called, reason_of
from palio.matching.computed.columns import ABSENT, NULL, ValueColumn, constant, merged, plain
from palio.matching.computed.row_by_row import inputs, row_by_row
from palio.matching.encode.codes import BOOL
from palio.matching.encode.columns import Ints
from palio.model.expressions.functions import FUNCTIONS
from palio.model.expressions.tree import AttributeOf, Call, Constant, Expression, Slot

Failed: TypeAlias = Callable[[Ints, str], None]
"""Rows for which a call failed, and why it did for the first of them."""


def compute(
    expression: Expression,
    attributes: Mapping[str, ValueColumn],
    count: int,
    slots: Sequence[ValueColumn] = (),
    failed: Failed | None = None,
) -> ValueColumn:
    """The values of an expression in `count` rows, decimals as such; slots have a constant for each row."""
    if not count:
        return NULL.repeated(0)
    rows = SelectedRows(attributes, slots, count, failed)
    return plain(evaluated(expression, rows)).repeated(count)


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """The rows that an expression is computed for: all, or those at `chosen`."""

    attributes: Mapping[str, ValueColumn]
    slots: Sequence[ValueColumn]
    count: int
    failed: Failed | None
    chosen: Ints | None = None

    def of(self, column: ValueColumn) -> ValueColumn:
        return column if self.chosen is None else column.among(self.chosen)

    def among(self, rows: Ints) -> SelectedRows:
        """Some of these."""
        chosen = rows if self.chosen is None else self.chosen[rows]
        return SelectedRows(self.attributes, self.slots, len(rows), self.failed, chosen)

    def fail(self, rows: Ints | None, reason: str) -> None:
        """Tell that something fails in these of the rows, None: in all."""
        if self.failed is not None:
            own = np.arange(self.count) if rows is None else rows
            self.failed(own if self.chosen is None else self.chosen[own], reason)

    def where(self, holds: Ints) -> Ints:
        """The rows where it holds; one answer is that of all."""
        if len(holds) < self.count:
            return np.arange(self.count if holds[0] else 0)
        return np.flatnonzero(holds)


def evaluated(expression: Expression, rows: SelectedRows) -> ValueColumn:
    """The values, decimals as such; one row for a constant."""
    if isinstance(expression, AttributeOf):
        return rows.of(rows.attributes.get(expression.name, NULL))
    if isinstance(expression, Slot):
        return rows.of(rows.slots[expression.number])
    if isinstance(expression, Constant):
        return constant(expression.value)
    if isinstance(expression, Call):
        form = FORMS.get(expression.function)
        if form is not None:
            return form(expression.arguments, rows)
        if expression.function in FUNCTIONS:
            function = FUNCTIONS[expression.function]
            arguments = [evaluated(argument, rows) for argument in expression.arguments]
            column, failed = called(function, arguments)
            for calls in failed if rows.failed is not None else ():
                rows.fail(calls.rows, reason_of(function, calls.arguments))
            return column
    return _row_by_row(expression, rows)


def _row_by_row(expression: Expression, rows: SelectedRows) -> ValueColumn:
    named, names, slots = inputs(expression)
    columns = {name: rows.of(rows.attributes.get(name, NULL)) for name in sorted(names)}
    columns |= {name: rows.of(rows.slots[number]) for name, number in slots.items()}
    found, failed = row_by_row(named, columns)
    for own, reason in failed:
        rows.fail(own if len(found) == rows.count else None, reason)
    return found


# ---- forms: what is not chosen is not computed

_FALSE, _NULL, _TRUE = 0, 1, 2  # so `and` is the least, `or` the greatest


def _truth(expression: Expression, rows: SelectedRows) -> Ints:
    """The truth of an argument of a form in each row, or one for all."""
    column = evaluated(expression, rows)
    if column.kind == BOOL:
        return (2 * column.raw).astype(np.uint8)
    is_bool = column.type == BOOL
    bad = np.flatnonzero(~is_bool & (column.type != ABSENT))
    if len(bad):
        value = column.take(bad[:1]).values[0]
        everywhere = len(column) < rows.count
        rows.fail(
            np.arange(rows.count) if everywhere else bad, f"a boolean is needed, not {value!r}"
        )
    return np.where(is_bool, 2 * column.raw, _NULL).astype(np.uint8)


def _booleans(truth: Ints) -> ValueColumn:
    raw = (truth == _TRUE).astype(np.int64)
    null = truth == _NULL
    if not null.any():
        return ValueColumn.of_kind(BOOL, raw)
    return ValueColumn(np.where(null, np.uint8(ABSENT), np.uint8(BOOL)), raw)


def _folded(
    parts: Sequence[Expression], rows: SelectedRows, decided: int, combine: Callable[..., Ints]
) -> ValueColumn:
    result = _truth(parts[0], rows)
    for part in parts[1:]:
        is_open = result != decided
        if is_open.all():
            result = combine(result, _truth(part, rows))
            continue
        own = rows.where(is_open)
        if not len(own):
            break
        result = result.copy()
        result[own] = combine(result[own], _truth(part, rows.among(own)))
    return _booleans(result)


def _and(parts: Sequence[Expression], rows: SelectedRows) -> ValueColumn:
    return _folded(parts, rows, _FALSE, np.minimum)


def _or(parts: Sequence[Expression], rows: SelectedRows) -> ValueColumn:
    return _folded(parts, rows, _TRUE, np.maximum)


def _not(parts: Sequence[Expression], rows: SelectedRows) -> ValueColumn:
    return _booleans(2 - _truth(parts[0], rows))


def _is_null(parts: Sequence[Expression], rows: SelectedRows) -> ValueColumn:
    absent = evaluated(parts[0], rows).type == ABSENT
    return ValueColumn.of_kind(BOOL, absent.astype(np.int64))


def _coalesce(parts: Sequence[Expression], rows: SelectedRows) -> ValueColumn:
    pieces: list[tuple[Ints, ValueColumn]] = []
    count = rows.count
    at = np.arange(count)
    for part in parts:
        found = evaluated(part, rows)
        missing = found.type == ABSENT
        if not pieces and not missing.any():
            return found
        if not missing.all():
            pieces.append((at, found))
        left = rows.where(missing)
        if not len(left):
            break
        if len(left) < rows.count:
            at, rows = at[left], rows.among(left)
    return _put_together(count, pieces)


def _case(parts: Sequence[Expression], rows: SelectedRows) -> ValueColumn:
    """Condition, value, condition, value, ..., and the value otherwise."""
    pieces: list[tuple[Ints, ValueColumn]] = []
    count = rows.count
    at = np.arange(count)
    for condition, chosen in zip(parts[:-1:2], parts[1:-1:2], strict=True):
        holds = _truth(condition, rows) == _TRUE
        if holds.all():
            pieces.append((at, evaluated(chosen, rows)))
            return _put_together(count, pieces)
        own = rows.where(holds)
        if len(own):
            pieces.append((at[own], evaluated(chosen, rows.among(own))))
            left = rows.where(~holds)
            at, rows = at[left], rows.among(left)
    pieces.append((at, evaluated(parts[-1], rows)))
    return _put_together(count, pieces)


def _case_of(parts: Sequence[Expression], rows: SelectedRows) -> ValueColumn:
    """What is compared, then a value and a result, ..., and the result otherwise."""
    pieces: list[tuple[Ints, ValueColumn]] = []
    subject = evaluated(parts[0], rows)
    null, at = rows.where(subject.type == ABSENT), rows.where(subject.type != ABSENT)
    left = rows.among(at)
    for wanted, chosen in zip(parts[1:-1:2], parts[2:-1:2], strict=True):
        if not len(at):
            break
        equal, _ = called(_EQUAL, [subject.among(at), evaluated(wanted, left)])
        holds = (equal.type == BOOL) & (equal.raw != 0)
        own = left.where(holds)
        if len(own):
            pieces.append((at[own], evaluated(chosen, left.among(own))))
            others = left.where(~holds)
            at, left = at[others], left.among(others)
    rest = np.union1d(at, null)
    if len(rest):
        pieces.append((rest, evaluated(parts[-1], rows.among(rest))))
    return _put_together(rows.count, pieces)


def _put_together(count: int, pieces: list[tuple[Ints, ValueColumn]]) -> ValueColumn:
    if not pieces:
        return NULL
    if len(pieces) == 1 and len(pieces[0][0]) == count:
        return pieces[0][1]
    return merged(count, pieces)


FORMS: dict[str, Callable[[Sequence[Expression], SelectedRows], ValueColumn]] = {
    "and": _and,
    "or": _or,
    "not": _not,
    "is null": _is_null,
    "coalesce": _coalesce,
    "case": _case,
    "case of": _case_of,
}
_EQUAL = FUNCTIONS["equal"]
