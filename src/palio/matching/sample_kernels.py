"""The kernels of a sample: plain loops that count how many of its values satisfy a constraint.

The sampled values lie sorted by group (name and domain), then floor key and place; `order` is the
place as it sorts: 0 below its key, 1 equal to it, 2 above.
"""

from __future__ import annotations

from typing import Any

from palio.matching.codes import (
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
from palio.matching.constraint_kernels import upper_bound
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
def count_hits(
    name: Any, op: Any, domain: Any, key: Any, set_start: Any, set_split: Any, set_keys: Any,
    rows: int, present: Any, group_at: Any, floors: Any, order: Any, pieces: Any, pieces_at: Any,
    out: Any,
) -> None:
    """For each constraint, as filters are filed under it, how many sampled messages satisfy it.

    present[8 * name + type] counts values, group_at[8 * name + domain] begins a group, and piece
    p (name * 3 + kind << 32 | rank, sorted) is in pieces_at[p + 1] - pieces_at[p] messages.
    """
    for i in range(len(name)):
        if name[i] < 0:
            out[i] = rows
            continue
        base, kind = 8 * name[i], op[i]
        where = base + domain[i]
        if kind == ABSENT or (kind == ANY and domain[i] == EVERY):
            found = 0
            for t in range(8):
                found += present[base + t]
            out[i] = rows - found if kind == ABSENT else found
        elif kind == ANY and domain[i] == NUMBER:
            out[i] = present[base + INT] + present[base + FLOAT]
        elif kind == ANY:
            out[i] = present[where]
        elif kind <= GE:
            low, high = group_at[where], group_at[where + 1]
            out[i] = count_ordered(kind, floors, order, low, high, key[i])
        elif kind == IN:
            found = 0
            for m in range(set_start[key[i]], set_start[key[i] + 1]):
                g = where if m < set_split[key[i]] else base + FLOAT
                found += count_equal(floors, order, group_at[g], group_at[g + 1], set_keys[m])
            out[i] = found
        else:
            code = (3 * name[i] + kind - PREFIX) << 32 | key[i]
            p = upper_bound(pieces, 0, len(pieces), code) - 1
            out[i] = pieces_at[p + 1] - pieces_at[p] if p >= 0 and pieces[p] == code else 0
