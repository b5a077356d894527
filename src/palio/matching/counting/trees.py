"""The extended ternary search tree of the 2003 paper (section 4.2): one index for all operators of
strings, and a plain one for names.

A name that has constraints on strings has a tree of its own. A node has a character; strings that
have it at this place go on below it (`equal`), the others at its `low` or `high` side. Every operand
ends in a node of the character END, the papers' #, which sorts below all others and leads to a leaf.

    top      name ──▶ node, 0 for none               nodes   character | low | equal | high | partial

             operands: an (prefix), and (=), at (<)             node 1 (top)
                                                                     │ equal
        partial    what a string that comes this far                 a
                   begins with or contains:                          │
                   prefix, contains, and their negations             n ───high──▶ t
                                                          partial ◀──┤            │
        leaves     what a string that ends here            of "an"   d ─low─▶ #   #
                   satisfies: = != < <= > >= suffix,                 │        │   │
                   not suffix, member of sets                        #        │   │
                                                                     │        │   │
        leaf     in alphabetical order               1: and        0: an   2: at
        crown    up: the next leaf after it that has < or <=; down: the next before with > or >=

A search that ends without a leaf goes back to the last branch that it passed after its way: the first
leaf of that is the closest one after the string, from where the crown leads to all `<` that hold; and
to the last branch before its way, for `>`. So that every branch has a leaf, operands of prefix and
contains end in one too. Strings are bytes: their order is that of code points.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from palio.matching.counting import tree_kernels as kernels
from palio.matching.counting.arrays import ConstraintIndex
from palio.matching.counting.building import DistinctConstraints
from palio.matching.encode import codes
from palio.matching.encode.arrays import empty
from palio.matching.encode.columns import ConstraintColumns, Ints

_PARTIAL = {
    codes.PREFIX: kernels.HAS_PREFIX,
    codes.CONTAINS: kernels.HAS_PART,
    codes.NOT_PREFIX: kernels.LACKS_PREFIX,
    codes.NOT_CONTAINS: kernels.LACKS_PART,
}
_COMPLETE = {
    codes.EQ: kernels.EQ,
    codes.NE: kernels.NE,
    codes.LT: kernels.LT,
    codes.LE: kernels.LE,
    codes.GT: kernels.GT,
    codes.GE: kernels.GE,
    codes.SUFFIX: kernels.HAS_SUFFIX,
    codes.NOT_SUFFIX: kernels.LACKS_SUFFIX,
}
_RANK_BITS = 32


class StringTrees(NamedTuple):
    """The trees of all names; see the head of the module."""

    top: Ints  # int32: name -> node
    has_crown: Ints  # uint8: name -> has it any order?
    nodes: Ints  # int32 [node, 5]
    partial: Ints  # int32 [match, 4]: constraints, -1 for none
    leaves: Ints  # int32 [leaf, 9]: constraints; the member among those of sets; -1 for none
    crown: Ints  # int32 [leaf, 2]: leaves, -1 for none


def no_trees() -> StringTrees:
    """For an engine that compares strings one by one."""
    return StringTrees(
        empty(), empty(np.uint8), *(np.empty((0, width), np.int32) for width in (5, 4, 9, 2))
    )


def build_trees(
    columns: ConstraintColumns, postings: DistinctConstraints, index: ConstraintIndex
) -> StringTrees:
    """The trees of the constraints on strings."""
    names = len(columns.names)
    known = np.isin(postings.op, [*_PARTIAL, *_COMPLETE])
    own = np.flatnonzero(known & ((postings.slot & 7) == codes.STRING))
    slots = np.repeat(np.arange(names * 8), np.diff(index.members_at))
    members = np.flatnonzero((slots & 7) == codes.STRING)
    ends = np.concatenate(
        [
            (postings.slot[own] >> 3 << _RANK_BITS) | postings.key[own],
            (slots[members] >> 3 << _RANK_BITS) | index.member_keys[members],
        ]
    )
    pairs, leaf = np.unique(ends, return_inverse=True)
    leaves = np.full((len(pairs), 9), -1, np.int32)
    for op, column in _COMPLETE.items():
        at = np.flatnonzero(postings.op[own] == op)
        leaves[leaf[at], column] = own[at]
    leaves[leaf[len(own) :], kernels.MEMBER] = members
    at = np.flatnonzero(np.isin(postings.op[own], list(_PARTIAL)))
    matches, match = np.unique(leaf[at], return_inverse=True)
    partial = np.full((len(matches), 4), -1, np.int32)
    for op, column in _PARTIAL.items():
        is_op = postings.op[own[at]] == op
        partial[match[is_op], column] = own[at][is_op]
    partial_of = np.full(len(pairs), -1, np.int32)
    partial_of[matches] = np.arange(len(matches))
    owner = pairs >> _RANK_BITS
    with_tree, first = np.unique(owner, return_index=True)
    top = np.zeros(names, np.int32)
    top[with_tree] = np.arange(len(with_tree)) + 1
    crown = _crown(leaves, owner)
    has_crown = np.zeros(names, np.uint8)
    has_crown[owner[(leaves[:, kernels.LT : kernels.GE + 1] >= 0).any(axis=1)]] = 1
    operand = pairs & ((1 << _RANK_BITS) - 1)
    nodes = _grown(columns.strings, operand, partial_of, np.append(first, len(pairs)))
    return StringTrees(top, has_crown, nodes, partial, leaves, crown)


def _crown(leaves: Ints, owner: Ints) -> Ints:
    """Links from each leaf to the next one of its tree that has an order, upwards and downwards."""
    count = len(leaves)
    crown = np.full((count, 2), -1, np.int32)
    if not count:
        return crown
    places = np.arange(count)
    is_up = (leaves[:, [kernels.LT, kernels.LE]] >= 0).any(axis=1)
    is_down = (leaves[:, [kernels.GT, kernels.GE]] >= 0).any(axis=1)
    after = np.minimum.accumulate(np.where(is_up, places, count)[::-1])[::-1]
    before = np.maximum.accumulate(np.where(is_down, places, -1))
    for way, linked in (
        (kernels.UP, np.append(after[1:], count)),
        (kernels.DOWN, np.append(-1, before[:-1])),
    ):
        is_link = (linked >= 0) & (linked < count)
        is_link[is_link] = owner[linked[is_link]] == owner[is_link]
        crown[is_link, way] = linked[is_link]
    return crown


def _grown(texts: list[bytes], operand: Ints, partial: Ints, leaves_at: Ints) -> Ints:
    """The nodes of trees, one for each run of leaves; leaf i ends the text operand[i]."""
    blob, begin = _joined(texts)
    room = int((np.diff(begin)[operand] + 1).sum()) + len(leaves_at)
    nodes = np.zeros((room, 5), np.int32)
    stack = np.empty((128, 2), np.int64)
    used = kernels.grow(
        blob, begin, operand.astype(np.int64), partial, leaves_at.astype(np.int64), stack, nodes
    )
    return nodes[:used].copy()


def _joined(texts: Iterable[bytes]) -> tuple[Ints, Ints]:
    """The bytes of texts, and where each begins."""
    listed = list(texts)
    begin = np.zeros(len(listed) + 1, np.int64)
    np.cumsum([len(text) for text in listed], out=begin[1:])
    return np.frombuffer(b"".join(listed) or b"\0", np.uint8), begin


class NameTree:
    """The names of a table in a ternary search tree: the first stage of the papers' index."""

    def __init__(self, names: list[str]) -> None:
        texts = [name.encode() for name in names]
        order = sorted(range(len(texts)), key=texts.__getitem__)
        self._number = np.array(order, np.int32)
        partial = np.full(len(texts), -1, np.int32)
        self.nodes = _grown(texts, self._number, partial, np.array([0, len(texts)]))
        self.nodes_visited = 0

    def numbers(self, names: Iterable[str]) -> dict[str, int]:
        """The numbers of those names that the table knows.

        >>> NameTree(["price", "dest", "pri"]).numbers(["pri", "price", "pric", "x"])
        {'pri': 2, 'price': 0}
        """
        asked = list(names)
        blob, begin = _joined(name.encode() for name in asked)
        found, tally = np.empty(len(asked), np.int32), np.zeros(8, np.int64)
        passed = np.zeros(2, np.int64)
        kernels.find_names(self.nodes, self._number, blob, begin, passed, tally, found)
        self.nodes_visited += int(tally[kernels.NODES])
        pairs = zip(asked, found.tolist(), strict=True)
        return {name: number for name, number in pairs if number >= 0}
