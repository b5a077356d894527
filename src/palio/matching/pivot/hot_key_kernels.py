"""The kernels of hot keys: plain loops over `arrays.HotKeys`.

`survey` and `settle_in` make the groups of a table. For a row, `unite` takes all filters of two
constraints under the hot keys that it hits, and `spread` gives the candidates that are left. When the
interfaces are many there are no words (`width` is 0), and `spread` gives all candidates of the groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.bits import population
from palio.matching.encode.codes import DOMAIN_SHIFT, FLOAT, GE, GT, NAME_SHIFT, NE, OP_SHIFT
from palio.matching.encode.constraint_kernels import can_compare, span, unpack
from palio.matching.jit import borrowing

ONE = np.uint64(1)
ZERO = np.uint64(0)
OTHER = 2
GROUPS_MAX = 1000  # of a key: their candidates are noted together, so there must be room for them


@borrowing
def part_of(head: int, width: int) -> int:
    """Where an entry lies among those of its key: filters of two constraints, longer ones, and
    OTHER, whose second constraint is none that keys are sorted for. Without words the first two are one."""
    op = (head >> OP_SHIFT) & 15
    if op > GE or op == NE:
        return OTHER
    return 0 if head & 1 and width else 1


@borrowing
def group_of(head: int, width: int) -> int:
    """What the entries of a group have in common: with words also whether the filters end here."""
    return head if width else head & ~1


@borrowing
def survey(
    pivots: Any, least: int, least_of_group: int, width: int, words_max: int, found: Any
) -> None:
    """For each hot key, how many groups it has of two constraints, and of more, and how many
    keys in them; `found` is of zeros.

    A key is hot when it has at least so many entries, they lie in the order that groups need,
    and for each entry the groups take no more than so many words. Without words, entries behind the
    last group of `least_of_group` entries in order are in no group, and most must be in one.
    """
    entries, entries_at = pivots.entries, pivots.entries_at
    for k in range(len(entries_at) - 1):
        low, high = entries_at[k], entries_at[k + 1]
        if high - low < least:
            continue
        pairs, longer, keys, e = 0, 0, 0, low
        part, last = 0, -1
        while e < high:
            group, own = group_of(entries[e, 2], width), part_of(entries[e, 2], width)
            if own == OTHER or own < part or (own == part and group <= last):
                break
            key, own_keys, end = unpack(entries[e, 3], entries[e, 4]), 1, e + 1
            is_sorted = True
            while end < high and group_of(entries[end, 2], width) == group:
                next_key = unpack(entries[end, 3], entries[end, 4])
                is_sorted &= next_key >= key
                own_keys += next_key != key
                key = next_key
                end += 1
            if not is_sorted or (width == 0 and end - e < least_of_group):
                break
            pairs += own == 0
            longer += own == 1
            keys += own_keys
            part, last, e = own, group, end
        if pairs + longer > GROUPS_MAX or keys * width > words_max * (high - low):
            continue
        if width:
            is_worth = e == high or part_of(entries[e, 2], width) == OTHER
        else:
            is_worth = 2 * (e - low) > high - low
        if is_worth:
            found[k, 0], found[k, 1], found[k, 2] = pairs, longer, keys


@borrowing
def settle_in(pivots: Any, width: int, counted: Any, hot_keys: Any) -> None:
    """Fill the groups; their numbers are in place, and words are of zeros. `counted` are the keys in
    the groups of each hot key."""
    entries, entries_at = pivots.entries, pivots.entries_at
    heads, keys_at, keys = hot_keys.head, hot_keys.keys_at, hot_keys.keys
    words, first = hot_keys.words, hot_keys.first
    g = at = -1
    ends = 0
    for c in range(len(hot_keys.key)):
        e, end = entries_at[hot_keys.key[c]], entries_at[hot_keys.key[c] + 1]
        ends += counted[c]
        head = -1
        while e < end and part_of(entries[e, 2], width) != OTHER:
            group = group_of(entries[e, 2], width)
            key, owner = unpack(entries[e, 3], entries[e, 4]), entries[e, 0]
            if group != head or key != keys[at]:
                if at + 1 == ends:
                    break
                at += 1
                keys[at], first[at] = key, e
            if group != head:
                head = group
                g += 1
                heads[g], keys_at[g] = entries[e, 2], at
            if width:
                words[at * width + (owner >> 6)] |= ONE << np.uint64(owner & 63)
            e += 1
        hot_keys.others[c] = e
    keys_at[g + 1] = at + 1


@borrowing
def satisfied(hot_keys: Any, batch: Any, slot: Any, g: int) -> tuple[int, int, int]:
    """The keys of a group that a row satisfies, and the one of them where the words of all are."""
    head = hot_keys.head[g]
    j, domain = slot[head >> NAME_SHIFT] - 1, (head >> DOMAIN_SHIFT) & 7
    if j < 0 or not can_compare(batch.type[j], domain):
        return 0, 0, 0
    op = (head >> OP_SHIFT) & 15
    floor = batch.float_floor[j] if domain == FLOAT else batch.floor[j]
    place = batch.float_place[j] if domain == FLOAT else batch.place[j]
    a, b = span(op, hot_keys.keys, hot_keys.keys_at[g], hot_keys.keys_at[g + 1], floor, place)
    return a, b, b - 1 if op == GT or op == GE else a


@borrowing
def unite(
    hot_keys: Any, batch: Any, scratch: Any, count: int, width: int, matched: int, reach: int
) -> int:
    """Set the bits of the filters of two constraints under the first `count` hot keys of the row:
    a search for each group. Returns how many interfaces are matched."""
    slot, hot, bits = scratch.slot, scratch.hot, scratch.bits
    groups_at, words = hot_keys.groups_at, hot_keys.words
    for i in range(count):
        c = hot[i]
        for g in range(groups_at[2 * c], groups_at[2 * c + 1]):
            a, b, at = satisfied(hot_keys, batch, slot, g)
            for w in range(width if a < b else 0):
                new = words[at * width + w] & ~bits[w]
                bits[w] |= new
                matched += population(new)
        if matched >= reach:
            break
    return matched


@borrowing
def spread(
    pivots: Any, hot_keys: Any, batch: Any, scratch: Any, done: int, count: int, width: int,
    noted: int,
) -> tuple[int, int]:
    """Note the longer filters under hot keys [done, count) whose second constraint holds, unless
    their interfaces are all matched, and those that are in no group. Without words all filters in
    groups are longer ones.

    Returns the hot keys that are done, as many as there is room for, and the ranges noted.
    """
    slot, hot, bits, ranges = scratch.slot, scratch.hot, scratch.bits, scratch.ranges
    groups_at, words, first = hot_keys.groups_at, hot_keys.words, hot_keys.first
    while done < count:
        c = hot[done]
        low, high = groups_at[2 * c + 1], groups_at[2 * c + 2]
        if noted + high - low + 1 > len(ranges):
            break
        for g in range(low, high):
            a, b, at = satisfied(hot_keys, batch, slot, g)
            missing = ZERO
            for w in range(width if a < b else 0):
                missing |= words[at * width + w] & ~bits[w]
            if missing != ZERO or (width == 0 and a < b):
                ranges[noted, 0] = first[a]
                ranges[noted, 1] = first[b] if b < hot_keys.keys_at[high] else hot_keys.others[c]
                noted += 1
        ranges[noted, 0] = hot_keys.others[c]
        ranges[noted, 1] = pivots.entries_at[hot_keys.key[c] + 1]
        noted += ranges[noted, 0] < ranges[noted, 1]
        done += 1
    return done, noted
