"""Batches as plain sets, to compare encodings with the oracle's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from palio.matching.encode import codes
from palio.matching.encode.arrays import EncodedMessages
from palio.matching.encode.messages import encode_messages
from palio.model.arrays import read_array

Attribute = tuple[int, int, int, int, int, int, bytes | None]


def decoded(batch: EncodedMessages) -> list[set[Attribute]]:
    """The attributes of each row: name, type, floor, place, float_floor, float_place, text.

    The text of an array may be written in several ways: here it is that of what it holds.
    """
    blob, begin = bytes(batch.text_blob), batch.text_begin.tolist()
    columns = (
        batch.name, batch.type, batch.floor, batch.place, batch.float_floor, batch.float_place,
        batch.text,
    )  # fmt: skip
    attributes: list[Attribute] = [
        (
            *numbers,
            None if text < 0 else plain_text(numbers[1], blob[begin[text] : begin[text + 1]]),
        )
        for *numbers, text in zip(*(column.tolist() for column in columns), strict=True)
    ]
    ends = batch.row_at.tolist()
    rows = [attributes[a:b] for a, b in pairwise(ends)]
    assert ends[0] == 0
    assert ends[-1] == len(attributes)
    assert all(len(set(row)) == len(row) for row in rows)
    return list(map(set, rows))


def plain_text(type: int, text: bytes) -> bytes:
    return repr(read_array(text)).encode() if type == codes.ARRAY else text


def shape(batch: EncodedMessages) -> list[tuple[str, bool, bool]]:
    """What a compiled kernel depends on; another shape is compiled again."""
    return [
        (str(array.dtype), bool(array.flags.writeable), bool(array.flags.c_contiguous))
        for array in batch
    ]


def assert_same(
    batch: EncodedMessages, names: Mapping[str, int], messages: Sequence[Mapping[str, Any]]
) -> None:
    """The batch is what the oracle makes of these messages."""
    oracle = encode_messages(names, messages)
    assert decoded(batch) == decoded(oracle)
    assert shape(batch) == shape(oracle)
