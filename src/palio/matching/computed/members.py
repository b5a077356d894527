"""Elements of arrays that predicates ask for: `array_contains(tags, 'x')` as an attribute of the table.

    tags = ["x", "q"]      "x" is element of 2 names of the table      the message has these attributes

An array costs one look-up for each of its elements, however many elements are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np

from palio.matching.computed.columns import ARRAY, ValueColumn
from palio.matching.encode import codes
from palio.matching.encode.arrays import EncodedMessages
from palio.matching.encode.columns import Ints
from palio.model.arrays import read_array as array_of
from palio.model.expressions.decimals import Exact
from palio.model.expressions.number_functions import Computed

_Key: TypeAlias = tuple[str, Any]


def _key(value: Any) -> _Key | None:
    """Equal for elements that are equal; None: nothing equals it."""
    if isinstance(value, bool):
        return "bool", value
    if isinstance(value, Exact):
        value = int(value.value) if value.value == int(value.value) else float(value)
    if isinstance(value, int | float):
        return "number", "NaN" if value != value else value
    if isinstance(value, str):
        return "string", value
    return ("time", value) if isinstance(value, datetime) else None


@dataclass(frozen=True, slots=True)
class Members:
    """For each array the elements that are asked for, and the names of the table that ask."""

    numbers_of: Mapping[str, Mapping[_Key, list[int]]]

    @classmethod
    def of(cls, members: Mapping[int, tuple[str, Computed] | None]) -> Members:
        found: dict[str, dict[_Key, list[int]]] = {}
        for number, member in members.items():
            if member is not None and (key := _key(member[1])) is not None:
                found.setdefault(member[0], {}).setdefault(key, []).append(number)
        return cls(found)

    @property
    def arrays(self) -> frozenset[str]:
        return frozenset(self.numbers_of)

    def __len__(self) -> int:
        return sum(map(len, self.numbers_of.values()))

    def numbers(self, message: Mapping[str, Any]) -> Iterator[int]:
        """The names that are there for one message."""
        for name, numbers in self.numbers_of.items():
            array = message.get(name)
            if isinstance(array, tuple):
                yield from dict.fromkeys(_asked(numbers, array))

    def joined_to(
        self, batch: EncodedMessages, columns: Mapping[str, ValueColumn]
    ) -> EncodedMessages:
        """The batch with these attributes."""
        for name, numbers in self.numbers_of.items():
            column = columns[name]
            rows = np.flatnonzero(column.type == ARRAY)
            if not len(rows):
                continue
            positions, which = np.unique(column.raw[rows], return_inverse=True)
            asked = [
                np.array([*dict.fromkeys(_asked(numbers, array_of(text)))], np.int32)
                for text in column.texts.at(positions)
            ]
            sizes = np.array([len(one) for one in asked], np.int64)
            begin = np.cumsum(sizes) - sizes
            flat = np.concatenate(asked)
            own = sizes[which]
            to = np.repeat(np.arange(len(rows)), own)
            source = begin[which][to] + np.arange(len(to)) - (np.cumsum(own) - own)[to]
            batch = _with_true(batch, rows[to], flat[source])
        return batch


def _asked(numbers: Mapping[_Key, list[int]], array: tuple[Any, ...]) -> Iterator[int]:
    for element in array:
        key = _key(element)
        if key is not None:
            yield from numbers.get(key, ())


def _with_true(batch: EncodedMessages, rows: Ints, numbers: Ints) -> EncodedMessages:
    """The batch with an attribute more, which is TRUE, for each of these rows and names; rows ascend."""
    if not len(rows):
        return batch
    count = len(batch.row_at) - 1
    added = np.bincount(rows, minlength=count)
    row_at = batch.row_at + np.concatenate([[0], np.cumsum(added)])
    at = np.repeat(batch.row_at[1:], added)  # behind the attributes of its row

    def inserted(array: Ints, values: Any) -> Ints:
        return np.insert(array, at, values)

    return batch._replace(
        row_at=row_at,
        name=inserted(batch.name, numbers),
        type=inserted(batch.type, codes.BOOL),
        floor=inserted(batch.floor, 1),
        place=inserted(batch.place, codes.EXACT),
        float_floor=inserted(batch.float_floor, 0),
        float_place=inserted(batch.float_place, 0),
        text=inserted(batch.text, -1),
    )
