"""Columns out of an encoded batch, and into one.

A batch holds places among operands, and what a value was can be told from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from palio.matching.computed import column_kernels
from palio.matching.computed.columns import ABSENT, NULL, ValueColumn, is_in_texts, settled
from palio.matching.computed.distinct import distinct_with_samples
from palio.matching.computed.pools import StringPool
from palio.matching.encode import attribute_kernels, codes
from palio.matching.encode.arrays import EncodedMessages
from palio.matching.encode.columns import Ints


def attribute_columns(
    batch: EncodedMessages, names: Mapping[str, int], wanted: Iterable[str]
) -> dict[str, ValueColumn]:
    """The values of attributes, by name; a name that the table does not know has none."""
    count = len(batch.row_at) - 1
    texts = StringPool.of_bytes(batch.text_blob, batch.text_begin)
    found = dict.fromkeys(wanted, NULL.repeated(count))
    known = [name for name in found if name in names]
    brought = int(
        batch.name[: batch.row_at[-1]].max(initial=-1)
    )  # values of expressions among them
    highest = max(brought, *names.values(), -1)
    column_of = np.full(highest + 1, -1, np.int32)
    column_of[[names[name] for name in known]] = np.arange(len(known))
    types = np.full((len(known), count), ABSENT, np.uint8)
    raws = np.zeros((len(known), count), np.int64)
    if known:
        column_kernels.collect(batch, column_of, types, raws)
    for name, type_, raw in zip(known, types, raws, strict=True):
        found[name] = ValueColumn(type_, raw, texts)
    return found


def with_columns(
    batch: EncodedMessages, columns: Sequence[tuple[int, ValueColumn]]
) -> EncodedMessages:
    """The batch with more attributes in its rows: the number of the name of each, and its values."""
    if not columns:
        return batch
    plain = [settled(column) for _, column in columns]
    rows = [np.flatnonzero(column.type != ABSENT) for column in plain]
    more = np.zeros(len(batch.row_at), np.int64)
    for own in rows:
        more[own + 1] += 1
    np.cumsum(more, out=more)
    row_at = batch.row_at + more
    made = {}
    for field in _FIELDS:
        old = getattr(batch, field)
        made[field] = np.empty(int(row_at[-1]), old.dtype)
        column_kernels.spread(batch.row_at, row_at, old, made[field])
    texts: list[bytes] = []
    free = row_at[:-1] + np.diff(batch.row_at)  # the next place of each row
    for (number, _), column, own in zip(columns, plain, rows, strict=True):
        at = free[own]
        free[own] += 1
        raw = _placed(column, len(batch.text_begin) - 1, texts)
        for field, values in _attributes(column.type[own], raw[own]).items():
            made[field][at] = values
        made["name"][at] = number
    blob, text_begin = _with_texts(batch, texts)
    return EncodedMessages(row_at=row_at, text_blob=blob, text_begin=text_begin, **made)


_FIELDS = ("name", "type", "floor", "place", "float_floor", "float_place", "text")


def _attributes(type: Ints, raw: Ints) -> dict[str, Ints]:
    """Attributes as a batch has them, but for their names."""
    has_text = is_in_texts(type)
    floor = np.where(has_text, 0, raw)
    place, float_place = np.empty(len(type), np.uint8), np.empty(len(type), np.uint8)
    float_floor = np.empty(len(type), np.int64)
    text = np.where(has_text, raw, codes.NO_TEXT).astype(np.int32)
    attribute_kernels.settle(0, len(type), type, floor, place, float_floor, float_place, text)
    return {
        "type": type,
        "floor": floor,
        "place": place,
        "float_floor": float_floor,
        "float_place": float_place,
        "text": text,
    }


def _placed(column: ValueColumn, base: int, texts: list[bytes]) -> Ints:
    """The raw values of a column; those in texts are appended, and are positions behind `base`."""
    rows = np.flatnonzero(is_in_texts(column.type))
    if not len(rows):
        return column.raw
    number, positions = distinct_with_samples(column.raw[rows])
    raw = column.raw.copy()
    raw[rows] = base + len(texts) + number
    texts += [text.encode() for text in column.texts.at(positions)]
    return raw


def _with_texts(batch: EncodedMessages, texts: list[bytes]) -> tuple[Ints, Ints]:
    if not texts:
        return batch.text_blob, batch.text_begin
    end = int(batch.text_begin[-1])
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    added = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
    blob = np.concatenate([batch.text_blob[:end], added])
    blob.setflags(write=False)  # as of every batch: one type, one compiled kernel
    return blob, np.concatenate([batch.text_begin, np.cumsum(lengths) + end])
