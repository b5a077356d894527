"""What a message is in a DataFrame: decided and checked on the driver, from the schema.

    layout       column                                       what workers get
    wide         every column an attribute, NULL = not there  those that the table asks about, and
                                                              shared expressions, which Spark computes
    json         string: one JSON object                      the string
    map          map<string, X>, X as a wide column           the map
    variant      VARIANT: one object                          its JSON, written by the engine
    attributes   array<struct<name, type, value>>, texts      the array

Structs of wide columns are flattened with dots; of a map those keys are sent that predicates ask
about, as `column.key`. The type of a single column says its layout. A message that is NULL has no
attributes. Columns that no predicate asks about are not sent, so their types do not matter.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from palio.errors import InvalidValue
from palio.matching.expressions import TableExpressions
from palio.model.expressions.foreign import is_foreign
from palio.model.expressions.names import attributes_of, expression_of, is_computed, names_read
from palio.model.near_names import missing_names, unlike_types
from palio.spark.expression_types import (
    ARRAY,
    BOOL,
    DATE,
    NUMBERS,
    STRING,
    TIME,
    ColumnSource,
    ColumnSources,
    kind_of,
)
from palio.spark.expressions import computed_columns, refuse_foreign
from palio.spark.variants import json_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WIDE_MAX = 200  # columns; beyond, one JSON string travels to Python several times as fast

_VALUES = (
    T.BooleanType, T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType,
    T.StringType, T.CharType, T.VarcharType, T.TimestampType, T.DateType, T.NullType,
    T.DecimalType, T.BinaryType,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MessageColumns:
    """The columns to send to workers: one, or the attributes that `names` says."""

    columns: tuple[Column, ...]
    names: tuple[str, ...] | None = None


def messages_of(
    df: DataFrame,
    asked: TableExpressions,
    *,
    columns: Sequence[str] | None = None,
    json: str | None = None,
    map: str | None = None,
    variant: str | None = None,
    attributes: str | None = None,
    by_worker: bool = False,
) -> MessageColumns:
    """What to send to workers, for a table whose predicates ask for these attributes and expressions."""
    chosen = {"json": json, "map": map, "variant": variant, "attributes": attributes}
    given = [(layout, column) for layout, column in chosen.items() if column is not None]
    if len(given) > 1 or (given and columns is not None):
        raise InvalidValue(
            "the messages are in one place: choose one of columns, json, map, variant, attributes"
        )
    if not given:
        return _wide(df, asked, columns, by_worker=by_worker)
    layout, column = given[0]
    refuse_foreign(asked.shared, f"{layout}=")
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


def _wide(
    df: DataFrame, asked: TableExpressions, columns: Sequence[str] | None, *, by_worker: bool
) -> MessageColumns:
    """With `by_worker` Spark computes only those expressions that nobody else can."""
    if isinstance(columns, str):
        raise InvalidValue(f"columns is a list of names, not the text {columns!r}")
    fields = df.schema.fields if columns is None else [_field(df.schema, c) for c in columns]
    leaves = [leaf for leaf in _leaves(fields) if not is_computed(leaf[0])]
    _check_names([name for name, _, _ in leaves])
    sources = ColumnSources(
        {name: ColumnSource(quoted(*path), type) for name, path, type in leaves}
    )
    shared = [n for n in asked.shared if not by_worker or is_foreign(expression_of(n))]
    computed = computed_columns(df, shared, sources)
    left = [attributes_of(expression_of(name)) for name in asked.shared if name not in computed]
    names = asked.plain.union(asked.attributes, *left)
    known: dict[str, Column] = {}
    for name, path, type in leaves:
        if isinstance(type, T.MapType) and _is_text(type.keyType):
            for key, column, kind in _of_keys(names, name, F.col(quoted(*path)), type):
                _check(key, kind)
                known[key] = F.coalesce(known[key], column) if key in known else column
            continue
        if not _asks(names, name, type):
            continue
        _check(name, type)
        if not isinstance(type, T.NullType):
            known[name] = _sent(F.col(quoted(*path)), type)
    for name, path in _outer(fields):
        if name in names and name not in known:
            known[name] = _presence(F.col(quoted(*path)))
    known |= {name: column for name, (column, _) in computed.items()}
    kinds = {name: source.type for name, source in sources.items() if name in asked.compared}
    _warn_of_types(asked.compared, kinds | {name: type for name, (_, type) in computed.items()})
    _warn(names_read([*names, *asked.shared]).difference(known), sources, len(known))
    if not known:  # so that workers see how many rows there are; NULL is no attribute
        known["_"] = F.lit(None).cast("boolean")
    return MessageColumns(tuple(known.values()), tuple(known))


def _outer(
    fields: Iterable[T.StructField], above: tuple[str, ...] = ()
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The structs, and the maps, that are attributes by what is in them."""
    for field in fields:
        path = (*above, field.name)
        if isinstance(field.dataType, T.StructType):
            yield from _outer(field.dataType.fields, path)
        if isinstance(field.dataType, T.StructType | T.MapType):
            yield ".".join(path), path


def _presence(column: Column) -> Column:
    """Bytes where it is there: IS NOT NULL as in a WHERE clause, and no other constraint selects it."""
    return F.when(column.isNotNull(), F.expr("X''"))


def _sent(column: Column, type: Any) -> Column:
    """A date begins in the zone of the session, as in a WHERE clause that compares it with an instant."""
    return column.cast("timestamp") if isinstance(type, T.DateType) else column


