"""Networks and their trees: against exact relaxation, and with edges that are none."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio.errors import InvalidFile, InvalidTopology, PalioError
from palio.routing import Topology, generators
from tests.routing.random_networks import distances, fine_weights, networks, small_weights

some = settings(max_examples=40, deadline=None)
decimals = st.decimals("0.01", "9", places=2).map(float)


@some
@given(networks(st.one_of(small_weights, fine_weights, decimals)), st.data())
def test_trees_are_shortest_with_the_smallest_parent(net: Topology, data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(net.nodes))
    exact = distances(net, source)
    tree = net.tree(source)
    weights = {(u, v): Fraction(repr(w)) for u, v, w in net.edges}
    weights |= {(v, u): w for (u, v), w in weights.items()}
    for x in net.nodes:
        assert tree.distance(x) == net.distance(x, source) == float(exact[x])
        upstream = [u for u in net.neighbours(x) if exact[u] + weights[u, x] == exact[x]]
        assert tree.parent(x) == (min(upstream) if upstream else None)
        assert net.towards(source, x) == tuple(upstream)
    assert tree.parent(source) is None


@some
@given(networks(st.one_of(small_weights, fine_weights, decimals)))
def test_small_and_large_networks_are_searched_to_the_same_end(net: Topology) -> None:
    sources = np.arange(len(net.nodes))
    assert np.array_equal(net._relaxed(sources), net._dijkstra(sources))


@some
@given(networks(), st.data())
def test_trees_fit_each_other(net: Topology, data: st.DataObject) -> None:
    """The way of T_v from u on is the way of T_u: what makes all nodes decide alike."""
    v, x = data.draw(st.sampled_from(net.nodes)), data.draw(st.sampled_from(net.nodes))
    way = net.tree(v).path(x)
    for i, u in enumerate(way):
        assert net.tree(u).path(x) == way[i:]


@some
@given(networks(), st.data())
def test_descendants_are_those_whose_way_leads_through(net: Topology, data: st.DataObject) -> None:
    tree = net.tree(data.draw(st.sampled_from(net.nodes)))
    ways = {x: tree.path(x) for x in net.nodes}
    for w in net.nodes:
        assert tree.descendants(w) == {x for x in net.nodes if w in ways[x]}
        for u in net.neighbours(w):
            hops = {x: list(zip(ways[x], ways[x][1:], strict=False)) for x in net.nodes}
            assert tree.via(u, w) == {x for x in net.nodes if (u, w) in hops[x]}
            assert (w in tree.children(u)) == (tree.parent(w) == u)


@some
@given(networks(nodes_max=10))
def test_unique_paths_are_unique(net: Topology) -> None:
    single = all(len(net.towards(v, x)) == 1 for v in net.nodes for x in net.nodes if x != v)
    assert net.has_unique_paths() == single


def test_distances_are_sums_of_decimals() -> None:
    """0.1 + 0.2 is 0.3: the two ways are equally long, and the smaller parent wins."""
    net = Topology.from_edges(
        [("a", "b", 0.1), ("b", "c", 0.2), ("a", "d", 0.15), ("d", "c", 0.15)]
    )
    assert net.distance("a", "c") == 0.3
    assert net.towards("a", "c") == ("b", "d")
    assert net.tree("a").path("c") == ["a", "b", "c"]


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1e15, 1 / 3])
def test_weights_of_any_size(scale: float) -> None:
    net = Topology.from_edges([(1, 2, scale), (2, 3, 2 * scale), (1, 3, 4 * scale)])
    assert net.tree(1).path(3) == [1, 2, 3]
    assert net.distance(1, 3) == pytest.approx(3 * scale, rel=1e-12)


def test_edges_default_to_weight_one_and_may_be_said_twice() -> None:
    net = Topology.from_edges([(2, 1), (1, 2, 1.0), [2, 3, 2]])
    assert net.nodes == (1, 2, 3)
    assert net.edges == ((1, 2, 1.0), (2, 3, 2.0))
    assert net.neighbours(2) == (1, 3)
    assert len(net) == 3
    assert 3 in net
    assert 4 not in net


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        ([], "the list of edges is empty"),
        ([(1, 1)], "edge 1: a link from 1 to itself; leave it out"),
        ([(1, 2), (2, 1, 3)], "edge 2: 2, 1 has weight 3 here and 1.0 before; keep one"),
        ([(1, 2), (3, 4)], "falls into 2 parts: no path from 1 to 3; add an edge"),
        ([(1, 2, -1)], "edge 1: the weight -1 of 1, 2 is not a positive, finite number"),
        ([(1, 2, 0)], "the weight 0 of 1, 2"),
        ([(1, 2, nan)], "the weight nan of 1, 2"),
        ([(1, 2, inf)], "the weight inf of 1, 2"),
        ([(1, 2, 10**400)], "not a positive, finite number"),
        ([(1, 2, "far")], "the weight 'far' is no number"),
        ([(1, 2, True)], "the weight True is no number"),
        ([(1, 2, 1j)], "is no number"),
        ([(1, 2, 3, 4)], r"edge 1: \(1, 2, 3, 4\) is no \(node, node\)"),
        (["ab"], "'ab' is no"),
        ([3], "3 is no"),
        ([(1, "b")], "edge 1: 'b' is of type str, others are of type int; give all nodes one type"),
        ([([], [])], r"\[\] and \[\] cannot be hashed and ordered"),
        ([(1j, 2j)], "cannot be hashed and ordered"),
        ([(1, 2, 1e-30), (2, 3, 1e30)], "the edge 1, 2: its weight 1e-30 vanishes beside"),
    ],
)
def test_edges_that_are_no_network(edges: Any, said: str) -> None:
    with pytest.raises(InvalidTopology, match=said):
        Topology.from_edges(edges)


def test_unknown_nodes_are_told() -> None:
    net = generators.line(9)
    asked: list[Callable[[Any], Any]] = [
        *(net.tree, net.neighbours, lambda x: net.distance(1, x), lambda x: net.distance(x, 1)),
        *(net.tree(1).path, net.tree(1).children, lambda x: net.tree(1).via(x, 1)),
    ]
    for ask in asked:
        for node in (10, "a", [], None):
            with pytest.raises(InvalidTopology, match=r"no processor .* in this network"):
                ask(node)
    with pytest.raises(InvalidTopology, match=r"there are 1, 2, 3, 4, 5, 6, \.\.\.$"):
        net.number(0)


def test_edge_lists(tmp_path: Path) -> None:
    path = tmp_path / "net.txt"
    path.write_text("# links\n1 2\n\n2,3,2.5   # far\n 3\t10 4\n")
    net = Topology.from_file(path)
    assert net.edges == ((1, 2, 1.0), (2, 3, 2.5), (3, 10, 4.0))
    path.write_text("a b\nb 3")
    assert Topology.from_file(str(path)).nodes == ("3", "a", "b")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 2\n3\n", "line 2: 1 words; write `node node` and perhaps a weight"),
        ("1 2 3 4", "line 1: 4 words"),
        ("1 2\n2 3 far\n", "line 2: the weight 'far' is no number"),
        ("1 2\n\n2 3 -1", "line 3: the weight -1.0 of 2, 3 is not a positive"),
        ("1 2\n2 3 nan", "line 2: the weight nan"),
        ("1 2\n2 2", "line 2: a link from 2 to itself"),
        ("1 2\n2 1 4", "line 2: 2, 1 has weight 4.0 here and 1.0 before"),
        ("# nothing", "is empty"),
        ("1 2\n3 4", "2 parts"),
    ],
)
def test_edge_lists_that_are_none(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "net.txt"
    path.write_text(text)
    with pytest.raises(InvalidTopology, match=said):
        Topology.from_file(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="cannot be read as an edge list"):
        Topology.from_file(tmp_path / "none")
    path = tmp_path / "bytes"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PalioError):
        Topology.from_file(path)


FAMILIES: dict[str, tuple[Callable[[random.Random], Topology], int, int]] = {
    "line": (lambda _: generators.line(7), 7, 6),
    "ring": (lambda _: generators.ring(7), 7, 7),
    "star": (lambda _: generators.star(7), 7, 6),
    "grid": (lambda _: generators.grid(3, 4), 12, 17),
    "balanced tree": (lambda _: generators.balanced_tree(13, 3), 13, 12),
    "random tree": (lambda rng: generators.random_tree(50, rng), 50, 49),
    "power law": (lambda rng: generators.power_law(50, rng), 50, 97),
    "internet": (lambda rng: generators.internet(rng), 100, 105),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_families(family: str) -> None:
    make, nodes, edges = FAMILIES[family]
    net = make(random.Random(5))
    assert (len(net), len(net.edges)) == (nodes, edges)
    assert net.nodes == tuple(range(1, nodes + 1))
    assert net.edges == make(random.Random(5)).edges
    degrees = sorted(len(net.neighbours(x)) for x in net.nodes)
    if family in ("line", "ring"):
        assert degrees[-1] == 2
    if family == "star":
        assert degrees[-1] == 6
    if family == "power law":
        assert degrees[-1] > 4 * degrees[nodes // 2]


def test_random_families_depend_on_the_seed() -> None:
    for make in (generators.random_tree, generators.power_law):
        assert make(40, random.Random(1)).edges != make(40, random.Random(2)).edges
    net = generators.grid(6, 6)
    assert not net.has_unique_paths()
    assert generators.reweighted(net, random.Random(1)).has_unique_paths()


def test_families_need_enough_nodes() -> None:
    for make in (
        lambda: generators.line(1),
        lambda: generators.ring(2),
        lambda: generators.grid(1, 1),
    ):
        with pytest.raises(InvalidTopology, match="too small"):
            make()


def test_ten_thousand_nodes() -> None:
    net = generators.power_law(10_000, random.Random(1))
    tree = net.tree(1)
    assert len(tree.descendants(1)) == 10_000
    assert sum(1 for _ in net.trees(net.nodes[:20])) == 20
