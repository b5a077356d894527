"""2006, figure 5: alpha in the general model, where a predicate is a set of k messages out of |M|.

Three ways to draw a predicate: k distinct messages, uniform; k distinct ones by Zipf's law (one that
is there already is drawn again: |p| = k, as section 4.1 has it); and k draws by Zipf's law that may
repeat, so that |p| is k at most. The union of n of them grows along one repetition, and
alpha = |P| / nk is noted on the way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from palio.lab.reproduce.drawing import chosen, curve, distinct, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid

SETTINGS = ExperimentSettings(
    id="2006-fig5",
    figure="2006, figure 5",
    title="Disjunction advantage in the general model",
    text="Universes of 10^4, 10^5 and 10^6 messages (10^6 from scale 0.1 on); predicates of 1 "
    "message in 100 up to nk/|M| = 5, and of 1 in 1,000 up to 0.1; the closed formula is drawn "
    "over the uniform simulation.",
)
DRAWS = ("uniform", "zipf", "zipf, repeating")
RATIO_MAX = {100: 5.0, 1_000: 0.1}  # one message in so many: the largest nk/|M|


def points(scale: float) -> list[dict[str, Plain]]:
    universes = [10**4, 10**5, 10**6][: 3 if scale >= 0.1 else 2]
    return grid(
        universe=universes,
        draw=list(DRAWS),
        one_in=list(RATIO_MAX),
        repetitions=[max(5, min(12, round(12 * scale)))],
    )


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    universe, one_in = values["universe"], values["one_in"]
    size = universe // one_in
    rng = np.random.default_rng(seed)
    cumulative = _zipf(universe)
    union = np.zeros(universe, np.bool_)
    noted, rows = _noted(one_in), []
    for count in range(1, max(noted) + 1):
        if values["draw"] == "uniform":
            union[rng.choice(universe, size, replace=False, shuffle=False)] = True
        elif values["draw"] == "zipf":
            union[_distinct(cumulative, size, rng)] = True
        else:
            union[_drawn(cumulative, size, rng)] = True
        if count in noted:
            alpha = np.count_nonzero(union) / (count * size)
            rows.append({"predicates": count, "x": count / one_in, "alpha": float(alpha)})
    return rows


def expected(universe: float, size: float, predicates: float) -> float:
    """E(alpha) of the uniform case, as section 4.1 has it."""
    missed: float = (1 - size / universe) ** predicates
    return universe / (predicates * size) * (1 - missed)


def _zipf(universe: int) -> npt.NDArray[np.float64]:
    weights = np.cumsum(1 / np.arange(1, universe + 1))
    return np.asarray(weights / weights[-1])


def _noted(one_in: int) -> set[int]:
    """The numbers of predicates at which alpha is noted: about 20."""
    last = round(RATIO_MAX[one_in] * one_in)
    return {1, 2, 3, 5, *np.unique(np.geomspace(1, last, 20).astype(int)).tolist(), last}


def _drawn(
    cumulative: npt.NDArray[np.float64], count: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    return np.searchsorted(cumulative, rng.random(count), side="right")


def _distinct(
    cumulative: npt.NDArray[np.float64], size: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """The first `size` different messages of a sequence of draws."""
    drawn = np.zeros(0, np.int64)
    place = np.empty(len(cumulative), np.int64)
    while True:
        drawn = np.concatenate([drawn, _drawn(cumulative, 2 * size, rng)])
        number = np.arange(len(drawn))
        place[drawn[::-1]] = number[::-1]  # of equal messages the first is written last
        first = drawn[place[drawn] == number]
        if len(first) >= size:
            return np.asarray(first[:size])


def plot(rows: Sequence[Row], figure: Any) -> None:
    wide, near = figure.subplots(1, 2)
    for axis, one_in in ((wide, 100), (near, 1_000)):
        for universe in distinct(rows, "universe"):
            for draw, style in zip(DRAWS, ("", "-", "--"), strict=True):
                those = chosen(rows, universe=universe, draw=draw, one_in=one_in)
                label = f"{draw}, 10^{len(str(universe)) - 1}"
                line(axis, curve(those, "x", "alpha"), label, ls=style)
        xs = np.linspace(1 / one_in, RATIO_MAX[one_in], 200)
        formula = [(x, expected(one_in, 1, x * one_in)) for x in xs.tolist()]
        line(axis, formula, "formula of 4.1", marker="", color="black", lw=0.8)
        axis.set(xlabel="nk / |M|", ylabel="alpha", ylim=(0, 1.05))
