"""The kernels of table files: the checksum, and the checks that go through every constraint.

All are as fast as memory, so that loading can afford them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.codes import (
    ABSENT,
    ANY,
    BOOL,
    CONTAINS,
    DOMAIN_SHIFT,
    EVERY,
    FLOAT,
    GE,
    IN,
    NAME_SHIFT,
    NE,
    NOT_CONTAINS,
    NUMBER,
    OP_SHIFT,
    PREFIX,
    STRING,
    TIME,
)
from palio.matching.encoding_kernels import NAN_KEY
from palio.matching.jit import borrowing
from palio.model.values import TIME_MAX, TIME_MIN

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
def is_key(domain: int, key: Any, strings: int) -> bool:
    """Is there a value with this key?"""
    if domain == STRING:
        return 0 <= key < strings
    if domain == TIME:
        return TIME_MIN <= key <= TIME_MAX
    if domain == FLOAT:
        return -NAN_KEY < key <= NAN_KEY
    return domain != BOOL or key == 0 or key == 1


@borrowing
def has_sound_directories(pivots: Any, strings: int) -> bool:
    """Ways of filing that there are, with their types and keys; no two alike under one name."""
    directory_at, kinds, domains = pivots.directory_at, pivots.kind, pivots.domain
    keys_at, keys = pivots.keys_at, pivots.keys
    for d in range(len(kinds)):
        kind, domain = kinds[d], domains[d]
        if kind > ABSENT or kind == NE or kind == IN or domain > EVERY:
            return False
        if CONTAINS < kind <= NOT_CONTAINS or (PREFIX <= kind <= CONTAINS and domain != STRING):
            return False
        if kind < ANY:
            if domain > STRING:
                return False
            for k in range(keys_at[d], keys_at[d + 1]):
                if not is_key(domain, keys[k], strings):
                    return False
    for name in range(len(directory_at) - 1):
        for d in range(directory_at[name] + 1, directory_at[name + 1]):
            if kinds[d] * 8 + domains[d] <= kinds[d - 1] * 8 + domains[d - 1]:
                return False
    return True


@borrowing
def has_sound_constraints(
    rows: Any, column: int, pivots: Any, names: int, strings: int, checked: Any
) -> bool:
    """Inline constraints, whose heads are in this column: names, operators, types and keys.

    `checked` notes the sets that are known to hold strings.
    """
    set_at, set_keys = pivots.set_at, pivots.set_keys
    for r in range(len(rows)):
        head = rows[r, column]
        key = (np.int64(rows[r, column + 2]) << 32) | (np.int64(rows[r, column + 1]) & 0xFFFFFFFF)
        op, domain = (head >> OP_SHIFT) & 15, (head >> DOMAIN_SHIFT) & 7
        if head < 0 or head >> NAME_SHIFT >= names or op > ABSENT:
            return False
        if op <= GE:
            if domain > STRING or not is_key(domain, key, strings):
                return False
        elif op == IN:
            if domain > STRING or key < 0 or key >= len(checked):
                return False
            if domain == STRING and not checked[key]:
                for m in range(set_at[key], set_at[key + 1]):
                    if set_keys[m] < 0 or set_keys[m] >= strings:
                        return False
                checked[key] = 1
        elif op <= NOT_CONTAINS:
            if domain != STRING or key < 0 or key >= strings:
                return False
        elif domain == NUMBER:
            return False
    return True


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
