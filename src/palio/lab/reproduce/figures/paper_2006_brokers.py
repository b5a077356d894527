"""2006, 3.1 and 3.4: how many predicates running brokers hold for others, with PSF and with DRP.

The brokers are those of `palio.protocol`, without sockets; interests are apart, so that no two combine.
What is expected comes from breadth-first searches over the links, which know nothing of schemes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from palio.lab.bench.routing_memory import BrokerMesh
from palio.lab.reproduce.drawing import chosen, curve, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid
from palio.lab.reproduce.networks import FAMILIES
from palio.routing.topology import Topology

SETTINGS = ExperimentSettings(
    id="2006-brokers",
    figure="2006, 3.1 and 3.4",
    title="Predicates that brokers hold with PSF and DRP",
    text="Trees, rings and power-law networks of 6 to 50 brokers with links of weight 1, all of which "
    "send and receive; one subscription each, none of which covers another.",
)
BROKERS = (6, 12, 25, 50)
NETWORKS = ("tree", "ring", "power law")
SCHEMES = ("PSF", "DRP")


def points(scale: float) -> list[dict[str, Plain]]:
    counts = BROKERS[: 2 if scale < 0.1 else len(BROKERS)]
    return grid(nodes=list(counts), family=list(NETWORKS), scheme=list(SCHEMES))


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    drawn = FAMILIES[values["family"]](values["nodes"], Random(seed))
    net = Topology.from_edges([(f"b{u}", f"b{v}", 1.0) for u, v, _ in drawn.edges])
    mesh = BrokerMesh(values["scheme"], net)
    for number, name in enumerate(net.nodes):
        mesh.subscribe(name, 1, f"topic = {number} AND price < {100 + number}")
    mesh.run()
    return [
        {
            "n": len(net),
            "held": sum(map(len, mesh.table_filters())),
            "distances": sum(sum(hops_from(net, name).values()) for name in net.nodes),
            "pairs": len(net) * (len(net) - 1),
        }
    ]


def hops_from(net: Topology, source: str) -> dict[str, int]:
    """The links to every broker, by breadth-first search."""
    hops, queue = {source: 0}, [source]
    for node in queue:  # which grows
        for other in net.neighbours(node):
            if other not in hops:
                hops[other] = hops[node] + 1
                queue.append(other)
    return hops


def plot(rows: Sequence[Row], figure: Any) -> None:
    for axis, name in zip(figure.subplots(1, 2), SCHEMES, strict=True):
        expected = "distances" if name == "PSF" else "pairs"
        for number, family in enumerate(NETWORKS):
            those = chosen(rows, family=family, scheme=name)
            line(axis, curve(those, "n", "held"), family, color=f"C{number}")
            line(axis, curve(those, "n", expected), "_", ls=":", color=f"C{number}")
        axis.set(
            title=name, xlabel="n", ylabel="predicates held (dotted: expected)", ylim=(0, None)
        )
