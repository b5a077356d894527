"""2006, figure 6: alpha of disjunctions of predicates, attribute names by Zipf's law."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from palio.lab.data.workloads import disjunction_2006
from palio.lab.reproduce.drawing import chosen, curve, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid, sizes
from palio.model.pairwise_reduction import reduce_pairwise
from palio.model.reduction import reduce

SETTINGS = ExperimentSettings(
    id="2006-fig6",
    figure="2006, figure 6",
    title="Disjunction advantage, Zipf names",
    text="500 and 5,000 names by Zipf's law; up to 10,000 predicates of the 2006 workload a "
    "disjunction; 20 disjunctions a point at the full scale, 10 of more than 1,000 predicates. Reduced "
    "by the paper's two rules, one constraint against one, and by palio.reduce, which knows more of "
    "strings and drops contradictions. 200 common words by Zipf's law stand in for the paper's terms of the news.",
)
PREDICATES = 10_000
CROSSING = (6_000, 7_000, 8_000)  # where the paper's alpha of 500 uniform names goes below 0.5
BANDS: dict[str, Callable[[Sequence[float]], float]] = {
    "maximum": max,
    "95th percentile": lambda found: float(np.percentile(found, 95)),
    "median": lambda found: float(np.median(found)),
    "5th percentile": lambda found: float(np.percentile(found, 5)),
    "minimum": min,
}


def points(scale: float) -> list[dict[str, Plain]]:
    return scenario_points(scale, [500, 5_000], zipf=True)


def scenario_points(scale: float, names: Sequence[int], *, zipf: bool) -> list[dict[str, Plain]]:
    """Disjunctions of 10 predicates to the most; large ones vary little, and are drawn less often."""
    last = max(400, round(PREDICATES * scale))
    counts = {10, 30, 100, *sizes(100, min(last, 1_000), 10 if scale < 0.1 else 10**0.25), last}
    made: list[dict[str, Plain]] = []
    for count in sorted(counts | {n for n in (3_000, *CROSSING) if n < last}):
        often = max(5, min(20, round(20 * scale))) if count <= 1_000 else max(5, round(10 * scale))
        chosen_names = [n for n in names if count not in CROSSING or (n, zipf) == (500, False)]
        made += grid(names=chosen_names, zipf=[zipf], predicates=[count], repetitions=[often])
    return made


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    given = disjunction_2006(
        values["predicates"], names=values["names"], zipf=values["zipf"], seed=seed
    )
    size, papers, ours = given.size, reduce_pairwise(given).size, reduce(given).size
    sizes = {"constraints": size, "reduced_constraints": papers, "palio_constraints": ours}
    return [{**sizes, "alpha": papers / size, "palio_alpha": ours / size}]


def plot(rows: Sequence[Row], figure: Any) -> None:
    counts = sorted({row["names"] for row in rows})
    for axis, names in zip(figure.subplots(1, len(counts)), counts, strict=True):
        those = chosen(rows, names=names)
        for band, of in BANDS.items():
            width = 2.0 if band == "median" else 1.0
            line(axis, curve(those, "predicates", "alpha", of), band, lw=width)
        line(axis, curve(those, "predicates", "palio_alpha"), "median, palio.reduce", ls="--")
        axis.axhline(0.5, color="black", lw=0.6)
        axis.set(title=f"{names:,} names", xlabel="predicates", ylabel="alpha")
        axis.set(xscale="log", ylim=(0, 1.05))
