"""Shared names are the hardest case unless rows say otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from palio.lab.reproduce.claims import ClaimOutcome, claim, judged


def rows_of(work: dict[str, tuple[float, float, float]], filters: int = 20_000) -> Any:
    """Increments at 0%, 50% and 100% of shared names, by draw; those of I = F grow."""
    return [
        {
            "paper": paper,
            "draw": draw,
            "filters": filters,
            "interfaces": interfaces,
            "shared": share,
            "increments_per_message": increments,
        }
        for paper in ("2001", "2003")
        for draw, fixed in work.items()
        for interfaces, counted in (("F", (0.0, 50.0, 100.0)), ("2", fixed))
        for share, increments in zip((0.0, 0.5, 1.0), counted, strict=True)
    ]


@pytest.mark.parametrize("id", ["2001-shared", "2003-shared"])
def test_shared_names(id: str) -> None:
    grows, falls = (0.0, 5.0, 6.0), (0.0, 6.0, 5.0)

    def outcome(rows: Any) -> ClaimOutcome:
        return judged(claim(id), {"overlap": rows}).outcome

    assert outcome(rows_of({"as printed": grows, "strict types": grows})) is ClaimOutcome.HOLDS
    assert outcome(rows_of({"as printed": falls, "strict types": grows})) is ClaimOutcome.DEPENDS
    assert outcome(rows_of({"as printed": falls, "strict types": falls})) is ClaimOutcome.FAILS
    assert outcome(rows_of({"as printed": grows}, filters=1_000)) is ClaimOutcome.UNDECIDED
