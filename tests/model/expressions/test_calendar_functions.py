"""Moving and measuring times, at their edges: the answers are Spark's."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from palio.model.expressions import calendar_functions as calendar
from palio.model.expressions.errors import ExpressionError


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_months_keep_to_the_last_day() -> None:
    assert calendar.timestampadd("MONTH", 1, at("2024-01-31T10:00")) == at("2024-02-29T10:00")
    assert calendar.timestampadd("quarter", -1, at("2024-05-31T10:00")) == at("2024-02-29T10:00")
    assert calendar.add_months(at("2024-01-31T10:00"), 1) == at("2024-02-29")


@pytest.mark.parametrize(
    ("unit", "start", "end", "count"),
    [
        ("MONTH", "2024-01-31T10:00", "2024-02-29T10:00", 0),
        ("MONTH", "2024-03-31T10:00", "2024-02-29T10:00", -1),
        ("YEAR", "2024-03-31T10:00", "2022-03-31T10:00:01", -1),
        ("QUARTER", "2024-03-31T10:00", "2025-03-31T09:00", 3),
        ("WEEK", "2024-03-31T10:00", "2024-03-18T09:00", -1),
        ("HOUR", "2024-01-31T10:00", "2024-01-31T13:59", 3),
        ("SECOND", "2024-03-31T10:00:00.900", "2024-03-31T10:00:00.100", 0),
    ],
)
def test_whole_units(unit: str, start: str, end: str, count: int) -> None:
    assert calendar.timestampdiff(unit, at(start), at(end)) == count


def test_months_between() -> None:
    assert calendar.months_between(at("2024-02-29T10:00"), at("2024-01-31T09:00")) == 1.0
    assert calendar.months_between(at("2024-02-15T10:00"), at("2024-01-31T09:00")) == 0.48521505


@pytest.mark.parametrize(
    ("zone", "there"),
    [
        ("America/New_York", "2024-03-10T06:00"),
        ("+05:30", "2024-03-10T15:30"),
        ("UTC+1", "2024-03-10T11:00"),
        ("Z", "2024-03-10T10:00"),
    ],
)
def test_other_clocks(zone: str, there: str) -> None:
    assert calendar.from_utc_timestamp(at("2024-03-10T10:00"), zone) == at(there)
    assert calendar.to_utc_timestamp(at(there), zone) == at("2024-03-10T10:00")


def test_hours_that_a_clock_skips_or_shows_twice() -> None:
    new_york = "America/New_York"
    assert calendar.to_utc_timestamp(at("2024-03-10T02:30"), new_york) == at("2024-03-10T07:30")
    assert calendar.to_utc_timestamp(at("2024-11-03T01:30"), new_york) == at("2024-11-03T05:30")


@pytest.mark.parametrize("zone", ["Nowhere", "../etc/passwd", "+25:00", "", "A" * 1000, "Europe"])
def test_zones_that_there_are_not(zone: str) -> None:
    with pytest.raises(ExpressionError, match="no time zone"):
        calendar.check_zone(zone)


def test_seconds() -> None:
    before = at("1969-12-31T23:59:59.500")
    assert (calendar.unix_seconds(before), calendar.unix_timestamp(before)) == (-1, 0)
    assert calendar.timestamp_seconds(1.5) == at("1970-01-01T00:00:01.500")
    assert calendar.timestamp_seconds(float("nan")) is None


@pytest.mark.parametrize(
    "far",
    [
        lambda: calendar.timestampadd("YEAR", 10**18, at("2024-01-01")),
        lambda: calendar.date_add(at("2024-01-01"), 10**18),
        lambda: calendar.timestamp_micros(2**63 - 1),
        lambda: calendar.timestamp_seconds(1e300),
        lambda: calendar.from_utc_timestamp(at("9999-12-31T23:00"), "+05:00"),
        lambda: calendar.make_date(2024, 2, 30),
        lambda: calendar.next_day(at("2024-01-01"), "xx"),
    ],
)
def test_what_lies_outside_is_an_error(far: object) -> None:
    with pytest.raises(ExpressionError):
        far()  # type: ignore[operator]


def test_days_of_the_week() -> None:
    assert calendar.next_day(at("2024-02-03T10:00"), "monday") == at("2024-02-05")
    assert calendar.next_day(at("2024-02-05"), "MO") == at("2024-02-12")
    assert calendar.trunc(at("2024-02-07T10:00"), "week") == at("2024-02-05")
    assert calendar.trunc(at("2024-02-07T10:00"), "hour") is None
