"""Batches of messages as Arrow columns become them: room for attributes, filled column by column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from palio.matching.encode import attribute_kernels, codes
from palio.matching.encode.arrays import EncodedMessages
from palio.matching.encode.arrow_columns import RawColumn, TextPool, micros_or_raw
from palio.matching.encode.arrow_decimals import decimal_values
from palio.matching.encode.columns import Ints


def concatenated(batches: Iterable[EncodedMessages]) -> EncodedMessages:
    """One batch of the rows of several, in their order."""
    parts = list(batches) or [new_batch(np.zeros(1, np.int64), TextPool())]
    starts = np.cumsum([0, *(part.row_at[-1] for part in parts)])
    bases = np.cumsum([0, *(len(part.text_begin) - 1 for part in parts)])
    bytes_at = np.cumsum([0, *(part.text_begin[-1] for part in parts)])
    shifted = [
        np.where(part.text >= 0, part.text + base, part.text).astype(np.int32)
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


def new_batch(row_at: Ints, pool: TextPool) -> EncodedMessages:
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


def empty_batch(row_at: Ints, columns: Iterable[RawColumn]) -> tuple[EncodedMessages, list[int]]:
    """Room for the attributes of columns, and where the strings of each begin."""
    pool = TextPool()
    bases = [pool.add(column.texts) if column.texts is not None else 0 for column in columns]
    return new_batch(row_at, pool), bases


def fill(
    batch: EncodedMessages, column: RawColumn, base: int, array: Any, at: Ints, first: int
) -> None:
    """Write a piece of a column to its places."""
    if pa.types.is_decimal(array.type):
        raw, kinds = decimal_values(array)
        attribute_kernels.fill_typed(at, raw, kinds, batch.type, batch.floor, batch.text)
        return
    raw = micros_or_raw(column, array, at, first)
    if column.type == codes.STRING or column.type == codes.ARRAY:
        attribute_kernels.fill_texts(
            at, raw, base, column.type, batch.type, batch.floor, batch.text
        )
    else:
        attribute_kernels.fill_values(at, raw, column.type, batch.type, batch.floor, batch.text)


def settle_batch(batch: EncodedMessages, begin: int, end: int) -> None:
    attribute_kernels.settle(
        begin,
        end,
        batch.type,
        batch.floor,
        batch.place,
        batch.float_floor,
        batch.float_place,
        batch.text,
    )


def by_chunk(names: Mapping[str, int], column: Any, encode: Any) -> EncodedMessages:
    """One batch of the chunks of a column; `encode` gets names, a chunk, and its first row."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    batches, first = [], 0
    for chunk in chunks:
        batches.append(encode(names, chunk, first))
        first += len(chunk)
    return batches[0] if len(batches) == 1 else concatenated(batches)
