"""The kernel that reads one JSON text into the words of a single message."""

from __future__ import annotations

from typing import Any

from palio.matching.encode.codes import ARRAY, FLOAT, STRING, TYPE_BITS
from palio.matching.encode.json_kernels import parse_row
from palio.matching.jit import borrowing


@borrowing
def read_text(
    data: Any, names: Any, scratch: Any, found: Any, counts: Any, words: Any, raw: Any
) -> bool:
    """Read an object; False when it is not plain, and Python must read it.

    The message is then in `words`, as `pivot/single_kernels.py` draws it; `raw` are the bytes of
    these words. counts: attributes, doubles, strings. There is room for all of them.
    """
    counts[:] = 0
    found.slots[:] = 0
    scratch.stamps[:] = 0
    if not parse_row(data, 0, len(data), 1, names, scratch, found, counts) or counts[2] > 0:
        return False
    count, doubles, strings = counts[0], 0, 0
    for i in range(count):
        type = found.type[i]
        words[2 * i] = (found.name[i] << TYPE_BITS) | type
        words[2 * i + 1] = found.floor[i]
        if type == FLOAT:
            words[2 * i + 1] = doubles
            words[2 * count + doubles] = found.floor[i]
            doubles += 1
    to = 8 * (2 * count + doubles)
    for i in range(count):
        if found.type[i] == STRING or found.type[i] == ARRAY:
            begin, end = found.begin[found.text[i]], found.begin[found.text[i] + 1]
            words[2 * i + 1] = end - begin
            strings += 1
            for k in range(begin, end):
                raw[to] = found.blob[k]
                to += 1
    counts[1], counts[2] = doubles, strings
    return True
