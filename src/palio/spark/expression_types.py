"""The types that Spark's columns have, as the meaning of expressions tells them apart, and typed SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pyspark.sql import types as T  # noqa: N812

from palio.model.sql_text import value_sql

BOOL, INT, FLOAT, DOUBLE, DECIMAL = "bool", "int", "float", "double", "decimal"
STRING, TIME, DATE, NULL = "string", "time", "date", "null"
ARRAY, STRUCT, MAP, OTHER = "array", "struct", "map", "other"

NUMBERS = frozenset({INT, FLOAT, DOUBLE, DECIMAL})
INSTANTS = frozenset({TIME, DATE})
NARROW = (T.ByteType, T.ShortType, T.IntegerType)
_KINDS: dict[type, str] = {
    T.BooleanType: BOOL, T.ByteType: INT, T.ShortType: INT, T.IntegerType: INT, T.LongType: INT,
    T.FloatType: FLOAT, T.DoubleType: DOUBLE, T.DecimalType: DECIMAL, T.StringType: STRING,
    T.CharType: STRING, T.VarcharType: STRING, T.TimestampType: TIME, T.DateType: DATE,
    T.NullType: NULL, T.ArrayType: ARRAY, T.StructType: STRUCT, T.MapType: MAP,
}  # fmt: skip


PLAIN = NUMBERS | INSTANTS | {BOOL, STRING}


class NotOnSpark(Exception):
    """The worker computes the expression."""


class OnlySpark(NotOnSpark):
    """The worker does not know how: it joins no arrays, and a DATE is a time for it, to which no days are
    added."""


def kind_of(type: Any) -> str:
    """What a type of Spark is here; the collations of strings are none of ours."""
    if getattr(type, "collation", "UTF8_BINARY") not in ("UTF8_BINARY", None):
        return OTHER
    return _KINDS.get(type.__class__, OTHER)


@dataclass(frozen=True, slots=True)
class ColumnSource:
    """A column, or a field inside it: its SQL and its type."""

    sql: str
    type: Any


class ColumnSources(Mapping[str, ColumnSource]):
    """Columns by the names of attributes; a name inside a map is its value under the key."""

    def __init__(self, columns: Mapping[str, ColumnSource]) -> None:
        self._columns = columns

    def __getitem__(self, name: str) -> ColumnSource:
        found = self._columns.get(name)
        if found is not None:
            return found
        place = len(name)
        while (place := name.rfind(".", 0, place)) > 0:
            outer = self._columns.get(name[:place])
            if outer is not None and isinstance(outer.type, T.MapType):
                return _inside(outer, name[place + 1 :])
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def _inside(outer: ColumnSource, key: str) -> ColumnSource:
    """The value of a map; what lies deeper is a field of it."""
    value = outer.type.valueType
    if isinstance(value, T.StructType | T.MapType) and "." in key:
        first, rest = key.split(".", 1)
        inner = ColumnSource(f"{outer.sql}[{value_sql(first)}]", value)
        if isinstance(value, T.MapType):
            return _inside(inner, rest)
        if rest in value.names:
            quoted = "`" + rest.replace("`", "``") + "`"
            return ColumnSource(f"{inner.sql}.{quoted}", value[rest].dataType)
        raise KeyError(key)
    return ColumnSource(f"{outer.sql}[{value_sql(key)}]", value)


@dataclass(frozen=True, slots=True)
class Typed:
    """The SQL of an expression, and what type its values have."""

    sql: str
    kind: str
    type: Any = None
    """Spark's, of arrays, structs and maps."""
    constant: Any = None
    """The value of a literal; None of anything else."""

    def with_sql(self, sql: str) -> Typed:
        return replace(self, sql=sql, constant=None)


Write: TypeAlias = Callable[[list[Typed]], Typed]
"""From the typed arguments of a function to its call; it may raise NotOnSpark."""
NOTHING = Typed("NULL", NULL)


def of_source(source: ColumnSource) -> Typed:
    """A column; integers have 64 bits."""
    kind = kind_of(source.type)
    is_narrow = isinstance(source.type, NARROW)
    return Typed(f"CAST({source.sql} AS BIGINT)" if is_narrow else source.sql, kind, source.type)


def common_kind(parts: list[Typed]) -> str | None:
    """The type of a choice among these; None: they have none in common, and nothing is cast."""
    kinds = {part.kind for part in parts} - {NULL}
    if not kinds:
        return NULL
    if len(kinds) == 1:
        return kinds.pop()
    if kinds <= NUMBERS:
        return arithmetic_kind(kinds)
    return TIME if kinds <= INSTANTS else None


def arithmetic_kind(kinds: set[str]) -> str:
    """The type of what is computed of numbers of these types."""
    if DOUBLE in kinds or (FLOAT in kinds and len(kinds) > 1):
        return DOUBLE
    return DECIMAL if DECIMAL in kinds else next(iter(kinds))


def listed(parts: Iterable[Typed]) -> str:
    return ", ".join(part.sql for part in parts)


def require(parts: Iterable[Typed], kinds: Iterable[str]) -> None:
    for part in parts:
        if part.kind not in kinds:
            raise NotOnSpark(f"{part.kind} is cast nowhere")
