"""2006, sections 2 and 3: random deliveries of the four schemes, judged by the definitions alone.

Whether a delivery is correct, minimal in latency, and ideal is decided by `routing.schemes.delivery`,
which knows no scheme. In half of the networks shortest paths are unique; in the others ties are
frequent. DRP is tried with the trees' unicast and with one that chooses among all shortest paths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from random import Random
from typing import Any

from palio.lab.reproduce.drawing import chosen, curve, distinct, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid
from palio.lab.reproduce.networks import interests, message
from palio.routing import Topology
from palio.routing.schemes import scheme
from palio.routing.schemes.delivery import Delivery, is_correct, is_ideal, is_latency_minimal
from palio.routing.schemes.ips import IPS
from palio.routing.schemes.scheme import Scheme

SETTINGS = ExperimentSettings(
    id="2006-deliveries",
    figure="2006, sections 2 and 3",
    title="Random deliveries: correct, minimal, ideal",
    text="Random connected networks of 6 to 16 processors, half of them with ties among shortest paths; "
    "25 messages a network, 12 networks a point at the full scale. In the smallest, DRP also sends from "
    "every source to every one and every two receivers, with ten unicast functions.",
)
NODES = (6, 10, 16)
MESSAGES = 25
UNICASTS = 10
VARIANTS = ("PSF", "iPS", "PIF", "DRP", "DRP, any shortest unicast")


def points(scale: float) -> list[dict[str, Plain]]:
    often = max(2, min(12, round(12 * scale)))
    return grid(nodes=list(NODES), ties=[False, True], repetitions=[often])


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    random = Random(seed)
    net = drawn(values["nodes"], values["ties"], random)
    wanted = interests(net.nodes, random, filters=12)
    towards = any_unicast(net, random)
    schemes = {name: scheme(name, net, wanted) for name in VARIANTS[:4]}
    schemes[VARIANTS[4]] = scheme("DRP", net, wanted, unicast=lambda u, w: towards[u, w])
    counts: Counter[str] = Counter()
    for _ in range(MESSAGES):
        source, sent = random.choice(net.nodes), message(random)
        made = {name: routed.deliver(source, sent) for name, routed in schemes.items()}
        for name, delivery in made.items():
            counts[f"{name}: correct"] += is_correct(delivery)
            counts[f"{name}: latency"] += is_latency_minimal(delivery)
            counts[f"{name}: ideal"] += is_ideal(delivery)
            counts[f"{name}: packets"] += delivery.packets
        counts["inside"] += _links(made["PSF"]) <= _links(made["PIF"])
        counts["same"] += _links(made["PSF"]) == _links(made["iPS"])
    ips = schemes["iPS"]
    assert isinstance(ips, IPS)
    pairs, alike = bridges(net, ips)
    exhausted = exhaustive(net, random) if len(net) == NODES[0] else (None, None)
    return [
        {
            "scheme": name,
            "unique": net.has_unique_paths(),
            "deliveries": MESSAGES,
            **{key: counts[f"{name}: {key}"] for key in ("correct", "latency", "ideal", "packets")},
            "psf_inside_pif": counts["inside"],
            "ips_as_psf": counts["same"],
            "bridge_pairs": pairs,
            "bridge_pairs_alike": alike,
            "drp_ideal_trees": exhausted[0],
            "drp_ideal_any": exhausted[1],
        }
        for name in VARIANTS
    ]


def drawn(nodes: int, ties: bool, random: Random) -> Topology:
    """A random tree and half as many links again; weights 1 and 2, or all different."""
    edges = {(random.randrange(1, i), i) for i in range(2, nodes + 1)}
    while len(edges) < nodes - 1 + nodes // 2:
        u, v = sorted(random.sample(range(1, nodes + 1), 2))
        edges.add((u, v))
    return Topology.from_edges(
        (u, v, random.choice([1, 1, 2]) if ties else round(1 + random.random(), 6))
        for u, v in sorted(edges)
    )


def any_unicast(net: Topology, random: Random) -> dict[tuple[Any, Any], Any]:
    """For each u and w a next hop of u on some shortest path to w."""
    return {
        (u, w): random.choice(net.towards(w, u)) for u in net.nodes for w in net.nodes if u != w
    }


def exhaustive(net: Topology, random: Random) -> tuple[bool, bool]:
    """Is DRP ideal from every source to every one and every two receivers: with the unicast of the
    trees, and with each of ten unicast functions?"""
    own = {x: f"p{x} = 1" for x in net.nodes}
    trees = _is_always_ideal(scheme("DRP", net, own))
    functions = [any_unicast(net, random) for _ in range(UNICASTS)]
    return trees, all(
        _is_always_ideal(scheme("DRP", net, own, unicast=lambda u, w, hop=hop: hop[u, w]))
        for hop in functions
    )


def _is_always_ideal(drp: Scheme) -> bool:
    for source in drp.net.nodes:
        others = [x for x in drp.net.nodes if x != source]
        for receivers in (*combinations(others, 1), *combinations(others, 2)):
            if not is_ideal(drp.deliver(source, {f"p{x}": 1 for x in receivers})):
                return False
    return True


def _links(delivery: Delivery) -> set[tuple[Any, Any]]:
    return set(delivery.links)


def bridges(net: Topology, ips: IPS) -> tuple[int, int]:
    """For each bridge and each processor on one side: are the sources of the other side one class?"""
    pairs = alike = 0
    for a, b, _ in net.edges:
        side = _side(net, a, b)
        if b in side:
            continue
        other = set(net.nodes) - side
        for here, there in ((side, other), (other, side)):
            for u in here:
                pairs += 1
                alike += len({ips.representative(u, v) for v in there}) == 1
    return pairs, alike


def _side(net: Topology, a: Any, b: Any) -> set[Any]:
    """Who is reached from a without the link to b."""
    found, open_nodes = {a}, [a]
    while open_nodes:
        u = open_nodes.pop()
        for w in net.neighbours(u):
            if w not in found and {u, w} != {a, b}:
                found.add(w)
                open_nodes.append(w)
    return found


def plot(rows: Sequence[Row], figure: Any) -> None:
    for axis, ties in zip(figure.subplots(1, 2), (False, True), strict=True):
        for name in distinct(rows, "scheme"):
            those = [
                {**row, "share": 100 * row["ideal"] / row["deliveries"]}
                for row in chosen(rows, scheme=name, ties=ties)
            ]
            line(axis, curve(those, "nodes", "share", _mean), name)
        axis.set(title="ties" if ties else "no ties", xlabel="n", ylabel="% ideal", ylim=(0, 105))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
