"""Messages from the rows of an Arrow table: a column is an attribute, NULL is its absence.

    column type                            attribute
    bool                                   bool
    int8 .. int64, uint8 .. uint64         int; a uint64 above 2^63 - 1 is an error
    float16, float32, float64              float
    string, large_string, string_view      string
    timestamp with a zone                  time; finer than a microsecond is an error
    date32, date64                         time, the first instant of the day in UTC
    decimal                                int where it is integral and fits, else float
    uuid                                   string
    list, large_list, fixed_size_list      array
    binary                                 bytes
    dictionary, extension                  as its values, as its storage
    struct                                 one attribute a field, `column.field`
    map with strings as keys               one attribute a key, `column.key`
    null                                   none

Everything else is an error that names the column, if it is asked for. Rows are counted from 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from palio.errors import InvalidValue
from palio.model.arrays import Content, JsonObject, as_content
from palio.model.arrow_objects import ArrowReading, reading
from palio.model.expressions.decimals import Exact
from palio.model.long_decimals import DIGITS_MAX
from palio.model.message import Message
from palio.model.values import as_name

_PIECE_ROWS = 4096  # so many rows at a time become Python objects


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A column, or a field inside a struct, that holds one attribute, or a map."""

    name: str
    path: tuple[int, ...]  # of the column, then of the fields inside it
    reading: ArrowReading
    is_map: bool = False
    encoded: bool = False  # as a dictionary
    is_asked: bool = True  # otherwise a value that no attribute can have is left out
    digits: tuple[int, int] | None = None  # precision and scale of a decimal


def messages(table: Any, asked: Collection[str] | None = None) -> Iterator[Message]:
    """The rows of a pyarrow Table or RecordBatch as messages.

    A column that no attribute can hold raises InvalidValue at once; a value that does not fit
    raises it when its row is reached. If `asked` names attributes, such columns and values of other
    names are left out instead.
    """
    if not hasattr(table, "schema") or not hasattr(table, "columns"):
        raise InvalidValue(
            f"rows are read from a pyarrow Table or RecordBatch, not a {type(table).__name__}",
            remedy="pyarrow.Table.from_pandas(frame) or from_pylist(dicts) makes one",
        )
    return _rows(table, _leaves(table.schema, asked))


def _rows(table: Any, leaves: list[_Leaf]) -> Iterator[Message]:
    names = [leaf.name for leaf in leaves]
    maps = [i for i, leaf in enumerate(leaves) if leaf.is_map]
    decimals = [leaf for leaf in leaves if leaf.digits]
    first = 0
    for batch in table.to_batches() if hasattr(table, "to_batches") else [table]:
        if not leaves:
            yield from (Message() for _ in range(batch.num_rows))
        columns = [_contents(leaf, batch.column(leaf.path[0]), first) for leaf in leaves]
        exact = _exact(decimals, batch)
        for number, row in enumerate(zip(*columns, strict=True)):
            found = {
                name: value for name, value in zip(names, row, strict=True) if value is not None
            }
            for i in maps:
                spread(names[i], found.pop(names[i], ()), found)
            yield Message.of_checked(found, exact[number] if exact else None)
        first += batch.num_rows


def _exact(leaves: list[_Leaf], batch: Any) -> list[dict[str, Exact]]:
    """The decimals of each row, or nothing where no column has any."""
    found: list[dict[str, Exact]] = [{} for _ in range(batch.num_rows)] if leaves else []
    for leaf in leaves:
        assert leaf.digits is not None
        for row, value in enumerate(_column(leaf, batch.column(leaf.path[0])).to_pylist()):
            if value is not None:
                found[row][leaf.name] = Exact(value, *leaf.digits)
    return found


def spread(above: str, pairs: Iterable[tuple[str, Any]], found: dict[str, Content]) -> None:
    """The entries of a map, and of objects in it, as attributes; `above` is the name of the map."""
    stack = [(above, pairs)]
    while stack:
        path, entries = stack.pop()
        for key, value in entries:
            name = f"{path}.{key}" if path else as_name(key)
            if isinstance(value, JsonObject):
                stack.append((name, value))
            elif name in found:
                raise InvalidValue(f"the attribute {name!r} is there twice")
            elif value is not None:
                found[name] = as_content(name, value)


def _leaves(schema: Any, asked: Collection[str] | None) -> list[_Leaf]:
    """The attributes of a schema, each of them once."""
    leaves: dict[str, _Leaf] = {}
    seen: set[str] = set()
    stack: list[tuple[str, tuple[int, ...], Any]] = []
    stack += [(field.name, (i,), field.type) for i, field in enumerate(schema)][::-1]
    while stack:
        name, path, kind = stack.pop()
        if str(kind).startswith("struct<"):
            fields = [kind.field(i) for i in range(kind.num_fields)]
            inner = [(f"{name}.{f.name}", (*path, i), f.type) for i, f in enumerate(fields)]
            stack += inner[::-1]
            continue
        if as_name(name) in seen:
            raise InvalidValue(
                f"the column {name!r} is there twice", remedy="rename one of the two"
            )
        seen.add(name)
        is_asked = asked is None or name in asked or _asks_inside(asked, name, kind)
        try:
            leaves[name] = _leaf(name, path, kind, is_asked)
        except InvalidValue:
            if is_asked:
                raise
    return list(leaves.values())


def _asks_inside(asked: Collection[str], name: str, kind: Any) -> bool:
    return str(kind).startswith("map<") and any(one.startswith(f"{name}.") for one in asked)


def _leaf(name: str, path: tuple[int, ...], kind: Any, is_asked: bool) -> _Leaf:
    """How to read a column of this type."""
    encoded = str(kind).startswith("dictionary<")
    is_map = str(kind).startswith("map<")
    inner = kind.value_type if encoded else kind
    is_exact = str(inner).startswith("decimal") and inner.precision <= DIGITS_MAX
    digits = (inner.precision, inner.scale) if is_exact and inner.scale >= 0 else None
    return _Leaf(name, path, reading(name, inner), is_map, encoded, is_asked, digits)


def _column(leaf: _Leaf, column: Any) -> Any:
    for field in leaf.path[1:]:
        column = column.flatten()[field]  # a field is NULL where its struct is
    return column


def _contents(leaf: _Leaf, column: Any, first: int) -> Iterator[Any]:
    """What a column holds; `first` is the row that it begins with."""
    column = _column(leaf, column)
    raw = leaf.reading.raw
    try:
        entries = raw(column.dictionary) if leaf.encoded else []
        for start in range(0, len(column), _PIECE_ROWS):
            piece = column.slice(start, _PIECE_ROWS)
            if leaf.encoded:
                indices = piece.indices.to_pylist()
                found = [None if i is None else entries[i] for i in indices]
            else:
                found = raw(piece)
            yield from _converted(leaf, found, first + start)
    except UnicodeDecodeError as error:
        raise InvalidValue(f"a string is not UTF-8: {error}", attribute=leaf.name) from None


def _converted(leaf: _Leaf, found: list[Any], first: int) -> Iterator[Any]:
    convert, is_ready = leaf.reading.convert, leaf.reading.is_plain or leaf.is_map
    if convert is None and is_ready:
        yield from found
        return
    for row, value in enumerate(found, first):
        try:
            if value is not None and convert is not None:
                value = convert(value)
            yield value if value is None or is_ready else as_content(leaf.name, value)
        except InvalidValue as error:
            if leaf.is_asked:
                raise error.at(attribute=leaf.name, row=row) from None
            yield None
