"""2003, figure 9: matching time over constraints for fixed numbers of interfaces, rounds 0 and 10."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from palio.lab.reproduce.drawing import chosen, curve, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid
from palio.lab.reproduce.figures.paper_2003_fig08 import ENGINES, filter_counts, run

__all__ = ["SETTINGS", "plot", "points", "run"]

SETTINGS = ExperimentSettings(
    id="2003-fig9",
    figure="2003, figure 9",
    title="Matching time over constraints, fixed numbers of interfaces",
    text="As 2003-fig8, with I = 20, 100 and 1,000 (ours: the text of the paper that we have ends "
    "before it names them).",
    is_timed=True,
    is_paired=True,
)
INTERFACES = ["20", "100", "1000"]


def points(scale: float) -> list[dict[str, Plain]]:
    made = grid(filters=filter_counts(scale), interfaces=INTERFACES)
    return [values for values in made if int(values["interfaces"]) <= values["filters"]]  # type: ignore[operator]


def plot(rows: Sequence[Row], figure: Any) -> None:
    for axis, interfaces in zip(figure.subplots(1, 3), INTERFACES, strict=True):
        for engine in ENGINES:
            those = chosen(rows, engine=engine, interfaces=interfaces)
            points = curve(those, "constraints", "us_per_message")
            line(axis, [(x, y / 1000) for x, y in points], engine)
        axis.set(title=f"I = {int(interfaces):,}", xlabel="constraints", ylabel="ms a message")
        axis.set(xscale="log", ylim=(0, None))
