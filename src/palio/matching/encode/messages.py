"""Messages for the kernels: names become numbers, values floor keys, strings positions.

A value is a floor key (the greatest key that is not above it) and its place relative to that key, in
the domain of its type. Numbers have a second one in FLOAT, so that every comparison of an int with
a double is exact. An array is a position too, that of its JSON text; that of bytes is `{}`. Names that the table does not know are left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import numpy as np

from palio.matching.encode import codes
from palio.matching.encode.arrays import EncodedMessages
from palio.model.arrays import Content, array_text
from palio.model.long_decimals import LongDecimal
from palio.model.message import Message
from palio.model.ranges import float_key
from palio.model.values import INT_MAX, INT_MIN, Value, instant_micros


def int_floor(value: float) -> tuple[int, int]:
    """Where a double stands among the integers of 64 bits."""
    if value != value or value >= 2.0**63:
        return INT_MAX, codes.BETWEEN
    if value < -(2.0**63):
        return INT_MIN, codes.BELOW
    floor = math.floor(value)
    return floor, codes.EXACT if floor == value else codes.BETWEEN


def float_floor(value: int) -> tuple[int, int]:
    """Where an integer stands among the doubles."""
    nearest = float(value)
    key = float_key(nearest)
    if nearest == value:
        return key, codes.EXACT
    return (key - 1 if nearest > value else key), codes.BETWEEN


def encode_value(value: Value | LongDecimal) -> tuple[int, int, int, int, int]:
    """Type, floor and place, and for numbers those in FLOAT; strings are not encoded here."""
    if isinstance(value, LongDecimal):
        _, floor, place, float_key_, _ = encode_value(value.below)
        place = codes.BETWEEN if place == codes.EXACT else place
        return codes.FLOAT, floor, place, float_key_, codes.BETWEEN
    if isinstance(value, bool):
        return codes.BOOL, int(value), codes.EXACT, 0, 0
    if isinstance(value, int):
        return codes.INT, value, codes.EXACT, *float_floor(value)
    if isinstance(value, datetime):
        return codes.TIME, instant_micros(value), codes.EXACT, 0, 0
    assert isinstance(value, float)
    return codes.FLOAT, *int_floor(value), float_key(value), codes.EXACT


class BatchBuilder:
    """Collects the attributes of messages, one at a time."""

    def __init__(self, names: Mapping[str, int]) -> None:
        self._names = names
        self._attributes: list[tuple[int, int, int, int, int, int, int]] = []
        self._rows = [0]
        self._texts: dict[bytes, int] = {}

    def add(self, message: Mapping[str, Content]) -> None:
        names, attributes = self._names, self._attributes
        values = message.compared if isinstance(message, Message) else message
        for name, value in values.items():
            number = names.get(name)
            if number is not None:
                attributes.append((number, *self._encode(value)))
        self._rows.append(len(attributes))

    def _encode(self, value: Content | LongDecimal) -> tuple[int, int, int, int, int, int]:
        if isinstance(value, str):
            position = self._texts.setdefault(value.encode(), len(self._texts))
            return codes.STRING, 0, 0, 0, 0, position
        if isinstance(value, tuple | bytes):
            text = array_text(value).encode()
            return codes.ARRAY, 0, 0, 0, 0, self._texts.setdefault(text, len(self._texts))
        is_negative_zero = isinstance(value, float) and not value and math.copysign(1.0, value) < 0
        return *encode_value(value), codes.NEGATIVE_ZERO if is_negative_zero else codes.NO_TEXT

    def batch(self) -> EncodedMessages:
        table = np.array(self._attributes, np.int64).reshape(-1, 7)
        texts = list(self._texts)
        begin = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=begin[1:])
        return EncodedMessages(
            row_at=np.array(self._rows, np.int64),
            name=table[:, 0].astype(np.int32),
            type=table[:, 1].astype(np.uint8),
            floor=np.ascontiguousarray(table[:, 2]),
            place=table[:, 3].astype(np.uint8),
            float_floor=np.ascontiguousarray(table[:, 4]),
            float_place=table[:, 5].astype(np.uint8),
            text=table[:, 6].astype(np.int32),
            text_blob=np.frombuffer(b"".join(texts) or b"\0", np.uint8),
            text_begin=begin,
        )


def encode_messages(
    names: Mapping[str, int], messages: Iterable[Mapping[str, Any]]
) -> EncodedMessages:
    """A batch from messages."""
    builder = BatchBuilder(names)
    for message in messages:
        builder.add(message)
    return builder.batch()
