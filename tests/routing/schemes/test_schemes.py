"""The four schemes against flooding, brute force and each other, on random networks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from palio import PalioError, Predicate, reduce
from palio.errors import InvalidTopology
from palio.routing import Topology, generators, scheme
from palio.routing.schemes.delivery import (
    Delivery,
    is_correct,
    is_cost_minimal,
    is_ideal,
    is_latency_minimal,
    packets_min,
)
from palio.routing.schemes.disjunctions import Disjunctions
from palio.routing.schemes.drp import DRP
from palio.routing.schemes.ips import IPS
from palio.routing.schemes.pif import PIF
from palio.routing.schemes.psf import PSF
from tests.routing import random_networks as networks

each_scheme = pytest.mark.parametrize("name", networks.EVERY_SCHEME)
any_network = networks.situations(networks.networks())
unique_paths = networks.situations(networks.networks(networks.fine_weights))
trees = networks.networks(loops=False)
some = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def shape(delivery: Delivery) -> list[tuple[Any, Any]]:
    return sorted(delivery.links)


@each_scheme
@some
@given(any_network)
def test_delivers_to_exactly_the_interested(name: str, situation: Any) -> None:
    net, predicates, source, message = situation
    delivery = scheme(name, net, predicates).deliver(source=source, message=message)
    expected = networks.flood(net, predicates, source, message)
    assert delivery.receivers == set(delivery.latency) == expected
    assert expected | {source} <= delivery.processors
    assert is_correct(delivery)
    links = {frozenset((u, v)) for u, v, _ in net.edges}
    assert all(frozenset(link) in links for link in delivery.links)


@each_scheme
@some
@given(any_network)
def test_every_scheme_is_as_early_as_can_be(name: str, situation: Any) -> None:
    net, predicates, source, message = situation
    delivery = scheme(name, net, predicates).deliver(source, message)
    exact = networks.distances(net, source)
    assert delivery.latency == {x: float(exact[x]) for x in delivery.receivers}
    assert is_latency_minimal(delivery)


@pytest.mark.parametrize("name", ["PSF", "iPS", "DRP"])
@some
@given(unique_paths)
def test_ideal_where_shortest_paths_are_unique(name: str, situation: Any) -> None:
    """The packets are those of the union of the paths, one for each link."""
    net, predicates, source, message = situation
    assume(net.has_unique_paths())
    delivery = scheme(name, net, predicates).deliver(source, message)
    tree = net.tree(source)
    ways = {
        link
        for x in delivery.interested
        for link in zip(tree.path(x), tree.path(x)[1:], strict=False)
    }
    assert shape(delivery) == sorted(ways)
    assert is_ideal(delivery)


@some
@given(any_network)
def test_psf_sends_nothing_in_vain(situation: Any) -> None:
    """With any ties: of all trees within T_v, PSF's is the smallest; each leaf is interested."""
    net, predicates, source, message = situation
    delivery = scheme("PSF", net, predicates).deliver(source, message)
    tree = net.tree(source)
    needed = {y for x in delivery.interested for y in tree.path(x)} | {source}
    assert delivery.processors == needed
    assert delivery.packets == len(needed) - 1


def test_with_equally_long_paths_no_fixed_tree_is_ideal_for_all_messages() -> None:
    """The paper says that PSF is ideal (2006, 3.1): this needs unique shortest paths.

    2 and 3 both lead to 5; to 4 only 2 leads, to 6 only 3. Whoever 5 hangs from in T_1, one of the
    pairs {4, 5} and {5, 6} costs a packet more than it must.
    """
    net = Topology.from_edges([(1, 2), (1, 3), (2, 4), (2, 5), (3, 5), (3, 6)])
    psf = scheme("PSF", net, {4: "a = 1", 5: "b = 1", 6: "c = 1"})
    near, far = psf.deliver(1, {"a": 1, "b": 1}), psf.deliver(1, {"b": 1, "c": 1})
    assert is_latency_minimal(near)
    assert is_latency_minimal(far)
    assert [near.packets, far.packets] == [3, 4]
    assert [is_ideal(near), is_ideal(far)] == [True, False]
    assert not net.has_unique_paths()


