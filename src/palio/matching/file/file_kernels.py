"""The kernels of table files: the checksum, and the checks that go through every constraint.

All are as fast as memory, so that loading can afford them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.encode.codes import DOMAIN_SHIFT, IN, NAME_SHIFT, STRING
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


@borrowing
def has_sound_directories(pivots: Any, low: Any, high: Any) -> bool:
    """Ways of filing that there are, with their keys; no two alike under one name.

    A key under operator and domain is from low[op << 3 | domain] to high[op << 3 | domain].
    """
    directory_at, kinds, domains = pivots.directory_at, pivots.kind, pivots.domain
    keys_at, keys = pivots.keys_at, pivots.keys
    for d in range(len(kinds)):
        if kinds[d] > 15 or domains[d] > 7:
            return False
        way = (np.int64(kinds[d]) << 3) | domains[d]
        if low[way] > high[way]:
            return False
        for k in range(keys_at[d], keys_at[d + 1]):
            if keys[k] < low[way] or keys[k] > high[way]:
                return False
    for name in range(len(directory_at) - 1):
        for d in range(directory_at[name] + 1, directory_at[name + 1]):
            if kinds[d] < kinds[d - 1]:
                return False
            if kinds[d] == kinds[d - 1] and domains[d] <= domains[d - 1]:
                return False
    return True


@borrowing
def has_sound_constraints(
    rows: Any, column: int, pivots: Any, names: int, strings: int, low: Any, high: Any, known: Any
) -> bool:
    """Inline constraints, whose heads are in this column: names, operators, types and keys.

    `known` notes the sets whose members are ranks of strings.
    """
    set_at, set_keys = pivots.set_at, pivots.set_keys
    sound = True
    for r in range(len(rows)):
        head = rows[r, column]
        key = (np.int64(rows[r, column + 2]) << 32) | (np.int64(rows[r, column + 1]) & 0xFFFFFFFF)
        way = (head >> DOMAIN_SHIFT) & 127
        # All in one: operators come at random, and a wrong guess of a branch costs more.
        sound &= (head >= 0) & (head >> NAME_SHIFT < names) & (low[way] <= key) & (key <= high[way])
        if way == IN << 3 | STRING and sound and not known[key]:
            known[key] = 1
            for m in range(set_at[key], set_at[key + 1]):
                sound &= (set_keys[m] >= 0) & (set_keys[m] < strings)
    return sound


@borrowing
def is_once(pivots: Any, seen: Any) -> bool:
    """Is no interface filed twice? `seen` is of zeros."""
    for i in range(len(pivots.alone)):
        if seen[pivots.alone[i]]:
            return False
        seen[pivots.alone[i]] = 1
    for e in range(len(pivots.entries)):
        if seen[pivots.entries[e, 0]]:
            return False
        seen[pivots.entries[e, 0]] = 1
    return True
