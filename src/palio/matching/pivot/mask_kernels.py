"""The kernels of few interfaces: plain loops over `arrays.Masks` and `EncodedMessages`.

All interfaces of a key are taken at a time, and a row that has everybody is passed over.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.encode.codes import (
    ABSENT,
    ANY,
    EVERY,
    FLOAT,
    GE,
    GT,
    INT,
    LE,
    LT,
    NUMBER,
    PREFIX,
    STRING,
    UNPLACED,
)
from palio.matching.encode.constraint_kernels import can_compare, span, upper_bound
from palio.matching.encode.text_kernels import put_in_place, settle
from palio.matching.jit import borrowing

PLACE_BITS = 32
PLACES = (1 << PLACE_BITS) - 1
NOWHERE = (1 << 63) - 1


@borrowing
def is_full(reached: Any, row: int, full: Any) -> bool:
    for w in range(len(full)):
        if reached[row, w] != full[w]:
            return False
    return True


@borrowing
def take(words: Any, key: int, reached: Any, row: int) -> None:
    """A row reaches the interfaces of a key."""
    width = reached.shape[1]
    for w in range(width):
        reached[row, w] |= words[key * width + w]


@borrowing
def pick_widest(
    rank: Any, batch: Any, first: int, last: int, is_done: Any, order: Any, rows: Any
) -> int:
    """Of each row in [first, last) that is not done, the attribute whose name reaches most, unless
    it is a string: for most rows it is enough. Returns how many there are.

    Rank and place are one number, so that the least is found without branches.
    """
    names, text, row_at = batch.name, batch.text, batch.row_at
    count = 0
    for row in range(first, last):
        least = NOWHERE
        begin = np.uint64(row_at[row])
        for i in range(np.uint64(row_at[row + 1]) - begin):
            j = begin + i
            place: Any = (np.int64(rank[np.uint64(names[j])]) << PLACE_BITS) | np.int64(i)
            least = min(least, NOWHERE if text[j] >= 0 else place)
        order[count] = np.int64(begin) + (least & PLACES)
        rows[count] = row - first
        count += 1 if least != NOWHERE and not is_done[row - first] else 0
    return count


@borrowing
def sort_by_name(
    rank: Any, batch: Any, first: int, undone: Any, is_text: bool, counts: Any, order: Any, rows:
    Any,
) -> int:
    """The strings, or the other attributes, of some rows after `first`, in the order of their names'
    reach: the keys of a name then stay in the cache. rows[i] is the row of order[i], counted from
    `first` as in `undone`. Returns how many there are. `counts` is all 0 before, and of no use after.
    """
    names, text, row_at = batch.name, batch.text, batch.row_at
    for i in range(len(undone)):
        row = first + undone[i]
        for j in range(row_at[row], row_at[row + 1]):
            if (text[j] >= 0) == is_text:
                counts[rank[names[j]] + 1] += 1
    for i in range(len(rank)):
        counts[i + 1] += counts[i]
    for i in range(len(undone)):
        row = first + undone[i]
        for j in range(row_at[row], row_at[row + 1]):
            if (text[j] >= 0) == is_text:
                place = counts[rank[names[j]]]
                counts[rank[names[j]]] += 1
                order[place] = j
                rows[place] = undone[i]
    return int(counts[len(rank)])


@borrowing
def cover(
    masks: Any, strings: Any, batch: Any, texts: Any, order: Any, rows: Any, start: int, stop: int,
    reached: Any, is_done: Any,
) -> int:
    """Set the bits of the filters of one constraint that attributes order[start:stop] satisfy: the
    hot spot when interfaces are few.

    reached[rows[i]] are the bits of a row, is_done[rows[i]] says whether they are everybody's.
    Returns where to go on when `texts` has more room, or stop.
    """
    directory_at, kinds, domains = masks.directory_at, masks.kind, masks.domain
    keys_at, keys, words, full = masks.keys_at, masks.keys, masks.words, masks.full
    names, types, floors, places = batch.name, batch.type, batch.floor, batch.place
    float_floors, float_places, text = batch.float_floor, batch.float_place, batch.text
    text_begin, text_at, hits, limits = batch.text_begin, texts.at, texts.hits, texts.limits
    for i in range(start, stop):
        j, row = order[i], rows[i]
        if is_done[row]:
            continue
        name, type, t = names[j], types[j], text[j]
        if type == STRING:
            if texts.place[t] == UNPLACED:
                put_in_place(strings, texts, batch.text_blob, text_begin[t], text_begin[t + 1], t)
            floors[j], places[j] = texts.floor[t], texts.place[t]
        for d in range(directory_at[name], directory_at[name + 1]):
            kind, domain = kinds[d], domains[d]
            a, b = keys_at[d], keys_at[d + 1]
            if kind == ANY:
                if domain == EVERY or domain == type or (
                    domain == NUMBER and (type == INT or type == FLOAT)
                ):
                    take(words, a, reached, row)
            elif kind == ABSENT or not can_compare(type, domain):
                continue
            elif kind >= PREFIX:
                if text_at[4 * t] < 0:  # not before it is needed: most rows are done by then
                    if limits[0] + limits[1] > len(hits):
                        return i
                    settle(strings, texts, batch.text_blob, text_begin[t], text_begin[t + 1], t)
                run = 4 * t + kind - PREFIX
                for k in range(text_at[run], text_at[run + 1]):
                    at = upper_bound(keys, a, b, hits[k])
                    if at > a and keys[at - 1] == hits[k]:
                        take(words, at - 1, reached, row)
            else:
                if domain == FLOAT:
                    a, b = span(kind, keys, a, b, float_floors[j], float_places[j])
                else:
                    a, b = span(kind, keys, a, b, floors[j], places[j])
                if a == b:
                    continue
                take(words, b - 1 if kind == GT or kind == GE else a, reached, row)
            if is_full(reached, row, full):
                is_done[row] = 1
                break
    return stop


@borrowing
def cover_missing(
    masks: Any, batch: Any, first: int, last: int, slot: Any, reached: Any, is_done: Any
) -> None:
    """The same for filters that ask for a name not to be there, in rows [first, last)."""
    for row in range(first, last if len(masks.missing) else first):
        if is_done[row - first]:
            continue
        for j in range(batch.row_at[row], batch.row_at[row + 1]):
            slot[batch.name[j]] = j + 1
        for i in range(len(masks.missing)):
            if slot[masks.missing_name[i]] == 0:
                key = masks.keys_at[masks.missing[i]]
                take(masks.words, key, reached, row - first)
        for j in range(batch.row_at[row], batch.row_at[row + 1]):
            slot[batch.name[j]] = 0
        is_done[row - first] = is_full(reached, row - first, masks.full)


@borrowing
def unite_rays(kinds: Any, keys_at: Any, width: int, words: Any) -> None:
    """Unite the bits of rays along their keys: upwards those of > and >=, downwards the others."""
    for d in range(len(kinds)):
        low, high = keys_at[d], keys_at[d + 1]
        if kinds[d] == GT or kinds[d] == GE:
            for i in range((low + 1) * width, high * width):
                words[i] |= words[i - width]
        elif kinds[d] == LT or kinds[d] == LE:
            for i in range((high - 1) * width - 1, low * width - 1, -1):
                words[i] |= words[i + width]
