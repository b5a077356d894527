"""Claims of the 2000 paper: from rows whose answer is known."""

from __future__ import annotations

from typing import Any

import pytest

from palio.lab.reproduce.claims import ClaimOutcome, claim, judged


def table_rows(**values: Any) -> Any:
    base = {
        "filters": 300,
        "given": 300,
        "items": 300,
        "entries": 300,
        "entries_stored": 30,
        "sent": 10,
        "sent_roots": 10,
        "mixed_sent": 10,
        "mixed_roots": 9,
        "mixed_uncovered": 10,
        "compared": 30.0,
    }
    shapes = ("500 Zipf names", "500 uniform names", "chain", "flat")
    return [{**base, "shape": shape, **values} for shape in shapes]


def outcome(id: str, rows: Any) -> ClaimOutcome:
    known = claim(id)
    return judged(known, {known.experiment: rows}).outcome


@pytest.mark.parametrize(
    ("id", "values", "expected"),
    [
        ("2000-subnets", {}, ClaimOutcome.HOLDS),
        ("2000-subnets", {"entries_stored": 290}, ClaimOutcome.FAILS),
        ("2000-subnets", {"filters": 50}, ClaimOutcome.UNDECIDED),
        ("2000-subnets", {"entries_stored": 151}, ClaimOutcome.FAILS),
        ("2000-roots", {}, ClaimOutcome.DEPENDS),
        ("2000-roots", {"mixed_roots": 10}, ClaimOutcome.HOLDS),
        ("2000-vertical", {}, ClaimOutcome.HOLDS),
        ("2000-vertical", {"sent": 500}, ClaimOutcome.FAILS),
        ("2000-flat", {"sent": 600}, ClaimOutcome.HOLDS),
        ("2000-flat", {"sent": 599}, ClaimOutcome.FAILS),
        ("2000-skipped", {}, ClaimOutcome.HOLDS),
        ("2000-skipped", {"compared": 299.0}, ClaimOutcome.FAILS),
    ],
)
def test_tables_and_traffic(id: str, values: dict[str, Any], expected: ClaimOutcome) -> None:
    assert outcome(id, table_rows(**values)) is expected


def test_shapes_whose_answer_is_known_decide_nothing_about_subnets() -> None:
    rows = [
        {**row, "entries_stored": 1 if row["shape"] == "chain" else 300} for row in table_rows()
    ]
    assert outcome("2000-subnets", rows) is ClaimOutcome.FAILS


@pytest.mark.parametrize(
    ("id", "power", "expected"),
    [
        ("2000-matching", 1.0, ClaimOutcome.HOLDS),
        ("2000-matching", 2.0, ClaimOutcome.FAILS),
        ("2000-covering", 2.0, ClaimOutcome.HOLDS),
        ("2000-covering", 3.0, ClaimOutcome.FAILS),
        ("2000-flat-look-up", 1.0, ClaimOutcome.HOLDS),
        ("2000-flat-insertion", 2.0, ClaimOutcome.FAILS),
    ],
)
def test_powers(id: str, power: float, expected: ClaimOutcome) -> None:
    from palio.lab.reproduce.figures.paper_2000_relations import FLAT, RELATIONS

    rows = [
        {"relation": relation, "argument": n, "lines": n**power}
        for relation in (*RELATIONS, *FLAT)
        for n in (4, 8, 16, 32, 64)
    ]
    assert outcome(id, rows) is expected


@pytest.mark.parametrize(
    ("id", "values", "expected"),
    [
        ("2000-pattern-place", {}, ClaimOutcome.HOLDS),
        ("2000-pattern-place", {"trunk_single": 1}, ClaimOutcome.FAILS),
        ("2000-pattern-packets", {}, ClaimOutcome.HOLDS),
        ("2000-pattern-packets", {"packets": 10}, ClaimOutcome.FAILS),
    ],
)
def test_patterns(id: str, values: dict[str, Any], expected: ClaimOutcome) -> None:
    rows = [
        {"sources": where, "way": way, "packets": packets, "trunk_single": 0, "arm_single": 0}
        | values
        for where in ("together", "apart")
        for way, packets in (("pattern", 1), ("plain", 10))
    ]
    assert outcome(id, rows) is expected
