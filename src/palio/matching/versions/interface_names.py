"""The names of a table's interfaces by position, and back.

A few names are a dict. More are searched from end to end as Arrow has them, and filed in a hash
table by a kernel once searches have become many.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from palio.matching.encode.columns import Ints
from palio.matching.encode.plain_arrays import int64_array as int64_array
from palio.matching.encode.plain_arrays import string_array as string_array

_FEW = 4096  # names that a dict holds at no cost; more are filed by a kernel
_SCANS = 8  # how often names are searched from end to end before filing them is worth it


class InterfaceNames:
    """The names of a compiled table by position, and back; what is costly is made when needed."""

    def __init__(self, array: Any, listed: list[str] | None = None) -> None:
        self.array = array
        self._scans = 0
        if listed is not None:
            self.__dict__["listed"] = np.array(listed, object)

    def __len__(self) -> int:
        return len(self.array)

    @cached_property
    def listed(self) -> Ints:
        """The names as Python strings; made piece by piece, so that other threads get their turn."""
        pieces = (self.array.slice(at, _FEW) for at in range(0, len(self.array), _FEW))
        return np.array([name for piece in pieces for name in piece.to_pylist()], object)

    def position(self, name: str) -> int | None:
        """Where a name is, if anywhere."""
        if len(self) <= _FEW:
            return self._by_name.get(name)
        if "_filed" not in self.__dict__ and self._scans < _SCANS:
            self._scans += 1
            found = pc.index(self.array, pa.scalar(name, self.array.type)).as_py()
        else:
            found = self._find(name)
        return int(found) if found >= 0 else None

    def _find(self, name: str) -> int:
        from palio.matching.versions.name_kernels import find_name

        text = name.encode()
        found = find_name(*self._filed, np.frombuffer(text or b"\0", np.uint8), len(text))
        return int(found)

    @cached_property
    def _by_name(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.listed)}

    def file(self) -> None:
        """Make the index now, where many lookups are to come."""
        if len(self) > _FEW:
            self._find("")  # which loads its kernel too

    @cached_property
    def _filed(self) -> tuple[Ints, Ints, Ints]:
        from palio.matching.versions.name_kernels import fill_slots

        _, offsets, data = self.array.buffers()
        width = np.int64 if pa.types.is_large_string(self.array.type) else np.int32
        first = self.array.offset
        begin = np.frombuffer(offsets, width)[first : first + len(self) + 1].astype(np.int64)
        blob = np.frombuffer(data, np.uint8)
        blob.flags.writeable = False  # one kernel for all
        slots = np.zeros(1 << int(2 * len(self)).bit_length(), np.int32)
        fill_slots(blob, begin, slots)
        return blob, begin, slots
