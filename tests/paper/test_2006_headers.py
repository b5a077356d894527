"""Claims of "Understanding Content-Based Routing Schemes" (Lugano 2006/05) on the headers of packets: what
Init writes, what Hdr makes of it on the way, and what Fwd reads from it (2.1, 3.2, 3.3, and H_W of 3.4).

The text of 3.4 prints `unicast(v, w) in H_W(u)`, a processor in a set of receivers; here it is read as:
w is in H_W(unicast(v, w)). A processor that is a receiver itself has the message, and leaves W.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from tests.protocol.policies.policy_network import broker_name, make_policy

from palio.lab.reproduce.figures.paper_2006_deliveries import any_unicast, bridges, drawn
from palio.model.message import Message
from palio.protocol.policies.policy import ROUTE_READER, ROUTE_WRITER
from palio.routing import Topology, generators, scheme
from palio.routing.schemes.delivery import Delivery
from palio.routing.schemes.drp import DRP
from palio.routing.schemes.ips import IPS

TIMES = 30


def own(net: Topology) -> dict[Any, str]:
    """p_1, p_2, ...: predicates that have nothing in common."""
    return {x: f"p{x} = 1" for x in net.nodes}


def matching(receivers: Any) -> Message:
    """A message that matches the predicates of these."""
    return Message({f"p{x}": 1 for x in receivers})


def networks(seed: int, nodes: int = 8) -> list[Topology]:
    """With ties among shortest paths."""
    rng = random.Random(seed)
    return [drawn(nodes, True, rng) for _ in range(TIMES)]


# Section 2.1


@pytest.mark.parametrize("name", ["PSF", "iPS", "PIF", "DRP"])
def test_2_1_fwd_gives_neighbours_only(name: str) -> None:
    """Section 2.1: Fwd_v(h, m) is a subset of N(v), for every header on the way."""
    rng = random.Random(21)
    for net in networks(21):
        routed = scheme(name, net, own(net))
        source, *receivers = rng.sample(net.nodes, 5)
        delivery = routed.deliver(source, matching(receivers))
        for vertex in delivery.vertices:
            hops = routed.fwd(vertex.processor, vertex.header, delivery.message)
            assert set(hops) <= set(net.neighbours(vertex.processor))
            assert len(hops) == len(set(hops))


# Section 3.2


def ips_on(net: Topology) -> IPS:
    made = scheme("iPS", net, own(net))
    assert isinstance(made, IPS)
    return made


def test_3_2_a_class_is_represented_by_one_of_its_elements() -> None:
    """Section 3.2: I_u maps a source to the representative of its class, and that to itself."""
    for net in networks(32):
        ips = ips_on(net)
        for u in net.nodes:
            for v in net.nodes:
                assert ips.representative(u, ips.representative(u, v)) == ips.representative(u, v)


def test_3_2_a_header_is_rewritten_where_nobody_below_can_tell() -> None:
    """Section 3.2: Hdr_u(v) is u if R_u(I_u(v)) = 1, else v; it is 1 where all descendants of u take the
    sources of that class for u itself, and 0 where somebody can tell one of them."""
    rewritten = 0
    for net in networks(33):
        ips = ips_on(net)
        for u in net.nodes:
            for v in set(net.nodes) - {u}:
                alike = [
                    x for x in net.nodes if ips.representative(u, x) == ips.representative(u, v)
                ]
                told_apart = any(
                    ips.representative(w, x) != ips.representative(w, u)
                    for x in alike
                    for w in net.tree(x).descendants(u) - {u}
                )
                assert ips.hdr(u, v) == (v if told_apart else u)
                rewritten += not told_apart
    assert rewritten


def test_3_2_rewriting_compresses_the_domain_below() -> None:
    """Section 3.2, figure 1, where no link is a bridge: the descendants of 6 in T_1 know the most recently
    visited processor instead of 1, 5 and 9: 2 and 7 know 6, and 3, behind 2, not even that."""
    net = generators.figure_1()
    ips = ips_on(net)
    assert bridges(net, ips) == (0, 0)
    for w in net.tree(1).descendants(6) - {6}:
        assert ips.headers(w).isdisjoint({1, 5, 9})
    assert 6 in ips.headers(2) & ips.headers(7)
    assert 6 not in ips.headers(3)


def test_3_2_on_a_tree_the_header_is_who_forwarded_the_packet() -> None:
    """Section 3.2: the forwarding function decides on the neighbour that forwarded the packet alone."""
    net = generators.random_tree(20, random.Random(34))
    ips = ips_on(net)
    for source in net.nodes:
        delivery = ips.deliver(source, matching(net.nodes))
        assert delivery.packets == len(net) - 1
        for vertex in delivery.vertices[1:]:
            assert vertex.parent is not None
            assert vertex.header == delivery.vertices[vertex.parent].processor


# Section 3.3


def test_3_3_headers_of_pif_are_those_of_psf() -> None:
    """Section 3.3: Init_v(m) = v and Hdr_u(h) = h for all processors and messages."""
    net = generators.figure_1()
    pif, psf = scheme("PIF", net, own(net)), scheme("PSF", net, own(net))
    for v in net.nodes:
        assert pif.init(v, matching([3])) == psf.init(v, matching([3])) == v
        assert all(pif.hdr(u, v) == psf.hdr(u, v) == v for u in net.nodes)


# Section 3.4: H_W


def drp_on(net: Topology, rng: random.Random) -> DRP:
    """With a unicast that follows any shortest path to each receiver."""
    hops = any_unicast(net, rng)
    made = scheme("DRP", net, own(net), unicast=lambda u, w: hops[u, w])
    assert isinstance(made, DRP)
    return made


def deliveries(seed: int) -> Iterator[tuple[DRP, Delivery, set[Any]]]:
    """Each with the receivers W; the source may be one of them."""
    rng = random.Random(seed)
    for net in networks(seed):
        drp = drp_on(net, rng)
        wanted = set(rng.sample(net.nodes, rng.randrange(1, len(net))))
        yield drp, drp.deliver(rng.choice(net.nodes), matching(wanted)), wanted


def test_3_4_init_partitions_the_interested_by_next_hop() -> None:
    """Section 3.4: the union of all H_W(u) is W, no two of them meet, and H_W maps neighbours of v."""
    for drp, delivery, wanted in deliveries(51):
        v = delivery.source
        partition = drp.init(v, delivery.message)
        named = [x for some in partition.values() for x in some]
        assert sorted(named) == sorted(wanted - {v}), "each once"
        assert partition.keys() <= set(drp.net.neighbours(v))
        assert all(partition.values()), "a neighbour without receivers is not in the domain"
        assert all(x in partition[drp.unicast(v, x)] for x in named)


@pytest.mark.parametrize("wanted", [set(), {1}])
def test_3_4_where_w_is_empty_there_is_no_packet(wanted: set[int]) -> None:
    """Section 3.4: H_W is computed if W is not empty; here nobody is interested but, perhaps, 1 itself."""
    net = generators.figure_1()
    drp = scheme("DRP", net, own(net))
    assert drp.init(1, matching(wanted)) == {}
    assert drp.deliver(1, matching(wanted)).packets == 0


def test_3_4_hdr_does_what_init_would_do_with_the_receivers_of_u() -> None:
    """Section 3.4: with W = H_W'(u), Hdr_u gives what Init_u gives for a message to exactly those."""
    for drp, delivery, _ in deliveries(52):
        for vertex in delivery.vertices[1:]:
            u = vertex.processor
            assert drp.hdr(u, vertex.header) == drp.init(u, matching(vertex.header[u]))


