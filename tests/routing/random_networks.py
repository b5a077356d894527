"""Random networks, predicates and messages for the tests of routing schemes, and their oracle."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import Any

from hypothesis import strategies as st

from palio.model.language import parse
from palio.model.predicate import Predicate
from palio.routing.topology import Topology

EVERY_SCHEME = ("PSF", "iPS", "PIF", "DRP")

PREDICATES = [
    parse(text)
    for text in (
        *(
            "x > 0",
            "x > 1",
            "x < 2",
            "x = 1",
            "y = 1",
            "y = 2",
            "x > 0 AND y = 1",
            "x >= 0 OR y > 3",
        ),
        *("x = 3 OR x = 1 AND y < 3", "s LIKE 'a%'", "s = 'ab' AND x > 1", "y IS NULL", "FALSE"),
    )
]

messages = st.fixed_dictionaries(
    {},
    optional={
        "x": st.integers(0, 3),
        "y": st.integers(0, 3),
        "s": st.sampled_from(["a", "ab", "b"]),
    },
)

small_weights = st.sampled_from([1, 2, 3, 0.5])
"""Few values, so that equally long ways are common."""

fine_weights = st.integers(10_000, 99_999)
"""Many values, so that they are rare."""


@st.composite
def networks(
    draw: st.DrawFn,
    weights: st.SearchStrategy[float] = small_weights,
    nodes_max: int = 30,
    loops: bool = True,
) -> Topology:
    """A random tree with random links added."""
    count = draw(st.integers(2, nodes_max))
    edges = {(draw(st.integers(1, i - 1)), i): draw(weights) for i in range(2, count + 1)}
    if loops:
        ends = st.tuples(st.integers(1, count), st.integers(1, count), weights)
        for u, v, weight in draw(st.lists(ends, max_size=count)):
            if u != v:
                edges.setdefault((min(u, v), max(u, v)), weight)
    return Topology.from_edges((u, v, weight) for (u, v), weight in edges.items())


@st.composite
def interests(draw: st.DrawFn, net: Topology) -> dict[Any, Predicate]:
    """Predicates for some of the nodes."""
    wanted = draw(st.lists(st.none() | st.sampled_from(PREDICATES), max_size=len(net)))
    return {x: p for x, p in zip(net.nodes, wanted, strict=False) if p is not None}


@st.composite
def situations(draw: st.DrawFn, nets: st.SearchStrategy[Topology]) -> tuple[Any, Any, Any, Any]:
    """A network, predicates, a source and a message."""
    net = draw(nets)
    return net, draw(interests(net)), draw(st.sampled_from(net.nodes)), draw(messages)


def distances(net: Topology, source: Any) -> dict[Any, Fraction]:
    """By relaxing all edges until nothing changes, in exact decimal arithmetic."""
    found = {source: Fraction(0)}
    changed = True
    while changed:
        changed = False
        for a, b, weight in net.edges:
            length = Fraction(repr(weight))
            for u, v in ((a, b), (b, a)):
                if u in found and (v not in found or found[u] + length < found[v]):
                    found[v] = found[u] + length
                    changed = True
    return found


def flood(net: Topology, predicates: dict[Any, Predicate], source: Any, message: Any) -> set[Any]:
    """Give the message to everybody that a link reaches; who is interested says so."""
    seen, waiting = {source}, [source]
    while waiting:
        u = waiting.pop()
        for a, b, _ in net.edges:
            for x, y in ((a, b), (b, a)):
                if x == u and y not in seen:
                    seen.add(y)
                    waiting.append(y)
    return {x for x in seen if x in predicates and predicates[x].matches(message)}


def fewest_packets(net: Topology, source: Any, wanted: set[Any]) -> int:
    """The smallest latency-minimal tree, by trying all sets of processors it might have."""
    near = distances(net, source)
    upstream: dict[Any, set[Any]] = {x: set() for x in net.nodes}
    for a, b, weight in net.edges:
        for u, v in ((a, b), (b, a)):
            if near[u] + Fraction(repr(weight)) == near[v]:
                upstream[v].add(u)
    others = [x for x in net.nodes if x not in wanted and x != source]
    for extra in range(len(others) + 1):
        for chosen in combinations(others, extra):
            members = wanted | set(chosen) | {source}
            if all(upstream[x] & members for x in members - {source}):
                return len(members) - 1
    raise AssertionError("a connected network has such a tree")
