"""The kernels of the counting engine: the constraint index, the counters, the selectivity table.

A row is matched as the papers' pseudocode has it (2001, figure 8; 2003, figures 4 and 7): each
attribute finds the constraints that it satisfies, each constraint counts down its filters, and a
filter that comes to 0 decides its interface.

    slot          name * 8 + domain                  the switch on name and type
    directory     [=][<][>][prefix] ...              kinds[d], one for each operator of a slot
    keys           3 5 9 | 4 8 | 17                  sorted within a directory; a key's position is
                                                     the number of its constraint
    members       sorted members of the slot's sets; links[links_at[m] : links_at[m + 1]] are the
                  `in` constraints that have member m
    runs          [a, b) [a, b) ...                  satisfied constraints of one attribute

    filters_at     0     3   4                       constraint -> postings, so that a run of
    filters        7 8 9 | 7 | ...                   constraints is one run of postings
    owners         0 0 1 | 0 | ...                   the interface of each posting's filter

    cells         stamp | size | left                one integer a filter; a cell with the stamp
                                                     of an earlier row counts as left = size
    ignored       bits of the interfaces that are decided, matched or eliminated
    matched       bits of those that matched; summary: which of its words are not 0
    required      [round, word]: bits of the interfaces that need required_name[round]
    tally         constraints touched, increments, interfaces eliminated, rows stopped early
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palio.matching import codes
from palio.matching.bits import population, prefetch, trailing_zeros
from palio.matching.constraint_kernels import holds_text, upper_bound
from palio.matching.jit import borrowing
from palio.matching.text_kernels import has_room, settle

ZERO, ONE = np.uint64(0), np.uint64(1)
BLOCK = 256  # postings

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
) -> int:  # fmt: skip
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
    kind: int, keys: Any, low: int, high: int, blob: Any, begin: Any, text_blob: Any, start: int,
    end: int, runs: Any, count: int,
) -> int:  # fmt: skip
    """The same for the 2001 variant, which has no index for them: compare every operand."""
    first = low
    for at in range(low, high):
        rank = keys[at]
        if not holds_text(
            kind, blob, begin[rank], begin[rank + 1] - begin[rank], text_blob, start, end
        ):
            count = emit(runs, count, first, at)
            first = at + 1
    return emit(runs, count, first, high)


@borrowing
def find_members(
    keys: Any, low: int, high: int, links_at: Any, links: Any, floor: int, place: int, runs: Any,
    count: int,
) -> int:  # fmt: skip
    """in: the sets that have the value as a member."""
    if place != codes.EXACT:
        return count
    at = upper_bound(keys, low, high, floor)
    if at > low and keys[at - 1] == floor:
        for i in range(links_at[at - 1], links_at[at]):
            count = emit(runs, count, links[i], links[i] + 1)
    return count


@borrowing
def mark(matched: Any, summary: Any, ignored: Any, interface: int) -> int:
    """Decide an interface: it matches. 1 when it was undecided before."""
    word = interface >> 6
    bit = ONE << np.uint64(interface & 63)
    if ignored[word] & bit:
        return 0
    ignored[word] |= bit
    matched[word] |= bit
    summary[word >> 6] |= ONE << np.uint64(word & 63)
    return 1


@borrowing
def count_down(cells: Any, filter: int, width: int, current: int) -> Any:
    """One more constraint of a filter holds: how many are left? `current`: the stamp, in place."""
    mask = (1 << width) - 1
    cell = np.int64(cells[filter])
    if cell < current:
        size = (cell >> width) & mask
        cell = current | (size << width) | size
    cell -= 1
    cells[filter] = cell
    return cell & mask


@borrowing
def count_filters(
    runs: Any, found: int, filters_at: Any, filters: Any, owners: Any, cells: Any, width: int,
    current: int, ahead: int, ignored: Any, matched: Any, summary: Any, undecided: int,
) -> tuple[int, int]:  # fmt: skip
    """Count the filters of the found constraints down: the hot spot.

    The cells of postings that are `ahead` are asked for early. Returns how many interfaces are still
    undecided, and the increments.
    """
    increments = 0
    for i in range(found):
        low, high = np.uint64(filters_at[runs[i, 0]]), np.uint64(filters_at[runs[i, 1]])
        for e in range(low, high):
            if e + np.uint64(ahead) < high:
                prefetch(cells, filters[e + np.uint64(ahead)])
            owner = owners[e]
            if ignored[owner >> 6] & (ONE << np.uint64(owner & 63)):
                continue  # the short circuit
            increments += 1
            if count_down(cells, filters[e], width, current) == 0:
                undecided -= mark(matched, summary, ignored, owner)
                if undecided == 0:
                    return 0, increments
    return undecided, increments


@borrowing
def count_survivors(
    runs: Any, found: int, filters_at: Any, filters: Any, owners: Any, cells: Any, width: int,
    current: int, ignored: Any, matched: Any, summary: Any, block: Any, undecided: int,
) -> tuple[int, int]:  # fmt: skip
    """The same, after pre-processing: the short circuit is taken so often and at random that its
    branch costs more than counting. Undecided postings are gathered in blocks without one."""
    increments = 0
    for i in range(found):
        high = filters_at[runs[i, 1]]
        for low in range(filters_at[runs[i, 0]], high, BLOCK):
            size = 0
            for e in range(low, min(low + BLOCK, high)):
                owner = owners[e]
                block[size] = e
                size += int(ONE - ((ignored[owner >> 6] >> np.uint64(owner & 63)) & ONE))
            for k in range(size):
                e = block[k]
                owner = owners[e]
                if ignored[owner >> 6] & (ONE << np.uint64(owner & 63)):
                    continue  # decided within this block
                increments += 1
                if count_down(cells, filters[e], width, current) == 0:
                    undecided -= mark(matched, summary, ignored, owner)
                    if undecided == 0:
                        return 0, increments
    return undecided, increments


@borrowing
def eliminate(required: Any, required_name: Any, present: Any, ignored: Any) -> int:
    """Pre-processing (2003, figure 7): a name that is not there rules out all who need it.

    `ignored` is all 0 before. Returns how many interfaces were eliminated: they are counted once,
    after all rounds, since the union of bits costs less than asking each time whether to go on.
    """
    if len(required_name) == 0:
        return 0
    for i in range(len(required_name)):
        if not present[required_name[i]]:
            for word in range(len(ignored)):
                ignored[word] |= required[i, word]
    eliminated = 0
    for word in range(len(ignored)):
        eliminated += population(ignored[word])
    return eliminated


@borrowing
def next_stamp(clock: Any, cells: Any, width: int) -> int:
    """The stamp of a new row. When stamps run out, all cells are put back to 0 once."""
    clock[0] += 1
    if clock[0] >> (8 * cells.itemsize - 1 - 2 * width):
        clock[0] = 1
        for i in range(len(cells)):
            cells[i] &= (1 << (2 * width)) - 1
    return int(clock[0])


@borrowing
def drain(matched: Any, summary: Any, ignored: Any, out: Any, count: int) -> int:
    """Write the matched interfaces, ascending, and clear their bits."""
    for group in range(len(summary)):
        words = summary[group]
        summary[group] = ZERO
        while words != ZERO:
            word = (group << 6) + trailing_zeros(words)
            words &= words - ONE
            left = matched[word]
            matched[word] = ZERO
            ignored[word] = ZERO
            while left != ZERO:
                out[count] = (word << 6) + trailing_zeros(left)
                count += 1
                left &= left - ONE
    return count


@borrowing
def find(
    slot: int, is_own: bool, floor: int, place: int, text: int, has_pieces: bool,
    directory_at: Any, kinds: Any, keys_at: Any, keys: Any,
    members_at: Any, member_keys: Any, links_at: Any, links: Any,
    blob: Any, begin: Any, text_blob: Any, text_begin: Any, text_at: Any, hits: Any,
    skip: Any, runs: Any, found: int,
) -> int:  # fmt: skip
    """Note the constraints of a slot that a value satisfies. `any` asks for the own type."""
    for d in range(directory_at[slot], directory_at[slot + 1]):
        kind, low, high = kinds[d], keys_at[d], keys_at[d + 1]
        if kind <= codes.GE:
            found = find_ordered(kind, keys, low, high, floor, place, runs, found)
        elif kind == codes.ANY:
            if is_own:
                found = emit(runs, found, low, high)
        elif kind < codes.PREFIX or kind > codes.NOT_CONTAINS:
            continue  # `in` has its members below, and `absent` is not for values
        elif has_pieces:
            at = 4 * text + (kind - codes.PREFIX) % 3
            found = find_pieces(
                kind, keys, low, high, hits, text_at[at], text_at[at + 1], skip, runs, found
            )
        else:
            found = scan_pieces(
                kind, keys, low, high, blob, begin, text_blob, text_begin[text],
                text_begin[text + 1], runs, found,
            )  # fmt: skip
    low, high = members_at[slot], members_at[slot + 1]
    if low < high:
        found = find_members(member_keys, low, high, links_at, links, floor, place, runs, found)
    return found


@borrowing
def total(runs: Any, found: int) -> int:
    """How many constraints the runs have."""
    count = 0
    for i in range(found):
        count += runs[i, 1] - runs[i, 0]
    return count


@borrowing
def add_up(tally: Any, touched: int, increments: int, eliminated: int, undecided: int) -> None:
    tally[0] += touched
    tally[1] += increments
    tally[2] += eliminated
    tally[3] += 1 if undecided == 0 else 0


@borrowing
def look_up(strings: Any, batch: Any, texts: Any, j: int) -> None:
    """Give attribute j, a string, its place among the operands."""
    t = batch.text[j]
    if texts.at[4 * t] < 0:
        begin, end = batch.text_begin[t], batch.text_begin[t + 1]
        settle(strings, texts, batch.text_blob, begin, end, t)
    batch.floor[j], batch.place[j] = texts.floor[t], texts.place[t]


@borrowing
def turn_domain(type: int, turn: int) -> int:
    """Where a value looks: in its own type, in the other one of numbers, in every type."""
    if turn == 0:
        return int(type)
    if turn == 2:
        return codes.EVERY
    return codes.INT + codes.FLOAT - type if type == codes.INT or type == codes.FLOAT else -1


@borrowing
def forward(
    index: Any, network: Any, strings: Any, batch: Any, texts: Any, work: Any, has_pieces: bool,
    row: int, ends: Any, tally: Any, out: Any,
) -> int:  # fmt: skip
    """Match rows from `row` on while `out` has room; returns the row to go on with.

    ends[r] is where the interfaces of row r end in `out`, relative to this call. `has_pieces`:
    the texts were resolved to prefixes, suffixes and parts (2003).
    """
    directory_at, kinds, keys_at, keys = index.directory_at, index.kind, index.keys_at, index.keys
    members_at, member_keys = index.members_at, index.member_keys
    links_at, links = index.links_at, index.links
    filters_at, filters, owners = network.filters_at, network.filters, network.owners
    always, absent, absent_name = network.always, network.absent, network.absent_name
    required, required_name = network.required, network.required_name
    row_at, names, types = batch.row_at, batch.name, batch.type
    floors, places, text = batch.floor, batch.place, batch.text
    float_floors, float_places = batch.float_floor, batch.float_place
    text_blob, text_begin, text_at, hits = batch.text_blob, batch.text_begin, texts.at, texts.hits
    blob, begin, width = strings.blob, strings.begin, network.width
    cells, clock, present, skip, runs = work.cells, work.clock, work.present, work.skip, work.runs
    ignored, matched, summary, block = work.ignored, work.matched, work.summary, work.block
    written = 0
    while row < len(row_at) - 1 and written + network.interfaces <= len(out):
        first, last = row_at[row], row_at[row + 1]
        if not has_room(texts, text, first, last):
            break
        current = next_stamp(clock, cells, width) << (2 * width)
        for j in range(first, last):
            present[names[j]] = 1
        eliminated = eliminate(required, required_name, present, ignored)
        undecided = network.decidable - eliminated
        for i in range(len(always)):
            undecided -= mark(matched, summary, ignored, always[i])
        touched = increments = 0
        for j in range(first, last + len(absent)):
            if undecided == 0:
                break
            found = 0
            if j >= last:  # after the attributes, what is not there
                if not present[absent_name[j - last]]:
                    found = emit(runs, 0, absent[j - last], absent[j - last] + 1)
            else:
                if text[j] >= 0:
                    look_up(strings, batch, texts, j)
                for turn in range(3):
                    domain = turn_domain(types[j], turn)
                    in_float = domain == codes.FLOAT
                    if domain < 0:
                        continue
                    found = find(
                        names[j] * 8 + domain, turn != 1,
                        float_floors[j] if in_float else floors[j],
                        float_places[j] if in_float else places[j], text[j], has_pieces,
                        directory_at, kinds, keys_at, keys, members_at, member_keys, links_at,
                        links, blob, begin, text_blob, text_begin, text_at, hits, skip, runs, found,
                    )  # fmt: skip
            touched += total(runs, found)
            if eliminated:
                undecided, more = count_survivors(
                    runs, found, filters_at, filters, owners, cells, width, current, ignored,
                    matched, summary, block, undecided,
                )  # fmt: skip
            else:
                undecided, more = count_filters(
                    runs, found, filters_at, filters, owners, cells, width, current,
                    network.ahead, ignored, matched, summary, undecided,
                )  # fmt: skip
            increments += more
        for j in range(first, last):
            present[names[j]] = 0
        written = drain(matched, summary, ignored, out, written)
        if eliminated:
            ignored[:] = ZERO
        ends[row] = written
        add_up(tally, touched, increments, eliminated, undecided)
        row += 1
    return row
