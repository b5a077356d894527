"""2001, figure 12: the same as figure 9 without I = F, on a linear scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from palio.lab.reproduce.drawing import chosen, distinct
from palio.lab.reproduce.experiment import ExperimentSettings, Row
from palio.lab.reproduce.figures.paper_2001_fig09 import plot_interfaces, points, run

__all__ = ["SETTINGS", "plot", "points", "run"]

SETTINGS = ExperimentSettings(
    id="2001-fig12",
    figure="2001, figure 12",
    title="Matching time with fixed numbers of interfaces",
    text="The rows of 2001-fig9 without I = F; pivot dashed.",
    is_timed=True,
    uses="2001-fig9",
)


def plot(rows: Sequence[Row], figure: Any) -> None:
    fixed: list[Mapping[str, Any]] = [row for row in rows if row["interfaces"] != "F"]
    plot_interfaces(chosen(fixed), figure, distinct(fixed, "interfaces"))
    for axis in figure.axes:
        axis.set_ylim(bottom=0)
