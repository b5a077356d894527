"""Claims of the 2006 paper on alpha: from rows whose answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from palio.lab.reproduce.catalogue import experiment
from palio.lab.reproduce.claims import Claim, ClaimOutcome, claim, judged, paper_2006_alpha
from palio.lab.reproduce.claims.paper_2006_alpha import (
    deviations,
    standard_deviation,
    uniform_as_predicted,
)
from palio.lab.reproduce.figures.paper_2006_fig05 import expected


def test_measured_alpha_is_the_closed_formula_within_sampling_error() -> None:
    """2006, 4.1, the uniform case: 40 repetitions, with the exact variance."""
    module: Any = experiment("2006-fig5")
    rows = [
        {"universe": universe, "one_in": one_in, "draw": "uniform", "repetition": r, **row}
        for universe, one_in in ((10_000, 100), (10_000, 1_000), (100_000, 100))
        for r in range(40)
        for row in module.run(
            {"universe": universe, "one_in": one_in, "draw": "uniform"}, 1000 * one_in + r
        )
    ]
    found = deviations(rows)
    assert len(found) > 40
    assert max(z for _, z in found) < 4
    assert max(abs(off) for off, _ in found) < 0.002
    assert uniform_as_predicted(rows)[0]
    wrong = [row | {"alpha": row["alpha"] * 0.99} for row in rows]
    assert not uniform_as_predicted(wrong)[0]


def test_formula_and_variance_are_those_of_all_pairs_of_sets() -> None:
    """Two of three messages twice: the unions of all nine pairs."""
    subsets = [{0, 1}, {0, 2}, {1, 2}]
    alphas = [len(a | b) / 4 for a in subsets for b in subsets]
    assert expected(3, 2, 2) == pytest.approx(np.mean(alphas))
    assert standard_deviation(3, 2, 2) == pytest.approx(np.std(alphas))


def alpha_rows(alpha_of: dict[tuple[int, bool], dict[int, float]], repetitions: int) -> Any:
    return [
        {
            "names": n,
            "zipf": z,
            "predicates": p,
            "repetition": r,
            "alpha": alpha + 0.1 * r / p,
            "palio_alpha": alpha - 0.1,
        }
        for (n, z), curve in alpha_of.items()
        for p, alpha in curve.items()
        for r in range(repetitions)
    ]


CURVES = {
    (500, True): {10: 0.9, 100: 0.7, 1_000: 0.3, 10_000: 0.1},
    (5_000, True): {10: 0.95, 100: 0.8, 1_000: 0.5, 10_000: 0.2},
    (50, False): {10: 0.97, 100: 0.8, 1_000: 0.3, 10_000: 0.05},
    (500, False): {10: 0.99, 100: 0.97, 1_000: 0.9, 10_000: 0.3},
}
ALPHA_CLAIMS = [c for c in paper_2006_alpha.CLAIMS if c.also and c.id != "2006-alpha-at-most-1"]


@pytest.mark.parametrize("claim", ALPHA_CLAIMS, ids=lambda claim: claim.id)
def test_claims_on_alpha_can_hold_fail_and_wait(claim: Claim) -> None:
    def verdict(curves: Any, repetitions: int = 12) -> ClaimOutcome:
        rows = alpha_rows(curves, repetitions)
        zipf = [row for row in rows if row["zipf"]]
        uniform = [row for row in rows if not row["zipf"]]
        return judged(claim, {"2006-fig6": zipf, "2006-fig7": uniform}).outcome

    assert verdict(CURVES) is ClaimOutcome.HOLDS
    assert verdict(CURVES, repetitions=3) is ClaimOutcome.UNDECIDED
    # The other way round: alpha grows, uniform names are best, spread grows with the predicates.
    mirrored = {
        scenario: dict(zip(curve, list(CURVES[other].values())[::-1], strict=True))
        for (scenario, curve), other in zip(
            CURVES.items(), [(500, False), (50, False), (5_000, True), (500, True)], strict=True
        )
    }
    if claim.id != "2006-stabilizes":
        assert verdict(mirrored) is ClaimOutcome.FAILS


def test_a_penalty_for_combining_would_show() -> None:
    rows = alpha_rows({(500, True): {10: 1.1}}, 3)
    outcome = judged(claim("2006-alpha-at-most-1"), {"2006-fig6": rows, "2006-fig7": rows}).outcome
    assert outcome is ClaimOutcome.FAILS


def test_the_crossing_is_found_between_points_for_each_reducer() -> None:
    rows = alpha_rows({(500, False): {5_000: 0.65, 6_000: 0.58, 8_000: 0.42}}, 1)
    verdict = judged(claim("2006-7000"), {"2006-fig7": rows})
    assert verdict.outcome is ClaimOutcome.DEPENDS
    assert [figure for _, _, figure in verdict.readings] == [
        "the median goes below 0.5 at 7,000 predicates",
        "the median goes below 0.5 at 5,714 predicates",
    ]
    few = judged(claim("2006-7000"), {"2006-fig7": rows[:2]})
    assert few.outcome is ClaimOutcome.UNDECIDED
    assert "10,000 predicates" in few.reason


def test_draws_that_may_repeat_are_a_reading() -> None:
    rows = [
        {"draw": draw, "one_in": 100, "predicates": 5, "universe": 10**4, "alpha": alpha}
        for draw, alpha in (("zipf", 0.77), ("zipf, repeating", 0.5))
    ]
    verdict = judged(claim("2006-five-halve"), {"2006-fig5": rows})
    assert verdict.outcome is ClaimOutcome.DEPENDS
    assert [holds for _, holds, _ in verdict.readings] == [False, True]
