"""Verdicts of four kinds, and never one from rows that are missing."""

from __future__ import annotations

from typing import Any

import pytest

from palio.errors import InvalidValue, PalioError
from palio.lab.reproduce.catalogue import experiments
from palio.lab.reproduce.claims import CLAIMS, Claim, ClaimOutcome, claim, judged
from palio.lab.reproduce.claims.claim import TooSmall


def made(decide: Any) -> Claim:
    return Claim("x", "2001, 1", "No.", "It is.", "It is not.", "traffic", decide, "It is silly.")


def test_every_claim_is_whole() -> None:
    """A place, a criterion, what would refute it, and experiments that exist."""
    assert len(CLAIMS) >= 60
    for field in ("id", "text"):
        assert len({getattr(known, field) for known in CLAIMS}) == len(CLAIMS)
    assert {known.place[:4] for known in CLAIMS} == {"2000", "2001", "2003", "2006"}
    assert {id for known in CLAIMS for id in known.experiments} <= experiments().keys()
    assert not {known.id for known in CLAIMS} & experiments().keys()
    assert all(known.criterion and known.refuted for known in CLAIMS)


def test_criteria_that_were_changed_say_so() -> None:
    """What was lowered or mended after data were seen is no secret of the commit."""
    changed = {known.id for known in CLAIMS if known.changed}
    assert {"2001-worst", "2003-disjoint", "2006-log-log"} <= changed


@pytest.mark.parametrize("known", CLAIMS, ids=lambda known: known.id)
def test_without_rows_nothing_is_decided(known: Claim) -> None:
    verdict = judged(known, {})
    assert verdict.outcome is ClaimOutcome.UNDECIDED
    assert "has not been run" in verdict.reason


@pytest.mark.parametrize(
    ("decided", "outcome", "reason"),
    [
        ((True, "1"), ClaimOutcome.HOLDS, ""),
        ((False, "0"), ClaimOutcome.FAILS, "It is silly."),
        ({"a": (True, "1"), "b": (True, "2")}, ClaimOutcome.HOLDS, ""),
        ({"a": (False, "0"), "b": (False, "0")}, ClaimOutcome.FAILS, "It is silly."),
        ({"a": (True, "1"), "b": (False, "0")}, ClaimOutcome.DEPENDS, "It is silly."),
    ],
)
def test_four_verdicts(decided: Any, outcome: ClaimOutcome, reason: str) -> None:
    verdict = judged(made(lambda _rows: decided), {"traffic": [{}]})
    assert (verdict.outcome, verdict.reason) == (outcome, reason)
    if isinstance(decided, dict):
        assert verdict.readings == tuple((name, *answer) for name, answer in decided.items())


def test_too_small_is_no_verdict() -> None:
    def decide(_rows: Any) -> Any:
        raise TooSmall("a million filters")

    verdict = judged(made(decide), {"traffic": [{}]})
    assert verdict.outcome is ClaimOutcome.UNDECIDED
    assert verdict.reason == "it needs a million filters"
    assert issubclass(TooSmall, PalioError)


def test_a_part_of_the_points_decides_nothing() -> None:
    known = made(lambda _rows: (True, "1"))
    verdict = judged(known, {"traffic": [{}]}, {"traffic": "3 of 9 points are finished"})
    assert verdict.outcome is ClaimOutcome.UNDECIDED
    assert verdict.reason == "traffic: 3 of 9 points are finished"
    assert judged(known, {"traffic": [{}]}, {"traffic": ""}).outcome is ClaimOutcome.HOLDS


def test_an_unknown_claim_is_refused() -> None:
    assert claim("2006-psf-ideal").place == "2006, 3.1"
    with pytest.raises(InvalidValue, match="no claim '2006'"):
        claim("2006")
