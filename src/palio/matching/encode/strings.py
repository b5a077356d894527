"""The operands that are strings, hashed: every engine finds them by the pieces of a value.

`arrays` draws the result.
"""

from __future__ import annotations

import numpy as np

from palio.matching.encode import codes
from palio.matching.encode.arrays import Strings
from palio.matching.encode.columns import ConstraintColumns, Ints
from palio.matching.encode.text_kernels import build_hash


def build_strings(columns: ConstraintColumns) -> Strings:
    """The operands that are strings, hashed, with what each is used for."""
    lengths = np.fromiter(map(len, columns.strings), np.int64, len(columns.strings))
    begin = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    blob = np.frombuffer(b"".join(columns.strings) or b"\0", np.uint8).copy()  # writable
    size = 1 << max(4, int(2 * len(lengths)).bit_length())
    hashes, slots = np.zeros(len(lengths), np.uint64), np.zeros(size, np.int32)
    build_hash(blob, begin, hashes, slots)
    uses = np.zeros(len(lengths), np.uint8)
    used: list[Ints] = []
    for bit, op in ((1, codes.PREFIX), (2, codes.SUFFIX), (4, codes.CONTAINS)):
        ranks = np.unique(columns.key[columns.op == op])
        uses[ranks] |= bit
        used.append(np.unique(lengths[ranks]).astype(np.int32))
    return Strings(blob, begin, hashes, slots, uses, *used)
