"""The kernels of the pivot engine: plain loops over `arrays.Pivots` and
`EncodedMessages`.

`forward` walks the rows: the directories of a message's names give ranges of keys (`collect`);
filters of one constraint match at once, the others are verified (`check`). Matches are copied, or
set bits, so that each interface comes once and in order (`drain`). When the interfaces are few, the
filters of one constraint come first, all interfaces of a key at a time (`cover`): often that is the
whole answer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching.bits import population, prefetch, trailing_zeros
from palio.matching.encode.codes import (
    ABSENT,
    ANY,
    DOMAIN_SHIFT,
    EVERY,
    FLOAT,
    GE,
    IN,
    INT,
    NAME_SHIFT,
    NUMBER,
    OP_SHIFT,
    PREFIX,
    STRING,
)
from palio.matching.encode.constraint_kernels import (
    can_compare,
    holds_ordered,
    holds_text,
    is_member,
    span,
    unpack,
    upper_bound,
)
from palio.matching.encode.text_kernels import has_room, settle
from palio.matching.jit import borrowing
from palio.matching.pivot.hot_key_kernels import GROUPS_MAX, spread, unite

ONE = np.uint64(1)
ZERO = np.uint64(0)
AHEAD = 4  # ranges whose first candidates are asked for early


@borrowing
def mark(bits: Any, summary: Any, interface: int) -> int:
    """Set the bit of an interface; 1 when it was not set before."""
    word = interface >> 6
    bit = ONE << np.uint64(interface & 63)
    if bits[word] & bit:
        return 0
    bits[word] |= bit
    summary[word >> 6] |= ONE << np.uint64(word & 63)
    return 1


@borrowing
def note(
    pivots: Any, hot_keys: Any, scratch: Any, a: int, b: int, matched: int, count: int,
    gathered: int, copying: bool, out: Any,
) -> tuple[int, int, int]:
    """Match the filters alone under keys [a, b), and note the ranges of the others.

    Matches are copied to out[matched:], or set bits; returns how many there are, how many ranges
    are noted, and how many hot keys, which are in no range.
    """
    alone, entries_at, ranges = pivots.alone, pivots.entries_at, scratch.ranges
    low, high = pivots.alone_at[a], pivots.alone_at[b]
    if copying:
        for i in range(np.uint64(high - low)):  # unsigned: several at once
            out[np.uint64(matched) + i] = alone[np.uint64(low) + i]
        matched += high - low
    else:
        for e in range(low, high):
            matched += mark(scratch.bits, scratch.summary, alone[e])
    low, high = entries_at[a], entries_at[b]
    if len(hot_keys.at):
        for c in range(hot_keys.at[a], hot_keys.at[b]):
            scratch.hot[gathered] = c
            gathered += 1
            begin = entries_at[hot_keys.key[c]]
            if low < begin:
                ranges[count, 0] = low
                ranges[count, 1] = begin
                count += 1
            low = entries_at[hot_keys.key[c] + 1]
    if low < high:
        ranges[count, 0] = low
        ranges[count, 1] = high
        count += 1
    return matched, count, gathered


@borrowing
def collect(
    pivots: Any, hot_keys: Any, strings: Any, batch: Any, texts: Any, scratch: Any, row: int,
    matched: int, interfaces: int, copying: bool, out: Any,
) -> tuple[int, int, int]:
    """Everything filed under what the row has and lacks: matched filters, noted ranges and hot
    keys."""
    directory_at, kinds, domains = pivots.directory_at, pivots.kind, pivots.domain
    keys_at, keys, always = pivots.keys_at, pivots.keys, pivots.always
    names, types, floors, places = batch.name, batch.type, batch.floor, batch.place
    float_floors, float_places, text = batch.float_floor, batch.float_place, batch.text
    text_begin, text_at, hits = batch.text_begin, texts.at, texts.hits
    count = gathered = 0
    for i in range(len(always)):
        d = always[i]
        matched, count, gathered = note(
            pivots, hot_keys, scratch, keys_at[d], keys_at[d + 1], matched, count, gathered,
            copying, out,
        )
    for j in range(batch.row_at[row], batch.row_at[row + 1]):
        name, type, t = names[j], types[j], text[j]
        if type == STRING:
            if text_at[4 * t] < 0:
                settle(strings, texts, batch.text_blob, text_begin[t], text_begin[t + 1], t)
            floors[j], places[j] = texts.floor[t], texts.place[t]
        for d in range(directory_at[name], directory_at[name + 1]):
            kind, domain = kinds[d], domains[d]
            a, b = keys_at[d], keys_at[d + 1]
            if kind == ANY:
                if not (
                    domain == EVERY
                    or domain == type
                    or (domain == NUMBER and (type == INT or type == FLOAT))
                ):
                    continue
            elif kind == ABSENT or not can_compare(type, domain):
                continue
            elif kind >= PREFIX:
                run = 4 * t + kind - PREFIX
                for i in range(text_at[run], text_at[run + 1]):
                    at = upper_bound(keys, a, b, hits[i])
                    if at > a and keys[at - 1] == hits[i]:
                        matched, count, gathered = note(
                            pivots, hot_keys, scratch, at - 1, at, matched, count, gathered,
                            copying, out,
                        )
                continue
            elif domain == FLOAT:
                a, b = span(kind, keys, a, b, float_floors[j], float_places[j])
            else:
                a, b = span(kind, keys, a, b, floors[j], places[j])
            if a < b:
                matched, count, gathered = note(
                    pivots, hot_keys, scratch, a, b, matched, count, gathered, copying, out
                )
        if matched >= interfaces:
            return matched, 0, 0
    for i in range(len(pivots.missing)):
        if scratch.slot[pivots.missing_name[i]] == 0:
            d = pivots.missing[i]
            matched, count, gathered = note(
                pivots, hot_keys, scratch, keys_at[d], keys_at[d + 1], matched, count, gathered,
                copying, out,
            )
    return matched, count, gathered


@borrowing
def check(
    pivots: Any, strings: Any, batch: Any, scratch: Any, count: int, matched: int, interfaces: int,
    copying: bool, out: Any,
) -> int:
    """Verify the noted candidates: the hot spot when filters have several constraints.

    One constraint is judged in place: a call that takes all the arrays costs more than the judging.
    """
    slot, bits, summary, ranges = scratch.slot, scratch.bits, scratch.summary, scratch.ranges
    entries, rest = pivots.entries, pivots.rest
    set_at, set_split, set_keys = pivots.set_at, pivots.set_split, pivots.set_keys
    types, floors, places = batch.type, batch.floor, batch.place
    float_floors, float_places = batch.float_floor, batch.float_place
    texts, text_blob, text_begin = batch.text, batch.text_blob, batch.text_begin
    blob, begin = strings.blob, strings.begin
    for i in range(count):
        if i + AHEAD < count:
            prefetch(entries, ranges[i + AHEAD, 0])
        for e in range(np.uint64(ranges[i, 0]), np.uint64(ranges[i, 1])):
            interface, at, head = entries[e, 0], np.uint64(entries[e, 1]), entries[e, 2]
            if slot[head >> NAME_SHIFT] == 0 and (head >> OP_SHIFT) & 15 != ABSENT:
                continue  # many candidates end here, before anything else is touched
            if not copying and bits[interface >> 6] & (ONE << np.uint64(interface & 63)):
                continue
            key = unpack(entries[e, 3], entries[e, 4])
            while True:
                j, op = slot[head >> NAME_SHIFT] - 1, (head >> OP_SHIFT) & 15
                domain = (head >> DOMAIN_SHIFT) & 7
                if j < 0 or op == ABSENT:
                    if j >= 0 or op != ABSENT:
                        break
                elif op == ANY:
                    if domain != EVERY and domain != types[j]:
                        break
                elif not can_compare(types[j], domain):
                    break
                elif op <= GE:
                    floor = float_floors[j] if domain == FLOAT else floors[j]
                    place = float_places[j] if domain == FLOAT else places[j]
                    if not holds_ordered(op, key, floor, place):
                        break
                elif op == IN:
                    low, split, high = set_at[key], set_split[key], set_at[key + 1]
                    if not is_member(set_keys, low, split, floors[j], places[j]) and (
                        split == high
                        or not is_member(set_keys, split, high, float_floors[j], float_places[j])
                    ):
                        break
                else:
                    low, high = text_begin[texts[j]], text_begin[texts[j] + 1]
                    size = begin[key + 1] - begin[key]
                    if not holds_text(op, blob, begin[key], size, text_blob, low, high):
                        break
                if head & 1:
                    if copying:
                        out[matched] = interface
                        matched += 1
                    else:
                        matched += mark(bits, summary, interface)
                        if matched >= interfaces:
                            return matched
                    break
                head, key = rest[at, 0], unpack(rest[at, 1], rest[at, 2])
                at += ONE
    return matched


@borrowing
def drain(bits: Any, summary: Any, out: Any, count: int) -> int:
    """Write the interfaces whose bits are set, ascending, and clear the bits."""
    for group in range(len(summary)):
        words = summary[group]
        if words == ZERO:
            continue
        summary[group] = ZERO
        while words != ZERO:
            word = (group << 6) + trailing_zeros(words)
            words &= words - ONE
            left = bits[word]
            bits[word] = ZERO
            while left != ZERO:
                out[count] = (word << 6) + trailing_zeros(left)
                count += 1
                left &= left - ONE
    return count


@borrowing
def drain_included(bits: Any, summary: Any, excluded: Any, out: Any, count: int) -> int:
    """The same without the interfaces that are left out, whose bits stay set."""
    for group in range(len(summary)):
        words = summary[group]
        summary[group] = ZERO
        while words != ZERO:
            word = (group << 6) + trailing_zeros(words)
            words &= words - ONE
            left = bits[word] & ~excluded[word]
            bits[word] = excluded[word]
            while left != ZERO:
                out[count] = (word << 6) + trailing_zeros(left)
                count += 1
                left &= left - ONE
    return count


@borrowing
def ranges_max(pivots: Any, hot_keys: Any, batch: Any, first: int, last: int, room: int) -> int:
    """The most ranges that attributes [first, last) can note; `room`: the hits of one text."""
    noted = len(pivots.always) + len(pivots.missing)
    for j in range(first, last):
        low, high = pivots.directory_at[batch.name[j]], pivots.directory_at[batch.name[j] + 1]
        noted += high - low
        if batch.text[j] >= 0:
            noted += room
        if len(hot_keys.words):  # each parts a range; without words it takes the place of one
            noted += hot_keys.at[pivots.keys_at[high]] - hot_keys.at[pivots.keys_at[low]]
    if len(hot_keys.key):
        noted = max(noted, GROUPS_MAX + 1)  # the groups of a key are noted together
    return noted


@borrowing
def forward(
    pivots: Any, hot_keys: Any, strings: Any, batch: Any, texts: Any, covered: Any, scratch: Any,
    row: int, last: int, interfaces: int, copying: bool, ends: Any, out: Any,
) -> int:
    """Forward rows [row, last) while there is room in `out`, `texts` and `scratch.ranges`; returns
    the row to go on with.

    ends[r] is where the interfaces of row r end in `out`, relative to this call. With `copying`
    they come in no order, every interface must be filed once, and none is left out; without,
    ascending. `covered` is what `cover` decided of these rows.
    """
    count = size = 0
    everybody = -1  # where the `size` interfaces of a row that reaches all begin in `out`
    names, row_at, slot, bits = batch.name, batch.row_at, scratch.slot, scratch.bits
    reach, is_done, width = covered.reach, covered.is_done, covered.bits.shape[1]
    excluded = covered.excluded
    while row < last and count + interfaces <= len(out):
        begin, end = row_at[row], row_at[row + 1]
        matched, own = 0, row - covered.first
        if width and is_done[own] and everybody >= 0:
            for i in range(np.uint64(size)):
                out[np.uint64(count) + i] = out[np.uint64(everybody) + i]
            count += size
            ends[row] = count
            row += 1
            continue
        for w in range(width):
            bits[w] = covered.bits[own, w]
            matched += population(bits[w])
            scratch.summary[0] = (ONE << np.uint64(width)) - ONE
        if width == 0 or not is_done[own]:
            if not has_room(texts, batch.text, begin, end):
                break
            room = len(scratch.ranges)
            if ranges_max(pivots, hot_keys, batch, begin, end, texts.limits[1]) > room:
                break
            for j in range(begin, end):
                slot[names[j]] = j + 1
            rows_out = out[count:]
            matched, noted, gathered = collect(
                pivots, hot_keys, strings, batch, texts, scratch, row, matched, reach, copying,
                rows_out,
            )
            if gathered and width:
                matched = unite(hot_keys, batch, scratch, gathered, width, matched, reach)
            done = 0
            while (noted or done < gathered) and matched < reach:
                done, noted = spread(
                    pivots, hot_keys, batch, scratch, done, gathered, width, noted
                )
                matched = check(
                    pivots, strings, batch, scratch, noted, matched, reach, copying, rows_out
                )
                noted = 0
            for j in range(begin, end):
                slot[names[j]] = 0
        before = count
        if copying:
            count += matched
        elif len(excluded):
            count = drain_included(bits, scratch.summary, excluded, out, count)
        else:
            count = drain(bits, scratch.summary, out, count)
        if width and is_done[own]:
            everybody, size = before, count - before
        ends[row] = count
        row += 1
    return row
