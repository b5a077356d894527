"""Claims of the 2003 paper: from rows whose answer is known."""

from __future__ import annotations

from typing import Any

import pytest

from palio.lab.reproduce.claims import ClaimOutcome, claim, judged


@pytest.mark.parametrize(
    ("nodes", "outcome"), [(90, ClaimOutcome.HOLDS), (5_000, ClaimOutcome.FAILS)]
)
def test_steps_of_a_look_up(nodes: int, outcome: ClaimOutcome) -> None:
    rows = [
        {
            "index": "tst",
            "orders": orders,
            "constraints": 1_000,
            "steps_per_lookup": nodes,
            "found_per_lookup": 3.0,
            "length_per_lookup": 12.0,
        }
        for orders in (False, True)
    ]
    assert judged(claim("2003-look-up"), {"2003-strings": rows}).outcome is outcome


@pytest.mark.parametrize(
    ("one_index", "outcome"),
    [(90, ClaimOutcome.HOLDS), (150, ClaimOutcome.DEPENDS), (2_000, ClaimOutcome.FAILS)],
)
def test_what_sub_indexes_are_is_a_reading(one_index: int, outcome: ClaimOutcome) -> None:
    """At the most constraints, and with the worse dictionary."""
    apart = {"trees": 100, "bisected": 700, "scanned": 1_500}
    rows = [
        {"dictionary": dictionary, "constraints": constraints, "one_index": compared, **apart}
        for dictionary, constraints, compared in (
            ("small", 100, 9_999),
            ("small", 1_000, 1),
            ("large", 1_000, one_index),
        )
    ]
    assert judged(claim("2003-one-index"), {"2003-comparisons": rows}).outcome is outcome


def forwarding(
    work: dict[str, float], *, top: int = 5_500_000, dealing: str = "evenly", **more: Any
) -> Any:
    """Rows of figures 8 and 9 for `engine/interfaces`: increments at the most constraints."""
    rows = []
    for label, increments in work.items():
        engine, interfaces = label.split("/")
        for constraints in (top // 100, top // 10, top):
            value = increments * constraints / top
            rows.append(
                {
                    "engine": engine,
                    "interfaces": interfaces,
                    "dealing": dealing,
                    "constraints": constraints,
                    "increments_per_message": value,
                    "eliminated_per_message": 1.0,
                    "stopped": 0.6,
                    "us_per_message": value,
                    "us_per_message_low": value * 0.99,
                    "us_per_message_high": value * 1.01,
                    "ratio": 1.0,
                    **more,
                }
            )
    return rows


FAST = {"counting r=0/F": 1_000.0, "counting r=10/F": 500.0, "counting r=0/20": 100.0}
SLOW = {"counting r=0/F": 1_000.0, "counting r=10/F": 1_000.0, "counting r=0/20": 900.0}


@pytest.mark.parametrize("id", ["2003-rounds-work", "2003-decided"])
def test_work_decides(id: str) -> None:
    for work, outcome in ((FAST, ClaimOutcome.HOLDS), (SLOW, ClaimOutcome.FAILS)):
        rows = forwarding(work)
        results = {"2003-fig8": rows, "2003-fig9": rows}
        assert judged(claim(id), results).outcome is outcome
    few = forwarding(FAST, top=1_000)
    assert judged(claim(id), {"2003-fig8": few, "2003-fig9": few}).outcome is ClaimOutcome.UNDECIDED


def test_five_million_constraints_are_needed() -> None:
    for top, outcome in ((5_500_000, ClaimOutcome.HOLDS), (500_000, ClaimOutcome.UNDECIDED)):
        rows = forwarding(FAST, top=top)
        assert judged(claim("2003-five-million"), {"2003-fig8": rows}).outcome is outcome


def test_how_filters_are_dealt_is_a_reading() -> None:
    evenly = forwarding({"counting r=0/1000": 100.0, "counting r=10/1000": 100.0})
    printed = forwarding(
        {"counting r=0/1000": 100.0, "counting r=10/1000": 80.0}, dealing="as printed"
    )
    verdict = judged(claim("2003-rounds-few"), {"2003-fig9": [*evenly, *printed]})
    assert verdict.outcome is ClaimOutcome.DEPENDS


def test_quartiles_that_overlap_are_no_saving_of_time() -> None:
    table = [
        {"rounds": rounds, "filters_each": 1, "us_per_message_low": 1, "us_per_message_high": 2,
         "ratio": 1.0}
        for rounds in (0, 10)
    ]  # fmt: skip
    results = {"2003-fig8": forwarding(SLOW), "2003-selectivity": table}
    assert judged(claim("2003-rounds-time"), results).outcome is ClaimOutcome.FAILS


def test_names_that_no_filter_has() -> None:
    def outcome(touched: float) -> ClaimOutcome:
        rows = [
            {
                "paper": paper,
                "constraints": constraints,
                "known_increments": 10.0,
                "foreign_touched": touched,
                "foreign_increments": 0.0,
                "known_us": 20.0,
                "foreign_us": 2.0,
            }
            for paper in ("2001", "2003")
            for constraints in (1_000, 1_000_000)
        ]
        return judged(claim("2003-disjoint"), {"names": rows}).outcome

    assert outcome(0.0) is ClaimOutcome.HOLDS
    assert outcome(0.1) is ClaimOutcome.FAILS
