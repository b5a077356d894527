"""What schemes store, measured against counting by hand and against the formulas of the paper."""

from __future__ import annotations

import random
from collections.abc import Iterable
from math import log2
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palio import Predicate, parse, reduce
from palio.routing import Topology, generators, scheme
from palio.routing.schemes import memory
from palio.routing.schemes.ips import IPS
from tests.routing import random_networks

FAMILIES = {
    "figure 1": generators.figure_1(),
    "line": generators.line(9),
    "star": generators.star(9),
    "ring": generators.ring(9),
    "grid": generators.grid(4, 5),
    "tree": generators.random_tree(25, random.Random(1)),
    "power law": generators.power_law(25, random.Random(2)),
    "internet": generators.internet(random.Random(3), 3, 2, 4),
}
TREES = ("line", "star", "tree")
each_family = pytest.mark.parametrize("family", FAMILIES)


def apart(net: Topology) -> dict[object, str]:
    """Predicates none of which covers another: no disjunction advantage. All take as many bits."""
    return {x: f"x = {i}" for i, x in enumerate(net.nodes)}


@each_family
def test_psf_is_the_formula_without_advantage(family: str) -> None:
    """2006, 3.1: s log n + M_p * the sum of the distances, to the bit but for rounding log n."""
    net = FAMILIES[family]
    measured = scheme("PSF", net, apart(net)).memory()
    hops = sum(len(net.tree(v).path(x)) - 1 for v in net.nodes for x in net.nodes)
    size = 8 + 4 + 3 + 64
    assert measured.total.predicate_bits == size * hops
    assert measured.constraints == hops
    assert measured.formula_bits == pytest.approx(len(net) * log2(len(net)) + size * hops)
    average = hops / len(net) ** 2
    assert measured.formula_bits == pytest.approx(
        memory.psf_average_bits(len(net), len(net), len(net), size, average)
    )


@each_family
def test_drp_is_the_formula(family: str) -> None:
    """2006, 3.4: n r log n + s r M_p."""
    net = FAMILIES[family]
    count = len(net)
    measured = scheme("DRP", net, apart(net)).memory()
    assert measured.total.predicate_bits == count * count * 79
    name_bits = (count - 1).bit_length()
    assert measured.total.identifier_bits == count * (count - 1) * name_bits + count * name_bits
    assert measured.formula_bits == pytest.approx(count * count * log2(count) + count * count * 79)


@each_family
def test_pif_is_below_the_formula(family: str) -> None:
    """2006, 3.3: F* has every receiver once a processor, child has every link of every tree."""
    net = FAMILIES[family]
    count = len(net)
    measured = scheme("PIF", net, apart(net)).memory()
    assert measured.constraints == count * (count - 1)
    name_bits = (count - 1).bit_length()
    assert measured.total.identifier_bits == count * (count - 1) * name_bits + count * name_bits
    assert measured.total.predicate_bits <= count * count * 79
    assert measured.formula_bits is not None
    assert measured.bits <= measured.formula_bits


@pytest.mark.parametrize("family", TREES)
def test_ips_on_trees_is_the_formula(family: str) -> None:
    """2006, 3.2: F_u has a disjunction for each neighbour; I_u and R_u take nothing."""
    net = FAMILIES[family]
    count = len(net)
    measured = scheme("iPS", net, apart(net)).memory()
    assert measured.constraints == count * (count - 1)
    assert measured.predicates == 2 * len(net.edges)
    assert measured.formula_bits == pytest.approx(count * count * 79)
    assert measured.total.predicate_bits <= measured.formula_bits
    for x in net.nodes:
        degree = len(net.neighbours(x))
        assert measured.nodes[x].entries == degree * (degree - 1) + degree
        names = measured.nodes[x].entries + 1  # what entries refer to, and its own
        assert measured.nodes[x].identifier_bits == names * memory.identifier_bits(count)


def test_ips_has_no_formula_elsewhere() -> None:
    net = FAMILIES["ring"]
    assert scheme("iPS", net, apart(net)).memory().formula_bits is None


@each_family
def test_totals_are_sums_and_advantage_saves(family: str) -> None:
    net = FAMILIES[family]
    nested = {x: f"x > {i}" for i, x in enumerate(net.nodes)}
    for name in ("PSF", "iPS", "PIF", "DRP"):
        without, measured = (
            scheme(name, net, apart(net)).memory(),
            scheme(name, net, nested).memory(),
        )
        assert measured.predicates == sum(a.predicates for a in measured.nodes.values())
        assert measured.bits == sum(a.bits for a in measured.nodes.values())
        assert set(measured.nodes) == set(net.nodes)
        assert measured.predicates <= without.predicates
        if name != "DRP":  # which combines nothing
            assert measured.constraints == measured.predicates  # each disjunction is its widest
        else:
            assert measured.constraints == without.constraints


@each_family
def test_alpha_of_the_formulas(family: str) -> None:
    """2006, 3.2 and 3.3: alpha(r / Delta), the advantage of r predicates in Delta disjunctions."""
    net = FAMILIES[family]
    count, degree = len(net), max(len(net.neighbours(x)) for x in net.nodes)
    nested = {x: f"x > {i}" for i, x in enumerate(net.nodes)}  # of any run one stays
    for name in ("PSF", "iPS", "PIF", "DRP"):
        without = scheme(name, net, apart(net)).memory()
        assert without.alpha == 1.0
        assert without.advantage_formula_bits == without.formula_bits
        measured = scheme(name, net, nested).memory()
        assert measured.alpha == pytest.approx(min(degree, count) / count)
        if measured.formula_bits is None:
            assert measured.advantage_formula_bits is None
            continue
        predicates = {
            "PSF": measured.formula_bits - count * log2(count),
            "iPS": measured.formula_bits,
            "PIF": count * count * 79,
            "DRP": 0,
        }[name]
        saved = measured.formula_bits - (measured.advantage_formula_bits or 0)
        assert saved == pytest.approx((1 - measured.alpha) * predicates)


