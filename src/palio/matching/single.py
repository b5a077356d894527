"""One message at a time: a mapping is packed into words, and one call of a kernel forwards it.

What is the same for every message is made once: the places of the table's arrays, and desks. A
desk holds what one call works on; it is taken from the pile and put back, so several threads, and
a call within a call, never share one.

A mapping of plain values becomes no `Message`: values are checked as they are packed, with the
errors that `Message` gives.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import numpy as np

from palio.matching import codes, single_kernels
from palio.matching.arrays import Pivots, Strings
from palio.matching.columns import Ints
from palio.model.values import INT_MAX, INT_MIN, as_name, as_value, instant_micros

_WORDS = 512  # of a message, to begin with
_PLAIN = frozenset((str, int, float))


class Single:
    """Forwards single messages through the arrays of a table."""

    def __init__(
        self, names: Sequence[str], interfaces: int, pivots: Pivots, strings: Strings
    ) -> None:
        self._heads = {name: i << codes.TYPE_BITS for i, name in enumerate(names)}
        self._interfaces = interfaces
        self._arrays = pivots, strings  # kept, since the kernel knows only their places
        self._places = _places(pivots), _places(strings)
        self._desks: list[_Desk] = []

    def match(self, message: Mapping[str, object]) -> Ints:
        """The interfaces of one message, ascending."""
        flat, doubles, texts = _flattened(self._heads, message)
        text = b"".join(texts)
        try:
            desk = self._desks.pop()
        except IndexError:
            desk = _Desk(len(self._heads), self._interfaces)
        desk.take(flat, doubles, text)
        found = single_kernels.forward_one(
            *self._places, desk.words, len(flat) >> 1, len(doubles), len(texts), self._interfaces,
            desk.slot, desk.bits, desk.summary, desk.out,
        )  # fmt: skip
        result = desk.out[:found].copy()
        self._desks.append(desk)
        return result


class _Desk:
    """The arrays of one call; kernels leave slot, bits and summary as they found them."""

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
        _packing(len(flat), len(doubles)).pack_into(self._bytes, 0, *flat, *doubles)
        self._bytes[begin:end] = text


@lru_cache(maxsize=1024)
def _packing(ints: int, doubles: int) -> struct.Struct:
    return struct.Struct(f"={ints}q{doubles}d")


def _places(arrays: Iterable[Any]) -> Ints:
    """Where arrays lie: address and length of each."""
    found = list(arrays)
    assert all(array.flags.c_contiguous for array in found)
    return np.array([(array.ctypes.data, len(array)) for array in found], np.int64)


def _flattened(
    heads: Mapping[str, int], message: Mapping[str, Any]
) -> tuple[list[int], list[float], list[bytes]]:
    """Heads and values, doubles and strings of the attributes whose names the table knows."""
    flat: list[int] = []
    doubles: list[float] = []
    texts: list[bytes] = []
    for name, value in message.items():
        if value is None:
            continue
        head = heads.get(name)
        kind = type(value)
        if head is None:
            as_name(name)
            as_value(name, value)
            continue
        if kind not in _PLAIN:
            value = as_value(name, value)
            kind = type(value)
        if kind is str:
            try:
                text = value.encode()
            except UnicodeEncodeError:
                as_value(name, value)  # says which attribute it is
                raise
            texts.append(text)
            flat += (head | codes.STRING, len(text))
        elif kind is float:
            flat += (head | codes.FLOAT, len(doubles))
            doubles.append(value)
        elif kind is datetime:
            flat += (head | codes.TIME, instant_micros(value))
        elif kind is bool:
            flat += (head | codes.BOOL, value)
        else:
            if not INT_MIN <= value <= INT_MAX:
                as_value(name, value)  # says so
            flat += (head | codes.INT, value)
    return flat, doubles, texts
