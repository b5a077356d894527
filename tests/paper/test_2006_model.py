"""Claims of "Understanding Content-Based Routing Schemes" (Lugano 2006/05), section 2, on the network
itself and its predicates, before any scheme."""

from __future__ import annotations

import random
from itertools import product

import pytest

from palio import Constraint, Predicate, parse
from palio.errors import InvalidTopology
from palio.lab.reproduce.figures.paper_2006_deliveries import drawn
from palio.model.operators import STRING_OPS, Op
from palio.routing import Topology, generators, scheme


def networks(seed: int) -> list[Topology]:
    rng = random.Random(seed)
    return [drawn(8, True, rng) for _ in range(20)]


def test_2_a_network_is_connected() -> None:
    """Section 2: a finite connected undirected graph; another one is refused."""
    with pytest.raises(InvalidTopology, match="3"):
        Topology.from_edges([(1, 2), (3, 4)])


def test_2_links_are_bidirectional() -> None:
    """Section 2: u is a neighbour of v if v is one of u, at the same distance; so a link that is given twice
    is one link."""
    for net in networks(2):
        for u, v in product(net.nodes, repeat=2):
            assert (u in net.neighbours(v)) == (v in net.neighbours(u))
            assert net.distance(u, v) == net.distance(v, u)
            if u in net.neighbours(v):
                assert net.units(u, v) == net.units(v, u)
    assert Topology.from_edges([(1, 2), (2, 1)]).edges == Topology.from_edges([(1, 2)]).edges


def test_2_distance_is_the_length_of_the_shortest_path() -> None:
    """Section 2: no path is shorter; against all paths that grow edge by edge (Bellman and Ford)."""
    for net in networks(3):
        for source in net.nodes:
            best = {source: 0.0}
            for _ in net.nodes:
                for u, v, weight in net.edges:
                    for a, b in ((u, v), (v, u)):
                        if a in best:
                            best[b] = min(best.get(b, float("inf")), best[a] + weight)
            assert {x: net.distance(source, x) for x in net.nodes} == best


def test_2_processors_are_numbered_and_have_degrees() -> None:
    """Section 2: V = {1, ..., n}; Delta is the largest degree."""
    net = generators.star(9)
    assert net.nodes == tuple(range(1, 10))
    assert [len(net.neighbours(x)) for x in net.nodes] == [8] + [1] * 8
    assert scheme("PSF", net, {1: "x = 1"}).degree_max == 8


def test_2_a_processor_is_host_and_router() -> None:
    """Section 2: it consumes messages and forwards them for others: 2 does both on a line of three."""
    net = generators.line(3)
    delivery = scheme("PSF", net, {2: "x > 0", 3: "x > 1"}).deliver(1, {"x": 2})
    assert delivery.receivers == {2, 3}
    assert delivery.links == [(1, 2), (2, 3)]


def test_2_a_predicate_is_total() -> None:
    """Section 2: a total Boolean function of messages: with every operator, every type of value, and an
    attribute that is not there, it is true or false, as is every union of two."""
    operands = dict.fromkeys(STRING_OPS, "ab") | {Op.IN: [1, 2], Op.ANY: None, Op.ABSENT: None}
    predicates = [Predicate.of(Constraint("x", op, operands.get(op, 1))) for op in Op]
    values = [None, 0, 1, 1.5, float("nan"), "", "ab", "abc", True]
    for value, a, b in product(values, predicates, predicates):
        message = {"x": value}
        found = a.matches(message)
        assert found is True or found is False
        assert (a | b).matches(message) is (found or b.matches(message))


def test_2_a_predicate_stands_for_its_messages() -> None:
    """Section 2: p denotes the set of messages that it matches; so a disjunction denotes the union."""
    messages = [
        {"alert": alert, "severity": n} for alert in ("congestion", "ice") for n in range(5)
    ]
    p, q = parse("alert = 'congestion' AND severity > 2"), parse("severity = 0")

    def matched(predicate: Predicate) -> list[int]:
        return [i for i, message in enumerate(messages) if predicate.matches(message)]

    assert matched(p) == [3, 4]
    assert matched(q) == [0, 5]
    assert matched(p | q) == sorted({*matched(p), *matched(q)})
