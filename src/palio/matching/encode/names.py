"""The names of attributes as a table numbers them, found by the hash of their bytes.

blob      p r i c e d e s t          begin   0 5 9
slots     open addressing: hash -> position + 1; 0 is free
number    position -> the table's number of the name
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from palio.matching.encode import json_word_kernels
from palio.matching.encode.columns import Ints


class NameArrays(NamedTuple):
    """What kernels read of names; see the head of the module."""

    blob: Ints  # uint8
    begin: Ints  # int64
    hashes: Ints  # uint64
    slots: Ints  # int32: open addressing, position + 1
    number: Ints  # int32


@dataclass(frozen=True, slots=True)
class NameIndex:
    """A table's names, found by the hash of their bytes. Make one for a table and keep it."""

    names: Mapping[str, int]
    arrays: NameArrays

    @classmethod
    def of(cls, names: Mapping[str, int]) -> NameIndex:
        texts = [name.encode() for name in names]
        begin = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=begin[1:])
        blob = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
        hashes = np.zeros(len(texts), np.uint64)
        slots = np.zeros(power_of_two(2 * len(texts) + 2), np.int32)
        json_word_kernels.fill_hashes(blob, begin, hashes)
        json_word_kernels.fill_slots(hashes, len(texts), slots)
        number = np.fromiter(names.values(), np.int32, len(texts))
        return cls(names, NameArrays(blob, begin, hashes, slots, number))


def power_of_two(size: int) -> int:
    """The least power of two that is not below `size`."""
    return 1 << (size - 1).bit_length()
