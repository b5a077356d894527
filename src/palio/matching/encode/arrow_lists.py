"""Messages in Arrow lists for the kernels: a map column, or a column of attribute lists.

Each distinct name, and each distinct string, is found once a column, by Arrow. A name that is there
twice in a message is an error, known or not; values are read where the table knows their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from palio.errors import InvalidValue
from palio.matching.encode import attribute_kernels, codes
from palio.matching.encode.arrays import EncodedMessages
from palio.matching.encode.arrow_arrays import is_list
from palio.matching.encode.arrow_batches import (
    by_chunk,
    empty_batch,
    fill,
    new_batch,
    settle_batch,
)
from palio.matching.encode.arrow_columns import (
    RawColumn,
    TextPool,
    is_text,
    is_valid,
    micros_or_raw,
    read_column,
    text_dictionary,
)
from palio.matching.encode.columns import Ints
from palio.matching.encode.messages import BatchBuilder
from palio.model.arrays import Content
from palio.model.arrow_objects import reading
from palio.model.rows import spread
from palio.model.values import INT_MAX, INT_MIN, Type, instant_micros, parse_instant


def encode_map(names: Mapping[str, int], column: pa.Array | pa.ChunkedArray) -> EncodedMessages:
    """A batch from a column of maps from names to values; NULL is a message without attributes."""
    if not pa.types.is_map(column.type):
        raise InvalidValue(f"a map column is map<string, ...>, not {column.type}")
    return by_chunk(names, column, _encode_map)


def encode_attributes(
    names: Mapping[str, int], column: pa.Array | pa.ChunkedArray
) -> EncodedMessages:
    """A batch from a column of lists of attributes; NULL is a message without attributes.

    An attribute is a struct of name, type (bool, int, float, string or time) and value, which is
    text: true or false, 17, 2.5, any string, 2013-01-31T10:00:00Z. A NULL value is not there.
    """
    if not _is_attribute_list(column.type):
        raise InvalidValue(
            f"a column of attributes is list<struct<name, type, value>> of strings, "
            f"not {column.type}"
        )
    return by_chunk(names, column, _encode_attributes)


# ---- maps


def _encode_map(names: Mapping[str, int], column: Any, first: int) -> EncodedMessages:
    kind = column.type.item_type
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        return _encode_objects(names, column, first)
    begin, low, high = extent(column)
    values = column.items.slice(low, high - low)
    texts, code = text_dictionary("the keys of a map", column.keys.slice(low, high - low))
    row_at, at, number = _place(names, column, begin, texts, code, is_valid(values), first)
    raw = _asked_values(values, at, begin, texts, code, first) if row_at[-1] else None
    batch, bases = empty_batch(row_at, [raw] if raw else [])
    attribute_kernels.fill_names(at, code, number, batch.name)
    if raw is not None:
        try:
            fill(batch, raw, bases[0], raw.values.chunk(0), at, 0)
        except InvalidValue:
            _blame(raw, at, begin, texts, code, first)
            raise
    settle_batch(batch, 0, int(row_at[-1]))
    return batch


def _asked_values(
    values: Any, at: Ints, begin: Ints, texts: Any, code: Ints, first: int
) -> RawColumn | None:
    """The values of a map; of arrays only those that the table knows are read."""
    if is_list(values.type):
        values = values.take(pa.array(np.arange(len(at)), mask=at < 0))
    try:
        return read_column("the values of a map", pa.chunked_array([values]))
    except InvalidValue as error:
        if error.row is None:
            raise
        row = first + int(np.searchsorted(begin, error.row, "right")) - 1
        raise error.at(attribute=texts[int(code[error.row])].as_py(), row=row) from None


def _encode_objects(names: Mapping[str, int], column: Any, first: int) -> EncodedMessages:
    """Maps of structs, or of maps: objects, flattened with dots, one message at a time."""
    read = reading("the values of a map", column.type)
    builder = BatchBuilder(names)
    for row, pairs in enumerate(read.raw(column), first):
        found: dict[str, Content] = {}
        try:
            if pairs is not None:
                spread("", pairs if read.convert is None else read.convert(pairs), found)
        except InvalidValue as error:
            raise error.at(row=row) from None
        builder.add(found)
    return builder.batch()


def key_columns(name: str, column: Any, asked: Iterable[str]) -> list[tuple[str, pa.ChunkedArray]]:
    """The values of a map column under some keys, a column each, named as attributes.

    `asked` are names of attributes that begin with that of the column. A key of maps that hold
    objects may be any part of such a name.
    """
    kind = column.type
    if not is_text(kind.key_type):
        raise InvalidValue(f"column {name!r}: the keys of a map are strings, not {kind.key_type}")
    keys = {one.removeprefix(f"{name}.") for one in asked}
    if pa.types.is_struct(kind.item_type) or pa.types.is_map(kind.item_type):
        keys = {key[:at] for key in keys for at, c in enumerate(key) if c == "."}
    parts: dict[str, list[Any]] = {key: [] for key in sorted(keys)}
    first = 0
    for chunk in column.chunks:
        for key, part in zip(parts, _of_keys(name, chunk, list(parts), first), strict=True):
            parts[key].append(part)
        first += len(chunk)
    of_nothing = [pa.nulls(0, kind.item_type)]
    return [
        (f"{name}.{key}", pa.chunked_array(found or of_nothing)) for key, found in parts.items()
    ]


def either(name: str, one: Any, other: Any) -> Any:
    """Two columns of one name, which keys with dots may give: no row has both."""
    both = pc.and_(one.is_valid(), other.is_valid())
    if pc.any(both).as_py():
        row = pc.index(both, True).as_py()
        raise InvalidValue(f"the attribute {name!r} is there twice", row=row)
    return pc.coalesce(one, other)


def _of_keys(name: str, chunk: Any, keys: list[str], first: int) -> Iterator[Any]:
    begin, low, high = extent(chunk)
    texts, code = text_dictionary("the keys of a map", chunk.keys.slice(low, high - low))
    items = chunk.items.slice(low, high - low)
    if pa.types.is_string_view(items.type):
        items = items.cast(pa.large_string())  # Arrow cannot take from views
    row = np.repeat(np.arange(len(chunk)), np.diff(begin))
    code = np.where(is_valid(chunk)[row], code, -1)
    known: dict[str, list[int]] = {}
    for i, text in enumerate(texts.to_pylist()):
        known.setdefault(text, []).append(i)
    for key in keys:
        entries = np.flatnonzero(np.isin(code, known.get(key, [])))
        rows = row[entries]
        again = np.flatnonzero(rows[1:] == rows[:-1])
        if len(again):
            row_ = first + int(rows[again[0]])
            raise InvalidValue(f"the attribute {f'{name}.{key}'!r} is there twice", row=row_)
        index = np.full(len(chunk), -1)
        index[rows] = entries
        yield items.take(pa.array(index, mask=index < 0))


def _blame(raw: RawColumn, at: Ints, begin: Ints, texts: Any, code: Ints, first: int) -> None:
    """Say of the first bad value of a map which row and attribute it is."""
    for entry in np.flatnonzero(at >= 0).tolist():
        row = first + int(np.searchsorted(begin, entry, "right")) - 1
        named = RawColumn(texts[int(code[entry])].as_py(), raw.type, None, scale=raw.scale)
        one = raw.values.chunk(0).slice(entry, 1)
        micros_or_raw(named, one, np.zeros(1, np.int64), row)


# ---- attribute lists


def _encode_attributes(names: Mapping[str, int], column: Any, first: int) -> EncodedMessages:
    begin, low, high = extent(column)
    parts = _fields(column.values.slice(low, high - low))
    name_texts, code = text_dictionary("the names of attributes", parts["name"])
    value_texts, value_code = text_dictionary("the values of attributes", parts["value"])
    row_at, at, number = _place(names, column, begin, name_texts, code, value_code >= 0, first)
    kind = _kinds(parts["type"], at, begin, first)
    used = np.zeros((len(_READ) + 1, len(value_texts)), np.bool_)
    attribute_kernels.mark_used(at, value_code, kind, used)
    raw = np.zeros(used.shape, np.int64)
    strings = np.flatnonzero(used[codes.STRING])
    raw[codes.STRING, strings] = np.arange(len(strings))
    for type, read in _READ.items():
        domain = codes.DOMAIN[type]
        positions = np.flatnonzero(used[domain])
        texts = value_texts.take(pa.array(positions)).to_pylist()
        for position, text in zip(positions.tolist(), texts, strict=True):
            try:
                raw[domain, position] = read(text)
            except ValueError as error:
                entry = np.flatnonzero((at >= 0) & (kind == domain) & (value_code == position))[0]
                name = name_texts[int(code[entry])].as_py()
                row = first + int(np.searchsorted(begin, entry, "right")) - 1
                raise InvalidValue(str(error), attribute=name, row=row) from None
    pool = TextPool()
    pool.add(value_texts.take(pa.array(strings)))
    batch = new_batch(row_at, pool)
    attribute_kernels.fill_names(at, code, number, batch.name)
    attribute_kernels.fill_mixed(at, value_code, kind, raw, batch.type, batch.floor, batch.text)
    settle_batch(batch, 0, int(row_at[-1]))
    return batch


def extent(column: Any) -> tuple[Ints, int, int]:
    """The offsets of a list or map array, from 0, and the part of its items that they span."""
    if not len(column):
        return np.zeros(1, np.int64), 0, 0
    begin = column.offsets.to_numpy().astype(np.int64)
    return begin - begin[0], int(begin[0]), int(begin[-1])


def _place(
    names: Mapping[str, int],
    column: Any,
    begin: Ints,
    texts: Any,
    code: Ints,
    valid: Ints,
    first: int,
) -> tuple[Ints, Ints, Ints]:
    """Where rows begin, where each entry goes, and the table's number of each distinct name."""
    known = texts.to_pylist()
    distinct = {name: i for i, name in enumerate(known)}
    if len(distinct) < len(known):  # a dictionary may hold an entry twice
        same = np.array([distinct[name] for name in known], np.int64)
        code = np.where(code >= 0, same[code], -1)
    number = np.array([names.get(name, -1) for name in known] or [-1], np.int64)
    row_at = np.zeros(len(column) + 1, np.int64)
    at = np.full(len(code), -1, np.int64)
    last = np.zeros(len(known) + 1, np.int64)
    bad = attribute_kernels.place_entries(
        begin, is_valid(column), code, valid, number, last, row_at, at
    )
    if bad != attribute_kernels.GOOD:
        row = first + int(np.searchsorted(begin, bad, "right")) - 1
        if code[bad] < 0:
            raise InvalidValue("an attribute has no name", row=row)
        raise InvalidValue(f"the attribute {known[code[bad]]!r} is there twice", row=row)
    empty = distinct.get("")
    if empty is not None:
        nameless = np.flatnonzero((code == empty) & valid)
        if len(nameless):
            row = first + int(np.searchsorted(begin, nameless[0], "right")) - 1
            raise InvalidValue("an attribute's name is empty", row=row)
    return row_at, at, number


