"""Messages in Arrow for the kernels: wide columns, a map column, or a column of attribute lists.

    encode_wide         each column is an attribute, NULL = not there; a struct is flattened with
                        dots; columns whose names the table does not know are not touched
    encode_map          map<string, X>, X any type that a wide column may have
    encode_attributes   list<struct<name, type, value>>, all three texts, as workloads have them

The answer is what `messages.encode_messages` gives for the same messages; the attributes of a row
may come in another order. Each distinct string is found once a column, by Arrow. A column of a
type that holds no value (a list, a decimal) is refused only when the table knows its name. A name
that is there twice in a message is an error, known or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from palio.errors import InvalidValue
from palio.matching.encode import attribute_kernels, codes
from palio.matching.encode.arrays import EncodedMessages
from palio.matching.encode.arrow_columns import (
    RawColumn,
    TextPool,
    is_valid,
    micros_or_raw,
    read_column,
    text_dictionary,
    validity,
)
from palio.matching.encode.columns import Ints
from palio.model.values import INT_MAX, INT_MIN, Type, instant_micros, parse_instant

_BLOCK_VALUES = 1 << 16  # so many values are laid out at a time, so that they stay in the cache


def encode_wide(names: Mapping[str, int], table: pa.Table | pa.RecordBatch) -> EncodedMessages:
    """A batch from the rows of a pyarrow Table or RecordBatch."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        raise InvalidValue(
            f"rows are read from a pyarrow Table or RecordBatch, not a {type(table).__name__}"
        )
    columns = _known_columns(names, table)
    rows = table.num_rows
    row_at = np.zeros(rows + 1, np.int64)
    np.cumsum(_counts(columns, rows), out=row_at[1:])
    batch, bases = _empty_batch(row_at, columns)
    cursor = row_at[:-1].copy()
    block = max(1024, _BLOCK_VALUES // max(1, len(columns)))
    storage = pa.Table.from_arrays(
        [column.values for column in columns], names=[str(i) for i in range(len(columns))]
    )
    at, first = np.empty(block, np.int64), 0
    for piece in storage.to_batches(max_chunksize=block):
        last = first + piece.num_rows
        here = at[: piece.num_rows]
        for column, base, array in zip(columns, bases, piece.columns, strict=True):
            number = names[column.name]
            attribute_kernels.place_column(
                *validity(array), number, cursor[first:last], here, batch.name
            )
            _fill(batch, column, base, array, here, first)
        _settle(batch, int(row_at[first]), int(row_at[last]))
        first = last
    return batch


def encode_map(names: Mapping[str, int], column: pa.Array | pa.ChunkedArray) -> EncodedMessages:
    """A batch from a column of maps from names to values; NULL is a message without attributes."""
    if not pa.types.is_map(column.type):
        raise InvalidValue(f"a map column is map<string, ...>, not {column.type}")
    return _by_chunk(names, column, _encode_map)


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
    return _by_chunk(names, column, _encode_attributes)


# ---- wide columns


def _known_columns(names: Mapping[str, int], table: pa.Table) -> list[RawColumn]:
    """The columns that hold attributes of the table; a struct's fields one by one."""
    seen: set[str] = set()
    found: list[RawColumn] = []
    stack = [(field.name, table.column(i)) for i, field in enumerate(table.schema)][::-1]
    while stack:
        name, column = stack.pop()
        if pa.types.is_struct(column.type):
            fields = [column.type.field(i).name for i in range(column.type.num_fields)]
            if fields:
                inner = zip(fields, column.flatten(), strict=True)
                stack += [(f"{name}.{field}", values) for field, values in inner][::-1]
            continue
        if name in seen:
            raise InvalidValue(f"the column {name!r} is there twice; rename one of the two")
        seen.add(name)
        if name in names:
            raw = read_column(name, column)
            if raw is not None:
                found.append(raw)
    return found


def _counts(columns: Sequence[RawColumn], rows: int) -> Ints:
    """How many attributes each row has."""
    full = sum(not column.values.null_count for column in columns)
    counts = np.full(rows, full, np.int64)
    for column in columns:
        if column.values.null_count:
            first = 0
            for chunk in column.values.chunks:
                last = first + len(chunk)
                bitmap, shift, nullable = validity(chunk)
                if nullable:
                    attribute_kernels.count_valid(bitmap, shift, counts[first:last])
                else:
                    counts[first:last] += 1
                first = last
    return counts


# ---- lists


def _by_chunk(names: Mapping[str, int], column: Any, encode: Any) -> EncodedMessages:
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    batches, first = [], 0
    for chunk in chunks:
        batches.append(encode(names, chunk, first))
        first += len(chunk)
    return batches[0] if len(batches) == 1 else concatenated(batches)


def _encode_map(names: Mapping[str, int], column: Any, first: int) -> EncodedMessages:
    begin, low, high = _extent(column)
    values = column.items.slice(low, high - low)
    texts, code = text_dictionary("the keys of a map", column.keys.slice(low, high - low))
    row_at, at, number = _place(names, column, begin, texts, code, is_valid(values), first)
    raw = read_column("the values of a map", pa.chunked_array([values]))
    batch, bases = _empty_batch(row_at, [raw] if raw else [])
    attribute_kernels.fill_names(at, code, number, batch.name)
    if raw is not None and row_at[-1]:
        try:
            _fill(batch, raw, bases[0], raw.values.chunk(0), at, 0)
        except InvalidValue:
            _blame(raw, at, begin, texts, code, first)
            raise
    _settle(batch, 0, int(row_at[-1]))
    return batch


def _blame(raw: RawColumn, at: Ints, begin: Ints, texts: Any, code: Ints, first: int) -> None:
    """Say of the first bad value of a map which row and attribute it is."""
    for entry in np.flatnonzero(at >= 0).tolist():
        row = first + int(np.searchsorted(begin, entry, "right")) - 1
        named = RawColumn(texts[int(code[entry])].as_py(), raw.type, None, scale=raw.scale)
        one = raw.values.chunk(0).slice(entry, 1)
        micros_or_raw(named, one, np.zeros(1, np.int64), row)


def _encode_attributes(names: Mapping[str, int], column: Any, first: int) -> EncodedMessages:
    begin, low, high = _extent(column)
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
    batch = _new_batch(row_at, pool)
    attribute_kernels.fill_names(at, code, number, batch.name)
    attribute_kernels.fill_mixed(at, value_code, kind, raw, batch.type, batch.floor, batch.text)
    _settle(batch, 0, int(row_at[-1]))
    return batch


def _extent(column: Any) -> tuple[Ints, int, int]:
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


# ---- batches


def concatenated(batches: Iterable[EncodedMessages]) -> EncodedMessages:
    """One batch of the rows of several, in their order."""
    parts = list(batches) or [_new_batch(np.zeros(1, np.int64), TextPool())]
    starts = np.cumsum([0, *(part.row_at[-1] for part in parts)])
    bases = np.cumsum([0, *(len(part.text_begin) - 1 for part in parts)])
    bytes_at = np.cumsum([0, *(part.text_begin[-1] for part in parts)])
    shifted = [
        np.where(part.text >= 0, part.text + base, -1).astype(np.int32)
        for part, base in zip(parts, bases, strict=False)
    ]
    ends = [part.text_begin[1:] + base for part, base in zip(parts, bytes_at, strict=False)]
    rows = [part.row_at[1:] + start for part, start in zip(parts, starts, strict=False)]
    blob = np.concatenate([p.text_blob[: p.text_begin[-1]] for p in parts] + [_ONE_BYTE])
    blob.setflags(write=False)
    same = ("name", "type", "floor", "place", "float_floor", "float_place")
    return EncodedMessages(
        row_at=np.concatenate([_ZERO, *rows]),
        text=np.concatenate(shifted),
        text_blob=blob,
        text_begin=np.concatenate([_ZERO, *ends]),
        **{key: np.concatenate([getattr(part, key) for part in parts]) for key in same},
    )


_ZERO = np.zeros(1, np.int64)
_ONE_BYTE = np.zeros(1, np.uint8)


def _new_batch(row_at: Ints, pool: TextPool) -> EncodedMessages:
    """Room for the attributes of these rows."""
    size = int(row_at[-1])
    return EncodedMessages(
        row_at=row_at,
        name=np.empty(size, np.int32),
        type=np.empty(size, np.uint8),
        floor=np.empty(size, np.int64),
        place=np.empty(size, np.uint8),
        float_floor=np.empty(size, np.int64),
        float_place=np.empty(size, np.uint8),
        text=np.empty(size, np.int32),
        text_blob=pool.blob(),
        text_begin=pool.begin(),
    )


def _empty_batch(row_at: Ints, columns: Iterable[RawColumn]) -> tuple[EncodedMessages, list[int]]:
    """Room for the attributes of columns, and where the strings of each begin."""
    pool = TextPool()
    bases = [pool.add(column.texts) if column.texts is not None else 0 for column in columns]
    return _new_batch(row_at, pool), bases


def _fill(
    batch: EncodedMessages, column: RawColumn, base: int, array: Any, at: Ints, first: int
) -> None:
    """Write a piece of a column to its places."""
    raw = micros_or_raw(column, array, at, first)
    if column.type == codes.STRING:
        attribute_kernels.fill_texts(at, raw, base, batch.type, batch.floor, batch.text)
    else:
        attribute_kernels.fill_values(at, raw, column.type, batch.type, batch.floor, batch.text)


def _settle(batch: EncodedMessages, begin: int, end: int) -> None:
    attribute_kernels.settle(
        begin, end, batch.type, batch.floor, batch.place, batch.float_floor, batch.float_place
    )
