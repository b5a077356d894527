"""Claims of the 2006 paper on memory: the formulas within what their criteria allow."""

from __future__ import annotations

from math import log
from typing import Any

import pytest

from palio.lab.reproduce.claims import ClaimOutcome, claim, judged

FORMULAS = ("2006-psf-average", "2006-pif-memory")


def rows_of(factor: float = 1.0) -> Any:
    """Networks whose schemes store `factor` times the formula."""
    return [
        {
            "scheme": scheme,
            "interests": interests,
            "family": family,
            "n": n,
            "d": 3.0,
            "receivers": n // 2,
            "interest_bits": 100.0,
            "bits": 1_000 * n * factor,
            "predicate_bits": (n // 2) ** 2 * 3.0,
            "formula_bits": 1_000 * n,
            "average_bits": 1_000 * n,
        }
        for scheme in ("PSF", "iPS", "PIF", "DRP")
        for interests in ("apart", "shared")
        for family in ("tree", "grid")
        for n in (25, 50, 100)
    ]


def outcome(id: str, rows: Any) -> ClaimOutcome:
    known = claim(id)
    return judged(known, {known.experiment: rows}).outcome


@pytest.mark.parametrize("id", [*FORMULAS, "2006-ips-memory"])
def test_formulas(id: str) -> None:
    assert outcome(id, rows_of()) is ClaimOutcome.HOLDS
    assert outcome(id, rows_of(2.0)) is not ClaimOutcome.HOLDS


@pytest.mark.parametrize(
    ("id", "held", "expected"),
    [
        ("2006-psf-memory", (70, 30), ClaimOutcome.HOLDS),
        ("2006-psf-memory", (71, 30), ClaimOutcome.FAILS),
        ("2006-drp-memory", (70, 30), ClaimOutcome.HOLDS),
        ("2006-drp-memory", (70, 29), ClaimOutcome.FAILS),
    ],
)
def test_what_brokers_hold(id: str, held: tuple[int, int], expected: ClaimOutcome) -> None:
    rows = [
        {"scheme": scheme, "held": count, "distances": 70, "pairs": 30}
        for scheme, count in zip(("PSF", "DRP"), held, strict=True)
    ]
    assert outcome(id, rows) is expected


def test_advantage_and_growth() -> None:
    assert outcome("2006-psf-advantage", rows_of(0.9)) is ClaimOutcome.HOLDS
    assert outcome("2006-psf-advantage", rows_of()) is ClaimOutcome.FAILS
    assert outcome("2006-psf-product", rows_of()) is ClaimOutcome.HOLDS
    assert outcome("2006-ips-less", rows_of()) is ClaimOutcome.HOLDS


def distances(of: Any, most: int = 10_000) -> Any:
    return [
        {"graph": graph, "nodes": n, "d": of(n) + 0.001 * number}
        for graph in ("2.5", "4")
        for n in (100, 316, 1_000, most)
        for number in range(4)
    ]


def test_log_log_and_log_are_told_apart() -> None:
    slow = distances(lambda n: 2 * log(log(n)))
    assert outcome("2006-log-log", slow) is ClaimOutcome.HOLDS
    fast = distances(lambda n: log(n) / 2)
    assert outcome("2006-log-log", fast) is ClaimOutcome.FAILS
    mixed = [row for row in slow if row["graph"] == "2.5"]
    mixed += [row for row in fast if row["graph"] == "4"]
    assert outcome("2006-log-log", mixed) is ClaimOutcome.DEPENDS
    few = distances(lambda n: 2 * log(log(n)), most=3_000)
    assert outcome("2006-log-log", few) is ClaimOutcome.UNDECIDED
