"""Claims of the 2001 paper on work: from rows whose answer is known."""

from __future__ import annotations

from typing import Any

import pytest

from palio.lab.reproduce.claims import ClaimOutcome, claim, judged
from palio.lab.reproduce.claims.paper_2001_work import FIXED, PAPER

ON_WORK = (
    "2001-worst",
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


@pytest.mark.parametrize("id", [*ON_WORK, "2001-400ms", "2001-25ms"])
def test_claims_wait_for_the_papers_size(id: str) -> None:
    small = rows_of(as_printed, top=1_000_000)
    assert judged_on(id, small) is ClaimOutcome.UNDECIDED


def test_times_are_told_with_their_quartiles() -> None:
    rows = rows_of(as_printed)
    verdict = judged(claim("2001-25ms"), {"2001-fig12": rows})
    assert verdict.outcome is ClaimOutcome.HOLDS
    assert verdict.figure.startswith("20.00 ms (18.18 to 22.22)")


def test_panels_are_readings() -> None:
    """Flat at A = 100, growing at A = 1,000."""
    rows = [
        {**row, "increments_per_message": row["filters"] if row["attributes"] == 1_000 else 7.0}
        for row in rows_of(as_printed)
    ]
    assert judged_on("2001-flat-curves", rows) is ClaimOutcome.DEPENDS


@pytest.mark.parametrize(("op", "id"), [("=", "2001-search-equal"), ("<", "2001-search-less")])
def test_searches(op: str, id: str) -> None:
    def outcome(slower: float, touched: float = 1.0) -> ClaimOutcome:
        rows = [
            {
                "op": op,
                "constraints": count,
                "us_per_message": us,
                "touched_per_message": touched,
                "expected_per_message": 1.0,
            }
            for count, us in ((100, 1.0), (100_000, slower))
        ]
        return judged(claim(id), {"2001-search": rows}).outcome

    assert outcome(2.5) is ClaimOutcome.HOLDS
    assert outcome(1_000) is ClaimOutcome.FAILS
    assert outcome(2.5, touched=9.0) is ClaimOutcome.FAILS
