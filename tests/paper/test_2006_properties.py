"""Claims of "Understanding Content-Based Routing Schemes" (Lugano 2006/05), sections 2 and 3, that hold
for every network: definitions, correctness, ideality and memory. `test_2006_schemes` has the paper's
examples; here networks are random."""

from __future__ import annotations

import random
from math import log2
from typing import Any

import pytest

from palio import covers, parse, reduce
from palio.lab.reproduce.figures.paper_2006_deliveries import (
    any_unicast,
    bridges,
    drawn,
    exhaustive,
)
from palio.lab.reproduce.figures.paper_2006_memory import apart, average_distance
from palio.routing import Topology, generators, scheme
from palio.routing.schemes.delivery import (
    is_correct,
    is_cost_minimal,
    is_ideal,
    is_latency_minimal,
    packets_min,
)
from palio.routing.schemes.ips import IPS
from palio.routing.schemes.memory import drp_bits, identifier_bits, ips_tree_bits, pif_bits

SCHEMES = ("PSF", "iPS", "PIF", "DRP")
TIMES = 40


def own(net: Topology) -> dict[Any, str]:
    return {x: f"p{x} = 1" for x in net.nodes}


def some_message(net: Topology, rng: random.Random) -> tuple[Any, dict[str, int]]:
    """A source, and a message to some others."""
    source, *receivers = rng.sample(net.nodes, rng.randrange(2, len(net)))
    return source, {f"p{x}": 1 for x in receivers}


def networks(seed: int, *, ties: bool, nodes: int = 8) -> list[Topology]:
    rng = random.Random(seed)
    return [drawn(nodes, ties, rng) for _ in range(TIMES)]


# Section 2


def test_2_1_packets_carry_the_header_that_the_sender_made() -> None:
    """Section 2.1: u sends a packet with Hdr_u(h) to all of Fwd_u(h, m)."""
    net = generators.figure_1()
    ips = scheme("iPS", net, own(net))
    delivery = ips.deliver(1, {"p3": 1, "p12": 1})
    for vertex in delivery.vertices[1:]:
        parent = delivery.vertices[vertex.parent]  # type: ignore[index]
        is_source = parent.parent is None
        made = parent.header if is_source else ips.hdr(parent.processor, parent.header)
        assert vertex.header == made
        assert vertex.processor in ips.fwd(parent.processor, parent.header, delivery.message)


def test_2_2_two_packets_to_one_processor_are_two_vertices() -> None:
    """Section 2.2: in a ring of four with ties, DRP may reach 3 by both sides of 1."""
    net = Topology.from_edges([(1, 2), (2, 3), (3, 4), (1, 4), (3, 5), (3, 6)])
    hops = {(1, 5): 2, (1, 6): 4}
    trees = scheme("DRP", net, own(net))
    drp = scheme(
        "DRP",
        net,
        own(net),
        unicast=lambda u, w: hops.get((u, w)) or trees.unicast(u, w),  # type: ignore[attr-defined]
    )
    delivery = drp.deliver(1, {"p5": 1, "p6": 1})
    assert [vertex.processor for vertex in delivery.vertices].count(3) == 2
    assert delivery.packets == 6


def test_2_3_correct_means_that_all_interested_are_reached() -> None:
    """Section 2.3: for every source, and every processor whose predicate matches, there is a vertex."""
    net = generators.figure_1()
    for source in net.nodes:
        delivery = scheme("PSF", net, own(net)).deliver(source, {"p2": 1, "p11": 1})
        reached = {vertex.processor for vertex in delivery.vertices}
        assert {2, 11} <= reached
        assert is_correct(delivery)


def test_2_3_the_smallest_tree_of_least_latency_might_not_be_unique() -> None:
    """Section 2.3: in a ring of four, 1 reaches 3 by 2 or by 4 with two packets and least latency."""
    net = Topology.from_edges([(1, 2), (2, 3), (3, 4), (1, 4)])
    for by in (2, 4):
        drp = scheme("DRP", net, own(net), unicast=lambda u, w, by=by: by if u == 1 else w)
        delivery = drp.deliver(1, {"p3": 1})
        assert (1, by) in delivery.links
        assert is_ideal(delivery)


