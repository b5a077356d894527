"""The kernels of the constraint index: which constraints does an attribute satisfy?

They note runs of constraints, [a, b) each, in `CountingScratch.runs`; `arrays` draws the index.
"""

from __future__ import annotations

from typing import Any

from palio.matching.encode import codes
from palio.matching.encode.constraint_kernels import compare, holds_text, upper_bound
from palio.matching.jit import borrowing

# How strings find their constraints: a pool of operands and hashed pieces, a list for each operator,
# a ternary search tree for each name, or comparing with every operand.
POOL, OPERATORS, TREE, SCAN = range(4)

STRINGS_COMPARED = 7  # where work is counted


@borrowing
def emit(runs: Any, count: int, low: int, high: int) -> int:
    """Note the constraints [low, high), if there are any."""
    if low >= high:
        return count
    runs[count, 0] = low
    runs[count, 1] = high
    return count + 1


@borrowing
def find_ordered(
    kind: int, keys: Any, low: int, high: int, floor: int, place: int, runs: Any, count: int
) -> Any:
    """=, !=, <, <=, >, >=: one binary search, and all from there to an end (2001, figure 7)."""
    at = low if place == codes.BELOW else upper_bound(keys, low, high, floor)
    below = at  # keys [low, below) are below the value, [below, at) equal to it
    if place == codes.EXACT and at > low and keys[at - 1] == floor:
        below = at - 1
    if kind == codes.EQ:
        return emit(runs, count, below, at)
    if kind == codes.LT:
        return emit(runs, count, at, high)
    if kind == codes.LE:
        return emit(runs, count, below, high)
    if kind == codes.GT:
        return emit(runs, count, low, below)
    if kind == codes.GE:
        return emit(runs, count, low, at)
    return emit(runs, emit(runs, count, low, below), at, high)


@borrowing
def find_pieces(
    kind: int, keys: Any, low: int, high: int, hits: Any, first: int, last: int, skip: Any,
    runs: Any, count: int,
) -> int:
    """prefix, suffix, contains: the operands hits[first:last] that the value was resolved to.

    The negations take all but those. `skip` is all 0, before and after.
    """
    if kind <= codes.CONTAINS:
        for i in range(first, last):
            at = upper_bound(keys, low, high, hits[i])
            if at > low and keys[at - 1] == hits[i]:
                count = emit(runs, count, at - 1, at)
        return count
    for i in range(first, last):
        skip[hits[i]] = 1
    start = low
    for at in range(low, high):
        if skip[keys[at]]:
            count = emit(runs, count, start, at)
            start = at + 1
    for i in range(first, last):
        skip[hits[i]] = 0
    return emit(runs, count, start, high)


@borrowing
def scan_pieces(
    kind: int, keys: Any, low: int, high: int, strings: Any, batch: Any, text: int, runs: Any,
    count: int,
) -> int:
    """The same for the 2001 variant, which has no index for them: compare every operand."""
    begin = strings.begin
    start, end = batch.text_begin[text], batch.text_begin[text + 1]
    first = low
    for at in range(low, high):
        rank = keys[at]
        size = begin[rank + 1] - begin[rank]
        if not holds_text(kind, strings.blob, begin[rank], size, batch.text_blob, start, end):
            count = emit(runs, count, first, at)
            first = at + 1
    return emit(runs, count, first, high)


@borrowing
def find_members(
    keys: Any, low: int, high: int, links_at: Any, links: Any, floor: int, place: int, runs: Any,
    count: int,
) -> int:
    """in: the sets that have the value as a member."""
    if place != codes.EXACT:
        return count
    at = upper_bound(keys, low, high, floor)
    if at > low and keys[at - 1] == floor:
        for i in range(links_at[at - 1], links_at[at]):
            count = emit(runs, count, links[i], links[i] + 1)
    return count


@borrowing
def holds(kind: int, strings: Any, rank: int, batch: Any, text: int) -> bool:
    """Does a text satisfy the operator with this operand? By their bytes alone."""
    low, high = strings.begin[rank], strings.begin[rank + 1]
    start, end = batch.text_begin[text], batch.text_begin[text + 1]
    if kind > codes.GE:
        return bool(holds_text(kind, strings.blob, low, high - low, batch.text_blob, start, end))
    order = compare(batch.text_blob, start, end, strings.blob, low, high)
    if order == 0:
        return kind == codes.EQ or kind == codes.LE or kind == codes.GE
    if kind == codes.EQ or kind == codes.NE:
        return kind == codes.NE
    return (order < 0) == (kind == codes.LT or kind == codes.LE)


@borrowing
def scan(
    index: Any, strings: Any, batch: Any, scratch: Any, j: int, found: int, tally: Any
) -> int:
    """Note the constraints that attribute j, a string, satisfies, without an index: compare it with
    every operand of its name."""
    slot, text, runs, keys = batch.name[j] * 8 + codes.STRING, batch.text[j], scratch.runs, index.keys
    for d in range(index.directory_at[slot], index.directory_at[slot + 1]):
        kind, low, high = index.kind[d], index.keys_at[d], index.keys_at[d + 1]
        if kind == codes.ANY:
            found = emit(runs, found, low, high)
        elif kind < codes.IN or codes.PREFIX <= kind <= codes.NOT_CONTAINS:
            tally[STRINGS_COMPARED] += high - low
            for at in range(low, high):
                if holds(kind, strings, keys[at], batch, text):
                    found = emit(runs, found, at, at + 1)
    for member in range(index.members_at[slot], index.members_at[slot + 1]):
        tally[STRINGS_COMPARED] += 1
        if holds(codes.EQ, strings, index.member_keys[member], batch, text):
            for i in range(index.links_at[member], index.links_at[member + 1]):
                found = emit(runs, found, index.links[i], index.links[i] + 1)
    return found


@borrowing
def find(
    index: Any, strings: Any, batch: Any, texts: Any, scratch: Any, j: int, domain: int,
    is_own: bool, has_pieces: bool, found: int,
) -> int:
    """Note the constraints in a domain that attribute j satisfies. `any` asks for the own type."""
    slot, text, runs = batch.name[j] * 8 + domain, batch.text[j], scratch.runs
    in_float = domain == codes.FLOAT
    floor = batch.float_floor[j] if in_float else batch.floor[j]
    place = batch.float_place[j] if in_float else batch.place[j]
    keys = index.keys
    for d in range(index.directory_at[slot], index.directory_at[slot + 1]):
        kind, low, high = index.kind[d], index.keys_at[d], index.keys_at[d + 1]
        if kind <= codes.GE:
            found = find_ordered(kind, keys, low, high, floor, place, runs, found)
        elif kind == codes.ANY:
            if is_own:
                found = emit(runs, found, low, high)
        elif kind < codes.PREFIX or kind > codes.NOT_CONTAINS:
            continue  # `in` has its members below, and `absent` is not for values
        elif has_pieces:
            at = 4 * text + (kind - codes.PREFIX) % 3
            first, last = texts.at[at], texts.at[at + 1]
            found = find_pieces(
                kind, keys, low, high, texts.hits, first, last, scratch.skip, runs, found
            )
        else:
            found = scan_pieces(kind, keys, low, high, strings, batch, text, runs, found)
    low, high = index.members_at[slot], index.members_at[slot + 1]
    if low < high:
        found = find_members(
            index.member_keys, low, high, index.links_at, index.links, floor, place, runs, found
        )
    return found


@borrowing
def total(runs: Any, found: int) -> int:
    """How many constraints the runs have."""
    count = 0
    for i in range(found):
        count += runs[i, 1] - runs[i, 0]
    return count
