"""Arrow columns that hold arrays or bytes, as the JSON texts that `EncodedMessages` has of them.

A column is read only where the table knows its name. Lists of bools, signed integers and strings are
written as JSON in one step; others become what a message would hold first.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from palio.errors import InvalidValue
from palio.matching.encode.columns import Ints
from palio.model.arrays import array_text, as_content
from palio.model.arrow_objects import reading

_PIECE_ROWS = 4096  # so many rows at a time become Python objects
_OF_BYTES = array_text(b"")

_write = msgspec.json.Encoder().encode


def is_list(kind: Any) -> bool:
    is_ = pa.types
    return bool(is_.is_list(kind) or is_.is_large_list(kind) or is_.is_fixed_size_list(kind))


def is_binary(kind: Any) -> bool:
    is_ = pa.types
    return bool(
        is_.is_binary(kind)
        or is_.is_large_binary(kind)
        or is_.is_binary_view(kind)
        or is_.is_fixed_size_binary(kind)
    )


def list_texts(name: str, column: Any, valid: list[Ints]) -> Any:
    """The arrays of a ChunkedArray of lists as JSON texts, a dictionary column."""
    kind = column.type
    read = reading(name, kind)
    is_simple = read.convert is None and _is_simple(kind)
    texts: dict[str | bytes, int] = {}
    chunks, row = [], 0
    for chunk, there in zip(column.chunks, valid, strict=True):
        indices = np.zeros(len(chunk), np.int32)
        for start in range(0, len(chunk), _PIECE_ROWS):
            try:
                found = read.raw(chunk.slice(start, _PIECE_ROWS))
            except UnicodeDecodeError as error:
                raise InvalidValue(f"a string is not UTF-8: {error}", attribute=name) from None
            for at, value in enumerate(found, start):
                if value is None:
                    continue
                try:
                    text = _write(value) if is_simple else _text(name, read, value)
                except InvalidValue as error:
                    raise error.at(attribute=name, row=row + at) from None
                indices[at] = texts.setdefault(text, len(texts))
        chunks.append(pa.array(indices, mask=~there))
        row += len(chunk)
    distinct = [text if isinstance(text, str) else text.decode() for text in texts]
    return pa.chunked_array(chunks, pa.int32()), pa.array(distinct, pa.large_string())


def _text(name: str, read: Any, value: Any) -> str:
    content = as_content(name, value if read.convert is None else read.convert(value))
    assert isinstance(content, tuple)
    return array_text(content)


def _is_simple(kind: Any) -> bool:
    """Does JSON write its items exactly as the model does?"""
    while is_list(kind):
        kind = kind.value_type
    is_ = pa.types
    return bool(
        is_.is_boolean(kind)
        or (is_.is_integer(kind) and not is_.is_uint64(kind))
        or is_.is_string(kind)
        or is_.is_large_string(kind)
    )


def binary_texts(valid: list[Ints]) -> Any:
    """The same for a column of bytes: they all have one text."""
    chunks = [pa.array(np.zeros(len(there), np.int32), mask=~there) for there in valid]
    return pa.chunked_array(chunks, pa.int32()), pa.array([_OF_BYTES])


def uuid_texts(column: Any) -> Any:
    """A column of UUIDs as strings."""
    chunks = [
        pa.array([None if one is None else str(one) for one in chunk.to_pylist()], pa.string())
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, pa.string())


def of_storage(column: Any) -> Any:
    """A column of an extension type as what it is made of."""
    return pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
