"""Messages in JSON for the kernels: a column of objects, read where they lie.

A kernel reads plain rows; rows that it marks as odd are read by `Message.from_json`, so that every
error and every rarity is as there. NULL is a message without attributes. Names that the table does
not know are checked and skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from palio.errors import InvalidValue
from palio.matching.encode import json_kernels, json_word_kernels
from palio.matching.encode.arrays import EncodedMessages
from palio.matching.encode.arrow_batches import settle_batch
from palio.matching.encode.arrow_columns import decoded, is_valid
from palio.matching.encode.columns import Ints
from palio.matching.encode.messages import encode_messages
from palio.matching.encode.names import NameIndex, power_of_two
from palio.model.message import Message

_HARD_ROOM = 1 << 14
_TEXT_ROOM = 1 << 12


class JsonScratch(NamedTuple):
    """What the kernel writes to while it reads a row; `json_kernels` draws it."""

    path: Ints  # uint8
    lengths: Ints  # int64
    hashes: Ints  # uint64
    seen: Ints  # uint64
    stamps: Ints  # int64


class JsonAttributes(NamedTuple):
    """What it has read: attributes, and the distinct texts among them."""

    name: Ints  # int32
    type: Ints  # uint8
    floor: Ints  # int64
    text: Ints  # int32
    blob: Ints  # uint8: distinct texts
    begin: Ints  # int64
    hashes: Ints  # uint64
    slots: Ints  # int32
    hard: Ints  # int64: attribute, begin, end


def encode_json(
    names: Mapping[str, int] | NameIndex, column: pa.Array | pa.ChunkedArray
) -> EncodedMessages:
    """A batch from a column of JSON objects: strings, bytes, or a dictionary of them.

    Raises InvalidValue, which names the row (from 0), where `Message.from_json` does.
    """
    index = names if isinstance(names, NameIndex) else NameIndex.of(names)
    chunks = _plain_chunks(column)
    reader = _JsonReader(index, sum(map(len, chunks)), sum(chunk.nbytes for chunk in chunks))
    for chunk in chunks:
        reader.read(chunk)
    rows = np.flatnonzero(reader.odd)
    if not len(rows):
        return reader.batch()
    ends = np.cumsum([len(chunk) for chunk in chunks])
    messages = []
    for row in rows.tolist():
        which = int(np.searchsorted(ends, row, "right"))
        messages.append(_message(chunks[which][row - int(ends[which])], row))
    return _with_rows(reader.batch(), rows, encode_messages(index.names, messages))


def rows_left_to_python(column: pa.Array) -> list[int]:
    """The rows that kernels do not read: those that hold no message, and a few that only Python reads."""
    reader = _JsonReader(NameIndex.of({}), len(column), column.nbytes)
    for chunk in _plain_chunks(column):
        reader.read(chunk)
    rows: list[int] = np.flatnonzero(reader.odd).tolist()
    return rows


def _plain_chunks(column: Any) -> list[Any]:
    """The chunks of the column as string or binary arrays, with long or short offsets."""
    if not isinstance(column, pa.ChunkedArray):
        column = pa.chunked_array([column])
    if pa.types.is_dictionary(column.type):
        column = decoded(column)
    kind, is_ = column.type, pa.types
    if is_.is_string_view(kind):
        column = column.cast(pa.large_string())
    elif is_.is_binary_view(kind):
        column = column.cast(pa.large_binary())
    elif is_.is_null(kind):
        column = column.cast(pa.string())
    elif not (
        is_.is_string(kind)
        or is_.is_large_string(kind)
        or is_.is_binary(kind)
        or is_.is_large_binary(kind)
    ):
        raise InvalidValue(f"a column of JSON messages holds strings, not {kind}")
    chunks: list[Any] = column.chunks
    return chunks


class _JsonReader:
    """The arrays that the kernel fills, grown as they need be."""

    def __init__(self, index: NameIndex, rows: int, size: int) -> None:
        self._names = index.arrays
        self._rows = 0
        self._counts = np.zeros(3, np.int64)
        self._row_at = np.zeros(rows + 1, np.int64)
        self.odd = np.zeros(rows, np.bool_)
        room = size // 20 + 64  # attributes: a guess
        texts = min(_TEXT_ROOM, power_of_two(size // 4 + 64))  # a single message has few
        self._found = JsonAttributes(
            name=np.empty(room, np.int32),
            type=np.empty(room, np.uint8),
            floor=np.empty(room, np.int64),
            text=np.empty(room, np.int32),
            blob=np.empty(16 * texts, np.uint8),
            begin=np.zeros(texts + 1, np.int64),
            hashes=np.empty(texts, np.uint64),
            slots=np.zeros(4 * texts, np.int32),
            hard=np.empty((min(_HARD_ROOM, 4 * texts), 3), np.int64),
        )

    def read(self, chunk: Any) -> None:
        """Take in an array of JSON texts."""
        if not len(chunk):
            return
        large = pa.types.is_large_string(chunk.type) or pa.types.is_large_binary(chunk.type)
        dtype = np.dtype(np.int64 if large else np.int32)
        _, offsets, content = chunk.buffers()
        at = chunk.offset * dtype.itemsize
        begin = np.frombuffer(offsets, dtype, len(chunk) + 1, at).astype(np.int64)
        data = np.frombuffer(content if content is not None else b"", np.uint8)
        data.setflags(write=False)
        valid = is_valid(chunk)
        longest = min(int(np.diff(begin).max()), json_kernels.LONG)
        most = longest // 4 + 1
        slots = power_of_two(2 * most + 2)
        scratch = JsonScratch(
            path=np.empty(longest + 64, np.uint8),
            lengths=np.zeros(json_kernels.DEPTH, np.int64),
            hashes=np.zeros(json_kernels.DEPTH, np.uint64),
            seen=np.zeros(slots, np.uint64),
            stamps=np.zeros(slots, np.int64),
        )
        row = 0
        while row < len(chunk):
            self._make_room(most, longest)
            row = json_kernels.parse(
                data, begin, valid, row, self._rows, self._names, scratch, self._found,
                self._counts, self._row_at, self.odd,
            )  # fmt: skip
            self._read_hard(content)
        self._rows += len(chunk)

    def _make_room(self, most: int, longest: int) -> None:
        """Room for at least one more row of `longest` bytes, usually for twice what is there."""
        found, (attributes, texts, _) = self._found, self._counts.tolist()
        if attributes + most > len(found.name):
            room = 2 * len(found.name) + most
            self._found = found = found._replace(
                name=_grown(found.name, room),
                type=_grown(found.type, room),
                floor=_grown(found.floor, room),
                text=_grown(found.text, room),
            )
        if texts + most > len(found.hashes):
            room = 2 * len(found.hashes) + most
            slots = np.zeros(power_of_two(2 * room), np.int32)
            json_word_kernels.fill_slots(found.hashes, texts, slots)
            self._found = found = found._replace(
                begin=_grown(found.begin, room + 1),
                hashes=_grown(found.hashes, room),
                slots=slots,
            )
        if found.begin[texts] + longest > len(found.blob):
            room = 2 * len(found.blob) + longest
            self._found = found = found._replace(blob=_grown(found.blob, room))
        if most > len(found.hard):
            self._found = found._replace(hard=np.empty((2 * most, 3), np.int64))

    def _read_hard(self, content: Any) -> None:
        """The doubles that the kernel left, by Python's float."""
        hard = self._found.hard[: self._counts[2]]
        if len(hard):
            view = memoryview(content)
            values = [float(bytes(view[begin:end])) for _, begin, end in hard.tolist()]
            self._found.floor[hard[:, 0]] = np.array(values, np.float64).view(np.int64)
            self._counts[2] = 0

    def batch(self) -> EncodedMessages:
        """What has been read; odd rows are empty."""
        found, (size, texts, _) = self._found, self._counts.tolist()
        end = int(found.begin[texts])
        blob = found.blob[: max(end, 1)]
        blob.setflags(write=False)  # as of every batch: one type, one compiled kernel
        batch = EncodedMessages(
            row_at=self._row_at,
            name=found.name[:size],
            type=found.type[:size],
            floor=found.floor[:size],
            place=np.empty(size, np.uint8),
            float_floor=np.empty(size, np.int64),
            float_place=np.empty(size, np.uint8),
            text=found.text[:size],
            text_blob=blob,
            text_begin=found.begin[: texts + 1],
        )
        settle_batch(batch, 0, size)
        return batch