def test_3_4_hdr_asks_no_predicate() -> None:
    """Section 3.4: the destination set is computed by the originator alone; at 6 it does not matter who is
    interested in what."""
    net = generators.figure_1()
    header = {6: frozenset({2, 3, 4, 8})}
    for predicates in (own(net), {}, {9: "p9 = 1"}):
        drp = scheme("DRP", net, predicates)
        assert drp.hdr(6, header) == {2: {2, 3}, 7: {4, 8}}
        assert drp.fwd(6, header, matching([9])) == [2, 7]


def test_3_4_fwd_is_the_domain_of_the_partition() -> None:
    """Section 3.4: at the origin, where H_W is undefined for itself, the domain of H_W; elsewhere the next
    hops of all receivers in H_W(u), which are the domain of what Hdr_u makes."""
    for drp, delivery, _ in deliveries(53):
        origin, *others = delivery.vertices
        assert origin.processor not in origin.header
        assert drp.fwd(origin.processor, origin.header, delivery.message) == list(origin.header)
        for vertex in others:
            u = vertex.processor
            hops = drp.fwd(u, vertex.header, delivery.message)
            assert set(hops) == {drp.unicast(u, w) for w in vertex.header[u] - {u}}
            assert hops == list(drp.hdr(u, vertex.header))


