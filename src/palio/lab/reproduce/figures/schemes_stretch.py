"""PIF against PSF: packets that nobody needs, and latency, by family and size of network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from palio.errors import PalioError
from palio.lab.reproduce.drawing import chosen, curve, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row
from palio.lab.reproduce.networks import FAMILIES, family_points, interests, message
from palio.routing.schemes import scheme

SETTINGS = ExperimentSettings(
    id="pif-stretch",
    figure="beyond the papers",
    title="Extra packets and stretch of PIF against PSF",
    text="100 messages from random senders a network; networks of up to 300 nodes, "
    "two of each family; all nodes receive. Extra packets over those of PSF; stretch is the "
    "latency of a delivery over that of PSF.",
)
NODES = 300
MESSAGES = 100


def points(scale: float) -> list[dict[str, Plain]]:
    return family_points(NODES, scale, repetitions=2)


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    random = Random(seed)
    net = FAMILIES[values["family"]](values["nodes"], random)
    wanted = interests(net.nodes, random)
    psf, pif = (scheme(name, net, wanted) for name in ("PSF", "PIF"))
    packets = {"PSF": 0, "PIF": 0}
    stretch = 1.0
    for _ in range(MESSAGES):
        source, sent = random.choice(net.nodes), message(random)
        ideal, actual = psf.deliver(source, sent), pif.deliver(source, sent)
        if ideal.receivers != actual.receivers:
            raise PalioError(f"PIF and PSF deliver {sent} to different nodes; this is a bug")
        packets["PSF"] += ideal.packets
        packets["PIF"] += actual.packets
        for node, late in ideal.latency.items():
            stretch = max(stretch, actual.latency[node] / late if late else 1.0)
    extra = packets["PIF"] / packets["PSF"] - 1 if packets["PSF"] else 0.0
    return [
        {
            "n": len(net),
            "psf_packets": packets["PSF"],
            "pif_packets": packets["PIF"],
            "extra": extra,
            "stretch_max": stretch,
        }
    ]


def plot(rows: Sequence[Row], figure: Any) -> None:
    left, right = figure.subplots(1, 2)
    for family in FAMILIES:
        those = chosen(rows, family=family)
        extra = curve(those, "n", "extra")
        line(left, [(x, 100 * y) for x, y in extra], family)
        line(right, curve(those, "n", "stretch_max", max), family)
    left.set(xlabel="n", ylabel="% packets more than PSF", xscale="log")
    right.set(xlabel="n", ylabel="stretch, the largest", xscale="log", ylim=(0.9, None))
