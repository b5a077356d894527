"""iPS: how many classes of indistinguishable sources a processor has, by family and size of network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from palio.lab.reproduce.drawing import chosen, curve, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row
from palio.lab.reproduce.networks import FAMILIES, family_points
from palio.routing.schemes.sources import SourceClasses

SETTINGS = ExperimentSettings(
    id="ips-classes",
    figure="beyond the papers",
    title="Classes of indistinguishable sources in iPS",
    text="The 2006 paper (3.2) leaves open how many there are. Networks of up to 1,000 nodes, three of each random family: the mean over processors, and the largest. n "
    "classes would mean that iPS saves nothing over PSF.",
)
NODES = 1_000


def points(scale: float) -> list[dict[str, Plain]]:
    return family_points(NODES, scale, repetitions=3)


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    net = FAMILIES[values["family"]](values["nodes"], Random(seed))
    classes = [len(entries) for entries in SourceClasses(net).entries]
    mean = sum(classes) / len(classes)
    return [{"n": len(net), "links": len(net.edges), "mean": mean, "largest": max(classes)}]


def plot(rows: Sequence[Row], figure: Any) -> None:
    for axis, column in zip(figure.subplots(1, 2), ("mean", "largest"), strict=True):
        for family in FAMILIES:
            line(axis, curve(chosen(rows, family=family), "n", column), family)
        ends = [min(row["n"] for row in rows), max(row["n"] for row in rows)]
        line(axis, [(n, n) for n in ends], "n", color="black", lw=0.6, marker="")
        axis.set(xlabel="n", ylabel=f"classes a processor, {column}", xscale="log", yscale="log")
