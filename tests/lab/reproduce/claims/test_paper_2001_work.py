"""Claims of the 2001 paper on work: from rows whose answer is known."""

from __future__ import annotations

from typing import Any

import pytest

from palio.lab.reproduce.claims import ClaimOutcome, claim, judged
from palio.lab.reproduce.claims.paper_2001_work import FIXED, PAPER

ON_WORK = (
    "2001-worst",
    "2001-400-to-25",
    "2001-flat-fixed",
    "2001-names-orders",
    "2001-short-circuit",
    "2001-flat-curves",
    "2001-proportional",
    "2001-sublinear",
)
SIZES = (1_000, 100_000, PAPER // 4, PAPER)


def rows_of(work: Any, top: int = PAPER) -> Any:
    """Rows up to `top` filters, of which a message makes work(filters, interfaces) increments at
    A = 100, and a two-hundredth of that at A = 1,000."""
    rows = []
    for filters in [*(f for f in SIZES if f < top), top]:
        for interfaces in (*FIXED, "F"):
            for attributes, factor in ((100, 200.0), (1_000, 1.0)):
                value = work(filters, interfaces) * factor
                rows.append(
                    {
                        "engine": "counting 2001",
                        "attributes": attributes,
                        "interfaces": interfaces,
                        "filters": filters,
                        "increments_per_message": value,
                        "us_per_message": value / 10,
                        "us_per_message_low": value / 11,
                        "us_per_message_high": value / 9,
                        "matches_per_message": 50 if interfaces == "F" else int(interfaces),
                    }
                )
    return rows


def as_printed(filters: int, interfaces: str) -> float:
    """All postings, of which fixed interfaces read so many as decide them."""
    postings = filters / 100
    return postings if interfaces == "F" else min(postings, int(interfaces) * 2.0)


def judged_on(id: str, rows: Any) -> ClaimOutcome:
    return judged(claim(id), {"2001-fig9": rows, "2001-fig12": rows}).outcome


@pytest.mark.parametrize("id", ON_WORK)
def test_claims_hold_where_the_paper_is_right(id: str) -> None:
    assert judged_on(id, rows_of(as_printed)) is ClaimOutcome.HOLDS


@pytest.mark.parametrize("id", [id for id in ON_WORK if id != "2001-names-orders"])
def test_claims_fail_where_interfaces_do_not_matter(id: str) -> None:
    linear = rows_of(lambda filters, _interfaces: filters / 100)
    assert judged_on(id, linear) is ClaimOutcome.FAILS


@pytest.mark.parametrize("id", ON_WORK)
def test_claims_wait_for_the_papers_size(id: str) -> None:
    small = rows_of(as_printed, top=1_000_000)
    assert judged_on(id, small) is ClaimOutcome.UNDECIDED


def test_times_are_told_with_their_quartiles() -> None:
    rows = rows_of(as_printed)
    verdict = judged(claim("2001-400-to-25"), {"2001-fig9": rows})
    assert verdict.outcome is ClaimOutcome.HOLDS
    assert "20.00 ms (18.18 to 22.22) at I = 500" in verdict.figure


@pytest.mark.parametrize(
    ("id", "fixed", "expected"),
    [
        ("2001-worst", 8_000.0, ClaimOutcome.HOLDS),  # a tenth
        ("2001-worst", 9_000.0, ClaimOutcome.FAILS),
        ("2001-400-to-25", 5_000.0, ClaimOutcome.HOLDS),  # a sixteenth
        ("2001-400-to-25", 5_500.0, ClaimOutcome.FAILS),
    ],
)
def test_how_much_worse_one_interface_a_filter_is(
    id: str, fixed: float, expected: ClaimOutcome
) -> None:
    rows = rows_of(lambda filters, i: filters / 100 if i == "F" else fixed)
    assert judged_on(id, rows) is expected


@pytest.mark.parametrize(
    ("foreign", "expected"), [(9.0, ClaimOutcome.HOLDS), (11.0, ClaimOutcome.FAILS)]
)
def test_foreign_names_are_quick_or_not(foreign: float, expected: ClaimOutcome) -> None:
    """At the most constraints; a table of few decides nothing."""
    rows = [
        {
            "paper": "2001",
            "constraints": constraints,
            "known_us_low": 20.0,
            "known_us": 21.0,
            "foreign_us": us,
            "foreign_us_high": us,
        }
        for constraints, us in ((1_000, 30.0), (1_000_000, foreign))
    ]
    assert judged(claim("2001-skip-names"), {"names": rows}).outcome is expected


def test_panels_are_readings() -> None:
    """Flat at A = 100, growing at A = 1,000."""
    rows = [
        {**row, "increments_per_message": row["filters"] if row["attributes"] == 1_000 else 7.0}
        for row in rows_of(as_printed)
    ]
    assert judged_on("2001-flat-curves", rows) is ClaimOutcome.DEPENDS


@pytest.mark.parametrize(("op", "id"), [("=", "2001-search-equal"), ("<", "2001-search-less")])
def test_searches(op: str, id: str) -> None:
    def outcome(compared: int, touched: float = 1.0, most: int = 1 << 15) -> ClaimOutcome:
        rows = [
            {
                "op": op,
                "constraints": count,
                "us_per_message": 1.0,
                "touched_per_message": touched,
                "expected_per_message": 1.0,
            }
            for count in (128, most)
        ]
        counted = [
            {"op": op, "constraints": count, "compared_max": keys}
            for count, keys in ((128, 16), (most, compared))
        ]
        return judged(claim(id), {"2001-search": rows, "2001-comparisons": counted}).outcome

    assert outcome(15 + 16) is ClaimOutcome.HOLDS
    assert outcome(15 + 17) is ClaimOutcome.FAILS
    assert outcome(17, touched=9.0) is ClaimOutcome.FAILS
    assert outcome(17, most=1_000) is ClaimOutcome.UNDECIDED