@some
@given(any_network)
def test_pif_contains_psf(situation: Any) -> None:
    net, predicates, source, message = situation
    psf = scheme("PSF", net, predicates).deliver(source, message)
    pif = scheme("PIF", net, predicates).deliver(source, message)
    assert set(psf.links) <= set(pif.links)
    assert len(pif.links) == len(set(pif.links))
    tree = net.tree(source)
    assert all(tree.parent(w) == u for u, w in pif.links)


@some
@given(any_network, st.data())
def test_pif_predicates_are_those_of_all_sources(situation: Any, data: st.DataObject) -> None:
    net, predicates, _, _ = situation
    u = data.draw(st.sampled_from(net.nodes))
    pif = scheme("PIF", net, predicates)
    assert isinstance(pif, PIF)
    for w in net.neighbours(u):
        behind = {x for v in net.nodes for x in net.tree(v).via(u, w)}
        wanted = [f for x in sorted(behind & set(predicates)) for f in reduce(predicates[x])]
        assert pif.predicate(u, w) == reduce(Predicate(tuple(wanted)))


@some
@given(any_network)
def test_drp_follows_the_trees_and_psf(situation: Any) -> None:
    """Our tie-break makes trees fit each other, so DRP's own unicast never sends two packets."""
    net, predicates, source, message = situation
    psf = scheme("PSF", net, predicates).deliver(source, message)
    drp = scheme("DRP", net, predicates).deliver(source, message)
    assert shape(psf) == shape(drp)


@some
@given(any_network, st.randoms(use_true_random=False))
def test_drp_with_any_shortest_unicast_is_correct(situation: Any, rng: Any) -> None:
    net, predicates, source, message = situation
    chosen: dict[Any, Any] = {}

    def unicast(u: Any, w: Any) -> Any:
        return chosen.setdefault((u, w), rng.choice(net.towards(w, u)))

    drp = scheme("DRP", net, predicates, unicast=unicast)
    delivery = drp.deliver(source, message)
    assert is_latency_minimal(delivery)
    headers = [vertex.header for vertex in delivery.vertices]
    for vertex, header in zip(delivery.vertices[1:], headers[1:], strict=True):
        assert vertex.processor in header
        sets = list(header.values())
        assert sum(map(len, sets)) == len(frozenset().union(*sets))  # a partition


@some
@given(any_network)
def test_ips_takes_the_ways_of_psf_with_no_more_entries(situation: Any) -> None:
    net, predicates, source, message = situation
    psf, ips = scheme("PSF", net, predicates), scheme("iPS", net, predicates)
    assert shape(psf.deliver(source, message)) == shape(ips.deliver(source, message))
    one, other = psf.memory(), ips.memory()
    assert other.entries <= one.entries
    assert other.predicates <= one.predicates
    assert other.constraints <= one.constraints
    for x in net.nodes:
        assert other.nodes[x].entries <= one.nodes[x].entries


@some
@given(networks.networks(nodes_max=12))
def test_ips_classes_are_those_of_the_definition(net: Topology) -> None:
    ips = scheme("iPS", net, dict.fromkeys(net.nodes, "x = 1"))
    assert isinstance(ips, IPS)
    seen = {
        u: {v: {w: net.tree(v).descendants(w) for w in net.tree(v).children(u)} for v in net.nodes}
        for u in net.nodes
    }
    for u in net.nodes:
        for v in net.nodes:
            i = ips.representative(u, v)
            assert seen[u][i] == seen[u][v]
            assert all(ips.representative(u, o) == i for o in net.nodes if seen[u][o] == seen[u][i])
            below = net.tree(v).descendants(u) - {u}
            alike = {o for o in net.nodes if seen[u][o] == seen[u][v]}
            same = all(seen[w][o] == seen[w][u] for w in below for o in alike)
            assert ips.rewrites(u, v) == same
        assert ips.headers(u) <= set(net.nodes)


