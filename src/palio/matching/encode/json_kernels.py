"""The kernels that read JSON objects: one pass over the bytes, nothing else in this file.

`parse` walks the rows. A row that is not plain (an error, a lone surrogate, an integer beyond 64
bits, a name twice, more than DEPTH levels, too many names that want one slot, ...) is marked, its attributes are taken back, and Python reads it again: it alone decides what is an error
and how to say it. So a kernel may give up at any doubt, but must never accept what
`Message.from_json` refuses or reads otherwise.

    path     a . b . c e i l i n g        the name so far, unescaped; its hash goes along
    lengths  0   1   3                    of the path at each level
    seen     open addressing: hash of a name; stamps: the row that had it

    counts   attributes, distinct texts, hard doubles so far

Raw values are as in `attribute_kernels`; `hard` has (attribute, begin, end) of doubles for Python.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.encode.codes import ARRAY, BOOL, FLOAT, STRING
from palio.matching.encode.json_array_kernels import skip_array
from palio.matching.encode.json_tag_kernels import read_tagged, tag_of
from palio.matching.encode.json_word_kernels import (
    BASE,
    EMPTY,
    FALSE_TEXT,
    HARD,
    NO_NUMBER,
    NO_SLOT,
    NULL_TEXT,
    ONE,
    PROBES_MAX,
    TRUE_TEXT,
    byte_at,
    find,
    hash_bytes,
    is_word,
    read_number,
    read_string,
    skip,
    slot_of,
)
from palio.matching.jit import borrowing
from palio.model.message import PREFIXES_MAX

DEPTH = 32
LONG = 1 << 20  # bytes of a row that Python reads
HUGE = 300  # decimal exponents below this stay below infinity
NULL = -3  # beside the kinds of numbers and the types: nothing is there


@borrowing
def is_repeat(h: Any, stamp: int, seen: Any, stamps: Any) -> bool:
    """May this row have had a name of this hash? Note it if not."""
    mask = np.uint64(len(seen) - 1)
    at = slot_of(h, mask)
    for _ in range(PROBES_MAX):
        if stamps[at] != stamp:
            seen[at] = h
            stamps[at] = stamp
            return False
        if seen[at] == h:
            return True
        at = (at + ONE) & mask
    return True


@borrowing
def add_text(found: Any, counts: Any, length: int, h: Any) -> int:
    """The position of the text that lies behind the last one, which joins them if it is new. One that
    finds no slot joins them each time: texts need not be distinct."""
    blob, begin, hashes, slots = found.blob, found.begin, found.hashes, found.slots
    count = counts[1]
    start = begin[count]
    known = find(blob, begin, hashes, slots, h, blob, start, length)
    if known >= 0:
        return known
    if known != NO_SLOT:
        slots[-1 - known] = count + 1
    hashes[count] = h
    begin[count + 1] = start + length
    counts[1] = count + 1
    return count


@borrowing
def put(
    data: Any, names: Any, scratch: Any, found: Any, counts: Any, stamp: int,
    size: int, h: Any, kind: int, raw: int, end: int, text_hash: Any,
) -> bool:  # fmt: skip
    """Add the attribute whose name is path[:size], of hash h; False when the row is not plain.

    Of a string, raw is the length of the text; of a hard double and of an array, raw and end are
    where it lies. The text of an array is as it stands.
    """
    if size == 0 or is_repeat(h, stamp, scratch.seen, scratch.stamps):
        return False
    if kind == NULL:
        return True
    known = find(names.blob, names.begin, names.hashes, names.slots, h, scratch.path, 0, size)
    if known < 0:
        return known != NO_SLOT
    to = counts[0]
    counts[0] = to + 1
    found.name[to] = names.number[known]
    found.text[to] = -1
    found.type[to] = kind
    found.floor[to] = raw
    if kind == STRING:
        found.floor[to] = 0
        found.text[to] = add_text(found, counts, raw, text_hash)
    elif kind == ARRAY:
        start, length = found.begin[counts[1]], end - raw
        for i in range(length):
            found.blob[start + i] = data[raw + i]
        found.floor[to] = 0
        h = hash_bytes(found.blob, start, start + length)
        found.text[to] = add_text(found, counts, length, h)
    elif kind == HARD:
        found.type[to] = FLOAT
        found.hard[counts[2], 0] = to
        found.hard[counts[2], 1] = raw
        found.hard[counts[2], 2] = end
        counts[2] += 1
    return True


@borrowing
def read_value(
    data: Any, p: int, end: int, names: Any, scratch: Any, found: Any, counts: Any, stamp: int,
    size: int, h: Any,
) -> int:  # fmt: skip
    """Read the value at p, not an object, of the name path[:size]; the position behind it."""
    c = byte_at(data, p, end)
    kind, raw, last, text_hash = NULL, 0, 0, EMPTY
    if c == 34:
        start = found.begin[counts[1]]
        p, stop, text_hash = read_string(data, p + 1, end, found.blob, start, EMPTY)
        if p < 0:
            return -1
        kind, raw = STRING, stop - start
    elif c == 45 or 48 <= c <= 57:
        begin = p
        p, kind, raw = read_number(data, p, end)
        if kind == NO_NUMBER or (kind == HARD and raw >= HUGE):
            return -1
        if kind == HARD:
            raw, last = begin, p
    elif c == 116 and is_word(data, p, end, TRUE_TEXT):
        p, kind, raw = p + 4, BOOL, 1
    elif c == 102 and is_word(data, p, end, FALSE_TEXT):
        p, kind, raw = p + 5, BOOL, 0
    elif c == 110 and is_word(data, p, end, NULL_TEXT):
        p += 4
    elif c == 91:
        begin = p
        p = skip_array(data, p, end)
        if p < 0:
            return -1
        kind, raw, last = ARRAY, begin, p
    else:
        return -1
    if put(data, names, scratch, found, counts, stamp, size, h, kind, raw, last, text_hash):
        return p
    return -1


@borrowing
def read_tag(
    data: Any, p: int, end: int, tag: int, names: Any, scratch: Any, found: Any, counts: Any,
    stamp: int, size: int, h: Any,
) -> int:  # fmt: skip
    """Read the string at p of {"$time": ...} or {"$float": ...}; the position of its brace."""
    start = found.begin[counts[1]]
    if byte_at(data, p, end) != 34:
        return -1
    p, stop, _ = read_string(data, p + 1, end, found.blob, start, EMPTY)
    if p < 0:
        return -1
    p = skip(data, p, end)
    good, raw = read_tagged(tag, found.blob, start, stop)
    if not good or byte_at(data, p, end) != 125:
        return -1
    if put(data, names, scratch, found, counts, stamp, size, h, tag, raw, 0, EMPTY):
        return p
    return -1


@borrowing
def parse_row(
    data: Any, p: int, end: int, stamp: int, names: Any, scratch: Any, found: Any, counts: Any
) -> bool:
    """Read one object; False when it is not plain."""
    path, lengths, hashes = scratch.path, scratch.lengths, scratch.hashes
    p = skip(data, p, end)
    if byte_at(data, p, end) != 123:
        return False
    p += 1
    depth = prefixes = 0
    lengths[0] = 0
    hashes[0] = EMPTY
    first = True
    while True:  # behind a { or a comma
        p = skip(data, p, end)
        c = byte_at(data, p, end)
        if c == 34:
            size, h = lengths[depth], hashes[depth]
            if size > 0:
                prefixes += size
                if prefixes > PREFIXES_MAX:
                    return False
                path[size] = 46
                size += 1
                h = h * BASE + np.uint64(46) + ONE
            key = size
            p, size, h = read_string(data, p + 1, end, path, size, h)
            if p < 0:
                return False
            p = skip(data, p, end)
            if byte_at(data, p, end) != 58:
                return False
            p = skip(data, p + 1, end)
            tag = tag_of(path, key, size) if first and depth > 0 else -1
            if tag >= 0:
                p = read_tag(
                    data, p, end, tag, names, scratch, found, counts, stamp,
                    lengths[depth], hashes[depth],
                )  # fmt: skip
            elif byte_at(data, p, end) == 123:
                depth += 1
                if depth == DEPTH:
                    return False
                lengths[depth] = size
                hashes[depth] = h
                p += 1
                first = True
                continue
            else:
                p = read_value(data, p, end, names, scratch, found, counts, stamp, size, h)
            if p < 0:
                return False
        elif not (c == 125 and first):
            return False
        while True:  # behind a value, or at the } of an empty object
            p = skip(data, p, end)
            c = byte_at(data, p, end)
            p += 1
            if c == 44:
                first = False
                break
            if c != 125:
                return False
            if depth == 0:
                return skip(data, p, end) == end
            depth -= 1


@borrowing
def parse(
    data: Any, begin: Any, valid: Any, first: int, base: int, names: Any, scratch: Any,
    found: Any, counts: Any, row_at: Any, odd: Any,
) -> int:  # fmt: skip
    """Read the rows from `first` on; the row at which room ended, or their number.

    `base` rows came before. Rows that are not plain are marked in `odd` and have no attributes.
    """
    room = min(len(found.name), len(found.type), len(found.floor), len(found.text))
    for r in range(first, len(valid)):
        start, end = begin[r], begin[r + 1]
        size = end - start
        most = size // 4 + 1  # attributes, and strings, that a row of this size can have
        attributes, texts, hard = counts[0], counts[1], counts[2]
        row_at[base + r + 1] = attributes
        if not valid[r]:
            continue
        if size > LONG:
            odd[base + r] = True
            continue
        if (
            attributes + most > room
            or texts + most > len(found.hashes)
            or found.begin[texts] + size > len(found.blob)
            or hard + most > len(found.hard)
        ):
            return r
        if parse_row(data, start, end, base + r + 1, names, scratch, found, counts):
            row_at[base + r + 1] = counts[0]
        else:
            counts[0], counts[2] = attributes, hard
            odd[base + r] = True
    return len(valid)