def _is_attribute_list(kind: Any) -> bool:
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    item = kind.value_type
    return bool(
        pa.types.is_struct(item)
        and {"name", "type", "value"} <= {item.field(i).name for i in range(item.num_fields)}
    )


def _fields(structs: Any) -> dict[str, Any]:
    """The fields of a struct array; a field is NULL where its struct is."""
    kind = structs.type
    fields = [kind.field(i).name for i in range(kind.num_fields)]
    return dict(zip(fields, structs.flatten(), strict=True))


def _kinds(types: Any, at: Ints, begin: Ints, first: int) -> Ints:
    """The codes of the attributes' types."""
    texts, code = text_dictionary("the types of attributes", types)
    known = {type.value: codes.DOMAIN[type] for type in Type}
    lookup = np.array([*(known.get(text, -1) for text in texts.to_pylist()), -1], np.int64)
    kind = lookup[code]  # the last one is for NULL
    wrong = np.flatnonzero((at >= 0) & (kind < 0))
    if len(wrong):
        entry = int(wrong[0])
        row = first + int(np.searchsorted(begin, entry, "right")) - 1
        shown = repr(texts[int(code[entry])].as_py()) if code[entry] >= 0 else "NULL"
        raise InvalidValue(
            f"{shown} is not the type of an attribute",
            row=row,
            remedy=f"there are {', '.join(known)}",
        )
    return kind


def _read_bool(text: str) -> int:
    if text not in ("true", "false"):
        raise ValueError(f"a bool is true or false, not {text!r}")
    return int(text == "true")


def _read_int(text: str) -> int:
    value = int(text)
    if not INT_MIN <= value <= INT_MAX:
        raise ValueError(f"the integer {text} does not fit in 64 bits")
    return value


def _read_float(text: str) -> int:
    return int(np.float64(float(text)).view(np.int64))


_READ: dict[Type, Callable[[str], int]] = {
    Type.BOOL: _read_bool,
    Type.INT: _read_int,
    Type.FLOAT: _read_float,
    Type.TIME: lambda text: instant_micros(parse_instant(text)),
}
