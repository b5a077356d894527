"""What is written as an interval."""

from __future__ import annotations

import pytest

from palio.errors import ParseError
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.intervals import interval
from palio.model.language import parse

DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("written", "unit", "found"),
    [
        ("1", "DAY", (DAY, False)),
        ("-2", "hours", (-DAY // 12, False)),
        ("1.5", "SECOND", (1_500_000, False)),
        ("3", "MONTHS", (3, True)),
        ("2", "YEAR", (24, True)),
        ("1-6", "YEAR TO MONTH", (18, True)),
        ("-1-6", "YEAR TO MONTH", (-18, True)),
        ("1 02:03:04.5", "DAY TO SECOND", (DAY + 7_384_500_000, False)),
        ("02:03", "HOUR TO MINUTE", (7_380_000_000, False)),
        ("1 day 2 hours", "", (DAY + DAY // 12, False)),
        ("1 year 6 months", "", (18, True)),
    ],
)
def test_intervals(written: str, unit: str, found: tuple[int, bool]) -> None:
    assert interval(written, unit) == found


@pytest.mark.parametrize(
    ("written", "unit"),
    [
        ("x", "DAY"),
        ("1", "FORTNIGHT"),
        ("1.5", "DAY"),
        ("", ""),
        ("1 day 1 month", ""),
        ("1-13", "YEAR TO MONTH"),
        ("1:2", "DAY TO SECOND"),
        ("1", "SECOND TO DAY"),
        ("9" * 18, "YEAR"),
        ("1 " * 200, ""),
    ],
)
def test_what_is_no_interval(written: str, unit: str) -> None:
    with pytest.raises(ExpressionError):
        interval(written, unit)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("due - at < INTERVAL 1 DAY", "timestampdiff(MICROSECOND, `at`, due) < 86400000000"),
        ("NOT (due - at < INTERVAL 1 DAY)", "timestampdiff(MICROSECOND, `at`, due) >= 86400000000"),
        ("INTERVAL 90 MINUTES >= due - at", "timestampdiff(MICROSECOND, `at`, due) <= 5400000000"),
        ("due - at < -INTERVAL 1 DAY", "timestampdiff(MICROSECOND, `at`, due) < -86400000000"),
        ("due - at < 2 * INTERVAL 1 DAY", "timestampdiff(MICROSECOND, `at`, due) < 172800000000"),
        (
            "due - at BETWEEN INTERVAL 1 HOUR AND INTERVAL 1 DAY + INTERVAL 2 HOURS",
            "timestampdiff(MICROSECOND, `at`, due) >= 3600000000 AND "
            "timestampdiff(MICROSECOND, `at`, due) <= 93600000000",
        ),
        ("at > DATE '2024-01-31' + INTERVAL 1 MONTH", "`at` > TIMESTAMP '2024-02-29T00:00:00Z'"),
        ("at = DATE '2024-01-31' - INTERVAL 2 HOURS", "`at` = TIMESTAMP '2024-01-30T22:00:00Z'"),
        (
            "at IN (DATE '2024-01-31' + INTERVAL 1 DAY, DATE '2024-03-01')",
            "`at` IN (TIMESTAMP '2024-02-01T00:00:00Z', TIMESTAMP '2024-03-01T00:00:00Z')",
        ),
    ],
)
@pytest.mark.parametrize("foreign", [False, True])
def test_in_a_predicate(text: str, same: str, foreign: bool) -> None:
    found = parse(text, foreign=foreign)
    assert str(found) == same
    assert parse(str(found)) == found


def test_months_are_compared_with_nothing() -> None:
    with pytest.raises(ParseError, match="months and years are of no fixed length"):
        parse("due - at < INTERVAL 1 MONTH")
