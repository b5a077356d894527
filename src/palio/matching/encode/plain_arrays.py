"""Arrow arrays made of buffers, without pa.array, which imports pandas where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from palio.matching.encode.columns import Ints


def string_array(texts: Sequence[str]) -> Any:
    """An Arrow array of strings, without pa.array, which imports pandas where it is installed."""
    parts = [text.encode() for text in texts]
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    blob = pa.py_buffer(b"".join(parts))
    if offsets[-1] < 2**31:
        return pa.StringArray.from_buffers(len(parts), pa.py_buffer(offsets.astype(np.int32)), blob)
    return pa.LargeStringArray.from_buffers(len(parts), pa.py_buffer(offsets), blob)


def int64_array(numbers: Ints) -> Any:
    """An Arrow array of these numbers, without pa.array."""
    flat = np.ascontiguousarray(numbers, np.int64)
    return pa.Int64Array.from_buffers(pa.int64(), len(flat), [None, pa.py_buffer(flat)])
