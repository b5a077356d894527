"""Disjunctive normal form: a tree of ands and ors becomes a list of conjunctions.

Negation has been pushed into the leaves before, so a tree is a leaf (an int), a constant (a
bool), or a Junction of trees. The number of conjunctions is counted before any is built.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TypeAlias

Tree: TypeAlias = "int | bool | Junction"

LEAVES_PER_FILTER = 256  # on average; bounds the memory of a normal form


@dataclass(frozen=True, slots=True)
class Junction:
    """A conjunction or a disjunction; `position` says where in the text it stands."""

    conjunction: bool
    parts: tuple[Tree, ...]
    position: int


class Explosion(Exception):
    """The normal form is larger than the limit; `node` is the smallest part that is too large."""

    def __init__(self, node: Junction, reason: str) -> None:
        super().__init__(reason)
        self.node, self.reason = node, reason


def join(conjunction: bool, parts: list[Tree], position: int) -> Tree:
    """A node of these parts, with constants folded."""
    kept = tuple(part for part in parts if part is not conjunction)
    if (not conjunction) in [part for part in kept if isinstance(part, bool)]:
        return not conjunction
    if not kept:
        return conjunction
    return kept[0] if len(kept) == 1 else Junction(conjunction, kept, position)


def dnf(tree: Tree, limit: int) -> list[tuple[int, ...]]:
    """The conjunctions of a tree, each a tuple of leaves, in the order of the text."""
    _measure(tree, limit)
    return list(dict.fromkeys(_expand(tree)))


def _measure(tree: Tree, limit: int) -> tuple[int, int]:
    """The number of conjunctions and of leaves in them, once expanded."""
    if not isinstance(tree, Junction):
        return int(tree is not False), int(not isinstance(tree, bool))
    measures = [_measure(part, limit) for part in tree.parts]
    counts = [count for count, _ in measures]
    if not tree.conjunction:
        total, leaves = sum(counts), sum(size for _, size in measures)
    else:
        total = prod(counts)
        leaves = sum(size * (total // count) for count, size in measures if count)
    if total > limit:
        many = [count for count in counts if count > 1]
        how = " x ".join(map(str, many[:6])) + (" x ..." if len(many) > 6 else "")
        what = f"this AND multiplies {how} alternatives" if tree.conjunction else "this OR has"
        raise Explosion(tree, f"{what}: {_rounded(total)} filters, and the limit is {limit:,}")
    if leaves > limit * LEAVES_PER_FILTER:
        raise Explosion(
            tree,
            f"this part has {_rounded(total)} filters of {_rounded(leaves)} constraints together, "
            f"and the limit is {limit * LEAVES_PER_FILTER:,}",
        )
    return total, leaves


def _rounded(number: int) -> str:
    return f"{number:,}" if number < 10**15 else f"about 10^{int(number.bit_length() * 0.30103)}"


def _expand(tree: Tree) -> list[tuple[int, ...]]:
    if isinstance(tree, bool):
        return [()] if tree else []
    if isinstance(tree, int):
        return [(tree,)]
    if not tree.conjunction:
        return [leaves for part in tree.parts for leaves in _expand(part)]
    product: list[tuple[int, ...]] = [()]
    adjacent: list[int] = []  # leaves side by side, which are added at once
    for part in tree.parts:
        if isinstance(part, Junction):
            middle = tuple(adjacent)
            product = [left + middle + right for left in product for right in _expand(part)]
            adjacent = []
        else:
            adjacent.append(part)
    return [tuple(dict.fromkeys(left + tuple(adjacent))) for left in product]
