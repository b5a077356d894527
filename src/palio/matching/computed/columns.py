"""The values of one attribute or expression for many messages, as a column.

    type       INT    FLOAT   ABSENT   STRING   DECIMAL   codes of `encode/codes`, and those below
    raw        7      bits    0        3        0         int64: 0 or 1, an int, the bits of a double,
                                                          microseconds, a position in texts or decimals

Between functions a value may also be a decimal or an integer as a literal writes it, which has its own
digits next to a decimal. A column of one row stands for a constant where others have more rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import numpy as np

from palio.matching.computed.decimal_pools import NO_DECIMALS, DecimalPool, joined_decimals
from palio.matching.computed.distinct import distinct
from palio.matching.computed.pools import NO_STRINGS, StringPool, joined
from palio.matching.encode import codes
from palio.matching.encode.codes import BOOL, FLOAT, INT, STRING, TIME
from palio.matching.encode.columns import Ints
from palio.model.arrays import DEPTH_MAX, array_text, read_array
from palio.model.expressions.decimals import Exact
from palio.model.expressions.number_functions import IntLiteral
from palio.model.values import instant_from_micros, instant_micros

ARRAY: Final = codes.ARRAY  # its JSON text lies in `texts`
DECIMAL: Final = 8
LITERAL: Final = 9  # an integer as it is written: next to a decimal it has its own digits
ABSENT: Final = 255
MIXED: Final = 254  # of a column whose rows are of several types
_UNKNOWN = -1


def is_in_texts(type: Ints) -> Ints:
    """Which values are strings or arrays."""
    found: Ints = (type == STRING) | (type == ARRAY)
    return found


class ValueColumn:
    """Values by row; see the head of the module. Its arrays are never changed."""

    __slots__ = ("_kind", "decimals", "raw", "texts", "type")

    def __init__(
        self,
        type: Ints,
        raw: Ints,
        texts: StringPool = NO_STRINGS,
        decimals: DecimalPool = NO_DECIMALS,
        kind: int = _UNKNOWN,
    ) -> None:
        self.type, self.raw, self.texts, self.decimals = type, raw, texts, decimals
        self._kind = kind

    @classmethod
    def of_kind(
        cls,
        kind: int,
        raw: Ints,
        texts: StringPool = NO_STRINGS,
        decimals: DecimalPool = NO_DECIMALS,
    ) -> ValueColumn:
        """All rows are of one type."""
        return cls(np.full(len(raw), kind, np.uint8), raw, texts, decimals, kind)

    def __len__(self) -> int:
        return len(self.raw)

    @property
    def kind(self) -> int:
        """The one type of all rows, or MIXED."""
        if self._kind == _UNKNOWN:
            first = int(self.type[0]) if len(self.type) else ABSENT
            self._kind = first if (self.type == first).all() else MIXED
        return self._kind

    def take(self, rows: Ints) -> ValueColumn:
        """The column of these rows, each any number of times."""
        kind = self._kind if self._kind != MIXED else _UNKNOWN
        return ValueColumn(self.type[rows], self.raw[rows], self.texts, self.decimals, kind)

    def among(self, rows: Ints) -> ValueColumn:
        """The column of these rows; a constant stays one."""
        return self if len(self.raw) == 1 else self.take(rows)

    def repeated(self, count: int) -> ValueColumn:
        """The column with so many rows: a constant is repeated."""
        return self if len(self.raw) == count else self.take(np.zeros(count, np.int64))

    @property
    def values(self) -> list[Any]:
        """As Python's values, None where there is none; arrays are tuples."""
        if self.kind != MIXED:
            return _python_values(self)
        found: list[Any] = [None] * len(self)
        for kind in np.unique(self.type).tolist():
            rows = np.flatnonzero(self.type == kind)
            for row, value in zip(rows.tolist(), _python_values(self.take(rows)), strict=True):
                found[row] = value
        return found


_DEPTH = -10 * DEPTH_MAX
"""Of arrays: functions may put some of messages into others."""

NULL = ValueColumn(np.full(1, ABSENT, np.uint8), np.zeros(1, np.int64), kind=ABSENT)


def _python_values(column: ValueColumn) -> list[Any]:
    """Of a column whose values are of one type."""
    kind, raw = column.kind, column.raw
    if kind == STRING:
        return column.texts.at(raw)
    if kind == INT:
        return list(raw.tolist())
    if kind == FLOAT:
        return list(raw.view(np.float64).tolist())
    if kind == BOOL:
        return list((raw != 0).tolist())
    if kind == TIME:
        return [instant_from_micros(micros) for micros in raw.tolist()]
    if kind == DECIMAL:
        return column.decimals.at(raw)
    if kind == LITERAL:
        return [IntLiteral(value) for value in raw.tolist()]
    if kind == ARRAY:
        return [read_array(text, _DEPTH) for text in column.texts.at(raw)]
    return [None] * len(raw)


