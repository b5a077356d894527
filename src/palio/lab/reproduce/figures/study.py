"""Beyond the papers: which way of routing to choose when, on networks of up to 10,000 nodes.

The four schemes, and subscription forwarding on the trees of all origins and on one tree, with
subscriptions by Zipf's law. `scheme_costs` says what is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from palio.lab.reproduce.drawing import chosen, curve, distinct, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row
from palio.routing import Topology, generators

SETTINGS = ExperimentSettings(
    id="study",
    figure="beyond the papers",
    title="Which way of routing to choose when",
    text="Power-law, hierarchical and random networks, links of different lengths; a node wants 5 of "
    "1,000 topics by Zipf's law, and messages have topics by the same law, from any node: 100 a "
    "network. Memory is the mean over nodes. Changed entries are the constraints that all tables together "
    "gain and lose when one link fails that is no bridge, a mean over up to three links of a network: "
    "not bytes or messages, of which there may be fewer (nodes that know the topology compute their "
    "entries from news of two packets a link) or more. PSF and forwarding have more memory where nodes "
    "are more central: see the largest in the table.",
)
NODES = {100: 3, 300: 3, 1_000: 3, 3_000: 1, 10_000: 1}  # and how many networks of each family
TOPICS = 1_000
EACH = 5
MESSAGES = 100
FAILURES_MAX = 3
COSTLY = 3_000  # nodes, from which on one link fails
SHORTEST = ("PSF", "iPS", "PIF", "DRP", "forwarding")


def _hierarchy(nodes: int, random: Random) -> Topology:
    """25 routers for each of the core; see `generators.internet`."""
    return generators.internet(random, cores=max(4, nodes // 25))


def _random(nodes: int, random: Random) -> Topology:
    """A random tree and as many links again between any two nodes."""
    edges = {(random.randrange(1, i), i) for i in range(2, nodes + 1)}
    while len(edges) < 2 * nodes - 1:
        u, v = sorted(random.sample(range(1, nodes + 1), 2))
        edges.add((u, v))
    return Topology.from_edges(sorted(edges))


FAMILIES: dict[str, Callable[[int, Random], Topology]] = {
    "power law": generators.power_law,
    "hierarchy": _hierarchy,
    "random": _random,
}


def points(scale: float) -> list[dict[str, Plain]]:
    most = 100 if scale < 0.1 else 1_000 if scale < 1 else 10_000
    return [
        {"nodes": nodes, "family": family, "repetitions": often if scale >= 0.1 else 1}
        for nodes, often in NODES.items()
        if nodes <= most
        for family in FAMILIES
    ]


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    from palio.lab.reproduce.scheme_costs import WAYS, Study, drawn_interests

    random, rng = Random(seed), np.random.default_rng(seed)
    drawn = FAMILIES[values["family"]](values["nodes"], random)
    net = Topology.from_edges(
        (u, v, round(w * (1 + random.random()), 6)) for u, v, w in drawn.edges
    )
    study = Study(net, drawn_interests(len(net), TOPICS, EACH, rng), rng)
    memory = study.memory()
    weights = 1 / np.arange(1, TOPICS + 1)
    topics = rng.choice(TOPICS, MESSAGES, p=weights / weights.sum()).tolist()
    sent = [study.sent(int(rng.integers(len(net))), topic) for topic in topics]
    stretch = np.concatenate([one["stretch"] for one in sent])
    links = [
        link for link in rng.permutation(len(study.links.end)).tolist()[:50]
        if not study.links.is_bridge(link)
    ][: 1 if len(net) >= COSTLY else FAILURES_MAX]  # fmt: skip
    losses = [study.failed(link) for link in links]
    return [
        {
            "way": way,
            "n": len(net),
            "links": len(net.edges),
            "constraints": float(memory[way][0].mean()),
            "bits": float(memory[way][1].mean()),
            "bits_max": float(memory[way][1].max()),
            "packets": float(np.mean([one["packets"][way] for one in sent])),
            "receivers": float(np.mean([one["receivers"] for one in sent])),
            "stretch": 1.0 if way in SHORTEST else float(stretch.mean()),
            "stretch_95": 1.0 if way in SHORTEST else float(np.percentile(stretch, 95)),
            # table constraints that change; the column's name is that of the stored points
            "recovery": float(np.mean([loss[way] for loss in losses])) if losses else 0.0,
            "failures": len(losses),
        }
        for way in WAYS
    ]


def plot(rows: Sequence[Row], figure: Any) -> None:
    """Rows of panels by family; memory, packets, stretch and changed entries from left to right."""
    families = distinct(rows, "family")
    figure.set_size_inches(13, 3.4 * len(families))
    columns = {
        "bits": "bits a node, mean",
        "packets": "packets a message",
        "stretch": "stretch, mean",
        "recovery": "table constraints changed by a failure",
    }
    axes = figure.subplots(len(families), len(columns), squeeze=False)
    for family, panels in zip(families, axes, strict=True):
        for axis, (column, label) in zip(panels, columns.items(), strict=True):
            for way in distinct(rows, "way"):
                points = curve(chosen(rows, family=family, way=way), "nodes", column)
                line(axis, points, way if axis is panels[0] else "_")
            axis.set(xlabel="n", ylabel=label, xscale="log", title=family)
            if column == "recovery":
                axis.set_yscale("symlog", linthresh=1)
                axis.set_ylim(bottom=0)
            elif column != "stretch":
                axis.set_yscale("log")


def tables(rows: Sequence[Row]) -> list[tuple[list[str], list[list[str]]]]:
    """Which to choose when, and the figures behind it, at the most nodes."""
    means = _means(rows)
    families = distinct(rows, "family")
    most = _most(rows)
    choice = [[need, *(_answer(need, means[family]) for family in families)] for need in NEEDS]
    figures = [
        [
            family,
            way,
            f"{own['bits'] / 8 / 1024:,.1f}",
            f"{own['bits_max'] / 8 / 1024:,.0f}",
            f"{own['packets']:,.0f}",
            f"{own['stretch']:.2f} ({own['stretch_95']:.2f})",
            f"{own['recovery']:,.0f}",
        ]
        for family in families
        for way, own in means[family].items()
    ]
    headings = [
        f"{most:,} nodes",
        "way",
        "KiB a node",
        "KiB, largest (forwarding: of 100 nodes)",
        "packets a message",
    ]
    return [
        ([f"what matters most, at {most:,} nodes", *families], choice),
        (
            [*headings, "stretch (95th percentile)", "table constraints changed by a failure"],
            figures,
        ),
    ]


NEEDS: dict[str, tuple[str, Sequence[str]]] = {
    "memory, and paths may be longer": ("bits", (*SHORTEST, "one tree")),
    "memory, on shortest paths": ("bits", SHORTEST),
    "packets, on shortest paths": ("packets", SHORTEST),
    "few table entries that change when a link fails": ("recovery", SHORTEST),
}


def _answer(need: str, means: Mapping[str, Mapping[str, float]]) -> str:
    """The best by the first criterion; of equal ones the one with the least memory."""
    column, among = NEEDS[need]
    best = min(among, key=lambda way: (means[way][column], means[way]["bits"]))
    return f"{best} ({means[best][column]:,.0f})"


def _most(rows: Sequence[Row]) -> int:
    """The most nodes of which there is a network of every family."""
    families = len(distinct(rows, "family"))
    counts = distinct(rows, "nodes")
    return int(max(n for n in counts if len(distinct(chosen(rows, nodes=n), "family")) == families))


def _means(rows: Sequence[Row]) -> dict[str, dict[str, dict[str, float]]]:
    """Of each family at the most nodes and each way the mean of each column."""
    most = _most(rows)
    columns = ("bits", "bits_max", "packets", "stretch", "stretch_95", "recovery")
    return {
        family: {
            way: {
                column: float(
                    np.mean([r[column] for r in chosen(rows, nodes=most, family=family, way=way)])
                )
                for column in columns
            }
            for way in distinct(rows, "way")
        }
        for family in distinct(rows, "family")
    }
