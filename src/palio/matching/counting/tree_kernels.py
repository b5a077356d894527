"""The kernels of ternary search trees: growing them, and finding what a string satisfies (2003, 4.2).

`trees` draws the nodes, the partial matches, the leaves and their crown lists.
"""

from __future__ import annotations

from typing import Any

from palio.matching.counting.index_kernels import emit
from palio.matching.encode import codes
from palio.matching.jit import borrowing

END = -1  # the character behind the last one, below all others: the papers' #
CHAR, LOW, EQUAL, HIGH, PARTIAL = range(5)  # columns of a node

# Columns of a partial match, and of a leaf: the constraints of an operator there.
HAS_PREFIX, HAS_PART, LACKS_PREFIX, LACKS_PART = range(4)
EQ, NE, LT, LE, GT, GE, HAS_SUFFIX, LACKS_SUFFIX, MEMBER = range(9)
UP, DOWN = range(2)  # columns of the crown
BEFORE, AFTER = range(2)  # of a search: where the closest leaves before and after its way lie

# What a search comes to.
NOWHERE, PARTLY, COMPLETE = range(3)

# Where work is counted.
NODES, PARTIAL_MATCHES, CROWN_LINKS = 4, 5, 6


@borrowing
def insert(
    nodes: Any, used: int, top: int, blob: Any, begin: int, end: int, partial: int, leaf: int
) -> int:
    """Add blob[begin:end] to the tree below `top`; returns how many nodes are used then."""
    node = top
    for at in range(begin, end + 1):
        char = int(blob[at]) if at < end else END
        above, side, child = node, EQUAL, nodes[node, EQUAL]
        while child != 0 and nodes[child, CHAR] != char:
            above, side = child, LOW if char < nodes[child, CHAR] else HIGH
            child = nodes[above, side]
        if child == 0:
            child = used
            used += 1
            nodes[child, CHAR] = char
            nodes[child, PARTIAL] = -1
            nodes[above, side] = child
        if at < end:
            node = child
        else:
            nodes[child, EQUAL] = leaf
    if partial >= 0:
        nodes[node, PARTIAL] = partial
    return used


@borrowing
def grow(
    blob: Any, begin: Any, operand: Any, partial: Any, leaves_at: Any, stack: Any, nodes: Any
) -> int:
    """Grow one tree for each run of leaves, whose operands ascend; returns how many nodes there are.

    The middle one of a run goes first, then those of both halves: so siblings are balanced. `nodes`
    is all 0 and has room for each character of each operand; `stack` has room for 128 runs.
    """
    trees = len(leaves_at) - 1
    used = trees + 1
    for tree in range(trees):
        nodes[tree + 1, PARTIAL] = -1
        stack[0, 0], stack[0, 1] = leaves_at[tree], leaves_at[tree + 1]
        depth = 1
        while depth > 0:
            depth -= 1
            low, high = stack[depth, 0], stack[depth, 1]
            if low == high:
                continue
            leaf = (low + high) >> 1
            rank = operand[leaf]
            used = insert(
                nodes, used, tree + 1, blob, begin[rank], begin[rank + 1], partial[leaf], leaf
            )
            stack[depth, 0], stack[depth, 1] = low, leaf
            stack[depth + 1, 0], stack[depth + 1, 1] = leaf + 1, high
            depth += 2
    return used


@borrowing
def descend(
    nodes: Any, node: int, blob: Any, at: int, end: int, passed: Any, tally: Any
) -> tuple[int, int, int]:
    """Search on below a node, with blob[at:end] to come, until something matches or nothing can.

    Returns what it came to, and the node and position to go on from. `passed` has the last branches
    that it passed before and after its way: a node with its sides, or negative: without.
    """
    while True:
        char = int(blob[at]) if at < end else END
        child = nodes[node, EQUAL]
        while child != 0:
            tally[NODES] += 1
            own = nodes[child, CHAR]
            if char == own:
                break
            if char < own:
                passed[AFTER] = -child
                child = nodes[child, LOW]
            else:
                passed[BEFORE] = -child
                child = nodes[child, HIGH]
        if child == 0:
            return NOWHERE, node, at
        if nodes[child, LOW] != 0:
            passed[BEFORE] = nodes[child, LOW]
        if nodes[child, HIGH] != 0:
            passed[AFTER] = nodes[child, HIGH]
        if char == END:
            return COMPLETE, int(child), at
        node, at = int(child), at + 1
        if nodes[node, PARTIAL] >= 0:
            tally[PARTIAL_MATCHES] += 1
            return PARTLY, node, at


@borrowing
def backtrack(nodes: Any, branch: int, side: int, tally: Any) -> int:
    """The leaf of a branch that a search passed which is closest to its way: HIGH, the last one of a
    branch before it; LOW, the first one of a branch after it. -1: there was no such branch."""
    if branch == 0:
        return -1
    node, has_sides = abs(branch), branch > 0
    while True:
        tally[NODES] += 1
        if has_sides and nodes[node, side] != 0:
            node = nodes[node, side]
        elif nodes[node, CHAR] == END:
            return int(nodes[node, EQUAL])
        else:
            node, has_sides = nodes[node, EQUAL], True


@borrowing
def note(runs: Any, count: int, constraint: int) -> int:
    """Note a constraint, if it is one."""
    return emit(runs, count, constraint, constraint + 1) if constraint >= 0 else count


