"""2006, section 3: what the four schemes store, against the paper's four formulas.

Interests are apart (no two have a common filter: alpha is 1) or shared. Half of the processors send
and half receive, drawn at random, as the formula with the average distance d assumes; links have
weight 1 ("all edges have constant weight").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from palio.lab.reproduce.drawing import chosen, curve, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid, sizes
from palio.lab.reproduce.networks import FAMILIES, interests
from palio.model.predicate import Constraint, Filter, Predicate
from palio.routing import Topology
from palio.routing.schemes import SCHEMES, scheme
from palio.routing.schemes.memory import psf_average_bits
from palio.routing.trees import Node

SETTINGS = ExperimentSettings(
    id="2006-memory",
    figure="2006, section 3",
    title="Memory of the schemes over the paper's formulas",
    text="Trees, grids, power-law and internet-like networks of up to 400 processors with links of "
    "weight 1; half send, half receive; interests apart (alpha = 1) and shared. Measured bits over "
    "those of the formula.",
)
NODES = 400
NETWORKS = ("tree", "grid", "power law", "internet")
INTERESTS = ("apart", "shared")


def points(scale: float) -> list[dict[str, Plain]]:
    counts = sizes(25, max(50, round(NODES * min(scale, 1.0))), 2)
    often = 1 if scale < 0.1 else 3
    return grid(nodes=counts, family=list(NETWORKS), interests=list(INTERESTS), repetitions=[often])


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    random = Random(seed)
    drawn = FAMILIES[values["family"]](values["nodes"], random)
    net = Topology.from_edges((u, v) for u, v, _ in drawn.edges)
    half = len(net) // 2
    senders, receivers = (random.sample(net.nodes, half) for _ in range(2))
    wanted = (
        apart(receivers) if values["interests"] == "apart" else interests(tuple(receivers), random)
    )
    d = average_distance(net)
    rows = []
    for name in SCHEMES:
        made = scheme(name, net, wanted, senders=senders)
        memory = made.memory()
        average = psf_average_bits(len(net), half, half, made.predicate_bits, d)
        rows.append(
            {
                "scheme": name,
                "n": len(net),
                "degree": made.degree_max,
                "d": d,
                "receivers": half,
                "interest_bits": made.predicate_bits,
                "bits": memory.bits,
                "predicate_bits": memory.total.predicate_bits,
                "entries": memory.entries,
                "formula_bits": memory.formula_bits,  # None: the paper has none
                "alpha": memory.alpha,
                "average_bits": average if name == "PSF" else None,
            }
        )
    return rows


def apart(receivers: Sequence[Node]) -> dict[Node, Predicate]:
    """Interests of two constraints, none of which covers another."""
    return {
        node: Predicate((Filter((Constraint("topic", "=", i), Constraint("price", "<", 100 + i))),))
        for i, node in enumerate(receivers)
    }


def average_distance(net: Topology) -> float:
    """d: over all ordered pairs, in hops."""
    units = sum(float(tree.units.sum()) for tree in net.trees())
    return units / net.units(*net.edges[0][:2]) / len(net) ** 2


def plot(rows: Sequence[Row], figure: Any) -> None:
    those = [row for row in rows if row["formula_bits"]]
    for axis, wanted in zip(figure.subplots(1, 2), INTERESTS, strict=True):
        for name in SCHEMES:
            ratios = [
                {**row, "ratio": row["bits"] / row["formula_bits"]}
                for row in chosen(those, interests=wanted, scheme=name)
            ]
            line(axis, curve(ratios, "n", "ratio"), name if name != "iPS" else "iPS on trees")
        axis.set(title=f"interests {wanted}", xlabel="n", ylabel="bits over the formula's")
        axis.set(xscale="log", ylim=(0, None))
