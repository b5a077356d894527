"""Claims of "Understanding Content-Based Routing Schemes" (Lugano 2006/05), sections 2 and 3.

The drawings are lost: `generators.figure_1`, `figure_3` and `figure_4` are reconstructed so that
each sentence below holds.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from palio import parse
from palio.routing import Topology, generators, scheme
from palio.routing.schemes.delivery import is_correct, is_cost_minimal, is_ideal, is_latency_minimal
from palio.routing.schemes.drp import DRP
from palio.routing.schemes.ips import IPS
from palio.routing.schemes.pif import PIF
from palio.routing.schemes.psf import PSF


@pytest.fixture(scope="module")
def net() -> Topology:
    return generators.figure_1()


def own(net: Topology) -> dict[Any, str]:
    """p_1, p_2, ...: predicates that have nothing in common."""
    return {x: f"p{x} = 1" for x in net.nodes}


def matching(*receivers: int) -> dict[str, int]:
    """A message that matches the predicates of these."""
    return {f"p{x}": 1 for x in receivers}


def some_of(*receivers: int) -> Any:
    return parse(" OR ".join(f"p{x} = 1" for x in receivers))


def test_predicate_example_of_section_2() -> None:
    """Section 2: a disjunction of conjunctions matches the message of the example; its size is 3."""
    predicate = parse("(alert = 'congestion' AND severity > 2) OR (alert = 'accident')")
    assert predicate.matches({"alert": "congestion", "severity": 3, "location": "highway1"})
    assert predicate.size == 3


def drawn(rng: random.Random, nodes: int) -> tuple[Topology, int, dict[str, int]]:
    """A random network, a source, and a message to some others."""
    edges = {(rng.randrange(1, i), i): rng.choice([1, 1, 2]) for i in range(2, nodes + 1)}
    for _ in range(nodes // 2):
        u, v = sorted(rng.sample(range(1, nodes + 1), 2))
        edges.setdefault((u, v), rng.choice([1, 1, 2]))
    net = Topology.from_edges((u, v, weight) for (u, v), weight in edges.items())
    source, *receivers = rng.sample(range(1, nodes + 1), rng.randrange(2, nodes))
    return net, source, matching(*receivers)


# Section 3.1, figure 1


def test_figure_1_shortest_paths_are_unique(net: Topology) -> None:
    """Nothing below depends on how ties are broken."""
    assert net.nodes == tuple(range(1, 13))
    assert net.has_unique_paths()


def test_figure_1_descendants(net: Topology) -> None:
    """Section 3.1: T_1/(6, 7) is {4, 7, 8, 11, 12} while T_1/(6, 9) is the empty set."""
    assert 9 in net.neighbours(6)
    assert net.tree(1).via(6, 7) == {4, 7, 8, 11, 12}
    assert net.tree(1).via(6, 9) == set()


def test_figure_1_table_of_6(net: Topology) -> None:
    """Section 3.1: F_u(v, w) is the disjunction over T_v/(u, w)."""
    psf = scheme("PSF", net, own(net))
    assert isinstance(psf, PSF)
    assert psf.predicate(6, 1, 7) == some_of(4, 7, 8, 11, 12)
    assert psf.predicate(6, 1, 2) == some_of(2, 3)
    assert psf.predicate(6, 1, 9).filters == ()


def test_psf_functions(net: Topology) -> None:
    """Section 3.1: Init_x(m) = x, Hdr_x(h) = h, Fwd_u(v, m) = {w | m in F_u(v, w)}."""
    psf = scheme("PSF", net, own(net))
    message: Any = matching(3, 12)
    delivery = psf.deliver(1, message)
    assert {vertex.header for vertex in delivery.vertices} == {1}
    assert psf.init(5, delivery.message) == 5
    assert psf.hdr(6, 1) == 1
    assert psf.fwd(6, 1, delivery.message) == [2, 7]
    assert sorted(delivery.links) == [(1, 6), (2, 3), (6, 2), (6, 7), (7, 8), (8, 12)]
    assert is_ideal(delivery)


# Section 3.2


def test_figure_1_indistinguishable_sources(net: Topology) -> None:
    """Section 3.2: 1, 5 and 9 are indistinguishable from the perspective of 6, where no link is a
    bridge; and from that of all descendants of 6 in T_1, as is 6 itself."""
    ips = scheme("iPS", net, own(net))
    assert isinstance(ips, IPS)
    assert len({ips.representative(6, v) for v in (1, 5, 9)}) == 1
    below = net.tree(1).descendants(6) - {6}
    assert below == {2, 3, 4, 7, 8, 11, 12}
    for w in below:
        assert len({ips.representative(w, v) for v in (1, 5, 6, 9)}) == 1


def test_figure_1_header_is_rewritten_at_6(net: Topology) -> None:
    """Section 3.2: Hdr_6 replaces the source by 6, and the message goes its way as before."""
    ips = scheme("iPS", net, own(net))
    assert ips.hdr(6, 1) == ips.hdr(6, 5) == ips.hdr(6, 9) == 6
    message = matching(3, 4, 11)
    delivery = ips.deliver(1, message)
    headers = {vertex.processor: vertex.header for vertex in delivery.vertices}
    assert headers[1] == headers[6] == 1
    assert headers[2] == headers[7] == 6
    assert sorted(delivery.links) == sorted(scheme("PSF", net, own(net)).deliver(1, message).links)


def test_bridges_make_sources_indistinguishable() -> None:
    """Section 3.2: from one side of a bridge, all sources on the other side look alike."""
    left = [(1, 2), (2, 3), (1, 3)]
    net = Topology.from_edges([*left, (3, 4, 2), (4, 5), (5, 6), (4, 6)])
    ips = scheme("iPS", net, own(net))
    assert isinstance(ips, IPS)
    for u in (4, 5, 6):
        assert len({ips.representative(u, v) for v in (1, 2, 3)}) == 1
    for u in (1, 2, 3):
        assert len({ips.representative(u, v) for v in (4, 5, 6)}) == 1


def test_tree_networks() -> None:
    """Section 3.2: on a tree the domain of F_u is N(u), I_u the identity and R_u = 1."""
    net = generators.balanced_tree(15)
    ips = scheme("iPS", net, own(net))
    assert isinstance(ips, IPS)
    for u in net.nodes:
        assert ips.domain(u) == set(net.neighbours(u))
        assert all(ips.representative(u, w) == w for w in net.neighbours(u))
        assert all(ips.rewrites(u, v) for v in net.nodes)


# Section 3.3, figures 2 and 3


def test_figure_2_forwarding_function_of_6(net: Topology) -> None:
    """Section 3.3: the union of T_v/(6, 9) over all v is {5, 9, 10}, so F*_6(9) = p5 or p9 or p10."""
    assert set().union(*(net.tree(v).via(6, 9) for v in net.nodes)) == {5, 9, 10}
    pif = scheme("PIF", net, own(net))
    assert isinstance(pif, PIF)
    assert pif.predicate(6, 9) == some_of(5, 9, 10)


def test_figure_2_content_alone_would_go_in_circles(net: Topology) -> None:
    """Section 3.3: a message of 6 that matches p7 and p10 matches F*_6(9) and F*_6(7); 7 would
    pass it to 10, and 10, which has it by way of 9, to 7. Within T_6 it is delivered once."""
    pif = scheme("PIF", net, own(net))
    assert isinstance(pif, PIF)
    message = matching(7, 10)
    for u, w in ((6, 9), (6, 7), (7, 10), (9, 10), (10, 7)):
        assert pif.predicate(u, w).matches(message), (u, w)
    delivery = pif.deliver(6, message)
    assert sorted(delivery.links) == [(6, 7), (6, 9), (9, 10)]
    assert is_correct(delivery)


def test_figure_3_pif_is_not_ideal() -> None:
    """Section 3.3: m from 1 reaches 2 and 4, who want it, and 3, who does not, because 2 is a
    descendant via (4, 3) in T_4."""
    net = generators.figure_3()
    assert net.has_unique_paths()
    assert net.tree(1).via(4, 3) == {3}
    assert 2 in net.tree(4).via(4, 3)
    pif = scheme("PIF", net, own(net))
    assert isinstance(pif, PIF)
    assert pif.predicate(4, 3) == some_of(2, 3)
    delivery = pif.deliver(1, matching(2, 4))
    assert is_correct(delivery)
    assert is_latency_minimal(delivery)
    assert not is_cost_minimal(delivery)
    assert delivery.processors == {1, 2, 3, 4}
    assert delivery.receivers == {2, 4}
    assert (4, 3) in delivery.links
    assert is_ideal(scheme("PSF", net, own(net)).deliver(1, matching(2, 4)))


def test_figure_3_is_found_by_searching() -> None:
    """Section 3.3: random networks of four processors are enough to meet PIF sending in vain; all
    that waste have a ring, since on trees F*_u(w) is F_u(v, w)."""
    rng, found = random.Random(3), 0
    for _ in range(300):
        net, source, message = drawn(rng, 4)
        psf = scheme("PSF", net, own(net)).deliver(source, message)
        pif = scheme("PIF", net, own(net)).deliver(source, message)
        assert set(psf.links) <= set(pif.links)
        if pif.packets > psf.packets:
            found += 1
            assert len(net.edges) >= len(net)
    assert found


# Section 3.4, figure 4


def test_figure_4_partition_at_6() -> None:
    """Section 3.4: W_6 = {2, 3, 4, 8}; unicast_6 maps {2, 3} to 2 and {4, 8} to 7."""
    for net in (generators.figure_1(), generators.figure_4()):
        drp = scheme("DRP", net, own(net))
        assert isinstance(drp, DRP)
        assert [drp.unicast(6, w) for w in (2, 3, 4, 8)] == [2, 2, 7, 7]
        delivery = drp.deliver(1, matching(2, 3, 4, 8, 9))
        arrived = {vertex.processor: vertex.header for vertex in delivery.vertices}
        assert arrived[6][6] == {2, 3, 4, 8}
        assert drp.hdr(6, arrived[6]) == {2: {2, 3}, 7: {4, 8}}
        assert drp.fwd(6, arrived[6], delivery.message) == [2, 7]
        assert drp.fwd(1, arrived[1], delivery.message) == list(arrived[1])  # the origin
        assert is_ideal(delivery) or not net.has_unique_paths()


def test_figure_4_two_packets() -> None:
    """Section 3.4: 5 sends to {7, 8, 11}, 8 is reached by 9 and 11 by 1, both through 7: then 7
    sees two packets. All paths are shortest, so DRP is ideal only if these are unique."""
    net = generators.figure_4()
    assert net.towards(6, 5) == (1, 9)  # two neighbours of 5 on shortest paths to 6 and beyond
    own_unicast = scheme("DRP", net, own(net))
    assert isinstance(own_unicast, DRP)
    detours = {(5, 8): 9, (5, 11): 1, (9, 8): 6, (1, 11): 6}
    drp = scheme(
        "DRP",
        net,
        own(net),
        unicast=lambda u, w: detours.get((u, w)) or own_unicast.unicast(u, w),
    )
    delivery = drp.deliver(5, matching(7, 8, 11))
    assert is_correct(delivery)
    assert is_latency_minimal(delivery)
    assert [vertex.processor for vertex in delivery.vertices].count(7) == 2
    assert not is_ideal(delivery)
    assert is_ideal(own_unicast.deliver(5, matching(7, 8, 11)))


def test_figure_4_is_found_by_searching() -> None:
    """Section 3.4: with unicast functions that follow any shortest paths, two packets occur, and
    only where these are not unique."""
    rng, found = random.Random(4), 0
    for _ in range(300):
        net, source, message = drawn(rng, 6)
        hops = {
            (u, w): rng.choice(net.towards(w, u)) for u in net.nodes for w in net.nodes if u != w
        }
        drp = scheme("DRP", net, own(net), unicast=lambda u, w, hops=hops: hops[u, w])
        delivery = drp.deliver(source, message)
        assert is_latency_minimal(delivery)
        if delivery.packets >= len(delivery.processors):
            found += 1
            assert not net.has_unique_paths()
    assert found