def test_2_3_latency_comes_before_cost() -> None:
    """Section 2.3: an ideal tree may have more packets than the smallest of all trees."""
    net = Topology.from_edges([(1, 2, 1), (2, 3, 1), (1, 3, 1.5)])
    delivery = scheme("PSF", net, own(net)).deliver(1, {"p2": 1, "p3": 1})
    assert sorted(delivery.links) == [(1, 2), (1, 3)]
    assert is_ideal(delivery)
    far = Topology.from_edges([(1, 2, 1), (2, 3, 1), (1, 4, 0.5), (4, 3, 1)])
    by_4 = scheme("PSF", far, own(far)).deliver(1, {"p2": 1, "p3": 1})
    assert by_4.packets == 3, "1-2-3 would take two packets, and longer to 3"
    assert is_ideal(by_4)
    assert packets_min(far, 1, frozenset({2, 3})) == 3


def test_2_4_memory_is_the_sum_over_processors() -> None:
    """Section 2.4: M(S) is the sum of what all processors store."""
    net = generators.figure_1()
    for name in SCHEMES:
        memory = scheme(name, net, own(net)).memory()
        assert memory.bits == sum(amount.bits for amount in memory.nodes.values())


@pytest.mark.parametrize("nodes", [2, 3, 8, 9, 1_000])
def test_2_4_identifiers_take_log_n_bits(nodes: int) -> None:
    """Section 2.4: an identifier requires Theta(log n) bits."""
    assert log2(nodes) <= identifier_bits(nodes) < log2(nodes) + 1


def test_2_4_the_example_of_a_disjunction() -> None:
    """Section 2.4: severity > 2 or severity > 3 is severity > 2."""
    assert reduce("severity > 2 OR severity > 3") == parse("severity > 2")


def test_2_4_alpha_is_at_most_1() -> None:
    """Section 2.4: there is never a penalty for combining predicates."""
    rng = random.Random(24)
    texts = [
        f"{rng.choice('xyz')} {rng.choice(['<', '>', '='])} {rng.randrange(9)}" for _ in range(200)
    ]
    for _ in range(TIMES):
        a, b = (parse(" OR ".join(rng.sample(texts, 3))) for _ in range(2))
        both = parse(f"({a}) OR ({b})")
        assert reduce(both).size <= a.size + b.size
        assert covers(reduce(both), a)


# Section 3.1


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("ties", [False, True])
def test_3_the_four_schemes_are_correct(name: str, ties: bool) -> None:
    """Sections 3.1 to 3.4: PSF, iPS, PIF and DRP are correct."""
    rng = random.Random(31)
    for net in networks(31, ties=ties):
        source, message = some_message(net, rng)
        assert is_correct(scheme(name, net, own(net)).deliver(source, message))


def test_3_1_psf_contains_only_minimal_paths() -> None:
    """Section 3.1: by construction, with ties or without."""
    rng = random.Random(32)
    for net in networks(32, ties=True):
        source, message = some_message(net, rng)
        assert is_latency_minimal(scheme("PSF", net, own(net)).deliver(source, message))


def test_3_1_psf_sends_only_towards_the_interested() -> None:
    """Section 3.1: within T_v, and there through the edges that reach interested descendants, and no other."""
    rng = random.Random(47)
    for net in networks(47, ties=True):
        source, message = some_message(net, rng)
        delivery = scheme("PSF", net, own(net)).deliver(source, message)
        tree = net.tree(source)
        expected = [
            (tree.parent(x), x)
            for x in net.nodes
            if x != source and tree.descendants(x) & delivery.interested
        ]
        assert sorted(delivery.links) == sorted(expected)


