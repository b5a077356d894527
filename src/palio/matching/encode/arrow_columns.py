"""One Arrow column as raw 64-bit values of one type, without a Python object a value.

    Arrow                                  type     raw value
    bool                                   BOOL     0, 1
    int8 .. int64, uint8 .. uint64         INT      the int; a uint64 above 2^63 - 1 is an error
    float16, float32, float64              FLOAT    the bits of the double
    timestamp with a zone, date32, date64  TIME     its own unit; `scale` makes microseconds of it
    string, large_string, string_view      STRING   a position among the distinct strings
    uuid                                   STRING   that of its text
    decimal32 .. decimal256                INT or FLOAT, item by item (`arrow_decimals`)
    list, large_list, fixed_size_list      ARRAY    a position among the distinct JSON texts
    binary                                 ARRAY    the same, of one text
    dictionary, extension                  as its values, as its storage
    null                                   none at all

Columns of 64 bits are read where they lie. Everything else is refused by name. Items that are NULL
have raw values too, without a meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from palio.errors import InvalidValue
from palio.matching.encode import arrow_arrays, attribute_kernels, codes
from palio.matching.encode.columns import Ints
from palio.model.values import TIME_MAX, TIME_MIN

_DAY_US = 86_400_000_000
_NO_BITMAP = np.zeros(1, np.uint8)
_NO_BITMAP.setflags(write=False)


@dataclass(frozen=True, slots=True)
class Scale:
    """How a unit of time becomes microseconds."""

    multiply: int
    divide: int = 1
    exact: bool = True  # a remainder is an error


_UNITS = {"s": Scale(1_000_000), "ms": Scale(1000), "us": Scale(1), "ns": Scale(1, 1000)}
_DAYS = Scale(_DAY_US)
_DAYS_OF_MS = Scale(_DAY_US, 86_400_000, exact=False)


@dataclass(frozen=True, slots=True)
class RawColumn:
    """A column that is ready for the kernels; `texts` are its distinct strings, or JSON texts."""

    name: str
    type: int
    values: Any  # a ChunkedArray of fixed width; the indices of `texts` for strings
    texts: Any = None
    scale: Scale | None = None


def read_column(name: str, column: Any) -> RawColumn | None:
    """A ChunkedArray as raw values; None when it can hold no value."""
    kind, is_ = column.type, pa.types
    if is_.is_dictionary(kind):
        if is_text(kind.value_type):
            return _text_column(name, _encoded(column))
        return read_column(name, decoded(column))
    if is_text(kind):
        return _text_column(name, _plain_text(column).dictionary_encode())
    if is_.is_boolean(kind):
        return RawColumn(name, codes.BOOL, column.cast(pa.uint8()))
    if is_.is_integer(kind):
        return RawColumn(name, codes.INT, column)
    if is_.is_floating(kind):
        return RawColumn(name, codes.FLOAT, column)
    if is_.is_timestamp(kind):
        if not kind.tz:
            raise InvalidValue(
                f"column {name!r}: the type {kind} has no time zone; "
                "if it is in UTC, cast it to timestamp('us', tz='UTC')"
            )
        return RawColumn(name, codes.TIME, column.cast(pa.int64()), scale=_UNITS[kind.unit])
    if is_.is_date32(kind):
        return RawColumn(name, codes.TIME, column.cast(pa.int32()), scale=_DAYS)
    if is_.is_date64(kind):
        return RawColumn(name, codes.TIME, column.cast(pa.int64()), scale=_DAYS_OF_MS)
    if is_.is_null(kind):
        return None
    if is_.is_decimal(kind):
        return RawColumn(name, codes.FLOAT, column)
    if arrow_arrays.is_list(kind):
        found = arrow_arrays.list_texts(name, column, list(map(is_valid, column.chunks)))
        return RawColumn(name, codes.ARRAY, *found)
    if arrow_arrays.is_binary(kind):
        found = arrow_arrays.binary_texts(list(map(is_valid, column.chunks)))
        return RawColumn(name, codes.ARRAY, *found)
    if isinstance(kind, pa.BaseExtensionType):
        if str(kind) == "extension<arrow.uuid>":
            return read_column(name, arrow_arrays.uuid_texts(column))
        return read_column(name, arrow_arrays.of_storage(column))
    raise InvalidValue(
        f"column {name!r}: the type {kind} holds no value of an attribute; drop the column or "
        "cast it to bool, an integer, a float, string, date32 or a timestamp with a zone"
    )


def raw_values(array: Any) -> Ints:
    """The values of a fixed-width array as int64, doubles as their bits; read only."""
    kind = array.type
    dtype = np.dtype(kind.to_pandas_dtype())
    data = array.buffers()[1]
    if data is None or not len(array):
        found = np.zeros(len(array), dtype)
    else:
        found = np.frombuffer(data, dtype, len(array), array.offset * dtype.itemsize)
    if pa.types.is_floating(kind):
        raw = found.astype(np.float64, copy=False).view(np.int64)
    else:
        raw = found.astype(np.int64, copy=False)
    raw.setflags(write=False)
    return raw


def validity(array: Any) -> tuple[Ints, int, bool]:
    """The bitmap, the position of its first bit, and whether anything is NULL."""
    bitmap = array.buffers()[0]
    if not array.null_count or bitmap is None:
        return _NO_BITMAP, 0, False
    found = np.frombuffer(bitmap, np.uint8)
    found.setflags(write=False)
    return found, array.offset, True


def is_valid(array: Any) -> Ints:
    """Which items are there, as bools."""
    if not array.null_count:  # the usual case, without to_numpy, which would import pandas
        return np.ones(len(array), np.bool_)
    found: Ints = array.is_valid().to_numpy(zero_copy_only=False)
    return found


def micros_or_raw(column: RawColumn, array: Any, at: Ints, first: int) -> Ints:
    """The raw values of a piece of the column, checked where at >= 0; times in microseconds.

    `first` is the row of the first item, for the error.
    """
    raw = raw_values(array)
    if column.scale is None:
        if pa.types.is_uint64(array.type):
            bad = attribute_kernels.first_negative(at, raw)
            if bad >= 0:
                raise InvalidValue(
                    f"the integer {int(raw[bad]) + 2**64} does not fit in 64 bits with a sign",
                    attribute=column.name,
                    row=first + bad,
                )
        return raw
    multiply, divide, exact = column.scale.multiply, column.scale.divide, column.scale.exact
    low, high = -(-TIME_MIN // multiply), TIME_MAX // multiply
    bad = attribute_kernels.first_bad_time(at, raw, divide, exact, low, high)
    if bad >= 0:
        name, row = column.name, first + bad
        if exact and raw[bad] % divide:
            reason = f"the instant ({raw[bad]} nanoseconds) is finer than a microsecond"
            raise InvalidValue(reason, attribute=name, row=row, remedy="round it first")
        reason = "the instant lies outside the years 1 to 9999 of UTC"
        raise InvalidValue(reason, attribute=name, row=row)
    if multiply == divide == 1:
        return raw
    micros = np.empty(len(raw), np.int64)
    attribute_kernels.scale_times(raw, divide, multiply, micros)
    micros.setflags(write=False)
    return micros


def text_dictionary(name: str, array: Any) -> tuple[Any, Ints]:
    """The distinct strings of an Array and each item's position among them, -1 for NULL."""
    if not is_text(getattr(array.type, "value_type", array.type)):
        raise InvalidValue(f"{name} are strings, not {array.type}")
    column = read_column(name, pa.chunked_array([array]))
    assert column is not None
    piece = column.values.chunk(0)
    return column.texts, np.where(is_valid(piece), raw_values(piece), -1)


