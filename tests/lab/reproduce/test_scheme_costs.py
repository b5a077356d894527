"""The study's arrays against the schemes themselves, on small networks."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from palio.lab.reproduce.scheme_costs import SpanningTree, Study, drawn_interests
from palio.model.predicate import Constraint, Filter, Predicate
from palio.routing import Topology, generators
from palio.routing.schemes import scheme

pytestmark = pytest.mark.xdist_group("study")  # its kernels are compiled once

TOPICS = 128
NODES = 30


@pytest.fixture(scope="module", params=[1, 2])
def made(request: pytest.FixtureRequest) -> tuple[Topology, Study]:
    random, rng = Random(request.param), np.random.default_rng(request.param)
    net = generators.reweighted(generators.power_law(NODES, random), random)
    return net, Study(net, drawn_interests(NODES, TOPICS, 3, rng), rng)


def wanted(net: Topology, study: Study) -> dict[object, Predicate]:
    """The same interests as predicates."""
    bits = np.unpackbits(study.interests.view(np.uint8), axis=1, bitorder="little")
    return {
        node: Predicate(
            tuple(Filter((Constraint("topic", "=", int(t)),)) for t in np.flatnonzero(bits[i]))
        )
        for i, node in enumerate(net.nodes)
    }


@pytest.mark.parametrize("name", ["PSF", "iPS", "PIF", "DRP"])
def test_constraints_are_those_of_the_scheme(made: tuple[Topology, Study], name: str) -> None:
    net, study = made
    stored = scheme(name, net, wanted(net, study)).memory().nodes
    constraints, bits = study.memory()[name]
    expected = [stored[node].constraints for node in net.nodes]
    if name == "iPS":  # which counts only the headers that reach a node
        assert all(own >= has for own, has in zip(constraints, expected, strict=True))
        assert constraints.sum() <= 1.3 * sum(expected)
    else:
        assert constraints.tolist() == expected
    assert (bits > constraints).all()


def test_packets_are_those_of_the_scheme(made: tuple[Topology, Study]) -> None:
    net, study = made
    interests = wanted(net, study)
    schemes = {name: scheme(name, net, interests) for name in ("PSF", "iPS", "PIF", "DRP")}
    rng = np.random.default_rng(5)
    for _ in range(25):
        source, topic = int(rng.integers(NODES)), int(rng.integers(20))
        sent = study.sent(source, topic)
        for name, made_scheme in schemes.items():
            delivery = made_scheme.deliver(net.nodes[source], {"topic": topic})
            assert sent["packets"][name] == delivery.packets, name
        assert sent["receivers"] == len(delivery.receivers - {net.nodes[source]})
        assert (sent["stretch"] >= 1 - 1e-9).all()


def test_one_tree_is_the_network_where_it_is_a_tree() -> None:
    """Then its packets are those of PSF, its stretch is 1, and what is said is what is behind a link."""
    random, rng = Random(3), np.random.default_rng(3)
    net = generators.reweighted(generators.random_tree(NODES, random), random)
    study = Study(net, drawn_interests(NODES, TOPICS, 3, rng), rng)
    assert (study.tree.said == study.star).all()
    for source in range(NODES):
        sent = study.sent(source, 1)
        assert sent["packets"]["one tree"] == sent["packets"]["PSF"] == sent["packets"]["PIF"]
        assert sent["stretch"] == pytest.approx(1.0)


def test_recovery_is_the_difference_of_the_tables(made: tuple[Topology, Study]) -> None:
    """PIF: F* before and after, from scratch; PSF: entry by entry."""
    net, study = made
    link = next(i for i in range(len(study.links.end)) if not study.links.is_bridge(i))
    u, v = (net.nodes[i] for i in (study.links.begin[link], study.links.end[link]))
    left = Topology.from_edges(e for e in net.edges if {e[0], e[1]} != {u, v})
    interests = wanted(net, study)
    lost = study.failed(link)

    def entries(network: Topology) -> dict[tuple[object, ...], set[str]]:
        psf = scheme("PSF", network, interests)
        return {
            (s, a, b): {str(f) for f in psf.predicate(a, s, b).filters}  # type: ignore[attr-defined]
            for s in network.nodes
            for a in network.nodes
            for b in network.neighbours(a)
        }

    before, after = entries(net), entries(left)
    changed = sum(len(before.get(k, set()) ^ after.get(k, set())) for k in before | after)
    assert lost["PSF"] == changed
    assert 0 < lost["iPS"] <= lost["PSF"]
    again = Study(left, study.interests, np.random.default_rng(1))
    gained = again.memory()["PIF"][0].sum() - study.memory()["PIF"][0].sum()
    assert lost["PIF"] >= abs(gained)
    assert lost["DRP"] == 0


def test_a_tree_that_did_not_use_the_link_stays(made: tuple[Topology, Study]) -> None:
    net, study = made
    tree = study.tree
    repaired = [tree.repaired(link) for link in range(len(study.links.end))]
    unused = sum(found is None for found in repaired)
    assert unused == 2 * (len(net.edges) - (NODES - 1))
    assert all(isinstance(found, SpanningTree) for found in repaired if found is not None)