@some
@given(networks.situations(trees))
def test_ips_on_trees_knows_only_neighbours(situation: Any) -> None:
    """2006, 3.2: the domain of F_u is N(u), I_u is the identity and R_u is 1."""
    net, _, source, _ = situation
    ips = scheme("iPS", net, dict.fromkeys(net.nodes, "x = 1"))
    assert isinstance(ips, IPS)
    for u in net.nodes:
        assert ips.domain(u) == set(net.neighbours(u))
        assert ips.headers(u) - {u} == set(net.neighbours(u))
        assert all(ips.representative(u, w) == w for w in net.neighbours(u))
        assert all(ips.rewrites(u, v) for v in net.nodes)
    for vertex in ips.deliver(source, {"x": 1}).vertices:
        parent = net.tree(source).parent(vertex.processor)
        assert vertex.header == (source if parent is None else parent)


@some
@given(any_network, st.data())
def test_psf_entries_are_reduced_disjunctions(situation: Any, data: st.DataObject) -> None:
    net, predicates, source, _ = situation
    psf, ips = scheme("PSF", net, predicates), scheme("iPS", net, predicates)
    assert isinstance(psf, PSF)
    assert isinstance(ips, IPS)
    u = data.draw(st.sampled_from(net.nodes))
    for w in net.neighbours(u):
        behind = sorted(net.tree(source).via(u, w) & set(predicates))
        wanted = [f for x in behind for f in reduce(predicates[x])]
        expected = reduce(Predicate(tuple(wanted)))
        assert psf.predicate(u, source, w) == ips.predicate(u, source, w) == expected


@some
@given(st.lists(st.sampled_from(networks.PREDICATES), min_size=1, max_size=12), st.data())
def test_disjunctions_are_those_of_reduce(parts: list[Predicate], data: st.DataObject) -> None:
    made = Disjunctions(dict(enumerate(parts)))
    mask = data.draw(st.integers(0, (1 << len(parts)) - 1))
    chosen = [reduce(p) for i, p in enumerate(parts) if mask >> i & 1]
    expected = reduce(Predicate(tuple(f for p in chosen for f in p)))
    assert made.of(mask) == expected
    assert made.amount(mask).constraints == expected.size


@settings(max_examples=80, deadline=None)
@given(networks.situations(networks.networks(nodes_max=8)))
def test_fewest_packets_are_those_of_brute_force(situation: Any) -> None:
    net, predicates, source, message = situation
    wanted = networks.flood(net, predicates, source, message) - {source}
    fewest = networks.fewest_packets(net, source, wanted)
    assert packets_min(net, source, frozenset(wanted)) == fewest
    delivery = scheme("PSF", net, predicates).deliver(source, message)
    assert is_cost_minimal(delivery) == (delivery.packets == fewest)


def test_too_many_ties_for_counting_are_told() -> None:
    net = generators.grid(30, 30)
    wanted = frozenset(x for x in net.nodes if x * 7 % 11 == 3)
    with pytest.raises(InvalidTopology, match="too many equally long ways"):
        packets_min(net, 1, wanted)


def test_checkers_see_what_is_wrong() -> None:
    net = generators.figure_3()
    good = scheme("PSF", net, {2: "x = 1", 4: "x = 1"}).deliver(1, {"x": 1})
    assert is_ideal(good)
    lost = Delivery(net, good.predicates, good.message, good.vertices[:2], frozenset({2}))
    assert not is_correct(lost)
    assert not is_latency_minimal(lost)
    greedy = Delivery(net, good.predicates, good.message, good.vertices, frozenset({1, 2, 4}))
    assert not is_correct(greedy)
    late = scheme(
        "DRP", net, {2: "x = 1", 4: "x = 1"}, unicast=lambda u, w: {1: 4, 4: 3, 3: 2}[u]
    ).deliver(1, {"x": 1})
    assert is_correct(late)
    assert late.latency == {2: 3.0, 4: 1.0}
    assert not is_latency_minimal(late)