def test_3_1_psf_is_ideal_where_shortest_paths_are_unique() -> None:
    """Section 3.1 says ideal, without a condition; with ties there are smaller trees of least latency."""
    rng = random.Random(33)
    for net in networks(33, ties=False):
        assert net.has_unique_paths()
        source, message = some_message(net, rng)
        assert is_ideal(scheme("PSF", net, own(net)).deliver(source, message))
    ring = Topology.from_edges([(1, 2), (2, 3), (3, 4), (1, 4)])
    delivery = scheme("PSF", ring, own(ring)).deliver(1, {"p3": 1, "p4": 1})
    assert is_latency_minimal(delivery)
    assert not is_cost_minimal(delivery), "1-4-3 takes two packets, the tree of 1 has 3 behind 2"


def test_3_1_memory_of_psf() -> None:
    """Section 3.1: s log n + M_p sum dist, and with uniform senders and receivers s log n + s r M_p d."""
    rng = random.Random(34)
    net = Topology.from_edges((u, v) for u, v, _ in generators.power_law(60, rng).edges)
    senders, receivers = rng.sample(net.nodes, 30), rng.sample(net.nodes, 30)
    psf = scheme("PSF", net, apart(receivers), senders=senders)
    hops = sum(net.distance(v, x) for v in senders for x in receivers)
    size = psf.predicate_bits
    assert psf.memory().total.predicate_bits == pytest.approx(size * hops)
    assert psf.formula_bits() == pytest.approx(30 * log2(60) + size * hops)
    assert hops == pytest.approx(30 * 30 * average_distance(net), rel=0.1)


def test_3_1_the_average_distance_can_be_linear_in_n() -> None:
    """Section 3.1: d can be as high as O(n): on a line it is about n / 3."""
    for nodes in (30, 60, 120):
        assert average_distance(generators.line(nodes)) == pytest.approx(nodes / 3, rel=0.05)


def test_3_1_the_average_distance_of_power_law_graphs_is_small() -> None:
    """Section 3.1: very small in many common cases; how it grows is measured in 2006-distances."""
    net = generators.power_law(400, random.Random(35))
    assert average_distance(net) < log2(400) / 2


# Section 3.2


def test_3_2_indistinguishable_sources_have_equal_children_and_descendants() -> None:
    """Section 3.2: the two conditions, for all pairs of sources; an equivalence."""
    for net in networks(36, ties=True)[:10]:
        ips = scheme("iPS", net, own(net))
        assert isinstance(ips, IPS)
        for u in net.nodes:
            for v in net.nodes:
                for w in net.nodes:
                    a, b = net.tree(v), net.tree(w)
                    alike = a.children(u) == b.children(u) and all(
                        a.descendants(c) == b.descendants(c) for c in a.children(u)
                    )
                    assert (ips.representative(u, v) == ips.representative(u, w)) == alike


def test_3_2_bridges_are_sufficient() -> None:
    """Section 3.2: all sources on one side of a bridge look alike on the other, in every network."""
    found = 0
    for net in networks(37, ties=True):
        ips = scheme("iPS", net, own(net))
        assert isinstance(ips, IPS)
        pairs, alike = bridges(net, ips)
        assert pairs == alike
        found += pairs
    assert found


def test_3_2_ips_forwards_as_psf_does() -> None:
    """Section 3.2: collapsing entries and rewriting headers changes no delivery."""
    rng = random.Random(38)
    for net in networks(38, ties=True):
        source, message = some_message(net, rng)
        psf, ips = (scheme(n, net, own(net)).deliver(source, message) for n in ("PSF", "iPS"))
        assert sorted(psf.links) == sorted(ips.links)


def test_3_2_hierarchies_have_few_classes() -> None:
    """Section 3.2, an intuition: indistinguishability is important because networks are hierarchical."""
    net = generators.internet(random.Random(39), cores=4)
    ips = scheme("iPS", net, own(net))
    assert isinstance(ips, IPS)
    classes = sum(len(ips.domain(u)) for u in net.nodes) / len(net)
    assert classes < len(net) / 4