def column_of(values: Iterable[Any]) -> ValueColumn:
    """A column of Python's values, of any types; None is none."""
    found = values if isinstance(values, list) else list(values)
    kinds = set(map(type, found))
    if len(kinds) == 1:
        return _of_one_type(found, _KINDS.get(kinds.pop(), ARRAY))
    type_, raw = np.full(len(found), ABSENT, np.uint8), np.zeros(len(found), np.int64)
    rows: dict[int, list[int]] = {}
    for row, value in enumerate(found):
        if value is not None:
            rows.setdefault(_KINDS.get(type(value), ARRAY), []).append(row)
    texts, decimals = NO_STRINGS, NO_DECIMALS
    for kind, own in rows.items():
        part = _of_one_type([found[row] for row in own], kind)
        type_[own], raw[own] = kind, part.raw
        if kind in (STRING, ARRAY):
            texts, (_, base) = joined((texts, part.texts))
            raw[own] += base
        elif kind == DECIMAL:
            decimals = part.decimals
    return ValueColumn(type_, raw, texts, decimals)


def constant(value: Any) -> ValueColumn:
    """A column of one row. Small ones are kept, and with them what was computed of their pools."""
    if value is None:
        return NULL
    is_large = isinstance(value, str) and len(value) > _TEXT_KEPT
    if is_large or isinstance(value, tuple | list | dict):
        return column_of([value])
    return _kept(
        type(value).__name__, value, repr(value) if type(value) is float else ""
    )  # -0.0 and 0.0


_TEXT_KEPT = 1000


@lru_cache(4096)
def _kept(_type: str, value: Any, _shown: str) -> ValueColumn:
    return column_of([value])


_KINDS: dict[type, int] = {
    bool: BOOL, int: INT, float: FLOAT, str: STRING, Exact: DECIMAL, IntLiteral: LITERAL,
    datetime: TIME, tuple: ARRAY, list: ARRAY, dict: ARRAY, bytes: ARRAY, type(None): ABSENT,
}  # fmt: skip


def _of_one_type(values: list[Any], kind: int) -> ValueColumn:
    size = len(values)
    if kind == STRING:
        return ValueColumn.of_kind(kind, np.arange(size), StringPool(values))
    if kind == FLOAT:
        return ValueColumn.of_kind(kind, np.array(values, np.float64).view(np.int64))
    if kind == TIME:
        return ValueColumn.of_kind(kind, np.array([*map(instant_micros, values)], np.int64))
    if kind == DECIMAL:
        return ValueColumn.of_kind(kind, np.arange(size), decimals=DecimalPool.of(values))
    if kind == ARRAY:
        texts = StringPool([array_text(value) for value in values])
        return ValueColumn.of_kind(kind, np.arange(size), texts)
    if kind == ABSENT:
        return ValueColumn.of_kind(kind, np.zeros(size, np.int64))
    return ValueColumn.of_kind(kind, np.array(values, np.int64))


def merged(count: int, pieces: Sequence[tuple[Ints, ValueColumn]]) -> ValueColumn:
    """A column of `count` rows: each piece gives the values of these rows, constants all of them.

    Of two pieces for a row the later one holds; a row of no piece has no value.
    """
    type_, raw = np.full(count, ABSENT, np.uint8), np.zeros(count, np.int64)
    texts, bases = joined([piece.texts for _, piece in pieces])
    decimals = [piece.decimals for _, piece in pieces if piece.decimals is not NO_DECIMALS]
    pool = joined_decimals(decimals)
    decimal_base = 0
    for (rows, piece), base in zip(pieces, bases, strict=True):
        values = piece.raw
        if base:
            values = values + base * is_in_texts(piece.type)
        if len(decimals) > 1 and piece.decimals is not NO_DECIMALS:
            values = values + decimal_base * (piece.type == DECIMAL)
            decimal_base += len(piece.decimals)
        type_[rows], raw[rows] = piece.type, values
    return ValueColumn(type_, raw, texts, pool)


def plain(column: ValueColumn) -> ValueColumn:
    """Literals as integers."""
    if column.kind == LITERAL:
        return ValueColumn.of_kind(INT, column.raw)
    is_literal = column.type == LITERAL
    if column.kind != MIXED or not is_literal.any():
        return column
    type_ = np.where(is_literal, np.uint8(INT), column.type)
    return ValueColumn(type_, column.raw, column.texts, column.decimals)


def settled(column: ValueColumn) -> ValueColumn:
    """As an attribute of a batch has them, before these are settled: decimals and literals are numbers."""
    column = plain(column)
    if column.kind == DECIMAL:
        raw, kinds = column.decimals.numbers
        return ValueColumn(kinds[column.raw], raw[column.raw])
    decimal = np.flatnonzero(column.type == DECIMAL)
    if column.kind != MIXED or not len(decimal):
        return column
    type_, raw = column.type.copy(), column.raw.copy()
    found, kinds = column.decimals.numbers
    type_[decimal], raw[decimal] = kinds[raw[decimal]], found[raw[decimal]]
    return ValueColumn(type_, raw, column.texts)


def distinct_rows(columns: Sequence[ValueColumn]) -> tuple[Ints, Ints]:
    """For each row the number of its combination of values, and for each combination a row.

    Constants do not matter: there is another column among these.
    """
    number: Ints | None = None
    count = 1
    for column in columns:
        if len(column) == 1:
            continue
        parts = [column.raw]
        if column.kind == MIXED:
            parts.append(column.type)
        for part in parts:
            own, more = distinct(part.astype(np.int64, copy=False))
            if number is None:
                number, count = own, more
            elif more > 1:
                number, count = distinct(number * more + own)
    if number is None:
        return np.zeros(1, np.int64), np.zeros(1, np.int64)
    firsts = np.zeros(count, np.int64)
    firsts[number] = np.arange(len(number))
    return number, firsts
