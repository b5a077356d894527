"""Messages from the rows of an Arrow table: a column is an attribute, NULL is its absence.

    column type                            attribute
    bool                                   bool
    int8 .. int64, uint8 .. uint64         int; a uint64 above 2^63 - 1 is an error
    float16, float32, float64              float
    string, large_string, string_view      string
    timestamp with a zone                  time; finer than a microsecond is an error
    date32, date64                         time, the first instant of the day in UTC
    dictionary                             as its values
    struct                                 one attribute a field, `column.field`
    null                                   none

Everything else is an error that names the column. Rows are counted from 0. pyarrow is not
imported: whoever has a table has it already. Times are read as the integers behind them, since
pyarrow needs pandas to show nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from palio.errors import InvalidValue
from palio.model.message import Message
from palio.model.values import INT_MAX, TIME_MAX, TIME_MIN, Value, as_name, instant_from_micros

_PIECE_ROWS = 4096  # so many rows at a time become Python objects


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column, or a field inside a struct, that holds one attribute."""

    name: str
    path: tuple[int, ...]  # of the column, then of the fields inside it
    encoded: bool = False  # as a dictionary
    storage: str | None = None  # the Arrow type to read it as
    convert: Callable[[Any], Value] | None = None


def messages(table: Any) -> Iterator[Message]:
    """The rows of a pyarrow Table or RecordBatch as messages.

    A column that no attribute can hold raises InvalidValue at once; a value that does not fit
    raises it when its row is reached.
    """
    if not hasattr(table, "schema") or not hasattr(table, "columns"):
        raise InvalidValue(
            f"rows are read from a pyarrow Table or RecordBatch, not a {type(table).__name__}"
        )
    return _rows(table, _leaves(table.schema))


def _rows(table: Any, leaves: list[_Leaf]) -> Iterator[Message]:
    names = [leaf.name for leaf in leaves]
    first = 0
    for batch in table.to_batches() if hasattr(table, "to_batches") else [table]:
        if not leaves:
            yield from (Message() for _ in range(batch.num_rows))
        columns = [_values(leaf, batch.column(leaf.path[0]), first) for leaf in leaves]
        for row in zip(*columns, strict=True):
            yield Message(dict(zip(names, row, strict=True)))
        first += batch.num_rows


def _leaves(schema: Any) -> list[_Leaf]:
    """The attributes of a schema, each of them once."""
    leaves: dict[str, _Leaf] = {}
    stack: list[tuple[str, tuple[int, ...], Any]] = []
    stack += [(field.name, (i,), field.type) for i, field in enumerate(schema)][::-1]
    while stack:
        name, path, kind = stack.pop()
        if str(kind).startswith("struct<"):
            fields = [kind.field(i) for i in range(kind.num_fields)]
            inner = [(f"{name}.{f.name}", (*path, i), f.type) for i, f in enumerate(fields)]
            stack += inner[::-1]
            continue
        if as_name(name) in leaves:
            raise InvalidValue(
                f"the column {name!r} is there twice", remedy="rename one of the two"
            )
        leaves[name] = _leaf(name, path, kind)
    return list(leaves.values())


def _leaf(name: str, path: tuple[int, ...], kind: Any) -> _Leaf:
    """How to read a column of this type."""
    encoded = str(kind).startswith("dictionary<")
    inner = kind.value_type if encoded else kind
    shown = str(inner)
    if shown.startswith("timestamp["):
        if not inner.tz:
            raise InvalidValue(
                f"column {name!r}: the type {kind} has no time zone",
                remedy="if it is in UTC, cast it to timestamp('us', tz='UTC')",
            )
        return _Leaf(name, path, encoded, "int64", _INSTANTS[inner.unit])
    if shown not in _READ:
        raise InvalidValue(
            f"column {name!r}: the type {kind} holds no value of an attribute",
            remedy="drop the column or "
            "cast it to bool, an integer, a float, string, date32 or a timestamp with a zone",
        )
    return _Leaf(name, path, encoded, *_READ[shown])


def _values(leaf: _Leaf, column: Any, first: int) -> Iterator[Value | None]:
    """The values of a column; `first` is the row that it begins with."""
    for field in leaf.path[1:]:
        column = column.flatten()[field]  # a field is NULL where its struct is
    try:
        entries = _objects(leaf, column.dictionary) if leaf.encoded else []
        for start in range(0, len(column), _PIECE_ROWS):
            piece = column.slice(start, _PIECE_ROWS)
            if leaf.encoded:
                indices = piece.indices.to_pylist()
                found = [None if i is None else entries[i] for i in indices]
            else:
                found = _objects(leaf, piece)
            yield from _converted(leaf, found, first + start)
    except UnicodeDecodeError as error:
        raise InvalidValue(f"a string is not UTF-8: {error}", attribute=leaf.name) from None


def _objects(leaf: _Leaf, column: Any) -> list[Any]:
    plain = column if leaf.storage is None else column.cast(leaf.storage)
    objects: list[Any] = plain.to_pylist()
    return objects


def _converted(leaf: _Leaf, found: list[Any], first: int) -> Iterator[Value | None]:
    convert = leaf.convert
    if convert is None:
        yield from found
        return
    for row, value in enumerate(found, first):
        try:
            yield None if value is None else convert(value)
        except InvalidValue as error:
            raise error.at(attribute=leaf.name, row=row) from None


def _int(value: int) -> int:
    if value > INT_MAX:
        raise InvalidValue(f"the integer {value} does not fit in 64 bits with a sign")
    return value


def _instant(micros_per_unit: int, value: int) -> datetime:
    micros = value * micros_per_unit
    if not TIME_MIN <= micros <= TIME_MAX:
        raise InvalidValue("the instant lies outside the years 1 to 9999 of UTC")
    return instant_from_micros(micros)


def _instant_of_nanos(value: int) -> datetime:
    micros, rest = divmod(value, 1000)
    if rest:
        raise InvalidValue(
            f"the instant ({value} nanoseconds) is finer than a microsecond",
            remedy="round it first",
        )
    return instant_from_micros(micros)  # 64 bits of nanoseconds end in the year 2262


_MS_PER_DAY = 86_400_000

_INSTANTS: dict[str, Callable[[Any], Value]] = {
    "s": partial(_instant, 1_000_000),
    "ms": partial(_instant, 1000),
    "us": partial(_instant, 1),
    "ns": _instant_of_nanos,
}

_READ: dict[str, tuple[str | None, Callable[[Any], Value] | None]] = {
    **dict.fromkeys(("null", "bool", "string", "large_string", "string_view"), (None, None)),
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"), (None, None)),
    "uint64": (None, _int),
    "halffloat": (None, float),  # older releases of pyarrow give numpy's scalars
    "float": (None, None),
    "double": (None, None),
    "date32[day]": ("int32", partial(_instant, _MS_PER_DAY * 1000)),
    "date64[ms]": ("int64", lambda ms: _instant(_MS_PER_DAY * 1000, ms // _MS_PER_DAY)),
}
