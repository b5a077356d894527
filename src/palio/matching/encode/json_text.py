"""One message in JSON, read into the words of a single message without a Python object for a value."""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.encode.columns import Ints
from palio.matching.encode.json_kernels import DEPTH, LONG
from palio.matching.encode.json_messages import JsonAttributes, JsonScratch
from palio.matching.encode.json_text_kernels import read_text
from palio.matching.encode.names import NameIndex, power_of_two

_ROOM = 1 << 10  # bytes of a text, to begin with


def words_max(size: int) -> int:
    """The most words that a text of so many bytes becomes."""
    return 3 * (size // 4 + 1) + size // 8 + 1


class JsonTextReader:
    """Reads one text at a time, with buffers that it keeps; for one thread."""

    def __init__(self, index: NameIndex) -> None:
        self._names = index.arrays
        self.counts = np.zeros(3, np.int64)
        """Attributes, doubles and strings of the last text."""
        self._make_room(_ROOM)

    def _make_room(self, size: int) -> None:
        self._size, most = size, size // 4 + 1
        slots = power_of_two(2 * most + 2)
        self._scratch = JsonScratch(
            path=np.empty(size + 64, np.uint8),
            lengths=np.zeros(DEPTH, np.int64),
            hashes=np.zeros(DEPTH, np.uint64),
            seen=np.zeros(slots, np.uint64),
            stamps=np.zeros(slots, np.int64),
        )
        self._found = JsonAttributes(
            name=np.empty(most, np.int32),
            type=np.empty(most, np.uint8),
            floor=np.empty(most, np.int64),
            text=np.empty(most, np.int32),
            blob=np.empty(size, np.uint8),
            begin=np.zeros(most + 1, np.int64),
            hashes=np.empty(most, np.uint64),
            slots=np.zeros(slots, np.int32),
            hard=np.empty((most, 3), np.int64),
        )

    def read(self, text: Any, words: Ints, raw: Ints) -> bool:
        """Read a text into words, of which there are enough; False: Python must read it."""
        if not 0 < len(text) <= LONG:
            return False
        if len(text) > self._size:
            self._make_room(power_of_two(len(text)))
        data = np.frombuffer(text, np.uint8)
        data.setflags(write=False)
        is_read = read_text(data, self._names, self._scratch, self._found, self.counts, words, raw)
        return bool(is_read)
