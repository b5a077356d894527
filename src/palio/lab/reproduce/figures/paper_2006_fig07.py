"""2006, figure 7: alpha of disjunctions of predicates, all attribute names alike."""

from __future__ import annotations

from palio.lab.reproduce.experiment import ExperimentSettings, Plain
from palio.lab.reproduce.figures.paper_2006_fig06 import plot, run, scenario_points

__all__ = ["SETTINGS", "plot", "points", "run"]

SETTINGS = ExperimentSettings(
    id="2006-fig7",
    figure="2006, figure 7",
    title="Disjunction advantage, uniform names",
    text="As 2006-fig6, with 50 and 500 names, all alike.",
)


def points(scale: float) -> list[dict[str, Plain]]:
    return scenario_points(scale, [50, 500], zipf=False)
