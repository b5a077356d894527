"""Control traffic and packets of all routings, against brute force on small networks."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest

from palio.lab.reproduce.catalogue import experiment
from palio.lab.reproduce.networks import interests, message
from palio.model.covering import covers
from palio.model.message import Message
from palio.model.predicate import Constraint, Filter
from palio.routing import Topology, generators

module: Any = experiment("schemes-traffic")
Wanted = list[tuple[str, Filter]]
Sent = list[tuple[str, Message]]


def network(kind: str, random: Random) -> Topology:
    made = {
        "tree": lambda: generators.random_tree(9, random),
        "ring": lambda: generators.ring(7),
        "grid": lambda: generators.grid(3, 3),
    }[kind]()
    return module.named(made)


def drawn(net: Topology, random: Random, count: int) -> tuple[Wanted, Sent]:
    nodes = [random.choice(net.nodes) for _ in range(count)]
    wanted = [(node, interests((node,), random)[node].filters[0]) for node in nodes]
    return wanted, [(random.choice(net.nodes), message(random)) for _ in range(40)]


def path(net: Topology, source: str, to: str) -> list[str]:
    """From a source, along its tree."""
    found, tree = [to], net.tree(source)
    while found[-1] != source:
        found.append(tree.parent(found[-1]))
    return found[::-1]


def links(nodes: list[str]) -> list[tuple[str, str]]:
    return list(pairwise(nodes))


def interested(wanted: Wanted, one: Message) -> set[str]:
    return {node for node, filter in wanted if filter.matches(one)}


def ideal_packets(net: Topology, wanted: Wanted, sent: Sent) -> int:
    """The links of the source's tree on paths to somebody interested."""
    return sum(
        len({link for to in interested(wanted, one) for link in links(path(net, source, to))})
        for source, one in sent
    )


def link_packets(net: Topology, wanted: Wanted, sent: Sent) -> int:
    """Along the source's tree, over each link on which some path to somebody interested lies: what a
    router knows that tells its links apart, and not the sources."""
    behind: dict[tuple[str, str], set[str]] = {}
    for source in net.nodes:
        for to in net.nodes:
            for link in links(path(net, source, to)):
                behind.setdefault(link, set()).add(to)
    count = 0
    for source, one in sent:
        tree, waiting, found = net.tree(source), [source], interested(wanted, one)
        while waiting:
            u = waiting.pop()
            for w in net.nodes:
                if tree.parent(w) == u and behind[u, w] & found:
                    count += 1
                    waiting.append(w)
    return count


def flooded_states(net: Topology, wanted: Wanted) -> int:
    """Link states handed from node to node until all have them; covered subscriptions change nothing."""
    own: dict[str, list[Filter]] = {node: [] for node in net.nodes}
    count = 0
    for node, filter in wanted:
        is_new = not any(covers(other, filter) for other in own[node])
        own[node].append(filter)
        seen, waiting = {node}, [(node, w) for w in net.neighbours(node)] if is_new else []
        while waiting:
            u, w = waiting.pop(0)
            count += 1
            if w not in seen:
                seen.add(w)
                waiting += [(w, x) for x in net.neighbours(w) if x != u]
    return count


def forwarded_on_a_tree(net: Topology, wanted: Wanted) -> int:
    """A subscription goes on over each link until one that covers it has gone there before."""
    gone: dict[tuple[str, str], list[Filter]] = {}
    count = 0
    for node, filter in wanted:
        waiting = [("", node)]
        while waiting:
            before, u = waiting.pop()
            for w in net.neighbours(u):
                known = gone.setdefault((u, w), [])
                if w != before and not any(covers(other, filter) for other in known):
                    known.append(filter)
                    count += 1
                    waiting.append((u, w))
    return count


@pytest.mark.parametrize("kind", ["tree", "ring", "grid"])
@pytest.mark.parametrize("seed", range(3))
def test_all_agree_with_brute_force(kind: str, seed: int) -> None:
    random = Random(seed)
    net = network(kind, random)
    wanted, sent = drawn(net, random, 25)
    rows = {name: module.traffic(name, net, wanted, sent) for name in module.ROUTINGS}
    deliveries = sum(len(interested(wanted, one) - {source}) for source, one in sent)
    assert {row["deliveries"] for row in rows.values()} == {deliveries}
    assert {rows[name]["control"] for name in module.SCHEMES} == {flooded_states(net, wanted)}
    assert rows["PSF"]["packets"] == rows["iPS"]["packets"] == ideal_packets(net, wanted, sent)
    assert rows["DRP"]["packets"] == ideal_packets(net, wanted, sent)
    assert rows["PIF"]["packets"] == link_packets(net, wanted, sent)
    assert rows["forwarding"]["packets"] == link_packets(net, wanted, sent)
    if kind == "tree":
        assert rows["forwarding"]["control"] == forwarded_on_a_tree(net, wanted)
    assert rows["forwarding"]["control"] <= rows["PSF"]["control"]


@pytest.mark.parametrize("kind", ["tree", "ring", "grid"])
def test_what_nothing_covers_reaches_each_node_once(kind: str) -> None:
    """Over the spanning tree of its origin: n - 1 packets, where flooding needs one for each link."""
    random = Random(1)
    net = network(kind, random)
    wanted = [(random.choice(net.nodes), Filter((Constraint("topic", "=", i),))) for i in range(20)]
    control = module.traffic("forwarding", net, wanted, [])["control"]
    assert control == 20 * (len(net) - 1)
    flooding = 20 * (2 * len(net.edges) - len(net) + 1)
    assert module.traffic("PSF", net, wanted, [])["control"] == flooding


def test_it_is_drawn() -> None:
    rows = [
        {**row, **values}
        for values in ({"subscriptions": n, "family": "ring"} for n in (5, 10))
        for row in module.run(values, 1)
    ]
    headings, lines = module.table(rows)
    assert len(headings) == 8
    assert [line[0] for line in lines][:2] == ["tree", "ring"]
    from matplotlib.figure import Figure

    figure = Figure()
    module.plot(rows, figure)
    assert len(figure.axes) == 2