def _check_names(names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InvalidValue(
                f"the column {name!r} is there twice", remedy="rename one of the two"
            )
        seen.add(name)


def _check(name: str, type: Any) -> None:
    if reason := _why_not(type):
        raise InvalidValue(
            f"column {name!r} has the type {type.simpleString()}, which no attribute has",
            remedy=reason,
        )


def _of_keys(
    names: frozenset[str], name: str, column: Column, type: T.MapType
) -> Iterator[tuple[str, Column, Any]]:
    """The attributes inside a map that predicates ask about: `name.key`, and what is inside its
    value. The key of an object may have dots."""
    asked = [known.removeprefix(f"{name}.") for known in names if known.startswith(f"{name}.")]
    inner = type.valueType
    if not isinstance(inner, T.StructType | T.MapType):
        for key in asked:
            yield f"{name}.{key}", F.try_element_at(column, F.lit(key)), inner
        return
    for key in sorted({rest[:at] for rest in asked for at, c in enumerate(rest) if c == "."}):
        value, above = F.try_element_at(column, F.lit(key)), f"{name}.{key}"
        if isinstance(inner, T.MapType):
            yield from _of_keys(names, above, value, inner)
            continue
        for leaf, path, kind in _leaves(inner.fields):
            if f"{above}.{leaf}" in names:
                found = value
                for field in path:
                    found = found.getField(field)
                yield f"{above}.{leaf}", found, kind


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
    inside = isinstance(type, T.MapType | T.VariantType)
    return inside and any(known.startswith(f"{name}.") for known in names)


def is_attribute(type: Any) -> bool:
    """May a wide column of this type be an attribute?"""
    return not _why_not(type)


def _why_not(type: Any) -> str:
    """What to do about a type that no attribute has; nothing when one has it."""
    if getattr(type, "collation", "UTF8_BINARY") != "UTF8_BINARY":
        return "strings are compared by their bytes here: cast it to string collate UTF8_BINARY"
    if isinstance(type, _VALUES):
        return ""
    if isinstance(type, T.ArrayType):
        return _why_not(type.elementType)
    if isinstance(type, T.StructType):  # in an array or a map
        return next(filter(None, (_why_not(field.dataType) for field in type.fields)), "")
    if isinstance(type, T.TimestampNTZType):
        return "it has no time zone: cast it to timestamp, which takes the zone of the session"
    if isinstance(type, T.MapType):
        if not _is_text(type.keyType):
            return "the keys of a map are strings: transform_keys makes them so"
        return _why_not(type.valueType)
    if isinstance(type, T.VariantType):
        return "choose it as the message (variant=), or take its values out into columns"
    return "cast it to a boolean, an integer, a double, a string, a date or a timestamp"


_TYPE_WORDS = {
    BOOL: "bool", STRING: "string", TIME: "time", DATE: "time", ARRAY: "array",
    **dict.fromkeys(NUMBERS, "number"),
}  # fmt: skip


def _warn_of_types(compared: Mapping[str, frozenset[str]], types: Mapping[str, Any]) -> None:
    """Of columns, and of what Spark computes, whose type no literal has that they are compared with."""
    unlike = []
    for name, type in sorted(types.items()):
        found = _TYPE_WORDS.get(kind_of(type))
        if found is not None and compared.get(name) and found not in compared[name]:
            unlike.append(unlike_types(name, compared[name], found))
    if unlike:
        more = f" (and {len(unlike) - 1} more such)" if len(unlike) > 1 else ""
        warnings.warn(f"{unlike[0]}{more}", stacklevel=5)


def _array_around(name: str, sources: ColumnSources) -> str:
    """The array whose elements would have it: lines of lines.sku."""
    parts = name.split(".")
    before = (".".join(parts[:at]) for at in range(1, len(parts)))
    return next(
        (one for one in before if one in sources and isinstance(sources[one].type, T.ArrayType)), ""
    )


def _warn(names: frozenset[str], sources: ColumnSources, sent: int) -> None:
    lowered = {name.lower(): name for name in sources}
    missing = sorted(name for name in names if name not in sources)
    unlike = [name for name in missing if name.lower() not in lowered]
    for name in missing:
        if other := lowered.get(name.lower()):
            warnings.warn(
                f"predicates ask about {name!r}, and the DataFrame has {other!r}: "
                "names are case-sensitive in Palio, so these are two attributes",
                stacklevel=5,
            )
    inside = [name for name in unlike if _array_around(name, sources)]
    if inside:
        name = inside[0]
        array = _array_around(name, sources)
        rest = name.removeprefix(f"{array}.")
        warnings.warn(
            f"predicates ask about {name!r}, and {array!r} is an array: for every row it is NULL; "
            f"{array}[0].{rest} is that of an element, exists({array}, each -> each.{rest} = 'x') asks all",
            stacklevel=5,
        )
        unlike = [name for name in unlike if name not in inside]
    if unlike:
        warnings.warn(
            f"predicates ask about {missing_names(unlike, sources)}, and the DataFrame has no such column: "
            "for every row it is NULL",
            stacklevel=5,
        )
    if sent > WIDE_MAX:
        warnings.warn(
            f"{sent} columns travel to Python for every row; one string column of JSON objects "
            "(json=) is several times as fast when most are NULL",
            stacklevel=5,
        )
