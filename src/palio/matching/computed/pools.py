"""The strings that columns point into, each mostly once.

They come as bytes (out of a batch) or as Python's strings (out of a function), and are turned into the
other form only where that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from palio.matching.computed.distinct import distinct_with_samples
from palio.matching.encode.columns import Ints

_Reader: TypeAlias = Callable[[str], bytes | None]


class StringPool:
    """Strings by their positions."""

    __slots__ = ("_begin", "_blob", "_bytes", "_known", "_strings", "_text")

    def __init__(self, strings: list[str], blob: Ints | None = None, begin: Ints | None = None):
        self._strings, self._blob, self._begin = strings, blob, begin
        self._bytes: bytes | None = None
        self._text: str | None = None  # of bytes that are ASCII
        self._known: dict[_Reader, dict[int, bytes | None]] = {}

    @classmethod
    def of_bytes(cls, blob: Ints, begin: Ints) -> StringPool:
        """String i has the bytes blob[begin[i] : begin[i + 1]], in UTF-8."""
        frozen = blob[: max(1, int(begin[-1]))]
        frozen.setflags(write=False)
        return cls([], frozen, begin)

    def __len__(self) -> int:
        return len(self._strings) if self._begin is None else len(self._begin) - 1

    def at(self, positions: Ints) -> list[str]:
        """The strings at these positions."""
        if self._blob is None or self._begin is None:
            strings = self._strings
            return [strings[position] for position in positions.tolist()]
        if self._bytes is None:
            self._bytes = self._blob.tobytes()
            self._text = self._bytes.decode("ascii") if self._bytes.isascii() else None
        begin, end = self._begin[positions].tolist(), self._begin[positions + 1].tolist()
        if self._text is not None:
            text = self._text
            return [text[a:b] for a, b in zip(begin, end, strict=True)]
        content = self._bytes
        return [content[a:b].decode() for a, b in zip(begin, end, strict=True)]

    def bytes_at(self, positions: Ints) -> tuple[Ints, Ints, Ints]:
        """Bytes, where each string begins in them, and the positions of these strings there."""
        if self._blob is not None and self._begin is not None:
            return self._blob, self._begin, positions
        number, used = distinct_with_samples(positions)
        content, begin = _joined_bytes([string.encode() for string in self.at(used)], np.uint8)
        return content, begin, number

    def read_at(self, positions: Ints, read: _Reader) -> tuple[Ints, Ints, Ints, Ints]:
        """What is read out of each string, as int16: where each begins, the positions of these strings
        there, and which cannot be read. Each string is read once."""
        known = self._known.setdefault(read, {})
        number, used = distinct_with_samples(positions)
        new = [position for position in used.tolist() if position not in known]
        for position, string in zip(new, self.at(np.array(new, np.int64)), strict=True):
            known[position] = read(string)
        found = [known[position] for position in used.tolist()]
        content, begin = _joined_bytes([one or b"" for one in found], np.int16)
        return content, begin, number, np.array([one is None for one in found])[number]

    @property
    def parts(self) -> tuple[StringPool, ...]:
        return (self,)


def _joined_bytes(parts: list[bytes], kind: type) -> tuple[Ints, Ints]:
    size = np.dtype(kind).itemsize
    begin = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([*map(len, parts)], out=begin[1:])
    return np.frombuffer(b"".join(parts) or bytes(size), kind), begin // size


class JoinedPool(StringPool):
    """Several pools one after the other, none of which is copied."""

    __slots__ = ("_bases", "_parts")

    def __init__(self, parts: tuple[StringPool, ...]) -> None:
        super().__init__([])
        self._parts = parts
        self._bases = np.zeros(len(parts) + 1, np.int64)
        np.cumsum([len(part) for part in parts], out=self._bases[1:])

    def __len__(self) -> int:
        return int(self._bases[-1])

    def at(self, positions: Ints) -> list[str]:
        which = np.searchsorted(self._bases, positions, "right") - 1
        found = [""] * len(positions)
        for number, part in enumerate(self._parts):
            own = np.flatnonzero(which == number)
            strings = part.at(positions[own] - self._bases[number])
            for at, string in zip(own.tolist(), strings, strict=True):
                found[at] = string
        return found

    @property
    def parts(self) -> tuple[StringPool, ...]:
        return self._parts


NO_STRINGS = StringPool([])


def joined(pools: Sequence[StringPool]) -> tuple[StringPool, list[int]]:
    """One pool for all, and where the positions of each begin in it."""
    parts: list[StringPool] = []
    base: dict[int, int] = {}
    size = 0
    begins = []
    for pool in pools:
        if id(pool) not in base and len(pool):
            base[id(pool)] = size
            parts += pool.parts
            size += len(pool)
        begins.append(base.get(id(pool), 0))
    if not parts:
        return NO_STRINGS, begins
    return (parts[0] if len(parts) == 1 else JoinedPool(tuple(parts))), begins