def test_large_tables_use_the_kernels_and_agree() -> None:
    """More filters at a next hop than the naive engine gets: the same answers."""
    net = generators.line(3)
    many = " OR ".join(f"x = {i} AND y > {i}" for i in range(200))
    for name in networks.EVERY_SCHEME:
        made = scheme(name, net, {2: "y = 500", 3: many})
        assert made.deliver(1, {"x": 150, "y": 151}).receivers == {3}
        assert made.deliver(1, {"x": 150, "y": 150}).receivers == set()
        assert made.deliver(3, {"x": 150, "y": 500}).receivers == {2, 3}


@each_scheme
def test_senders_may_be_few(name: str) -> None:
    net = generators.line(4)
    made = scheme(name, net, {4: "x > 0"}, senders=[1])
    assert made.deliver(1, {"x": 1}).receivers == {4}
    assert made.memory().predicates <= scheme(name, net, {4: "x > 0"}).memory().predicates
    with pytest.raises(InvalidTopology, match=r"processor 2 is none of the senders"):
        made.deliver(2, {"x": 1})


@each_scheme
def test_mistakes_are_told(name: str) -> None:
    net = generators.line(3)
    with pytest.raises(InvalidTopology, match=r"no processor 9 in this network; there are 1, 2, 3"):
        scheme(name, net, {9: "x = 1"})
    with pytest.raises(InvalidTopology, match="no processor 'a'"):
        scheme(name, net, {1: "x = 1"}).deliver("a", {})
    with pytest.raises(PalioError, match="x"):
        scheme(name, net, {1: "x = "})
    with pytest.raises(PalioError):
        scheme(name, net, {1: "x = 1"}).deliver(1, {"x": object()})


def test_options_are_checked() -> None:
    net = generators.line(3)
    with pytest.raises(InvalidTopology, match="no scheme 'psf'; there are PSF, iPS, PIF, DRP"):
        scheme("psf", net, {})
    with pytest.raises(InvalidTopology, match="PSF takes no option unicast"):
        scheme("PSF", net, {}, unicast=lambda u, w: w)
    far = scheme("DRP", net, {3: "x = 1"}, unicast=lambda u, w: w)
    with pytest.raises(InvalidTopology, match=r"unicast\(1, 3\) gives 3, which is no neighbour"):
        far.deliver(1, {"x": 1})
    round_and_round = scheme("DRP", net, {3: "x = 1"}, unicast=lambda u, w: 2 if u == 1 else 1)
    assert isinstance(round_and_round, DRP)
    with pytest.raises(PalioError, match="DRP: packets go round in circles"):
        round_and_round.deliver(1, {"x": 1})


@each_scheme
def test_nobody_interested_is_no_packet(name: str) -> None:
    made = scheme(name, generators.ring(5), {2: "x = 1", 3: "FALSE"})
    delivery = made.deliver(1, {"x": 2})
    assert (delivery.packets, delivery.processors, delivery.latency) == (0, {1}, {})
    own = made.deliver(2, {"x": 1})
    assert (own.packets, own.processors, own.latency) == (0, {2}, {2: 0.0})


@each_scheme
def test_names_of_nodes_may_be_strings(name: str) -> None:
    net = Topology.from_edges([("rome", "milan", 0.1), ("milan", "lugano", 0.2)])
    delivery = scheme(name, net, {"lugano": "x > 0"}).deliver(source="rome", message={"x": 1})
    assert delivery.latency == {"lugano": 0.3}
    assert delivery.packets == 2
