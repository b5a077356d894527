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
from palio.matching.encode.json_text import JsonTextReader, words_max
from palio.matching.encode.names import NameIndex
from palio.matching.encode.single_message import flattened, packing
from palio.matching.limits import excluded_bits
from palio.matching.pivot import single_kernels
from palio.matching.pivot.arrays import HotKeys, PivotTable
from palio.model.message import Message

_WORDS = 512  # of a message, to begin with


class SingleMessages:
    """Forwards single messages through the arrays of a table."""

    def __init__(self, table: PivotTable, hot_keys: HotKeys, index: NameIndex) -> None:
        """`hot_keys` are without words: single messages know no masks."""
        self._index = index
        self._heads = {name: i << codes.TYPE_BITS for i, name in enumerate(table.names)}
        self._interfaces = table.interfaces
        self._table = table  # kept, as are hot keys: the kernel knows only the addresses of arrays
        self._hot_keys = hot_keys
        self._places = _places(table.pivots), _places(hot_keys), _places(table.strings)
        self._spare: list[_SingleScratch] = []
        self._readers: list[JsonTextReader] = []

    def match(self, message: Mapping[str, object], among: Ints | None = None) -> Ints:
        """The interfaces of one message, ascending; only those at some positions, if given."""
        flat, doubles, texts = flattened(self._heads, message)
        scratch = self._take_scratch()
        scratch.take(flat, doubles, b"".join(texts))
        return self._matched(scratch, len(flat) >> 1, len(doubles), len(texts), among)

    def match_text(self, text: Any, among: Ints | None = None) -> Ints:
        """The interfaces of one message in JSON, ascending; only those at some positions, if given."""
        try:
            reader = self._readers.pop()
        except IndexError:
            reader = JsonTextReader(self._index)
        scratch = self._take_scratch()
        scratch.make_room(words_max(len(text)))
        if not reader.read(text, scratch.words, scratch.raw):
            self._readers.append(reader)
            self._spare.append(scratch)
            return self.match(Message.from_json(bytes(text)), among)
        count, doubles, strings = reader.counts.tolist()
        self._readers.append(reader)
        return self._matched(scratch, count, doubles, strings, among)

    def _take_scratch(self) -> _SingleScratch:
        """Buffers that no other call uses."""
        try:
            return self._spare.pop()
        except IndexError:
            return _SingleScratch(len(self._heads), self._interfaces)

    def _matched(
        self, scratch: _SingleScratch, count: int, doubles: int, texts: int, among: Ints | None
    ) -> Ints:
        """Match the message in the scratch buffers, which has so many attributes."""
        bits = scratch.bits
        if among is not None:
            excluded = excluded_bits(self._interfaces, among)
            bits = np.concatenate([excluded, bits[-1:], excluded])
        found = single_kernels.forward_one(
            *self._places, scratch.words, count, doubles, texts,
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
        self.words = np.zeros(0, np.int64)
        self.make_room(_WORDS)

    def make_room(self, words: int) -> None:
        """Room for at least so many words; what was there is lost when there was less."""
        if words > len(self.words):
            self.words = np.zeros(2 * words, np.int64)
            self.raw = self.words.view(np.uint8)
            self._bytes = self.words.data.cast("B")

    def take(self, flat: list[int], doubles: list[float], text: bytes) -> None:
        """Write a message; `single_kernels` draws it."""
        begin = 8 * (len(flat) + len(doubles))
        end = begin + len(text)
        if end > 8 * len(self.words):
            self.make_room(end // 8 + 1)
        packing(len(flat), len(doubles)).pack_into(self._bytes, 0, *flat, *doubles)
        self._bytes[begin:end] = text


def _places(arrays: Iterable[Any]) -> Ints:
    """Where arrays lie: address and length of each."""
    found = list(arrays)
    assert all(array.flags.c_contiguous for array in found)
    return np.array([(array.ctypes.data, len(array)) for array in found], np.int64)