@borrowing
def note_crown(
    trees: Any, leaf: int, is_equal: bool, way: int, strict: int, runs: Any, count: int, tally: Any
) -> int:
    """Follow a crown list from a leaf: the orders that hold there and beyond. `strict` is the column
    of < or >, which the string itself does not satisfy; the one after it is that of <= or >=."""
    leaves, crown = trees.leaves, trees.crown
    if leaf >= 0 and is_equal:
        count = note(runs, count, leaves[leaf, strict + 1])
        leaf = crown[leaf, way]
    while leaf >= 0:
        tally[CROWN_LINKS] += 1
        count = note(runs, count, leaves[leaf, strict])
        count = note(runs, count, leaves[leaf, strict + 1])
        leaf = crown[leaf, way]
    return count


@borrowing
def note_leaf(index: Any, trees: Any, leaf: int, scratch: Any, count: int) -> int:
    """The constraints that a string equal to an operand satisfies: =, in; != is struck out."""
    leaves, runs = trees.leaves, scratch.runs
    count = note(runs, count, leaves[leaf, EQ])
    if leaves[leaf, NE] >= 0:
        scratch.struck[leaves[leaf, NE]] = 1
    member = leaves[leaf, MEMBER]
    if member >= 0:
        for i in range(index.links_at[member], index.links_at[member + 1]):
            count = note(runs, count, index.links[i])
    return count


@borrowing
def note_partial(partial: Any, match: int, is_first: bool, scratch: Any, count: int) -> int:
    """The constraints of a partial match: prefixes of the string at its first character only, parts
    wherever they begin, but each once. Their negations are struck out."""
    struck, runs = scratch.struck, scratch.runs
    if is_first:
        count = note(runs, count, partial[match, HAS_PREFIX])
        if partial[match, LACKS_PREFIX] >= 0:
            struck[partial[match, LACKS_PREFIX]] = 1
    part = partial[match, HAS_PART]
    if part >= 0 and not struck[part]:
        struck[part] = 1
        count = note(runs, count, part)
    if partial[match, LACKS_PART] >= 0:
        struck[partial[match, LACKS_PART]] = 1
    return count


@borrowing
def note_rest(index: Any, slot: int, scratch: Any, count: int) -> int:
    """The constraints that need no tree: `any`, and all negations that are not struck out."""
    struck = scratch.struck
    for d in range(index.directory_at[slot], index.directory_at[slot + 1]):
        kind, low, high = index.kind[d], index.keys_at[d], index.keys_at[d + 1]
        if kind != codes.NE and not codes.NOT_PREFIX <= kind <= codes.ANY:
            continue
        for at in range(low, high):
            if struck[at]:
                struck[at] = 0
                count = emit(scratch.runs, count, low, at)
                low = at + 1
        count = emit(scratch.runs, count, low, high)
    return count


@borrowing
def find_in_tree(
    index: Any, trees: Any, batch: Any, scratch: Any, j: int, count: int, tally: Any
) -> int:
    """Note the constraints that attribute j, a string, satisfies."""
    t, slot = batch.text[j], batch.name[j] * 8 + codes.STRING
    nodes, leaves, passed, blob = trees.nodes, trees.leaves, scratch.passed, batch.text_blob
    begin, end = batch.text_begin[t], batch.text_begin[t + 1]
    top, first = trees.top[batch.name[j]], count
    if top != 0 and nodes[top, PARTIAL] >= 0:  # of the empty string
        count = note_partial(trees.partial, nodes[top, PARTIAL], True, scratch, count)
    for start in range(begin, end + 1 if top != 0 else begin):
        passed[BEFORE] = passed[AFTER] = 0
        outcome, node, at = descend(nodes, top, blob, start, end, passed, tally)
        while outcome == PARTLY:
            match = nodes[node, PARTIAL]
            count = note_partial(trees.partial, match, start == begin, scratch, count)
            outcome, node, at = descend(nodes, node, blob, at, end, passed, tally)
        after = before = -1
        if outcome == COMPLETE:
            after = before = nodes[node, EQUAL]
            count = note(scratch.runs, count, leaves[after, HAS_SUFFIX])
            if leaves[after, LACKS_SUFFIX] >= 0:
                scratch.struck[leaves[after, LACKS_SUFFIX]] = 1
        if start > begin:
            continue  # from later characters on, parts and suffixes alone
        if outcome == COMPLETE:
            count = note_leaf(index, trees, after, scratch, count)
        elif trees.has_crown[batch.name[j]]:
            after = backtrack(nodes, passed[AFTER], LOW, tally)
            before = backtrack(nodes, passed[BEFORE], HIGH, tally)
        is_equal = outcome == COMPLETE
        count = note_crown(trees, after, is_equal, UP, LT, scratch.runs, count, tally)
        count = note_crown(trees, before, is_equal, DOWN, GT, scratch.runs, count, tally)
    for i in range(first, count):
        scratch.struck[scratch.runs[i, 0]] = 0  # of parts, which were noted once
    return note_rest(index, slot, scratch, count)


@borrowing
def find_names(
    nodes: Any, number: Any, blob: Any, begin: Any, passed: Any, tally: Any, found: Any
) -> None:
    """The number of each name, -1 where the tree below node 1 does not have it."""
    for i in range(len(begin) - 1):
        outcome, node, at = descend(nodes, 1, blob, begin[i], begin[i + 1], passed, tally)
        while outcome == PARTLY:
            outcome, node, at = descend(nodes, node, blob, at, begin[i + 1], passed, tally)
        found[i] = number[nodes[node, EQUAL]] if outcome == COMPLETE else -1