class TextPool:
    """The distinct strings of a batch, gathered from those of its columns."""

    def __init__(self) -> None:
        self._blobs: list[Ints] = []
        self._lengths: list[Ints] = []
        self._count = 0

    def add(self, texts: Any) -> int:
        """Take in a string Array; the position of its first string."""
        base = self._count
        if len(texts):
            wide = pa.types.is_large_string(texts.type)
            dtype = np.dtype(np.int64 if wide else np.int32)
            _, offsets, data = texts.buffers()
            begin = np.frombuffer(offsets, dtype, len(texts) + 1, texts.offset * dtype.itemsize)
            self._lengths.append(np.diff(begin))
            if begin[-1] > begin[0]:
                self._blobs.append(np.frombuffer(data, np.uint8)[begin[0] : begin[-1]])
            self._count += len(texts)
        return base

    def blob(self) -> Ints:
        found = np.concatenate(self._blobs) if self._blobs else np.zeros(1, np.uint8)
        found.setflags(write=False)  # as of every batch: one type, one compiled kernel
        return found

    def begin(self) -> Ints:
        found = np.zeros(self._count + 1, np.int64)
        if self._lengths:
            np.cumsum(np.concatenate(self._lengths), out=found[1:])
        return found


def is_text(kind: Any) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _plain_text(column: Any) -> Any:
    return column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column


def decoded(column: Any) -> Any:
    """A dictionary column as the values that it stands for."""
    column = _without_views(column)
    chunks = [chunk.dictionary_decode() for chunk in column.chunks]
    return pa.chunked_array(chunks, column.type.value_type)


def _without_views(column: Any) -> Any:
    """Arrow cannot take from views: plain strings instead."""
    kind = column.type.value_type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        plain = pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary()
        chunks = [
            pa.DictionaryArray.from_arrays(c.indices, c.dictionary.cast(plain))
            for c in column.chunks
        ]
        column = pa.chunked_array(chunks, pa.dictionary(column.type.index_type, plain))
    return column


def _encoded(column: Any) -> Any:
    """A dictionary column of one dictionary, of plain strings, none of them NULL."""
    column = _without_views(column)
    if column.num_chunks > 1:
        try:
            column = column.unify_dictionaries()
        except pa.ArrowInvalid:  # more entries together than their indices can count
            return decoded(column).dictionary_encode()
    if any(c.dictionary.null_count or len(c.dictionary) > len(column) for c in column.chunks):
        column = decoded(column).dictionary_encode()  # with the entries that are used
    return column


def _text_column(name: str, column: Any) -> RawColumn:
    chunks = column.chunks or [pa.array([], column.type)]
    texts = chunks[0].dictionary
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as error:
        raise InvalidValue(f"a string is not UTF-8: {error}", attribute=name) from None
    indices = pa.chunked_array([chunk.indices for chunk in chunks])
    return RawColumn(name, codes.STRING, indices, texts)
