"""Networks: weighted undirected connected graphs, their distances and shortest-paths trees.

Processors are the nodes, in ascending order, and their positions in that order are their numbers:

    nodes   (10, 20, 30)           arrays over links, both directions, by (end, begin)
    edges   10─20 1.0, 20─30 2.5     begin  1  0  2  1      first   0 1 3: where the links into a
                                     end    0  1  1  2              node begin
                                     units 10 10 25 25      a unit is 10^-decimals, here 0.1

Distances are sums of whole units, exact in doubles whatever their order: so dist(u, v) is
dist(v, u), and two ways that look equally long are. Weights keep their decimals as long as every
path has less than 2^53 units; with more digits than that they are rounded there.

The tree T_v is what Dijkstra gives, and where several neighbours lead to x on a shortest path, its
parent is the smallest of them. Everybody who knows the edges computes the same trees. They fit each
other: the way of T_v from u on is the way of T_u, since what is smallest among all ways is smallest
among those through u.

Distances in a small network are found by relaxing all links at once until nothing changes, which numpy
does in less time than it takes to load scipy: a broker does without it. In a large one scipy's csgraph
does Dijkstra on flat arrays, which we hold anyway and which numpy then searches for parents; rustworkx
would want a Python object for every node and edge, and breaks ties as it likes.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from math import floor, log10
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from palio.errors import InvalidFile, InvalidTopology
from palio.routing.trees import Node, SourceTree, length

Edge: TypeAlias = tuple[Node, Node] | tuple[Node, Node, float]

_UNITS_MAX = 2**53  # below it doubles hold every whole number
_WEIGHT_MAX = sys.float_info.max
_CELLS = 1 << 22  # sources times links that are looked at together
_RELAXED = 1 << 21  # sources x links x nodes up to which links are relaxed: 30 ms at most
_TREES = 256  # that are kept


class _Links(NamedTuple):
    """The links in both directions; see the drawing above."""

    begin: npt.NDArray[np.int32]
    end: npt.NDArray[np.int32]
    units: npt.NDArray[np.float64]
    first: npt.NDArray[np.int64]


class Topology:
    """A network; it never changes.

    >>> net = Topology.from_edges([(1, 2), (2, 3, 2.5)])
    >>> net.distance(1, 3)
    3.5
    >>> net.tree(1).via(1, 2) == {2, 3}
    True
    """

    def __init__(self, weights: dict[tuple[Node, Node], float]) -> None:
        """From checked edges, the smaller node first; users call `from_edges`."""
        self.nodes: tuple[Node, ...] = tuple(sorted({node for edge in weights for node in edge}))
        self.edges: tuple[tuple[Node, Node, float], ...] = tuple(
            (u, v, weights[u, v]) for u, v in sorted(weights)
        )
        self._numbers = {node: i for i, node in enumerate(self.nodes)}
        self._decimals, units = _in_units([w for _, _, w in self.edges], len(self.nodes))
        for (u, v, weight), count in zip(self.edges, units, strict=True):
            if count == 0:
                raise InvalidTopology(
                    f"the edge {u!r}, {v!r}: its weight {weight!r} vanishes beside the largest, "
                    f"{max(weights.values())!r}; give weights of comparable size"
                )
        self._of_link = {(u, v): count for (u, v, _), count in zip(self.edges, units, strict=True)}
        self._links = _links(self.edges, units, self._numbers)
        self._spans = np.append(self._links.first, len(units) * 2)
        self._trees: OrderedDict[int, SourceTree] = OrderedDict()
        parts, part = _parts(self._spans.tolist(), self._links.begin.tolist())
        if parts > 1:
            other = self.nodes[next(i for i, number in enumerate(part) if number)]
            raise InvalidTopology(
                f"the network falls into {parts} parts: no path from {self.nodes[0]!r} to "
                f"{other!r}; add an edge between the parts"
            )

    @classmethod
    def from_edges(cls, edges: Iterable[Edge]) -> Topology:
        """The network of these edges: (node, node) or (node, node, weight), by default of weight 1.

        Nodes are of one type that has an order. An edge said twice, in either direction, is one;
        with two weights, or from a node to itself, it is an error.
        """
        weights: dict[tuple[Node, Node], float] = {}
        for number, edge in enumerate(edges, 1):
            _add(weights, edge, f"edge {number}")
        return cls._of(weights, "the list of edges")

    @classmethod
    def from_file(cls, path: str | Path) -> Topology:
        """The network of an edge list: `node node [weight]` a line, by blanks or commas.

        `#` begins a comment. The nodes are ints if all of them look like ints, else strings.
        """
        try:
            lines = Path(path).read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidFile(f"{path} cannot be read as an edge list: {error}") from None
        found: list[tuple[int, str, str, float]] = []
        for number, line in enumerate(lines, 1):
            words = line.partition("#")[0].replace(",", " ").split()
            if words:
                found.append((number, *_read_edge(words, f"{path}, line {number}")))
        numeric = all(_is_int(u) and _is_int(v) for _, u, v, _ in found)
        weights: dict[tuple[Node, Node], float] = {}
        for number, u, v, weight in found:
            ends = (int(u), int(v)) if numeric else (u, v)
            _add(weights, (*ends, weight), f"{path}, line {number}")
        return cls._of(weights, str(path))

    @classmethod
    def _of(cls, weights: dict[tuple[Node, Node], float], place: str) -> Topology:
        if not weights:
            raise InvalidTopology(f"{place} is empty; a network has at least one edge")
        return cls(weights)

    def __len__(self) -> int:
        return len(self.nodes)

    def __contains__(self, node: object) -> bool:
        return node in self._numbers

    def __repr__(self) -> str:
        return f"Topology({len(self.nodes)} nodes, {len(self.edges)} edges)"

    def number(self, node: Node) -> int:
        """The position of a node in `nodes`; an error if it is not in the network."""
        try:
            return self._numbers[node]
        except (KeyError, TypeError):
            shown = ", ".join(map(repr, self.nodes[:6])) + (", ..." if len(self) > 6 else "")
            raise InvalidTopology(
                f"no processor {node!r} in this network; there are {shown}"
            ) from None

    def neighbours(self, node: Node) -> tuple[Node, ...]:
        """N(node), ascending."""
        at = self.number(node)
        start, stop = self._spans[at : at + 2]
        return tuple(self.nodes[i] for i in self._links.begin[start:stop])

    def units(self, u: Node, v: Node) -> int:
        """How long the link between two neighbours is, in whole units; see `length`."""
        return self._of_link[(u, v) if u < v else (v, u)]

    def length(self, units: int) -> float:
        """A number of units as the weights count."""
        return length(units, self._decimals)

    def distance(self, u: Node, v: Node) -> float:
        """The length of the shortest paths between two nodes."""
        return self.tree(u).distance(v)

    def towards(self, source: Node, node: Node) -> tuple[Node, ...]:
        """The neighbours of a node on its shortest paths from a source, ascending."""
        units = self.tree(source).units
        at = self.number(node)
        start, stop = self._spans[at : at + 2]
        begin = self._links.begin[start:stop]
        tight = units[begin] + self._links.units[start:stop] == units[at]
        return tuple(self.nodes[i] for i in begin[tight])

    def has_unique_paths(self) -> bool:
        """Is there one shortest path between any two processors, and no other as long?"""
        links = len(self._links.begin)
        chunk = max(1, _CELLS // links)
        numbers = np.arange(len(self.nodes))
        for start in range(0, len(numbers), chunk):
            _, tight = self._tight(numbers[start : start + chunk])
            if int(tight.sum()) > len(tight) * (len(self.nodes) - 1):  # more than a tree each
                return False
        return True

    def tree(self, source: Node) -> SourceTree:
        """T_v: the shortest-paths tree of a source; the last few hundred are kept."""
        number = self.number(source)
        tree = self._trees.get(number)
        if tree is None:
            tree = self._trees[number] = next(self.trees([source]))
            if len(self._trees) > _TREES:
                self._trees.popitem(last=False)
        return tree

    def trees(self, sources: Sequence[Node] | None = None) -> Iterator[SourceTree]:
        """The trees of many sources, by default of all, one after the other."""
        chosen_nodes = self.nodes if sources is None else sources
        numbers = np.array([self.number(v) for v in chosen_nodes], np.int64)
        chunk = max(1, _CELLS // len(self._links.begin))
        for start in range(0, len(numbers), chunk):
            chosen = numbers[start : start + chunk]
            units, parents = self._shortest(chosen)
            for row, v in enumerate(chosen):
                yield SourceTree(
                    self.nodes, self._numbers, int(v), parents[row], units[row], self._decimals
                )

    def _shortest(
        self, sources: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
        """Distances in units and parents (-1 at the source), a row a source."""
        units, tight = self._tight(sources)
        candidates = np.where(tight, self._links.begin, np.int32(len(self.nodes)))
        parents = np.minimum.reduceat(candidates, self._links.first, axis=1)
        parents[np.arange(len(sources)), sources] = -1
        return units, parents

    def _tight(
        self, sources: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
        """Distances in units, and which links lie on a shortest path, a row a source."""
        begin, end, lengths, _ = self._links
        is_small = len(sources) * len(begin) * len(self.nodes) <= _RELAXED
        units = self._relaxed(sources) if is_small else self._dijkstra(sources)
        return units, units[:, begin] + lengths == units[:, end]

    def _relaxed(self, sources: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Distances in units: each round adds a link to the paths that are known."""
        begin, _, lengths, first = self._links
        units = np.full((len(sources), len(self.nodes)), np.inf)
        units[np.arange(len(sources)), sources] = 0.0
        while True:
            nearer = np.minimum.reduceat(units[:, begin] + lengths, first, axis=1)
            np.minimum(units, nearer, out=nearer)
            if np.array_equal(units, nearer):
                return units
            units = nearer

    def _dijkstra(self, sources: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        shape = (len(self.nodes), len(self.nodes))
        graph = csr_array((self._links.units, self._links.begin, self._spans), shape=shape)
        units: npt.NDArray[np.float64] = dijkstra(graph, directed=True, indices=sources)
        return units


def _add(weights: dict[tuple[Node, Node], float], edge: Any, place: str) -> None:
    """Check one edge and file it, the smaller node first."""
    if not isinstance(edge, Sequence) or isinstance(edge, str) or len(edge) not in (2, 3):
        raise InvalidTopology(f"{place}: {edge!r} is no (node, node) or (node, node, weight)")
    u, v, weight = (*edge, 1.0) if len(edge) == 2 else edge
    if isinstance(weight, bool) or not isinstance(weight, int | float | np.integer | np.floating):
        raise InvalidTopology(f"{place}: the weight {weight!r} is no number")
    if not 0 < weight <= _WEIGHT_MAX:  # NaN is not either
        raise InvalidTopology(
            f"{place}: the weight {weight!r} of {u!r}, {v!r} is not a positive, finite number"
        )
    kind = type(next(iter(weights))[0]) if weights else type(u)
    for node in (u, v):
        if type(node) is not kind:
            raise InvalidTopology(
                f"{place}: {node!r} is of type {type(node).__name__}, others are of type "
                f"{kind.__name__}; give all nodes one type"
            )
    try:
        hash(u)
        if u == v:
            raise InvalidTopology(f"{place}: a link from {u!r} to itself; leave it out")
        pair = (u, v) if u < v else (v, u)
    except TypeError:
        raise InvalidTopology(
            f"{place}: {u!r} and {v!r} cannot be hashed and ordered; name nodes by ints or strings"
        ) from None
    if weights.setdefault(pair, float(weight)) != weight:
        raise InvalidTopology(
            f"{place}: {u!r}, {v!r} has weight {weight!r} here and {weights[pair]!r} before; "
            "keep one of the two"
        )


def _read_edge(words: list[str], place: str) -> tuple[str, str, float]:
    if len(words) not in (2, 3):
        raise InvalidTopology(
            f"{place}: {len(words)} words; write `node node` and perhaps a weight"
        )
    try:
        weight = float(words[2]) if len(words) == 3 else 1.0
    except ValueError:
        raise InvalidTopology(f"{place}: the weight {words[2]!r} is no number") from None
    return words[0], words[1], weight


def _is_int(word: str) -> bool:
    return word.lstrip("-").isascii() and word.removeprefix("-").isdigit()


def _in_units(weights: list[float], nodes: int) -> tuple[int, list[int]]:
    """How many decimals are kept, and the weights in units of the last of them."""
    written = [Decimal(repr(w)) for w in weights]
    finest = max(-int(w.normalize().as_tuple().exponent) for w in written)
    longest = log10(nodes) + log10(max(weights))  # no path is longer
    decimals = min(finest, floor(log10(_UNITS_MAX) - longest))
    return decimals, [int(w.scaleb(decimals).to_integral_value()) for w in written]


def _links(
    edges: Sequence[tuple[Node, Node, float]], units: list[int], numbers: dict[Node, int]
) -> _Links:
    u = np.array([numbers[edge[0]] for edge in edges], np.int32)
    v = np.array([numbers[edge[1]] for edge in edges], np.int32)
    begin, end = np.concatenate([u, v]), np.concatenate([v, u])
    order = np.lexsort((begin, end))
    first = np.searchsorted(end[order], np.arange(len(numbers)))
    return _Links(begin[order], end[order], np.array(units * 2, np.float64)[order], first)


def _parts(spans: list[int], begin: list[int]) -> tuple[int, list[int]]:
    """Into how many parts the network falls, and the number of each node's part."""
    part = [-1] * (len(spans) - 1)
    parts = 0
    for start in range(len(part)):
        if part[start] >= 0:
            continue
        part[start] = parts
        reached = [start]
        while reached:
            at = reached.pop()
            for other in begin[spans[at] : spans[at + 1]]:
                if part[other] < 0:
                    part[other] = parts
                    reached.append(other)
        parts += 1
    return parts, part
