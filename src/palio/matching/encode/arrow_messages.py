"""Messages in Arrow for the kernels: wide columns, a map column, or a column of attribute lists.

    encode_wide         each column is an attribute, NULL = not there; a struct is flattened with
                        dots, a map column by its keys; columns whose names the table does not know
                        are not touched
    encode_map          map<string, X>, X any type that a wide column may have (`arrow_lists`)
    encode_attributes   list<struct<name, type, value>>, all three texts, as workloads have them

The answer is what `messages.encode_messages` gives for the same messages; the attributes of a row
may come in another order. A column of a type that holds no attribute (a time of day, an interval) is
refused only when the table knows its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from palio.errors import InvalidValue
from palio.matching.encode import attribute_kernels
from palio.matching.encode.arrays import EncodedMessages
from palio.matching.encode.arrow_batches import empty_batch, fill, settle_batch
from palio.matching.encode.arrow_columns import RawColumn, read_column, validity
from palio.matching.encode.arrow_lists import either, encode_attributes, encode_map, key_columns
from palio.matching.encode.columns import Ints

__all__ = ["encode_attributes", "encode_map", "encode_wide"]

_BLOCK_VALUES = 1 << 16  # so many values are laid out at a time, so that they stay in the cache


def encode_wide(names: Mapping[str, int], table: pa.Table | pa.RecordBatch) -> EncodedMessages:
    """A batch from the rows of a pyarrow Table or RecordBatch."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        raise InvalidValue(
            f"rows are read from a pyarrow Table or RecordBatch, not a {type(table).__name__}",
            remedy="pyarrow.Table.from_pandas(frame) or from_pylist(dicts) makes one",
        )
    columns = _known_columns(names, table)
    rows = table.num_rows
    row_at = np.zeros(rows + 1, np.int64)
    np.cumsum(_counts(columns, rows), out=row_at[1:])
    batch, bases = empty_batch(row_at, columns)
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
            fill(batch, column, base, array, here, first)
        settle_batch(batch, int(row_at[first]), int(row_at[last]))
        first = last
    return batch


# ---- wide columns


def _known_columns(names: Mapping[str, int], table: pa.Table) -> list[RawColumn]:
    """The columns that hold attributes of the table."""
    found = leaves(names, table)
    read = (read_column(name, found[name]) for name in found if name in names)
    return [column for column in read if column is not None]


def leaves(names: Mapping[str, int], table: pa.Table) -> dict[str, Any]:
    """The columns, a struct's fields one by one, and those keys of a map that the table asks about."""
    found: dict[str, Any] = {}
    keyed: set[str] = set()
    stack = [(field.name, table.column(i), False) for i, field in enumerate(table.schema)][::-1]
    while stack:
        name, column, is_keyed = stack.pop()
        if pa.types.is_struct(column.type):
            fields = [column.type.field(i).name for i in range(column.type.num_fields)]
            parts = column.flatten() if fields else []
            inner = zip(fields, parts, strict=True)
            stack += [(f"{name}.{field}", values, is_keyed) for field, values in inner][::-1]
        elif is_keyed and pa.types.is_map(column.type):
            stack += _of_keys(names, name, column)
        elif name not in found:
            found[name] = column
            if is_keyed:
                keyed.add(name)
            elif pa.types.is_map(column.type):
                stack += _of_keys(names, name, column)
        elif is_keyed and name in keyed:
            found[name] = either(name, found[name], column)
        else:
            raise InvalidValue(f"the column {name!r} is there twice; rename one of the two")
    return {name: column for name, column in found.items() if not pa.types.is_map(column.type)}


def _of_keys(names: Mapping[str, int], name: str, column: Any) -> list[tuple[str, Any, bool]]:
    asked = [known for known in names if known.startswith(f"{name}.")]
    return [(*one, True) for one in key_columns(name, column, asked)] if asked else []


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
