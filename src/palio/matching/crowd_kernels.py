"""The kernels of crowded keys: plain loops over `arrays.Crowds`.

`survey` and `settle_in` make the groups and runs of a table; `unite` takes all filters of two
constraints under the crowded keys that a row hits, `spread` gives the candidates that are left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.bits import population
from palio.matching.codes import DOMAIN_SHIFT, FLOAT, GE, GT, NAME_SHIFT, NE, OP_SHIFT
from palio.matching.constraint_kernels import can_compare, span, unpack
from palio.matching.jit import borrowing

ONE = np.uint64(1)
ZERO = np.uint64(0)


@borrowing
def is_pair(head: int) -> bool:
    """Is this the only constraint besides the pivot, and one that keys are sorted for?"""
    op = (head >> OP_SHIFT) & 15
    return head & 1 != 0 and op <= GE and op != NE


@borrowing
def survey(pivots: Any, least: int, width: int, per_entry: int, found: Any) -> None:
    """For each crowded key, the numbers of its groups, of the keys in them, and of runs and one.

    `found` is of zeros. A key is crowded when it has at least so many entries, which lie as groups
    and runs need it, and when the words of its groups are not too many for each entry.
    """
    entries, entries_at = pivots.entries, pivots.entries_at
    for k in range(len(entries_at) - 1):
        e, end = entries_at[k], entries_at[k + 1]
        if end - e < least:
            continue
        groups, keys, runs, is_sorted = 0, 0, 0, True
        head, key, owner = -1, np.int64(0), -1
        while e < end and is_pair(entries[e, 2]):
            other = unpack(entries[e, 3], entries[e, 4])
            if entries[e, 2] != head:
                is_sorted &= entries[e, 2] > head
                groups += 1
                keys += 1
            elif other != key:
                is_sorted &= other > key
                keys += 1
            head, key = entries[e, 2], other
            e += 1
        while e < end:
            is_sorted &= entries[e, 0] >= owner and not is_pair(entries[e, 2])
            runs += entries[e, 0] != owner
            owner = entries[e, 0]
            e += 1
        if is_sorted and keys * width <= per_entry * (end - entries_at[k]):
            found[k, 0], found[k, 1], found[k, 2] = groups, keys, runs + 1


@borrowing
def settle_in(pivots: Any, width: int, crowds: Any) -> None:
    """Fill the groups and runs; their numbers are in place, and words and owners are of zeros."""
    entries, entries_at = pivots.entries, pivots.entries_at
    keys, words, owners, run = crowds.keys, crowds.words, crowds.owners, crowds.run
    g = at = -1
    for c in range(len(crowds.key)):
        e, end = entries_at[crowds.key[c]], entries_at[crowds.key[c] + 1]
        head = -1
        while e < end and is_pair(entries[e, 2]):
            key = unpack(entries[e, 3], entries[e, 4])
            if entries[e, 2] != head:
                head = entries[e, 2]
                g += 1
                at += 1
                crowds.head[g], crowds.keys_at[g], keys[at] = head, at, key
            elif key != keys[at]:
                at += 1
                keys[at] = key
            words[at * width + (entries[e, 0] >> 6)] |= ONE << np.uint64(entries[e, 0] & 63)
            e += 1
        r, owner = crowds.runs_at[c], -1
        while e < end:
            if entries[e, 0] != owner:
                owner = entries[e, 0]
                owners[c * width + (owner >> 6)] |= ONE << np.uint64(owner & 63)
                run[r] = e
                r += 1
            e += 1
        run[r] = end
    crowds.keys_at[g + 1] = at + 1


@borrowing
def unite(
    crowds: Any, batch: Any, slot: Any, crowded: Any, count: int, width: int, bits: Any, matched:
    int, reach: int,
) -> int:
    """Set the bits of the filters of two constraints under these crowded keys: a search for each
    group. Returns how many interfaces are matched."""
    heads, keys_at, keys, words = crowds.head, crowds.keys_at, crowds.keys, crowds.words
    types, floors, places = batch.type, batch.floor, batch.place
    float_floors, float_places = batch.float_floor, batch.float_place
    for i in range(count):
        c = crowded[i]
        for g in range(crowds.groups_at[c], crowds.groups_at[c + 1]):
            head = heads[g]
            j, domain = slot[head >> NAME_SHIFT] - 1, (head >> DOMAIN_SHIFT) & 7
            if j < 0 or not can_compare(types[j], domain):
                continue
            op = (head >> OP_SHIFT) & 15
            floor = float_floors[j] if domain == FLOAT else floors[j]
            place = float_places[j] if domain == FLOAT else places[j]
            a, b = span(op, keys, keys_at[g], keys_at[g + 1], floor, place)
            if a == b:
                continue
            at = (b - 1 if op == GT or op == GE else a) * width
            for w in range(width):
                new = words[at + w] & ~bits[w]
                bits[w] |= new
                matched += population(new)
        if matched >= reach:
            break
    return matched


@borrowing
def spread(
    crowds: Any, crowded: Any, done: int, count: int, width: int, bits: Any, ranges: Any, noted: int
) -> tuple[int, int]:
    """Note the other candidates under crowded keys [done, count), of interfaces not matched yet.

    Returns the crowded keys that are done, as many as there is room for, and the ranges noted.
    """
    runs_at, run, owners = crowds.runs_at, crowds.run, crowds.owners
    while done < count:
        c = crowded[done]
        r = runs_at[c]
        if noted + runs_at[c + 1] - r > len(ranges):
            break
        for w in range(width):
            all_here = owners[c * width + w]
            left = all_here & ~bits[w]
            while left != ZERO:
                below = (left & (~left + ONE)) - ONE
                own = r + population(all_here & below)
                if noted and ranges[noted - 1, 1] == run[own]:
                    ranges[noted - 1, 1] = run[own + 1]
                else:
                    ranges[noted, 0] = run[own]
                    ranges[noted, 1] = run[own + 1]
                    noted += 1
                left &= left - ONE
            r += population(all_here)
        done += 1
    return done, noted
