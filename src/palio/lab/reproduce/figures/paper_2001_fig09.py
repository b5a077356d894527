"""2001, figure 9: matching time over the number of filters, for several I, with A = 1,000 and 100."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from palio.lab.data import workloads
from palio.lab.reproduce.drawing import chosen, curve, distinct, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid, sizes
from palio.lab.reproduce.forwarding_times import forwarding_rows, interface_choice

SETTINGS = ExperimentSettings(
    id="2001-fig9",
    figure="2001, figure 9",
    title="Matching time over the number of filters",
    text="N = 1,000 messages of the 2001 workload; up to 1,000,000 filters (scale 8: the paper's "
    "8 million); the paper's counting engine, and our pivot engine beside it (dashed).",
    is_timed=True,
    is_paired=True,
)
FILTERS = 1_000_000
MESSAGES = 1_000


def points(scale: float) -> list[dict[str, Plain]]:
    few = scale < 0.1
    filters = sizes(1_000, max(2_000, round(FILTERS * scale)), 20 if few else 4)
    counts = ["50", "500", "F"] if few else ["2", "50", "100", "200", "500", "F"]
    return grid(filters=filters, attributes=[1_000, 100], interfaces=counts)


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    filters = values["filters"]
    load = workloads.tr2001(
        filters,
        interface_choice(values["interfaces"], filters),
        MESSAGES,
        attributes=values["attributes"],
        seed=seed,
    )
    return forwarding_rows(load, ["counting 2001", "pivot"])


def plot(rows: Sequence[Row], figure: Any) -> None:
    plot_interfaces(rows, figure, distinct(rows, "interfaces"))
    for axis in figure.axes:
        axis.set_yscale("log")


def plot_interfaces(rows: Sequence[Row], figure: Any, counts: Sequence[str]) -> None:
    """A panel for each A, a curve for each I."""
    for axis, attributes in zip(figure.subplots(1, 2), (1_000, 100), strict=True):
        for number, count in enumerate(counts):
            for engine, style in (("counting 2001", "-"), ("pivot", "--")):
                those = chosen(rows, attributes=attributes, interfaces=count, engine=engine)
                ms = [(x, y / 1000) for x, y in curve(those, "filters", "us_per_message")]
                label = f"I = {count}" if engine != "pivot" else "_"
                line(axis, ms, label, ls=style, color=f"C{number}")
        axis.set(title=f"A = {attributes:,}", xlabel="filters", ylabel="ms a message", xscale="log")
