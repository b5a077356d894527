"""Which sources a processor cannot tell apart (2006, 3.2).

From the viewpoint of u, sources v1 and v2 are indistinguishable if u has the same children in their
trees and the same descendants behind each: then u forwards their messages alike, whatever they say.
This depends on the network alone.

    label[u, v]     the class of v at u; entries[u][label] says what all its members have in common:
                    for each child w of u, the set T_v/w (a mask)
    rewrites[u][label]   no processor below u can tell members of this class from u itself, so that
                    u may put its own name on what it passes on

u itself is always alone in its class: only T_u has everybody below u. A class is represented by the
member that is nearest to u, of several the smallest: on a tree, by the neighbour it is behind.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from palio.routing.topology import Topology

Entries: TypeAlias = tuple[tuple[int, int], ...]
"""Children, ascending, each with the set of nodes behind it."""


class SourceClasses:
    """The classes of indistinguishable sources of every processor; nodes are numbers here."""

    def __init__(self, net: Topology) -> None:
        count = len(net)
        self.label = np.zeros((count, count), np.int32)
        self.parents = np.zeros((count, count), np.int32)
        units = np.zeros((count, count))
        known: list[dict[Entries, int]] = [{} for _ in net.nodes]
        for v, tree in enumerate(net.trees()):
            masks = tree.masks
            self.parents[v], units[v] = tree.parents, tree.units
            self.label[:, v] = [
                classes.setdefault(tuple([(w, masks[w]) for w in children]), len(classes))
                for classes, children in zip(known, tree.children_of, strict=True)
            ]
        self.entries: list[list[Entries]] = [list(classes) for classes in known]
        self.representatives: list[list[int]] = [self._nearest(u, units[u]) for u in range(count)]
        self.rewrites: list[npt.NDArray[np.bool_]] = self._rewrites()

    def representative(self, u: int, v: int) -> int:
        """I_u(v)."""
        return self.representatives[u][int(self.label[u, v])]

    def _nearest(self, u: int, units: npt.NDArray[np.float64]) -> list[int]:
        """For each class of u the member nearest to it."""
        order = np.argsort(units, kind="stable")
        _, first = np.unique(self.label[u][order], return_index=True)
        nearest: list[int] = order[first].tolist()
        return nearest

    def _rewrites(self) -> list[npt.NDArray[np.bool_]]:
        """R_u for every class: for all members v and all w below u in T_v, w takes v for u."""
        count = len(self.label)
        apart = np.zeros((count, count), np.bool_)  # v, u: somebody below u tells v from u
        v, w = (pairs.ravel() for pairs in np.indices((count, count), np.int32))
        above = self.parents[v, w]
        while len(above):
            inside = above >= 0
            v, w, above = v[inside], w[inside], above[inside]
            differs = self.label[w, v] != self.label[w, above]
            apart[v[differs], above[differs]] = True
            above = self.parents[v, above]
        found = []
        for u in range(count):
            agreed = np.ones(len(self.entries[u]), np.bool_)
            agreed[self.label[u][apart[:, u]]] = False
            found.append(agreed)
        return found
