"""The checksum of a table file: as fast as memory, so that loading can afford it."""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.jit import borrowing

PRIME = np.uint64(0x9E3779B185EBCA87)
SHIFT = np.uint64(29)


@borrowing
def checksum(words: Any) -> Any:
    """A hash of 64-bit words in four lanes; each word, and its place, makes a difference."""
    a, b, c, d = PRIME, PRIME + np.uint64(1), PRIME + np.uint64(2), PRIME + np.uint64(3)
    whole = len(words) - len(words) % 4
    for i in range(0, whole, 4):
        a = (a ^ words[i]) * PRIME
        b = (b ^ words[i + 1]) * PRIME
        c = (c ^ words[i + 2]) * PRIME
        d = (d ^ words[i + 3]) * PRIME
        a ^= a >> SHIFT
        b ^= b >> SHIFT
        c ^= c >> SHIFT
        d ^= d >> SHIFT
    for i in range(whole, len(words)):
        a = (a ^ words[i]) * PRIME
        a ^= a >> SHIFT
    for other in (b, c, d):
        a = (a ^ other) * PRIME
        a ^= a >> SHIFT
    return a
