"""Networks to try things on: the figures of the 2006 paper, regular shapes, random families.

Nodes are numbered from 1. Random families take the source of randomness, `random.Random(seed)`:
the same state gives the same network.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from palio.errors import InvalidTopology
from palio.routing.topology import Topology

T = TypeVar("T")


class Random(Protocol):
    """What is used of `random.Random`."""

    def random(self) -> float: ...

    def randrange(self, start: int, stop: int, /) -> int: ...

    def choice(self, among: Sequence[T], /) -> T: ...


# The drawing is lost; these links and weights make every sentence about it true (tests/paper).
_FIGURE_1 = [
    *((1, 2, 4), (2, 3, 1), (3, 4, 4)),
    *((1, 5, 1), (1, 6, 2), (2, 6, 1), (3, 7, 4), (4, 8, 1)),
    *((6, 7, 1), (7, 8, 1)),
    *((5, 9, 1), (6, 9, 1), (7, 10, 2), (7, 11, 1), (8, 12, 1)),
    *((9, 10, 1), (10, 11, 4), (11, 12, 4)),
]


def figure_1() -> Topology:
    """Figures 1 and 2 of the 2006 paper, reconstructed; its shortest paths are unique.

    1 ──4── 2 ──1── 3 ──4── 4
    │ ╲     │       │       │
    1   2   1       4       1
    │     ╲ │       │       │
    5       6 ──1── 7 ──1── 8
    │     ╱       ╱ │       │
    1   1       2   1       1
    │ ╱       ╱     │       │
    9 ──1── 10 ─4── 11 ─4── 12
    """
    return Topology.from_edges(_FIGURE_1)


def figure_3() -> Topology:
    """The ring of four where PIF sends a packet too many (2006, 3.3)."""
    return Topology.from_edges([(1, 2, 2), (2, 3, 1), (3, 4, 1), (1, 4, 1)])


def figure_4() -> Topology:
    """The links of figure 1 with two equally long ways from 5 to 7, by 1 and by 9 (2006, 3.4)."""
    return Topology.from_edges(
        (u, v, 1 if (u, v) == (1, 6) else weight) for u, v, weight in _FIGURE_1
    )


def line(nodes: int) -> Topology:
    """1 ─ 2 ─ 3 ─ ..."""
    return Topology.from_edges((i, i + 1) for i in range(1, _at_least(2, nodes)))


def ring(nodes: int) -> Topology:
    """A line whose ends meet."""
    _at_least(3, nodes)
    return Topology.from_edges((i, i % nodes + 1) for i in range(1, nodes + 1))


def star(nodes: int) -> Topology:
    """1 in the middle, all others around it."""
    return Topology.from_edges((1, i) for i in range(2, _at_least(2, nodes) + 1))


def grid(rows: int, columns: int) -> Topology:
    """Rows and columns, numbered row by row."""
    _at_least(2, _at_least(1, rows) * _at_least(1, columns))
    right = ((i, i + 1) for i in range(1, rows * columns + 1) if i % columns)
    down = ((i, i + columns) for i in range(1, (rows - 1) * columns + 1))
    return Topology.from_edges([*right, *down])


def balanced_tree(nodes: int, children: int = 2) -> Topology:
    """Every node has so many children, filled row by row."""
    _at_least(1, children)
    return Topology.from_edges(
        (i, (i - 2) // children + 1) for i in range(2, _at_least(2, nodes) + 1)
    )


def random_tree(nodes: int, rng: Random) -> Topology:
    """Every node joins one that is there, each as likely as the others."""
    return Topology.from_edges((i, rng.randrange(1, i)) for i in range(2, _at_least(2, nodes) + 1))


def power_law(nodes: int, rng: Random, links: int = 2) -> Topology:
    """Every node joins `links` others, each as likely as it has links already (Barabási, Albert)."""
    return Topology.from_edges(_attached(_at_least(2, nodes), _at_least(1, links), rng))


def internet(
    rng: Random, cores: int = 4, domains: int = 3, routers: int = 8, delay: int = 10
) -> Topology:
    """A hierarchy: a core of well-connected routers, each with customers' domains.

    A domain is a small power-law network; one link, for every third domain two, leads to the core.
    Links of the core are `delay` long, those to domains a third of it, those inside one.
    """
    core = list(_attached(_at_least(2, cores), 2, rng))
    edges: list[tuple[int, int, float]] = [(u, v, delay) for u, v in core]
    uplink = max(1, delay // 3)
    first = cores + 1
    for number in range(cores * _at_least(0, domains)):
        home = number % cores + 1
        inside = _attached(_at_least(2, routers), 1, rng)
        edges += [(u + first - 1, v + first - 1, 1) for u, v in inside]
        edges.append((home, first, uplink))
        if number % 3 == 2:
            second = rng.choice([c for c in range(1, cores + 1) if c != home])
            edges.append((second, first + routers - 1, uplink))
        first += routers
    return Topology.from_edges(edges)


def reweighted(net: Topology, rng: Random, decimals: int = 6) -> Topology:
    """The same links with random weights from 1 to 2, so that equally long ways are rare."""
    return Topology.from_edges((u, v, round(1 + rng.random(), decimals)) for u, v, _ in net.edges)


def _attached(nodes: int, links: int, rng: Random) -> Iterable[tuple[int, int]]:
    """Links by preferential attachment: a node stands in `ends` once for each of its links."""
    ends = [1]
    for i in range(2, nodes + 1):
        chosen: set[int] = set()
        while len(chosen) < min(links, i - 1):
            chosen.add(rng.choice(ends))
        for other in sorted(chosen):
            ends += [i, other]
            yield i, other


def _at_least(smallest: int, number: int) -> int:
    if number < smallest:
        raise InvalidTopology(f"{number} is too small for this network; take {smallest} or more")
    return number
