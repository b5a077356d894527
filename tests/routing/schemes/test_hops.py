"""Next hops of the schemes against the definitions (2006, 3), by the descendants in source trees."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palio.routing import Topology
from palio.routing.schemes.hops import (
    IndistinguishableHops,
    PerInterfaceHops,
    PerSourceHops,
    TreeHops,
    partition,
    unicast_hops,
)
from palio.routing.trees import members
from tests.routing import random_networks as networks

some = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
any_network = networks.networks(nodes_max=12)


def named(net: Topology, hops: TreeHops, u: Any, v: Any) -> dict[Any, set[Any]]:
    """The entries of a scheme, with nodes instead of numbers and masks."""
    entries = hops.entries(net.number(u), net.number(v))
    found = {net.nodes[w]: {net.nodes[x] for x in members(mask)} for w, mask in entries}
    assert len(found) == len(entries)
    return found


def behind(net: Topology, u: Any, v: Any) -> dict[Any, set[Any]]:
    """child_u(v), each with T_v/(u, w)."""
    tree = net.tree(v)
    return {w: set(tree.descendants(w)) for w in tree.children(u)}


@some
@given(any_network)
def test_psf_has_the_children_in_the_tree_of_the_source(net: Topology) -> None:
    hops = PerSourceHops(net)
    for u in net.nodes:
        for v in net.nodes:
            assert named(net, hops, u, v) == behind(net, u, v)
            assert hops.header(net.number(u), net.number(v)) == net.number(v)


@some
@given(any_network)
def test_ips_has_the_entries_of_psf_and_rewrites_only_what_nobody_below_can_tell(
    net: Topology,
) -> None:
    hops = IndistinguishableHops(net)
    for u in net.nodes:
        for v in net.nodes:
            assert named(net, hops, u, v) == behind(net, u, v)
            header = net.nodes[hops.header(net.number(u), net.number(v))]
            assert header in (u, v)
            for below in net.tree(v).descendants(u) - {u}:
                assert behind(net, below, header) == behind(net, below, v)


@some
@given(any_network, st.data())
def test_pif_has_the_children_of_psf_with_the_nodes_behind_them_for_any_sender(
    net: Topology, data: st.DataObject
) -> None:
    senders = data.draw(st.none() | st.sets(st.sampled_from(net.nodes), min_size=1))
    hops = PerInterfaceHops(net, senders)
    for u in net.nodes:
        union: dict[Any, set[Any]] = {}
        for x in net.nodes if senders is None else senders:
            for w, nodes in behind(net, u, x).items():
                union[w] = union.get(w, set()) | nodes
        for v in net.nodes if senders is None else senders:
            assert named(net, hops, u, v) == {w: union[w] for w in behind(net, u, v)}
            assert hops.header(net.number(u), net.number(v)) == net.number(v)


@some
@given(any_network, st.data())
def test_unicast_and_the_partition_of_receivers(net: Topology, data: st.DataObject) -> None:
    u = data.draw(st.sampled_from(net.nodes))
    hop_of = unicast_hops(net, u)
    assert hop_of.keys() == set(net.nodes) - {u}
    exact = {x: networks.distances(net, x) for x in net.nodes}
    weight = {frozenset(edge[:2]): edge[2] for edge in net.edges}
    for x, hop in hop_of.items():
        assert float(exact[u][x]) == weight[frozenset((u, hop))] + float(exact[hop][x])
    receivers = data.draw(st.lists(st.sampled_from([*net.nodes, "nobody"]), unique=True))
    parts = partition(receivers, hop_of)
    assert all(hop_of[x] == hop for hop, part in parts.items() for x in part)
    assert all(part == [x for x in receivers if x in part] for part in parts.values())
    assert {x for part in parts.values() for x in part} == set(receivers) & hop_of.keys()
