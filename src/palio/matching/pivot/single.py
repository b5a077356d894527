"""One message at a time: a mapping is packed into words, and one call of a kernel forwards it.

What is the same for every message is made once: the addresses of the table's arrays, and scratch
buffers. A call takes buffers that no other call uses and puts them back, so several threads, and a
call within a call, never share any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from palio.matching.encode import codes
from palio.matching.encode.columns import Ints
from palio.matching.encode.single_message import flattened, packing
from palio.matching.limits import excluded_bits
from palio.matching.pivot import single_kernels
from palio.matching.pivot.arrays import PivotTable

_WORDS = 512  # of a message, to begin with


class SingleMessages:
    """Forwards single messages through the arrays of a table."""

    def __init__(self, table: PivotTable) -> None:
        self._heads = {name: i << codes.TYPE_BITS for i, name in enumerate(table.names)}
        self._interfaces = table.interfaces
        self._table = table  # kept, since the kernel knows only the addresses of its arrays
        self._places = _places(table.pivots), _places(table.strings)
        self._spare: list[_SingleScratch] = []

    def match(self, message: Mapping[str, object], among: Ints | None = None) -> Ints:
        """The interfaces of one message, ascending; only those at some positions, if given."""
        flat, doubles, texts = flattened(self._heads, message)
        text = b"".join(texts)
        try:
            scratch = self._spare.pop()
        except IndexError:
            scratch = _SingleScratch(len(self._heads), self._interfaces)
        scratch.take(flat, doubles, text)
        bits = scratch.bits
        if among is not None:
            excluded = excluded_bits(self._interfaces, among)
            bits = np.concatenate([excluded, bits[-1:], excluded])
        found = single_kernels.forward_one(
            *self._places, scratch.words, len(flat) >> 1, len(doubles), len(texts),
            self._interfaces, scratch.slot, bits, scratch.summary, scratch.out,
        )  # fmt: skip
        result = scratch.out[:found].copy()
        self._spare.append(scratch)
        return result


class _SingleScratch:
    """The buffers of one call; kernels leave slot, bits and summary as they found them."""

    def __init__(self, names: int, interfaces: int) -> None:
        words = (interfaces + 63) // 64
        self.slot = np.zeros(names + 1, np.int64)
        self.bits = np.zeros(words + 1, np.uint64)
        self.summary = np.zeros(words // 64 + 1, np.uint64)
        self.out = np.empty(max(1, interfaces), np.int32)
        self._make_room(_WORDS)

    def _make_room(self, words: int) -> None:
        self.words = np.zeros(words, np.int64)
        self._bytes = self.words.data.cast("B")

    def take(self, flat: list[int], doubles: list[float], text: bytes) -> None:
        """Write a message; `single_kernels` draws it."""
        begin = 8 * (len(flat) + len(doubles))
        end = begin + len(text)
        if end > 8 * len(self.words):
            self._make_room(end // 4)
        packing(len(flat), len(doubles)).pack_into(self._bytes, 0, *flat, *doubles)
        self._bytes[begin:end] = text


def _places(arrays: Iterable[Any]) -> Ints:
    """Where arrays lie: address and length of each."""
    found = list(arrays)
    assert all(array.flags.c_contiguous for array in found)
    return np.array([(array.ctypes.data, len(array)) for array in found], np.int64)
