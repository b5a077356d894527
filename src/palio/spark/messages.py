"""What a message is in a DataFrame: decided and checked on the driver, from the schema.

    layout       column                                       what workers get
    wide         every column an attribute, NULL = not there  those that the table asks about
    json         string: one JSON object                      the string
    map          map<string, X>, X as a wide column           the map
    variant      VARIANT: one object                          its JSON, written by the engine
    attributes   array<struct<name, type, value>>, texts      the array

Structs of wide columns are flattened with dots. The type of a single column says its layout. A
message that is NULL has no attributes. Columns that no predicate asks about are not sent, so their
types do not matter.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from palio.errors import InvalidValue
from palio.spark.variants import json_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WIDE_MAX = 200  # columns; beyond, one JSON string travels to Python several times as fast

_VALUES = (
    T.BooleanType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType,
    T.StringType, T.CharType, T.VarcharType, T.TimestampType, T.DateType, T.NullType,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MessageColumns:
    """The columns to send to workers: one, or the attributes that `names` says."""

    columns: tuple[Column, ...]
    names: tuple[str, ...] | None = None


def messages_of(
    df: DataFrame,
    names: frozenset[str],
    *,
    columns: Sequence[str] | None = None,
    json: str | None = None,
    map: str | None = None,
    variant: str | None = None,
    attributes: str | None = None,
) -> MessageColumns:
    """What to send to workers, for a table whose predicates ask about `names`."""
    chosen = {"json": json, "map": map, "variant": variant, "attributes": attributes}
    given = [(layout, column) for layout, column in chosen.items() if column is not None]
    if len(given) > 1 or (given and columns is not None):
        raise InvalidValue(
            "the messages are in one place: choose one of columns, json, map, variant, attributes"
        )
    if not given:
        return _wide(df, names, columns)
    layout, column = given[0]
    type = _field(df.schema, column).dataType
    if not _FITS[layout](type):
        raise InvalidValue(
            f"column {column!r} has the type {type.simpleString()}",
            remedy=f"{layout}= takes {_TAKES[layout]}",
        )
    found = F.col(quoted(column))
    return MessageColumns((json_of(found) if layout == "variant" else found,))


def quoted(*path: str) -> str:
    """A column, or a field inside it, as Spark reads it whatever characters it has."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in path)


def _field(schema: T.StructType, name: str) -> T.StructField:
    found = [field for field in schema.fields if field.name == name]
    if not found:
        listed = ", ".join(schema.names) or "none"
        raise InvalidValue(f"the DataFrame has no column {name!r}", remedy=f"there are {listed}")
    return found[0]


# ---- one column


def _is_map(type: Any) -> bool:
    return isinstance(type, T.MapType) and _is_text(type.keyType) and not _why_not(type.valueType)


def _is_attributes(type: Any) -> bool:
    if not (isinstance(type, T.ArrayType) and isinstance(type.elementType, T.StructType)):
        return False
    fields = {field.name: field.dataType for field in type.elementType.fields}
    return all(name in fields and _is_text(fields[name]) for name in ("name", "type", "value"))


def _is_text(type: Any) -> bool:
    return isinstance(type, T.StringType | T.CharType | T.VarcharType)


_FITS = {
    "json": _is_text,
    "map": _is_map,
    "variant": lambda kind: isinstance(kind, T.VariantType),
    "attributes": _is_attributes,
}
_TAKES = {
    "json": "a string",
    "map": "a map<string, X>, X being a type that an attribute can have (such as string)",
    "variant": "a variant",
    "attributes": "an array<struct<name, type, value>> of strings",
}


# ---- wide columns


def _wide(df: DataFrame, names: frozenset[str], columns: Sequence[str] | None) -> MessageColumns:
    if isinstance(columns, str):
        raise InvalidValue(f"columns is a list of names, not the text {columns!r}")
    fields = df.schema.fields if columns is None else [_field(df.schema, c) for c in columns]
    known: dict[str, Column] = {}
    seen: set[str] = set()
    for name, path, type in _leaves(fields):
        if name in seen:
            raise InvalidValue(
                f"the column {name!r} is there twice", remedy="rename one of the two"
            )
        seen.add(name)
        if not _asks(names, name, type):
            continue
        if reason := _why_not(type):
            raise InvalidValue(
                f"column {name!r} has the type {type.simpleString()}, which no attribute has",
                remedy=reason,
            )
        if not isinstance(type, T.NullType):
            known[name] = F.col(quoted(*path))
    _warn(names, seen, len(known))
    if not known:  # so that workers see how many rows there are; NULL is no attribute
        known["_"] = F.lit(None).cast("boolean")
    return MessageColumns(tuple(known.values()), tuple(known))


def _leaves(
    fields: Iterable[T.StructField], above: tuple[str, ...] = ()
) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    for field in fields:
        path = (*above, field.name)
        if isinstance(field.dataType, T.StructType):
            yield from _leaves(field.dataType.fields, path)
        else:
            yield ".".join(path), path, field.dataType


def _asks(names: frozenset[str], name: str, type: Any) -> bool:
    """Do predicates ask about the column, or about something that would be inside it?"""
    if name in names:
        return True
    inside = isinstance(type, T.MapType | T.VariantType | T.ArrayType)
    return inside and any(known.startswith(f"{name}.") for known in names)


def _why_not(type: Any) -> str:
    """What to do about a type that no attribute has; nothing when one has it."""
    if getattr(type, "collation", "UTF8_BINARY") != "UTF8_BINARY":
        return "strings are compared by their bytes here: cast it to string collate UTF8_BINARY"
    if isinstance(type, _VALUES):
        return ""
    if isinstance(type, T.DecimalType):
        return f"cast it to {'bigint' if type.scale == 0 and type.precision < 19 else 'double'}"
    if isinstance(type, T.TimestampNTZType):
        return "it has no time zone: cast it to timestamp, which takes the zone of the session"
    if isinstance(type, T.ArrayType):
        return "a message has one value for a name: explode it, or join it into a string"
    if isinstance(type, T.MapType):
        return "choose it as the message (map=), or take its values out into columns"
    if isinstance(type, T.VariantType):
        return "choose it as the message (variant=), or take its values out into columns"
    return "cast it to a boolean, an integer, a double, a string, a date or a timestamp"


def _warn(names: frozenset[str], seen: set[str], sent: int) -> None:
    lowered = {name.lower(): name for name in names - seen}
    for name in sorted(seen - names):
        if name.lower() in lowered:
            warnings.warn(
                f"predicates ask about {lowered[name.lower()]!r}, and the DataFrame has {name!r}: "
                "names are case-sensitive in Palio, so these are two attributes",
                stacklevel=5,
            )
    if sent > WIDE_MAX:
        warnings.warn(
            f"{sent} columns travel to Python for every row; one string column of JSON objects "
            "(json=) is several times as fast when most are NULL",
            stacklevel=5,
        )
