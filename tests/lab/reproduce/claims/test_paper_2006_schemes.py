"""Claims of the 2006 paper on deliveries: one exception refutes them."""

from __future__ import annotations

from typing import Any

import pytest

from palio.lab.reproduce.claims import ClaimOutcome, claim, judged
from palio.lab.reproduce.figures.paper_2006_deliveries import VARIANTS

ALWAYS = {
    "2006-psf-correct": "correct",
    "2006-psf-latency": "latency",
    "2006-ips-same": "ips_as_psf",
    "2006-pif-correct": "correct",
    "2006-psf-in-pif": "psf_inside_pif",
    "2006-drp-correct": "correct",
    "2006-drp-if": "ideal",
}


def rows_of(networks: int = 20, **values: Any) -> Any:
    """As many networks with unique paths as with ties, 25 deliveries each."""
    counts = ("correct", "latency", "ideal", "psf_inside_pif", "ips_as_psf")
    return [
        {
            "scheme": scheme,
            "unique": unique,
            "deliveries": 25,
            **dict.fromkeys(counts, 25),
            "bridge_pairs": 10,
            "bridge_pairs_alike": 10,
            "drp_ideal_trees": unique,
            "drp_ideal_any": unique,
        }
        | values
        for scheme in VARIANTS
        for unique in (True, False)
        for _ in range(networks)
    ]


def outcome(id: str, rows: Any) -> ClaimOutcome:
    return judged(claim(id), {"2006-deliveries": rows}).outcome


@pytest.mark.parametrize(("id", "column"), ALWAYS.items())
def test_one_exception_refutes(id: str, column: str) -> None:
    rows = rows_of()
    assert outcome(id, rows) is ClaimOutcome.HOLDS
    assert outcome(id, rows_of(networks=2)) is ClaimOutcome.UNDECIDED
    exception = [{**row, column: 24} for row in rows]
    assert outcome(id, [*rows[1:], *exception[:1], *exception]) is ClaimOutcome.FAILS


def test_whether_paths_are_unique_is_a_reading_of_psf() -> None:
    tied = [{**row, "ideal": 25 if row["unique"] else 20} for row in rows_of()]
    assert outcome("2006-psf-ideal", tied) is ClaimOutcome.DEPENDS
    assert outcome("2006-psf-ideal", rows_of()) is ClaimOutcome.HOLDS
    assert outcome("2006-pif-not-ideal", rows_of()) is ClaimOutcome.FAILS
    assert outcome("2006-pif-not-ideal", rows_of(ideal=24)) is ClaimOutcome.HOLDS


def test_drp_and_bridges() -> None:
    assert outcome("2006-drp-only-if", rows_of()) is ClaimOutcome.HOLDS
    assert outcome("2006-drp-only-if", rows_of(drp_ideal_trees=True)) is ClaimOutcome.DEPENDS
    assert outcome("2006-bridges", rows_of()) is ClaimOutcome.HOLDS
    assert outcome("2006-bridges", rows_of(bridge_pairs_alike=9)) is ClaimOutcome.FAILS


@pytest.mark.parametrize(("mean", "expected"), [(20.0, "holds"), (300.0, "does not hold")])
def test_hierarchies(mean: float, expected: str) -> None:
    rows = [
        {"family": family, "n": 500, "mean": mean, "links": 600}
        for family in ("internet", "power law", "ring")
    ]
    assert judged(claim("2006-hierarchy"), {"ips-classes": rows}).outcome.value == expected
