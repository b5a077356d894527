"""The kernel of the counting engine: a row as the papers' pseudocode has it.

Each attribute finds the constraints that it satisfies (`index_kernels`), each constraint counts
down its filters, and a filter that comes to 0 decides its interface (`counter_kernels`): 2001,
figure 8; 2003, figures 4 and 7. `arrays` draws what they read and write.

    tally         constraints touched, increments, interfaces eliminated, rows stopped early; then,
                  for strings: nodes of trees, partial matches, links of crowns, strings compared
"""

from __future__ import annotations

from typing import Any

from palio.matching.bits import population
from palio.matching.counting.counter_kernels import (
    ZERO,
    count_filters,
    count_survivors,
    drain,
    eliminate,
    mark,
    next_stamp,
)
from palio.matching.counting.index_kernels import (
    POOL,
    TREE,
    emit,
    find,
    scan,
    total,
)
from palio.matching.counting.tree_kernels import find_in_tree
from palio.matching.encode import codes
from palio.matching.encode.text_kernels import has_room, settle
from palio.matching.jit import borrowing


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
def find_otherwise(
    index: Any, strings: Any, trees: Any, batch: Any, texts: Any, scratch: Any, way: int, j: int,
    tally: Any,
) -> int:
    """Note the constraints that attribute j satisfies, strings by trees or by comparing; returns how
    many runs there are."""
    found = 0
    for turn in range(3):
        domain = turn_domain(batch.type[j], turn)
        if domain != codes.STRING:
            if domain >= 0:
                found = find(
                    index, strings, batch, texts, scratch, j, domain, turn != 1, False, found
                )
        elif way == TREE:
            found = find_in_tree(index, trees, batch, scratch, j, found, tally)
        else:
            found = scan(index, strings, batch, scratch, j, found, tally)
    return found


@borrowing
def forward(
    index: Any, network: Any, strings: Any, trees: Any, batch: Any, texts: Any, scratch: Any,
    way: int, row: int, ends: Any, tally: Any, out: Any,
) -> int:
    """Match rows from `row` on while `out` has room; returns the row to go on with.

    ends[r] is where the interfaces of row r end in `out`, relative to this call. `way`: how
    strings find their constraints. `trees` is None where they need no other way than `find`: numba
    leaves the branch out then, whose mere presence costs the loop some per cent.
    """
    row_at, names, text, width = batch.row_at, batch.name, batch.text, network.width
    absent, present, ignored = network.absent, scratch.present, scratch.ignored
    matched, summary, runs = scratch.matched, scratch.summary, scratch.runs
    excluded, outside = network.excluded, 0
    for word in range(len(excluded)):
        outside += population(excluded[word])
    written = 0
    while row < len(row_at) - 1 and written + network.interfaces <= len(out):
        first, last = row_at[row], row_at[row + 1]
        if not has_room(texts, text, first, last):
            break
        current = next_stamp(scratch.clock, scratch.cells, width) << (2 * width)
        for j in range(first, last):
            present[names[j]] = 1
        for word in range(len(excluded)):
            ignored[word] = excluded[word]
        eliminated = eliminate(network.required, network.required_name, present, ignored, outside)
        undecided = network.decidable - eliminated
        for i in range(len(network.always)):
            undecided -= mark(matched, summary, ignored, network.always[i])
        touched = increments = 0
        for j in range(first, last + len(absent)):
            if undecided == 0:
                break
            found = 0
            if j >= last:  # after the attributes, what is not there
                if not present[network.absent_name[j - last]]:
                    found = emit(runs, 0, absent[j - last], absent[j - last] + 1)
            elif trees is not None:
                found = find_otherwise(
                    index, strings, trees, batch, texts, scratch, way, j, tally
                )
            else:
                if batch.type[j] == codes.STRING:
                    look_up(strings, batch, texts, j)
                for turn in range(3):
                    domain = turn_domain(batch.type[j], turn)
                    if domain >= 0:
                        found = find(
                            index, strings, batch, texts, scratch, j, domain, turn != 1,
                            way == POOL, found,
                        )
            touched += total(runs, found)
            if eliminated + outside:
                undecided, more = count_survivors(network, scratch, found, current, undecided)
            else:
                undecided, more = count_filters(network, scratch, found, current, undecided)
            increments += more
        for j in range(first, last):
            present[names[j]] = 0
        written = drain(matched, summary, ignored, out, written)
        if eliminated + outside:
            ignored[:] = ZERO
        ends[row] = written
        add_up(tally, touched, increments, eliminated, undecided)
        row += 1
    return row
