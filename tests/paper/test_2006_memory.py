"""Claims of "Understanding Content-Based Routing Schemes" (Lugano 2006/05) on memory, part by part: what
each processor stores for each of its functions (3.1 to 3.4). `test_2006_properties` has the totals.

Predicates here have equal sizes, and none covers another (alpha = 1), or each covers the next one.
Parts of a processor are told apart by what they hold: F_u, F*_u and pred hold predicates; child_u,
unicast_u and a sender's own name hold identifiers.
"""

from __future__ import annotations

import random
from math import log2

import pytest

from palio import parse
from palio.lab.reproduce.figures.paper_2006_memory import apart
from palio.routing import Topology, generators, scheme
from palio.routing.schemes.disjunctions import Disjunctions
from palio.routing.schemes.memory import identifier_bits
from palio.routing.schemes.scheme import Scheme

NODES = 30
NETWORKS = {
    "figure 1": generators.figure_1(),
    "power law": generators.power_law(NODES, random.Random(1)),
    "tree": generators.random_tree(NODES, random.Random(2)),
    "star": generators.star(NODES),
    "ring": generators.ring(NODES),
}
each_network = pytest.mark.parametrize("net", NETWORKS.values(), ids=NETWORKS)


def some(net: Topology, seed: int) -> list[int]:
    """A third of the processors."""
    return random.Random(seed).sample(net.nodes, len(net) // 3)


def nested(receivers: list[int]) -> dict[int, str]:
    """Each covers the next one: of any of them, one is left in a disjunction."""
    return {x: f"x > {i}" for i, x in enumerate(receivers)}


def own_names(made: Scheme) -> dict[int, int]:
    """The bits of a sender's own identifier, by the processor."""
    bits = identifier_bits(len(made.net))
    return {u: bits * (u in made.senders) for u in made.net.nodes}


# Section 2.4


def alpha(*texts: str) -> float:
    """Of all these predicates in one disjunction."""
    return Disjunctions(dict(enumerate(map(parse, texts)))).advantage(1)


def test_2_4_alpha_of_any_number_of_predicates() -> None:
    """Section 2.4: the bits of the disjunction over the sum of the bits of all predicates."""
    assert alpha("severity > 2", "severity > 3") == 1 / 2
    assert alpha(*(f"severity > {i}" for i in range(10))) == 1 / 10
    assert alpha(*(f"severity = {i}" for i in range(10))) == 1
    assert alpha("x > 2", "x > 3", "y = 1") == 2 / 3, "all three have the same size"


# Section 3.1


@each_network
def test_3_1_only_senders_store_their_identifier(net: Topology) -> None:
    """Section 3.1: s log n in total; F_u holds predicates and nothing else."""
    senders = some(net, 11)
    psf = scheme("PSF", net, apart(net.nodes), senders=senders)
    memory = psf.memory()
    assert {u: amount.identifier_bits for u, amount in memory.nodes.items()} == own_names(psf)
    assert memory.total.identifier_bits == len(senders) * identifier_bits(len(net))


@each_network
def test_3_1_a_predicate_is_on_every_edge_of_the_paths_to_its_receiver(net: Topology) -> None:
    """Section 3.1: pred(x) is associated with all the edges on the path from v to x, for each source: so
    u stores it once for each sender that reaches x by u."""
    senders, receivers = some(net, 12), some(net, 13)
    psf = scheme("PSF", net, apart(receivers), senders=senders)
    for u, amount in psf.memory().nodes.items():
        through = sum(u in net.tree(v).path(x)[:-1] for v in senders for x in receivers)
        assert amount.predicate_bits == through * psf.predicate_bits


@each_network
def test_3_1_senders_and_receivers_both_contribute_linearly(net: Topology) -> None:
    """Section 3.1: the product s r is crucial: each sender has trees of its own, and each receiver adds
    its predicate to their edges."""
    half, rest = net.nodes[: len(net) // 2], net.nodes[len(net) // 2 :]

    def bits(senders: tuple[int, ...], receivers: tuple[int, ...]) -> int:
        made = scheme("PSF", net, apart(receivers), senders=senders)
        return made.memory().total.predicate_bits

    parts = [bits(senders, receivers) for senders in (half, rest) for receivers in (half, rest)]
    assert sum(parts) == bits(net.nodes, net.nodes)


# Section 3.2


@pytest.mark.parametrize("name", ["tree", "star"])
def test_3_2_memory_of_each_processor_on_a_tree(name: str) -> None:
    """Section 3.2: r M_p alpha(r / deg(u)) for F_u: r predicates in deg(u) disjunctions."""
    net = NETWORKS[name]
    receivers = some(net, 21)
    ips = scheme("iPS", net, apart(receivers))
    few = scheme("iPS", net, nested(receivers))
    for u in net.nodes:
        others, degree = len(set(receivers) - {u}), len(net.neighbours(u))
        amount = ips.memory().nodes[u]
        assert amount.predicate_bits == others * ips.predicate_bits, "alpha = 1"
        assert amount.predicates <= degree
        assert few.memory().nodes[u].predicate_bits <= degree * few.predicate_bits


# Section 3.3: two memories


@each_network
def test_3_3_f_star_has_every_receiver_once(net: Topology) -> None:
    """Section 3.3: M(F*_u) = O(r M_p alpha(r / deg(u))). Where nothing is shared, that is r M_p, since all
    sources reach a receiver from u over the same edge; u itself is behind none."""
    receivers = some(net, 31)
    pif = scheme("PIF", net, apart(receivers))
    for u, amount in pif.memory().nodes.items():
        assert amount.predicate_bits == len(set(receivers) - {u}) * pif.predicate_bits
        assert amount.predicates <= len(net.neighbours(u)), "a single predicate for each edge"


@each_network
def test_3_3_f_star_has_deg_u_disjunctions(net: Topology) -> None:
    """Section 3.3: alpha(r / deg(u)) is that of r predicates in deg(u) disjunctions. Here each disjunction
    is as small as one predicate: one for each edge with a receiver behind it."""
    receivers = some(net, 32)
    pif = scheme("PIF", net, nested(receivers))
    for u, amount in pif.memory().nodes.items():
        edges = {net.tree(u).path(x)[1] for x in receivers if x != u}
        assert amount.predicates == len(edges) <= len(net.neighbours(u))
        assert amount.predicate_bits == len(edges) * pif.predicate_bits


@each_network
def test_3_3_child_has_the_trees_of_all_senders(net: Topology) -> None:
    """Section 3.3: M(child_u) = O(s deg(u) log n): the children of u in the tree of each sender."""
    senders = some(net, 33)
    pif = scheme("PIF", net, apart(net.nodes), senders=senders)
    bits, names = identifier_bits(len(net)), own_names(pif)
    for u, amount in pif.memory().nodes.items():
        child = amount.identifier_bits - names[u]
        assert child == bits * sum(len(net.tree(v).children(u)) for v in senders)
        assert child <= len(senders) * len(net.neighbours(u)) * bits


@each_network
def test_3_3_the_two_memories_depend_on_different_things(net: Topology) -> None:
    """Section 3.3: child_u on the senders, whatever is received; F*_u on the receivers and not on how many
    senders there are: with all of them it is at most r M_p. PSF has F_u for each sender."""
    few, many = some(net, 34), list(net.nodes)
    by = {
        (s, r): scheme("PIF", net, apart(receivers), senders=senders).memory()
        for s, senders in (("few", few), ("many", many))
        for r, receivers in (("few", few), ("many", many))
    }
    for s in ("few", "many"):
        assert by[s, "few"].total.identifier_bits == by[s, "many"].total.identifier_bits
    size = scheme("PIF", net, apart(few)).predicate_bits
    for (_, r), memory in by.items():
        count = len(few if r == "few" else many)
        assert all(a.predicate_bits <= count * size for a in memory.nodes.values())
    psf = scheme("PSF", net, apart(many)).memory()
    assert psf.total.predicate_bits > by["many", "many"].total.predicate_bits


@each_network
def test_3_3_the_memory_of_pif_is_the_sum_of_both(net: Topology) -> None:
    """Section 3.3: over all processors, F*_u and child_u, and what each sender needs for Init; each part
    stays below its part of the sum, n s Delta log n and n r M_p."""
    pif = scheme("PIF", net, apart(net.nodes))
    memory, count = pif.memory(), len(net)
    predicates = sum(amount.predicate_bits for amount in memory.nodes.values())
    children = sum(a.identifier_bits for a in memory.nodes.values()) - sum(own_names(pif).values())
    assert memory.bits == predicates + children + count * identifier_bits(count)
    assert predicates <= count * count * pif.predicate_bits
    assert children == count * (count - 1) * identifier_bits(count), "every tree has n - 1 edges"
    assert children <= count * count * pif.degree_max * log2(count)


# Section 3.4


@each_network
def test_3_4_pred_is_stored_by_senders_and_unicast_by_all(net: Topology) -> None:
    """Section 3.4: r M_p bits for pred at each sender, r log n for unicast_u at each processor; u needs no
    next hop to itself."""
    senders, receivers = some(net, 41), some(net, 42)
    drp = scheme("DRP", net, apart(receivers), senders=senders)
    bits, names = identifier_bits(len(net)), own_names(drp)
    for u, amount in drp.memory().nodes.items():
        pred = len(receivers) * drp.predicate_bits
        assert amount.predicate_bits == (pred if u in senders else 0)
        assert amount.identifier_bits - names[u] == bits * len(set(receivers) - {u})


@each_network
def test_3_4_drp_has_no_disjunction_advantage(net: Topology) -> None:
    """Section 3.4: its formula has no alpha: each predicate is stored for itself, though others cover it."""
    drp = scheme("DRP", net, nested(list(net.nodes)))
    assert drp.memory().total.predicate_bits == len(net) ** 2 * drp.predicate_bits
    assert scheme("PIF", net, nested(list(net.nodes))).memory().total.predicate_bits < (
        len(net) ** 2 * drp.predicate_bits
    )
