"""Claims of the 2001 paper on shares of messages: tests with a stated error, not coin flips."""

from __future__ import annotations

from typing import Any

import pytest

from palio.lab.reproduce.claims import ClaimOutcome, claim, judged


def ignored_rows(shares: dict[tuple[int, int], list[float]]) -> Any:
    """1,000 messages a draw, of which a share goes nowhere."""
    rows = []
    for (filters, attributes), draws in shares.items():
        for number, share in enumerate(draws):
            values = {"filters": filters, "attributes": attributes, "interfaces": 50}
            nowhere = round(1_000 * share)
            for reached, count in ((0, nowhere), (3, 1_000 - nowhere)):
                rows.append({**values, "repetition": number, "reached": reached, "messages": count})
    return rows


def outcome(id: str, shares: dict[tuple[int, int], list[float]]) -> ClaimOutcome:
    return judged(claim(id), {"2001-fig11": ignored_rows(shares)}).outcome


AROUND_35 = [0.30, 0.33, 0.35, 0.36, 0.39, 0.41, 0.34, 0.38, 0.31, 0.36]


@pytest.mark.parametrize(
    ("draws", "expected"),
    [
        (AROUND_35, ClaimOutcome.HOLDS),  # one draw may well be 30%
        ([share + 0.2 for share in AROUND_35], ClaimOutcome.FAILS),
        (AROUND_35[:2], ClaimOutcome.UNDECIDED),
    ],
)
def test_thirty_per_cent_is_one_draw_of_many(draws: list[float], expected: ClaimOutcome) -> None:
    few = [0.14, 0.15, 0.16]
    none = [0.0] * 3
    shares = {(1_000, 100): draws, (10_000, 100): none, (1_000, 50): few, (10_000, 50): none}
    assert outcome("2001-30-ignored", shares) is expected


NEAR_90, NEAR_60 = [0.89, 0.90, 0.91], [0.59, 0.60, 0.61]


@pytest.mark.parametrize(
    ("few", "many", "expected"),
    [
        (NEAR_90, NEAR_90, ClaimOutcome.HOLDS),
        (NEAR_60, NEAR_60, ClaimOutcome.FAILS),
        (NEAR_90, NEAR_60, ClaimOutcome.DEPENDS),  # at the beginning of the graph alone
        ([0.83, 0.835, 0.84], NEAR_90, ClaimOutcome.FAILS),  # no margin beside that of the draws
    ],
)
def test_ninety_per_cent(few: list[float], many: list[float], expected: ClaimOutcome) -> None:
    assert outcome("2001-90-ignored", {(1_000, 1_000): few, (100_000, 1_000): many}) is expected


def test_names_regulate_only_if_the_ranges_are_apart() -> None:
    apart = {a: [s - 0.01, s, s + 0.01] for a, s in ((1_000, 0.9), (100, 0.5), (50, 0.1))}
    assert (
        outcome("2001-regulates", {(1_000, a): d for a, d in apart.items()}) is ClaimOutcome.HOLDS
    )
    same = {(1_000, a): AROUND_35 for a in apart}
    assert outcome("2001-regulates", same) is ClaimOutcome.FAILS


def test_which_interfaces_are_drawn_is_a_reading() -> None:
    rows = [
        {"filters": 100_000, "attributes": a, "interfaces": i, "reached": reached, "messages": 100}
        for a in (100, 50)
        for i in (2, 50, 100, 200, 500)
        for reached in ((2,) if i == 2 else (1, 2))
    ]
    verdict = judged(claim("2001-all-reached"), {"2001-fig10": rows})
    assert verdict.outcome is ClaimOutcome.DEPENDS
    assert [(name, holds) for name, holds, _ in verdict.readings][:2] == [
        ("I = 2", True),
        ("I = 50", False),
    ]
