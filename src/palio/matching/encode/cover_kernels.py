"""The kernels that find filters which a filter of one constraint makes useless.

Such single constraints are kept in an open-addressing table, by interface, name, domain and what
they are: the widest ray upwards, the widest ray downwards, or a point (operator and key).

    slots      hash(interface, name, domain, shape, key) -> constraint + 1; 0 is free
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.encode.codes import (
    ABSENT,
    ANY,
    CONTAINS,
    EQ,
    EVERY,
    FLOAT,
    GE,
    GT,
    INT,
    LE,
    LT,
    PREFIX,
    STRING,
    SUFFIX,
)
from palio.matching.jit import borrowing

UP, DOWN = 16, 17  # shapes of rays; those of points are their operators
MIX = np.uint64(0x9E3779B97F4A7C15)
FOLD = np.uint64(29)
ONE = np.uint64(1)


@borrowing
def mixed(owner: int, name: int, domain: int, shape: int, key: int) -> Any:
    h = np.uint64(owner) * MIX ^ np.uint64(name)
    h = (h ^ (h >> FOLD)) * MIX ^ np.uint64(domain * 32 + shape)
    h = (h ^ (h >> FOLD)) * MIX ^ np.uint64(key)
    h = (h ^ (h >> FOLD)) * MIX
    return h ^ (h >> FOLD)


@borrowing
def shape_of(op: int) -> int:
    if op == GT or op == GE:
        return UP
    if op == LT or op == LE:
        return DOWN
    return int(op)


@borrowing
def find(
    slots: Any, owners: Any, names: Any, ops: Any, domains: Any, keys: Any, owner: int, name: int,
    domain: int, shape: int, key: int,
) -> Any:
    """The place in `slots` of the constraint asked for, or of the free slot where it belongs."""
    is_ray = shape >= UP
    mask = np.uint64(len(slots) - 1)
    at = mixed(owner, name, domain, shape, 0 if is_ray else key) & mask
    while slots[at] != 0:
        c = slots[at] - 1
        if (
            owners[c] == owner
            and names[c] == name
            and domains[c] == domain
            and shape_of(ops[c]) == shape
            and (is_ray or keys[c] == key)
        ):
            break
        at = (at + ONE) & mask
    return at


@borrowing
def is_within(op: int, key: int, ray_op: int, ray_key: int) -> bool:
    """Does the ray have all that `op key` selects? Both are of one domain."""
    if key == ray_key:
        return ray_op == GE or ray_op == LE or op == ray_op
    return key > ray_key if ray_op == GT or ray_op == GE else key < ray_key


@borrowing
def enter_singles(
    singles: Any, owners: Any, names: Any, ops: Any, domains: Any, keys: Any, slots: Any
) -> None:
    """Put the single constraints into the table; of the rays of one place the widest stays."""
    for i in range(len(singles)):
        c = singles[i]
        shape = shape_of(ops[c])
        at = find(
            slots, owners, names, ops, domains, keys, owners[c], names[c], domains[c], shape, keys[c]
        )
        if slots[at] == 0:
            slots[at] = c + 1
        elif shape >= UP:
            known = slots[at] - 1
            if is_within(ops[known], keys[known], ops[c], keys[c]):
                slots[at] = c + 1


@borrowing
def is_covered(
    c: int, slots: Any, owners: Any, names: Any, ops: Any, domains: Any, keys: Any, starts: Any,
    hits: Any,
) -> bool:
    """Is there another single constraint of the interface that selects all that c does?"""
    owner, name, op, domain, key = owners[c], names[c], ops[c], domains[c], keys[c]
    found = slots[find(slots, owners, names, ops, domains, keys, owner, name, domain, op, key)] - 1
    if shape_of(op) < UP and found >= 0 and found != c:
        return True
    if op == ABSENT:
        return False
    found = slots[find(slots, owners, names, ops, domains, keys, owner, name, EVERY, ANY, 0)] - 1
    if found >= 0 and found != c:
        return True
    is_number = domain == INT or domain == FLOAT
    if not (is_number or domain == EVERY or op == ANY) and slots[
        find(slots, owners, names, ops, domains, keys, owner, name, domain, ANY, 0)
    ]:
        return True
    if op == EQ or op == GT or op == GE:
        at = find(slots, owners, names, ops, domains, keys, owner, name, domain, UP, 0)
        found = slots[at] - 1
        if found >= 0 and found != c and is_within(op, key, ops[found], keys[found]):
            return True
    if op == EQ or op == LT or op == LE:
        at = find(slots, owners, names, ops, domains, keys, owner, name, domain, DOWN, 0)
        found = slots[at] - 1
        if found >= 0 and found != c and is_within(op, key, ops[found], keys[found]):
            return True
    if domain != STRING or not (op == EQ or op == PREFIX or op == SUFFIX or op == CONTAINS):
        return False
    for shape in range(PREFIX, CONTAINS + 1):
        if shape != CONTAINS and op != EQ and op != shape:
            continue  # what begins so may end otherwise
        run = 4 * key + shape - PREFIX
        for i in range(starts[run], starts[run + 1]):
            if shape != op or hits[i] != key:
                at = find(
                    slots, owners, names, ops, domains, keys, owner, name, domain, shape, hits[i]
                )
                if slots[at]:
                    return True
    return False


@borrowing
def mark_covered(
    filters: Any, owners: Any, names: Any, ops: Any, domains: Any, keys: Any, starts: Any,
    hits: Any, slots: Any, covered: Any,
) -> None:
    """covered[f] = 1 for every filter that has a covered constraint."""
    for c in range(len(filters)):
        if not covered[filters[c]] and is_covered(
            c, slots, owners, names, ops, domains, keys, starts, hits
        ):
            covered[filters[c]] = 1
