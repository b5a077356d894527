"""2001, 4.3 and 2003, 5.1: messages whose names no filter has, against those that share the names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from palio.lab.data import workloads
from palio.lab.reproduce.drawing import chosen, curve, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid, sizes
from palio.lab.reproduce.forwarding_times import columns_of, messages_of, skipped_rows

SETTINGS = ExperimentSettings(
    id="names",
    figure="2001, 4.3 and 2003, 5.1",
    title="Names that no filter has",
    text="Both workloads, the papers' engines with 50 interfaces; 200 messages as drawn, and the same "
    "with other names. Timed from the messages on: encoding them finds out which names are known.",
    is_timed=True,
    is_paired=True,
)
FILTERS = 1_000_000
MESSAGES = 200
INTERFACES = 50
PAPERS: dict[str, tuple[Callable[..., workloads.Workload], str]] = {
    "2001": (partial(workloads.tr2001, attributes=100), "counting 2001"),
    "2003": (workloads.sigcomm03, "counting r=0"),
}


def points(scale: float) -> list[dict[str, Plain]]:
    most = max(2_000, round(FILTERS * min(scale, 1.0)))
    return grid(filters=sizes(200, most, 20 if scale < 0.1 else 8), paper=list(PAPERS))


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    draw, engine = PAPERS[values["paper"]]
    load = draw(values["filters"], INTERFACES, MESSAGES, seed=seed)
    return [skipped_rows(columns_of(load), messages_of(load), engine)]


def plot(rows: Sequence[Row], figure: Any) -> None:
    for axis, paper in zip(figure.subplots(1, 2), PAPERS, strict=True):
        those = chosen(rows, paper=paper)
        for name in ("known", "foreign"):
            line(axis, curve(those, "constraints", f"{name}_us"), f"{name} names")
        axis.set(title=paper, xlabel="constraints", ylabel="us a message", xscale="log")
        axis.set(yscale="log")
