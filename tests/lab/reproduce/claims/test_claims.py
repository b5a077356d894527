"""Verdicts: from rows whose answer is known, and never from rows that are too few."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from palio.errors import PalioError
from palio.lab.reproduce.catalogue import experiment, experiments
from palio.lab.reproduce.claims import CLAIMS, ClaimOutcome, judged
from palio.lab.reproduce.claims.claim import Claim, TooSmall
from palio.lab.reproduce.claims.paper_2006 import (
    deviations,
    standard_deviation,
    uniform_as_predicted,
)
from palio.lab.reproduce.figures.paper_2006_fig05 import expected


def claim(words: str) -> Claim:
    (found,) = [claim for claim in CLAIMS if words in claim.text]
    return found


def test_every_claim_names_its_place_and_an_experiment() -> None:
    assert len(CLAIMS) >= 20
    assert len({claim.text for claim in CLAIMS}) == len(CLAIMS)
    assert {claim.place[:4] for claim in CLAIMS} == {"2001", "2003", "2006"}
    assert {id for c in CLAIMS for id in (c.experiment, *c.also)} <= experiments().keys()


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.text[:40])
def test_without_rows_nothing_is_decided(claim: Claim) -> None:
    verdict = judged(claim, {})
    assert verdict.outcome is ClaimOutcome.UNDECIDED
    assert "has not been run" in verdict.reason


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
        {"names": n, "zipf": z, "predicates": p, "repetition": r, "alpha": alpha + 0.1 * r / p}
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
ALPHA_CLAIMS = [c for c in CLAIMS if c.also and c.place.startswith("2006")]


@pytest.mark.parametrize("claim", ALPHA_CLAIMS, ids=lambda claim: claim.text[:40])
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
    if "varies" not in claim.text:
        assert verdict(mirrored) is ClaimOutcome.FAILS


def test_the_crossing_is_found_between_points() -> None:
    rows = alpha_rows({(500, False): {5_000: 0.6, 6_000: 0.52, 8_000: 0.48}}, 1)
    decide = claim("only at 7,000").decide
    assert decide(rows) == (True, "the median goes below 0.5 at 7,000 predicates")
    with pytest.raises(TooSmall, match="10,000 predicates"):
        decide(rows[:2])


def time_rows(us: dict[tuple[str, int], float], reached: float = 1.0) -> Any:
    """Times at A = 100; A = 1,000 takes a hundredth. Messages reach a share of the interfaces."""
    return [
        {
            "engine": "counting 2001",
            "attributes": attributes,
            "interfaces": interfaces,
            "filters": filters,
            "us_per_message": value * factor,
            "increments_per_message": value,
            "matches_per_message": reached * (50 if interfaces == "F" else int(interfaces)),
        }
        for (interfaces, filters), value in us.items()
        for attributes, factor in ((100, 100.0), (1_000, 1.0))
    ]


ON_TIMES = (
    "by far",
    "orders of magnitude",
    "unlike I = F",
    "flat for high",
    "proportional",
    "Short-",
)
FLAT = {
    ("50", 2): 9.8,
    ("50", 8): 10,
    ("500", 2): 99,
    ("500", 8): 100,
    ("F", 2): 4e2,
    ("F", 8): 2e3,
}


def of_size(size: int, times: dict[tuple[str, int], float]) -> dict[tuple[str, int], float]:
    return {(interfaces, f * size): value for (interfaces, f), value in times.items()}


@pytest.mark.parametrize("words", ON_TIMES)
def test_claims_on_times_hold_and_wait_for_large_tables(words: str) -> None:
    rows = time_rows(of_size(1_000_000, FLAT))
    results = {"2001-fig9": rows, "2001-fig12": rows}
    assert judged(claim(words), results).outcome is ClaimOutcome.HOLDS
    few = time_rows(of_size(1_000, FLAT), reached=0.5)
    results = {"2001-fig9": few, "2001-fig12": few}
    assert judged(claim(words), results).outcome is ClaimOutcome.UNDECIDED


@pytest.mark.parametrize("words", [w for w in ON_TIMES if w != "orders of magnitude"])
def test_claims_on_times_can_fail(words: str) -> None:
    steep = {("50", 2): 5, ("50", 8): 20, ("500", 2): 5, ("500", 8): 20, ("F", 2): 5, ("F", 8): 20}
    rows = time_rows(of_size(1_000_000, steep))
    results = {"2001-fig9": rows, "2001-fig12": rows}
    assert judged(claim(words), results).outcome is ClaimOutcome.FAILS


def test_absolute_times_need_the_papers_size() -> None:
    for size, outcome in ((500_000, ClaimOutcome.UNDECIDED), (1_000_000, ClaimOutcome.HOLDS)):
        rows = time_rows(of_size(size, FLAT))
        assert judged(claim("at most 25 ms"), {"2001-fig12": rows}).outcome is outcome


def test_a_claim_that_fails_says_why() -> None:
    silly = Claim("2001, 1", "No.", "traffic", lambda _: (False, "0"), "It is silly.")
    verdict = judged(silly, {"traffic": [{}]})
    assert (verdict.outcome, verdict.figure, verdict.reason) == (
        ClaimOutcome.FAILS,
        "0",
        "It is silly.",
    )
    assert issubclass(TooSmall, PalioError)


@pytest.mark.parametrize(("nodes", "outcome"), [(90, "holds"), (5_000, "does not hold")])
def test_claims_on_indexes_of_strings(nodes: int, outcome: str) -> None:
    rows = [
        {
            "index": index,
            "orders": False,
            "constraints": 1_000,
            "steps_per_lookup": steps,
            "length_per_lookup": 12.0,
        }
        for index, steps in (("tst", nodes), ("operators", 1_500))
    ]
    for words in ("Separate sub-indexes", "A look-up of a string"):
        assert judged(claim(words), {"2003-strings": rows}).outcome.value == outcome