def test_3_2_memory_of_ips_on_a_tree() -> None:
    """Section 3.2: n r M_p alpha; I_u and R_u take nothing, and alpha is 1 where nothing is shared."""
    net = generators.random_tree(40, random.Random(40))
    ips = scheme("iPS", net, apart(net.nodes))
    bound = ips_tree_bits(40, 40, ips.predicate_bits)
    assert ips.formula_bits() == pytest.approx(bound)
    assert 0.9 * bound < ips.memory().total.predicate_bits <= bound


# Section 3.3


def test_3_3_the_tree_of_psf_is_a_subtree_of_that_of_pif() -> None:
    """Section 3.3: always."""
    rng = random.Random(41)
    for net in networks(41, ties=True):
        source, message = some_message(net, rng)
        psf, pif = (scheme(n, net, own(net)).deliver(source, message) for n in ("PSF", "PIF"))
        assert set(psf.links) <= set(pif.links)


def test_3_3_memory_of_pif() -> None:
    """Section 3.3: n (s Delta log n + r M_p alpha); the printed sum has an n more than its parts."""
    net = generators.power_law(40, random.Random(42))
    pif = scheme("PIF", net, apart(net.nodes))
    bound = pif_bits(40, 40, 40, pif.degree_max, pif.predicate_bits)
    assert pif.formula_bits() == pytest.approx(bound)
    assert pif.memory().bits <= bound


# Section 3.4


def test_3_4_drp_is_ideal_where_shortest_paths_are_unique() -> None:
    """Section 3.4, if: for every source and every one and two receivers."""
    for net in networks(43, ties=False, nodes=6)[:10]:
        assert exhaustive(net, random.Random(43)) == (True, True)


def test_3_4_with_ties_some_unicast_makes_drp_not_ideal() -> None:
    """Section 3.4, only if: true for some unicast functions; a tie alone does not decide it."""
    tied = [net for net in networks(44, ties=True, nodes=6) if not net.has_unique_paths()][:8]
    assert tied
    for net in tied:
        assert not exhaustive(net, random.Random(44))[1]
    triangle = Topology.from_edges([(1, 2, 1), (2, 3, 1), (1, 3, 2)])
    assert not triangle.has_unique_paths()
    direct = scheme("DRP", triangle, own(triangle), unicast=lambda u, w: w)
    for source in triangle.nodes:
        for message in ({"p1": 1}, {"p2": 1}, {"p3": 1}, {"p1": 1, "p2": 1, "p3": 1}):
            assert is_ideal(direct.deliver(source, message))


def test_3_4_memory_of_drp() -> None:
    """Section 3.4: n r log n + s r M_p, by the rounded identifier."""
    net = generators.power_law(40, random.Random(45))
    drp = scheme("DRP", net, apart(net.nodes))
    assert drp.formula_bits() == pytest.approx(drp_bits(40, 40, 40, drp.predicate_bits))
    assert drp.memory().bits == pytest.approx(drp.formula_bits(), rel=0.1)


def test_3_4_unicast_is_a_module_that_may_stretch_paths() -> None:
    """Section 3.4: with longer paths DRP is correct, and no longer minimal in latency."""
    ring = generators.ring(6)
    drp = scheme("DRP", ring, own(ring), unicast=lambda u, w: u % 6 + 1)  # always clockwise
    delivery = drp.deliver(1, {"p6": 1})
    assert is_correct(delivery)
    assert delivery.latency[6] == 5 > ring.distance(1, 6)
    net = networks(46, ties=True)[0]
    hops = any_unicast(net, random.Random(46))
    shortest = scheme("DRP", net, own(net), unicast=lambda u, w: hops[u, w])
    source, message = some_message(net, random.Random(46))
    assert is_latency_minimal(shortest.deliver(source, message))
