"""The shortest-paths tree of one source, as the 2006 paper writes of it.

    paper               here
    T_v                 tree = net.tree(v)
    child_u(v)          tree.children(u)
    T_v/w               tree.descendants(w)       w and all below it
    T_v/(u, w)          tree.via(u, w)            the same if w is a child of u, else nothing

Within routing, sets of nodes are also masks: bit i of a Python int stands for the i-th node. They
are exact, quick to unite and to compare, and they can be keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from palio.errors import InvalidTopology

Node: TypeAlias = Any
"""A processor's name: anything that can be hashed and ordered, of one type in a network."""


class SourceTree:
    """T_v. `parents` and `order` (the nodes from near to far) hold numbers of nodes; `units` are the
    distances in units of the network."""

    def __init__(
        self,
        nodes: tuple[Node, ...],
        numbers: dict[Node, int],
        root: int,
        parents: npt.NDArray[np.int32],
        units: npt.NDArray[np.float64],
        decimals: int,
    ) -> None:
        self.root = root
        self.parents: list[int] = parents.tolist()
        self._nodes, self._numbers = nodes, numbers
        self.units, self._decimals = units, decimals

    @property
    def source(self) -> Node:
        return self._nodes[self.root]

    def distance(self, node: Node) -> float:
        """How far a node is from the source."""
        return length(int(self.units[self._number(node)]), self._decimals)

    def parent(self, node: Node) -> Node | None:
        """The node from which this one gets messages; None for the source."""
        at = self.parents[self._number(node)]
        return None if at < 0 else self._nodes[at]

    def children(self, node: Node) -> tuple[Node, ...]:
        """child_u(v), ascending."""
        return tuple(self._nodes[w] for w in self.children_of[self._number(node)])

    def descendants(self, node: Node) -> frozenset[Node]:
        """T_v/w: the node and all that are below it."""
        return frozenset(self._nodes[x] for x in members(self.masks[self._number(node)]))

    def via(self, u: Node, w: Node) -> frozenset[Node]:
        """T_v/(u, w): whom the source reaches over this link, in this direction."""
        below = self.parents[self._number(w)] == self._number(u)
        return self.descendants(w) if below else frozenset()

    def path(self, node: Node) -> list[Node]:
        """The way from the source to a node, both included."""
        at, way = self._number(node), []
        while at >= 0:
            way.append(self._nodes[at])
            at = self.parents[at]
        return way[::-1]

    @cached_property
    def order(self) -> list[int]:
        """All nodes, every one after its parent."""
        found: list[int] = np.argsort(self.units, kind="stable").tolist()
        return found

    @cached_property
    def children_of(self) -> list[list[int]]:
        """The children of every node."""
        found: list[list[int]] = [[] for _ in self.parents]
        for x, parent in enumerate(self.parents):
            if parent >= 0:
                found[parent].append(x)
        return found

    @cached_property
    def masks(self) -> list[int]:
        """T_v/w for every w, as masks."""
        found = [1 << i for i in range(len(self.parents))]
        for x in reversed(self.order[1:]):
            found[self.parents[x]] |= found[x]
        return found

    def _number(self, node: Node) -> int:
        try:
            return self._numbers[node]
        except (KeyError, TypeError):
            raise InvalidTopology(f"no processor {node!r} in this network") from None


def length(units: int, decimals: int) -> float:
    """A number of units of 10^-decimals as the nearest double."""
    return units / 10**decimals if decimals >= 0 else float(units * 10**-decimals)


def members(mask: int) -> Iterator[int]:
    """The numbers of the nodes in a mask, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
