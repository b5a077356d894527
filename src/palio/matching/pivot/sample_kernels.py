"""The kernels of a sample: plain loops that count how many of its values satisfy a constraint.

The sampled values lie sorted by group (name and domain), then floor key and place; `order` is the
place as it sorts: 0 below its key, 1 equal to it, 2 above.
"""

from __future__ import annotations

from typing import Any

from palio.matching.encode.codes import (
    ABSENT,
    ANY,
    EQ,
    EVERY,
    FLOAT,
    GE,
    IN,
    INT,
    LE,
    LT,
    NUMBER,
    PREFIX,
)
from palio.matching.encode.constraint_kernels import upper_bound
from palio.matching.jit import borrowing


@borrowing
def values_up_to(floors: Any, order: Any, low: int, high: int, key: int, last: int) -> int:
    """Where the values whose (floor, order) is at most (key, last) end in [low, high)."""
    while low < high:
        middle = (low + high) >> 1
        if floors[middle] < key or (floors[middle] == key and order[middle] <= last):
            low = middle + 1
        else:
            high = middle
    return low


@borrowing
def count_equal(floors: Any, order: Any, low: int, high: int, key: int) -> int:
    below = values_up_to(floors, order, low, high, key, 0)
    return values_up_to(floors, order, below, high, key, 1) - below


@borrowing
def count_ordered(op: int, floors: Any, order: Any, low: int, high: int, key: int) -> int:
    """How many values satisfy =, <, <=, > or >= with a key."""
    if op == EQ:
        return count_equal(floors, order, low, high, key)
    at = values_up_to(floors, order, low, high, key, 0 if op == LT or op == GE else 1)
    return at - low if op == LT or op == LE else high - at


@borrowing
def count_hits(constraints: Any, values: Any, out: Any) -> None:
    """For each of the constraints, as filters are filed under it, how many sampled messages satisfy
    it. `arrays` draws both."""
    names, ops, domains, keys = (
        constraints.name, constraints.op, constraints.domain, constraints.key
    )
    present, group_at, floors, order = (
        values.present, values.group_at, values.floors, values.order
    )
    for i in range(len(names)):
        if names[i] < 0:
            out[i] = values.rows
            continue
        base, kind, domain, key = 8 * names[i], ops[i], domains[i], keys[i]
        where = base + domain
        if kind == ABSENT or (kind == ANY and domain == EVERY):
            found = 0
            for t in range(8):
                found += present[base + t]
            out[i] = values.rows - found if kind == ABSENT else found
        elif kind == ANY and domain == NUMBER:
            out[i] = present[base + INT] + present[base + FLOAT]
        elif kind == ANY:
            out[i] = present[where]
        elif kind <= GE:
            out[i] = count_ordered(kind, floors, order, group_at[where], group_at[where + 1], key)
        elif kind == IN:
            found = 0
            for m in range(constraints.set_at[key], constraints.set_at[key + 1]):
                g = where if m < constraints.set_split[key] else base + FLOAT
                member = constraints.set_keys[m]
                found += count_equal(floors, order, group_at[g], group_at[g + 1], member)
            out[i] = found
        else:
            code = (3 * names[i] + kind - PREFIX) << 32 | key
            p = upper_bound(values.pieces, 0, len(values.pieces), code) - 1
            is_known = p >= 0 and values.pieces[p] == code
            out[i] = values.pieces_at[p + 1] - values.pieces_at[p] if is_known else 0
