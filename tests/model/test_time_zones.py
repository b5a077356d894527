"""Instants and what clocks of zones show."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from palio.errors import InvalidValue
from palio.model.time_zones import instant_of, parse_instant_in, shown_at, zone_name


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize("zone", [None, "UTC", "Etc/UTC", "GMT", "Z", "+00:00"])
def test_utc_has_many_names(zone: str | None) -> None:
    assert zone_name(zone) is None


@pytest.mark.parametrize("zone", ["Nowhere", "+25:00", "../etc/passwd", "", "+1:5", "A" * 200])
def test_zones_that_there_are_not(zone: str) -> None:
    with pytest.raises(InvalidValue, match="no time zone"):
        zone_name(zone)


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("America/New_York", "2024-03-01T05:00"),
        ("+05:30", "2024-03-01T15:30"),
        ("UTC", "2024-03-01T10:00"),
    ],
)
def test_what_a_clock_shows(zone: str, shown: str) -> None:
    assert shown_at(at("2024-03-01T10:00"), zone) == at(shown)
    assert instant_of(at(shown), zone) == at("2024-03-01T10:00")


def test_an_offset_in_the_text_wins() -> None:
    assert parse_instant_in("2024-03-01 10:00:00", "Europe/Rome") == at("2024-03-01T09:00")
    assert parse_instant_in("2024-03-01 10:00:00Z", "Europe/Rome") == at("2024-03-01T10:00")
    assert parse_instant_in("2024-03-01", None) == at("2024-03-01T00:00")
    with pytest.raises(InvalidValue, match="years 1 to 9999"):
        parse_instant_in("0001-01-01 00:00:00", "Asia/Tokyo")
