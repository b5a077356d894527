"""One JSON text as a column of one row, without copying bytes: what the readers of columns read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from palio.errors import InvalidValue

_TEXT_MAX = 2**31 - 1  # bytes; the offsets of the column are short


def json_column(text: object) -> Any:
    """A column with this text.

    >>> json_column(b'{"x": 1}').to_pylist()
    [b'{"x": 1}']
    """
    if isinstance(text, str):
        data: Any = text.encode("utf-8", "surrogatepass")  # the reader says that it is not UTF-8
    elif isinstance(text, bytes | bytearray | memoryview):
        data = text
    else:
        raise InvalidValue(
            f"a message in JSON is bytes or text, not {type(text).__name__}",
            remedy="`forward` takes a mapping",
        )
    content = pa.py_buffer(data)
    if content.size > _TEXT_MAX:
        raise InvalidValue(f"a message of {content.size:,} bytes; {_TEXT_MAX:,} are the most")
    ends = pa.py_buffer(np.array([0, content.size], np.int32))
    return pa.BinaryArray.from_buffers(pa.binary(), 1, [None, ends, content])
