"""Shapes of small networks: their links, as pairs of broker numbers from 0.

line  0 ─ 1 ─ 2       ring  a line whose ends meet       star  0 in the middle
tree  two children each, row by row                      mesh  all with all
hierarchy  as a tree; each broker is the master of its children (with forwarding)
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import TypeAlias

from palio.errors import InvalidTopology

Pair: TypeAlias = tuple[int, int]

HIERARCHY = "hierarchy"
_SHAPES: dict[str, Callable[[int], list[Pair]]] = {
    "ring": lambda count: [*_line(count), (0, count - 1)] if count > 2 else _line(count),
    "line": lambda count: _line(count),
    "star": lambda count: [(0, i) for i in range(1, count)],
    "tree": lambda count: _tree(count),
    HIERARCHY: lambda count: _tree(count),
    "mesh": lambda count: list(combinations(range(count), 2)),
}
SHAPES = tuple(_SHAPES)


def link_pairs(shape: str, count: int, chords: int = 0) -> list[Pair]:
    """The links of a shape, and `chords` more across it.

    >>> link_pairs("ring", 5, chords=1)
    [(0, 1), (0, 2), (0, 4), (1, 2), (2, 3), (3, 4)]
    """
    if shape not in _SHAPES:
        raise InvalidTopology(f"there is no shape {shape!r}; choose one of {', '.join(SHAPES)}")
    if count < 1:
        raise InvalidTopology(f"a network has at least one broker, not {count}")
    links = _SHAPES[shape](count)
    for _ in range(chords):
        links.append(_chord(links, count, shape))
    return sorted(links)


def master_pairs(shape: str, count: int) -> list[Pair]:
    """The links of a shape whose first broker is the master of the second."""
    return _tree(count) if shape == HIERARCHY else []


def _tree(count: int) -> list[Pair]:
    return [((i - 1) // 2, i) for i in range(1, count)]


def _line(count: int) -> list[Pair]:
    return [(i, i + 1) for i in range(count - 1)]


def _chord(known: list[Pair], count: int, shape: str) -> Pair:
    """A pair of brokers with the fewest links; among several, the pair that is furthest apart."""
    free = [pair for pair in combinations(range(count), 2) if pair not in known]
    if not free:
        raise InvalidTopology(
            f"all brokers of this {shape} of {count} are linked with each other; take fewer chords"
        )
    degree = [sum(node in pair for pair in known) for node in range(count)]

    def cost(pair: Pair) -> tuple[int, int, Pair]:
        apart = pair[1] - pair[0]
        return degree[pair[0]] + degree[pair[1]], -min(apart, count - apart), pair

    return min(free, key=cost)