def _message(scalar: Any, row: int) -> Message:
    """A row as Python reads it."""
    try:
        return Message.from_json(scalar.as_py())
    except InvalidValue as error:
        raise error.at(row=row) from None
    except UnicodeDecodeError as error:
        raise InvalidValue(f"the message is not UTF-8: {error}", row=row) from None


def _with_rows(batch: EncodedMessages, rows: Ints, more: EncodedMessages) -> EncodedMessages:
    """The batch with the attributes of `more` in these of its rows, which have none."""
    counts = np.diff(batch.row_at)
    counts[rows] = np.diff(more.row_at)
    row_at = np.zeros_like(batch.row_at)
    np.cumsum(counts, out=row_at[1:])
    # Which of (attributes of batch, attributes of more) stands at each place.
    order = np.empty(int(row_at[-1]), np.int64)
    where = np.repeat(row_at[:-1] - batch.row_at[:-1], np.diff(batch.row_at))
    order[where + np.arange(len(where))] = np.arange(len(where))
    there = np.repeat(row_at[rows] - more.row_at[:-1], np.diff(more.row_at))
    order[there + np.arange(len(there))] = len(where) + np.arange(len(there))
    texts, end = len(batch.text_begin) - 1, int(batch.text_begin[-1])
    text = np.where(more.text >= 0, more.text + texts, more.text).astype(np.int32)
    blob = np.concatenate([batch.text_blob[:end], more.text_blob])
    blob.setflags(write=False)
    same = ("name", "type", "floor", "place", "float_floor", "float_place")
    both = {key: np.concatenate([getattr(batch, key), getattr(more, key)])[order] for key in same}
    return EncodedMessages(
        row_at=row_at,
        text=np.concatenate([batch.text, text])[order],
        text_blob=blob,
        text_begin=np.concatenate([batch.text_begin, more.text_begin[1:] + end]),
        **both,
    )


def _grown(array: Ints, size: int) -> Ints:
    bigger = np.empty(size, array.dtype)
    bigger[: len(array)] = array
    return bigger