def test_3_4_the_receivers_are_split_at_every_hop() -> None:
    """Section 3.4, dynamic receiver partitioning: what the packets that leave u are for, taken together, is
    what the packet that came to u was for, but for u itself; each receiver is in one of them. So the
    sets shrink where paths part and where somebody is reached, and the last one is a receiver alone."""
    for _, delivery, wanted in deliveries(54):
        meant = [
            wanted if vertex.parent is None else vertex.header[vertex.processor]
            for vertex in delivery.vertices
        ]
        parts: list[list[Any]] = [[] for _ in meant]
        for vertex, some in zip(delivery.vertices, meant, strict=True):
            if vertex.parent is not None:
                parts[vertex.parent].append(some)
        for vertex, some, further in zip(delivery.vertices, meant, parts, strict=True):
            named = Counter(x for part in further for x in part)
            assert named == Counter(some - {vertex.processor})
            assert all(len(part) < len(some) for part in further) or len(further) == 1
            if not further and vertex.parent is not None:
                assert some == {vertex.processor}


def test_3_4_a_receiver_is_named_once_for_each_hop_to_it() -> None:
    """Section 3.4: of all packets, those meant for x are the ones on the path of unicast from v to x."""
    for drp, delivery, wanted in deliveries(55):
        named = Counter(
            x for vertex in delivery.vertices[1:] for x in vertex.header[vertex.processor]
        )
        for x in wanted - {delivery.source}:
            at, hops = delivery.source, 0
            while at != x:
                at, hops = drp.unicast(at, x), hops + 1
            assert named[x] == hops


def test_3_4_one_packet_goes_to_all_next_hops() -> None:
    """Section 3.4: processor 6 sends the packet with H_W6 to 2 and to 7, and each reads its own part."""
    net = generators.figure_1()
    delivery = scheme("DRP", net, own(net)).deliver(1, matching([2, 3, 4, 8]))
    headers = {vertex.processor: vertex.header for vertex in delivery.vertices}
    assert headers[2] == headers[7] == {2: {2, 3}, 7: {4, 8}}


def test_3_4_a_packet_for_each_next_hop_saves_header_space() -> None:
    """Section 3.4, in brackets, and so in brokers: 6 sends {2, 3} to 2 and {4, 8} to 7, nothing else; no
    header is longer than the one before it."""
    edges = generators.figure_1().edges
    net = Topology.from_edges((broker_name(u), broker_name(v), weight) for u, v, weight in edges)
    policies = {name: make_policy("DRP", name, net) for name in net.nodes}
    came = ROUTE_WRITER.encode((9, ["b02", "b03", "b04", "b08"]))
    hops = dict(policies["b06"].next_hops(came, (), "b01") or ())
    receivers = {hop: ROUTE_READER.decode(route)[1] for hop, route in hops.items()}
    assert receivers == {"b02": ("b02", "b03"), "b07": ("b04", "b08")}
    further = dict(policies["b07"].next_hops(hops["b07"], (), "b06") or ())
    assert {hop: ROUTE_READER.decode(route)[1] for hop, route in further.items()} == {
        "b08": ("b04", "b08")
    }
    for before, after in pairwise([came, hops["b07"], further["b08"]]):
        assert len(after) <= len(before)


def test_3_4_unicast_is_the_neighbour_on_the_shortest_path() -> None:
    """Section 3.4: unicast_v(w) is v's neighbour on the shortest path from v to w."""
    for net in networks(56):
        drp = scheme("DRP", net, own(net))
        assert isinstance(drp, DRP)
        for v in net.nodes:
            for w in set(net.nodes) - {v}:
                hop = drp.unicast(v, w)
                assert hop in net.neighbours(v)
                link = net.length(net.units(v, hop))
                assert link + net.distance(hop, w) == pytest.approx(net.distance(v, w))
