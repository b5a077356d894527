"""2003, figure 8: matching time over constraints with one interface a filter, rounds 0 and 10."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from palio.lab.data import workloads
from palio.lab.reproduce.drawing import chosen, curve, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid, sizes
from palio.lab.reproduce.forwarding_times import columns_of, forwarding_rows, messages_of

SETTINGS = ExperimentSettings(
    id="2003-fig8",
    figure="2003, figure 8",
    title="Matching time over constraints, one interface a filter",
    text="M = 100 messages of the 2003 workload; at the full scale 1,100,000 filters, so that there are "
    "over five million constraints as in the paper; its counting engine without and with 10 rounds "
    "of pre-processing, and pivot.",
    is_timed=True,
    is_paired=True,
)
FILTERS = 1_100_000
MESSAGES = 100
ENGINES = ["counting r=0", "counting r=10", "pivot"]


def points(scale: float) -> list[dict[str, Plain]]:
    return grid(filters=filter_counts(scale))


def filter_counts(scale: float) -> list[int]:
    """From a few hundred constraints on; a filter has 5 on average."""
    return sizes(100, max(1_000, round(FILTERS * scale)), 200 if scale < 0.1 else 4)


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    load = workloads.sigcomm03(values["filters"], None, MESSAGES, seed=seed)
    return forwarding_rows({"F": columns_of(load)}, messages_of(load), ENGINES)


def plot(rows: Sequence[Row], figure: Any) -> None:
    for axis, scale in zip(figure.subplots(1, 2), ("linear", "log"), strict=True):
        for engine in ENGINES:
            points = curve(chosen(rows, engine=engine), "constraints", "us_per_message")
            line(axis, [(x, y / 1000) for x, y in points], engine)
        axis.set(xlabel="constraints", ylabel="ms a message", xscale=scale, yscale=scale)
