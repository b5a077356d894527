"""Forwarding limited to some interfaces (2003, figure 7: `all ifs - B`).

Callers give the positions of those interfaces, ascending; kernels get the bits of all others, and
begin a message as if these were decided: their filters are skipped, and the message ends when the
few that are left are matched.
"""

from __future__ import annotations

import numpy as np

from palio.matching.encode.columns import Ints

_ALL = np.uint64(2**64 - 1)
_ONE = np.uint64(1)


def excluded_bits(interfaces: int, among: Ints) -> Ints:
    """The bits of all interfaces but those at some positions.

    >>> [hex(word) for word in excluded_bits(68, np.array([0, 2, 64]))]
    ['0xfffffffffffffffa', '0xe']
    """
    bits = np.full((interfaces + 63) // 64, _ALL)
    if interfaces & 63:
        bits[-1] = (_ONE << np.uint64(interfaces & 63)) - _ONE
    np.bitwise_and.at(bits, among >> 6, ~(_ONE << (among & 63).astype(np.uint64)))
    return bits
