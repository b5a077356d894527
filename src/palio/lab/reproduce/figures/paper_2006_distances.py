"""2006, 3.1: the average distance d in power-law graphs, over the number of processors.

Chung and Lu, whom the paper cites, draw a link between two nodes with a probability in proportion to
their expected degrees, which follow a power law; d is O(log log n) for exponents between 2 and 3. The
largest part is measured, by breadth-first search from a sample of its nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from palio.lab.reproduce.drawing import chosen, curve, distinct, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid, sizes
from palio.routing import generators

SETTINGS = ExperimentSettings(
    id="2006-distances",
    figure="2006, 3.1",
    title="Average distance in power-law graphs",
    text="Graphs of up to 10,000 nodes: random ones with given expected degrees (Chung and Lu) of "
    "exponent 2.2, 2.5 and 2.8 and average degree 6, graphs by preferential attachment, whose "
    "exponent is 3, and, for comparison, exponent 4. Hops from 200 nodes; 6 graphs a point.",
)
NODES = 10_000
SOURCES = 200
DEGREE = 6.0
EXPONENTS = {"2.2": 2.2, "2.5": 2.5, "2.8": 2.8, "4": 4.0}
ATTACHED = "attachment (3)"


def points(scale: float) -> list[dict[str, Plain]]:
    last = max(400, round(NODES * min(scale, 1.0)))
    often = 3 if scale < 0.1 else 6
    return grid(nodes=sizes(100, last, 10**0.5), graph=[*EXPONENTS, ATTACHED], repetitions=[often])


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components, shortest_path

    nodes = values["nodes"]
    rng = np.random.default_rng(seed)
    if values["graph"] == ATTACHED:
        net = generators.power_law(nodes, Random(seed), links=3)
        pairs = np.array([(u - 1, v - 1) for u, v, _ in net.edges])
    else:
        pairs = chung_lu(nodes, EXPONENTS[values["graph"]], rng)
    ones = np.ones(len(pairs), np.int8)
    links = coo_array((ones, (pairs[:, 0], pairs[:, 1])), (nodes, nodes)).tocsr()
    _, part = connected_components(links, directed=False)
    largest = np.flatnonzero(part == np.bincount(part).argmax())
    sources = rng.choice(largest, min(SOURCES, len(largest)), replace=False)
    hops = shortest_path(links, directed=False, unweighted=True, indices=sources)[:, largest]
    return [
        {"n": len(largest), "links": len(pairs), "d": float(hops.mean()), "far": int(hops.max())}
    ]


def chung_lu(nodes: int, exponent: float, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Pairs of linked nodes. Expected degrees are w_i ~ (i + i0)^(-1 / (exponent - 1)), with the largest
    at most the square root of their sum, so that w_i w_j / sum is a probability."""
    ranks = np.arange(1, nodes + 1, dtype=np.float64)
    shift = 0.0
    while True:
        weights = (ranks + shift) ** (-1 / (exponent - 1))
        weights *= DEGREE * nodes / weights.sum()
        if weights[0] ** 2 <= weights.sum():
            break
        shift = 2 * shift + 1
    total = weights.sum()
    found = []
    for i in range(nodes - 1):
        chance = np.minimum(1.0, weights[i] * weights[i + 1 :] / total)
        others = np.flatnonzero(rng.random(len(chance)) < chance)
        found.append(np.column_stack((np.full(len(others), i), others + i + 1)))
    return np.concatenate(found)


def plot(rows: Sequence[Row], figure: Any) -> None:
    left, right = figure.subplots(1, 2)
    for graph in distinct(rows, "graph"):
        those = [
            {**row, "over": row["d"] / np.log(np.log(row["nodes"]))}
            for row in chosen(rows, graph=graph)
        ]
        line(left, curve(those, "nodes", "d"), f"exponent {graph}")
        line(right, curve(those, "nodes", "over"), f"exponent {graph}")
    left.set(xlabel="n", ylabel="d, hops", xscale="log")
    right.set(xlabel="n", ylabel="d / log log n", xscale="log", ylim=(0, None))
