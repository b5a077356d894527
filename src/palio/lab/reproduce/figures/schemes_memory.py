"""Memory of the four schemes against n, senders, receivers and the size of predicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from palio.lab.reproduce.drawing import chosen, curve, distinct, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, sizes
from palio.lab.reproduce.networks import FAMILIES, interests
from palio.routing.schemes import SCHEMES, scheme

SETTINGS = ExperimentSettings(
    id="schemes-memory",
    figure="beyond the papers",
    title="Memory of PSF, iPS, PIF and DRP, measured",
    text="Power-law (lines) and internet-like (dashed) networks; 100 nodes, all of them senders and "
    "receivers, a filter of two constraints each, unless the axis says otherwise; up to 1,000 nodes. Formulas of the 2006 paper, where it has one, are in the rows.",
    is_paired=True,
)
NODES = 1_000
NETWORKS = {"power law": "-", "internet": "--"}
BASE: dict[str, Plain] = {"nodes": 100, "senders": 1.0, "receivers": 1.0, "filters": 1}


def points(scale: float) -> list[dict[str, Plain]]:
    few = scale < 0.1
    varied: dict[str, Sequence[Plain]] = {
        "nodes": sizes(50, max(100, round(NODES * scale)), 2),
        "senders": [0.1, 1.0] if few else [0.05, 0.1, 0.2, 0.5, 1.0],
        "receivers": [0.1, 1.0] if few else [0.05, 0.1, 0.2, 0.5, 1.0],
        "filters": [1, 4] if few else [1, 2, 4, 8, 16],
    }
    return [
        {"vary": vary, "family": family, **BASE, vary: value}
        for vary, values in varied.items()
        for value in values
        for family in NETWORKS
    ]


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    random = Random(seed)
    net = FAMILIES[values["family"]](values["nodes"], random)
    order = random.sample(net.nodes, len(net))
    senders = order[: max(1, round(values["senders"] * len(net)))]
    receivers = tuple(order[::-1][: max(1, round(values["receivers"] * len(net)))])
    wanted = interests(receivers, random, values["filters"])
    rows = []
    for name in SCHEMES:
        memory = scheme(name, net, wanted, senders=senders).memory()
        rows.append(
            {
                "scheme": name,
                "n": len(net),
                "bits": memory.bits,
                "constraints": memory.constraints,
                "entries": memory.entries,
                "formula_bits": memory.formula_bits,  # None: the paper has none
                "alpha": memory.alpha,
                "advantage_formula_bits": memory.advantage_formula_bits,
            }
        )
    return rows


def plot(rows: Sequence[Row], figure: Any) -> None:
    for axis, vary in zip(figure.subplots(1, 4), distinct(rows, "vary"), strict=True):
        for number, name in enumerate(SCHEMES):
            for family, style in NETWORKS.items():
                those = chosen(rows, vary=vary, family=family, scheme=name)
                points = curve(those, "n" if vary == "nodes" else vary, "bits")
                label = name if style == "-" else "_"
                line(axis, [(x, y / 1e6) for x, y in points], label, ls=style, color=f"C{number}")
        axis.set(xlabel=_LABELS[vary], ylabel="Mbit, all processors", xscale="log", yscale="log")


_LABELS = {
    "nodes": "n",
    "senders": "share of senders",
    "receivers": "share of receivers",
    "filters": "filters a receiver",
}