def test_the_advantage_is_that_of_a_reduction() -> None:
    net = generators.star(5)
    wanted = {1: "x > 1", 2: "x > 2", 3: "x > 3", 4: "x > 0 AND y = 1"}
    disjunctions = scheme("PIF", net, wanted).memory()
    assert disjunctions.alpha == 1.0  # four receivers in four disjunctions
    line = scheme("PIF", generators.line(5), wanted).memory()  # 1 or 2, and 3 or 4
    assert line.alpha == pytest.approx(4 / 5)
    assert scheme("PIF", net, {}).memory().alpha == 1.0


def test_few_senders_and_receivers() -> None:
    """A line of four, 1 sends and 4 receives: three entries, nothing else."""
    net = generators.line(4)
    for name, predicates in (("PSF", 3), ("iPS", 3), ("PIF", 3), ("DRP", 1)):
        measured = scheme(name, net, {4: "x > 0"}, senders=[1]).memory()
        assert measured.predicates == predicates, name
        assert measured.nodes[4].predicates == 0, name
    none = scheme("PSF", net, {}).memory()
    assert (none.predicates, none.constraints, none.bits) == (0, 0, 4 * 2)


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("x > 0", 8 + 7 + 64),
        ("ab = 'xyz'", 16 + 7 + 24),
        ("x IN (1, 2, 3)", 8 + 7 + 192),
        ("b = TRUE", 8 + 7 + 1),
        ("x IS NULL", 8 + 7),
        ("x = 1 AND y = 2 OR z = 'é'", 2 * 79 + 8 + 7 + 16),
    ],
)
def test_bits_of_predicates(text: str, bits: int) -> None:
    assert sum(map(memory.filter_bits, parse(text))) == bits


def test_identifiers() -> None:
    assert [memory.identifier_bits(n) for n in (2, 3, 4, 5, 1000, 1024, 1025)] == [
        1,
        2,
        2,
        3,
        10,
        10,
        11,
    ]


@settings(max_examples=30, deadline=None)
@given(random_networks.situations(random_networks.networks(nodes_max=12)), st.data())
def test_counts_are_those_of_the_definitions(situation: Any, data: st.DataObject) -> None:
    """Every F_u(v, w) and F*_u(w) made and reduced on its own, for the senders that there are."""
    net, predicates, _, _ = situation
    senders = data.draw(st.lists(st.sampled_from(net.nodes), min_size=1, unique=True))

    def size(receivers: Iterable[Any]) -> int:
        filters = (f for x in sorted(receivers) if x in predicates for f in predicates[x])
        return reduce(Predicate(tuple(filters))).size

    links = [(u, w) for u in net.nodes for w in net.neighbours(u)]
    behind = {(v, u, w): net.tree(v).via(u, w) for v in senders for u, w in links}
    sizes = [size(found) for found in behind.values()]
    psf = scheme("PSF", net, predicates, senders=senders).memory()
    assert (psf.predicates, psf.constraints) == (sum(map(bool, sizes)), sum(sizes))

    united = [set().union(*(behind[v, u, w] for v in senders)) for u, w in links]
    pif = scheme("PIF", net, predicates, senders=senders).memory()
    assert (pif.predicates, pif.constraints) == (
        sum(bool(size(found)) for found in united),
        sum(map(size, united)),
    )
    drp = scheme("DRP", net, predicates, senders=senders).memory()
    assert drp.constraints == len(senders) * sum(size([x]) for x in predicates)


@settings(max_examples=30, deadline=None)
@given(random_networks.networks(nodes_max=12), st.data())
def test_ips_stores_what_its_packets_ask_for(net: Topology, data: st.DataObject) -> None:
    """Messages that everybody wants, from all senders, bring exactly the headers that are known."""
    senders = data.draw(st.lists(st.sampled_from(net.nodes), min_size=1, unique=True))
    ips = scheme("iPS", net, apart_by_node(net), senders=senders)
    assert isinstance(ips, IPS)
    everything = {f"p{x}": 1 for x in net.nodes}
    headers: dict[Any, set[Any]] = {x: set() for x in net.nodes}
    for v in senders:
        for vertex in ips.deliver(v, everything).vertices:
            headers[vertex.processor].add(vertex.header)
    measured = ips.memory()
    for u in net.nodes:
        assert ips.headers(u) == headers[u]
        stands_for = {h: ips.representative(u, h) for h in headers[u]}
        entries = sum(len(net.tree(i).children(u)) for i in set(stands_for.values()))
        assert measured.nodes[u].entries == entries
        # I_u where it renames, and the sender's own name; R_u only where it is no constant
        renamed = sum(h != i for h, i in stands_for.items())
        rewritten = {i: ips.rewrites(u, i) for i in stands_for.values() if i != u}
        flags = len(rewritten) if len(set(rewritten.values())) == 2 else 0
        names = entries + 2 * renamed + (u in senders)
        expected = names * memory.identifier_bits(len(net)) + flags
        assert measured.nodes[u].identifier_bits == expected


def apart_by_node(net: Topology) -> dict[object, str]:
    return {x: f"p{x} = 1" for x in net.nodes}
