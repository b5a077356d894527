"""A text in a time zone becomes an expression that means the same anywhere."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import palio
from palio.errors import InvalidValue

NEW_YORK = "America/New_York"
EARLY = datetime(2024, 3, 1, 3, tzinfo=UTC)  # the evening before in New York


def in_new_york(text: str) -> palio.Predicate:
    found = palio.parse(text, zone=NEW_YORK)
    assert palio.parse(str(found)) == found  # its text says the zone
    return found


@pytest.mark.parametrize(
    "text",
    [
        "ts = TIMESTAMP '2024-02-29 22:00:00'",
        "ts IN (TIMESTAMP '2024-02-29 22:00:00', TIMESTAMP '2000-01-01 00:00:00')",
        "ts = TIMESTAMP '2024-03-01 03:00:00Z'",
        "hour(ts) = 22 AND day(ts) = 29 AND dayname(ts) = 'Thu'",
        "to_date(ts) = DATE '2024-02-29'",
        "ts >= DATE '2024-02-29' AND ts < DATE '2024-03-01'",
        "date_trunc('MONTH', ts) = TIMESTAMP '2024-02-01 00:00:00'",
        "date_trunc('HOUR', ts) = ts",
        "CAST(ts AS STRING) = '2024-02-29 22:00:00'",
        "CAST(text AS TIMESTAMP) = ts",
        "CAST(n AS STRING) = '7'",
        "datediff(ts, TIMESTAMP '2024-02-01 01:00:00') = 28",
        "hour(TIMESTAMP '2024-02-29 22:00:00') = n + 15",
        "last_day(ts) = DATE '2024-02-29'",
        "ts + INTERVAL 1 MONTH = TIMESTAMP '2024-03-29 22:00:00'",
        "greatest(ts, TIMESTAMP '2024-02-29 21:00:00') = ts",
    ],
)
def test_what_holds_in_new_york(text: str) -> None:
    message: dict[str, Any] = {"ts": EARLY, "text": "2024-02-29 22:00:00", "n": 7}
    predicate = in_new_york(text)
    assert predicate.matches(message)
    assert palio.ForwardingTable.compile({"a": predicate}).forward(message) == ["a"]


def test_utc_is_as_it_was() -> None:
    assert str(palio.parse("hour(ts) = 3", zone="UTC")) == "hour(ts) = 3"
    assert palio.parse("hour(ts) = 3").matches({"ts": EARLY})
    assert not palio.parse("hour(ts) = 3", zone=NEW_YORK).matches({"ts": EARLY})
    with pytest.raises(InvalidValue, match="no time zone 'Nowhere'"):
        palio.parse("x = 1", zone="Nowhere")


def test_hours_of_half_hour_zones() -> None:
    text = "date_trunc('HOUR', ts) = TIMESTAMP '2024-03-01 08:00:00'"
    assert palio.parse(text, zone="Asia/Kolkata").matches({"ts": EARLY})
    assert "from_utc_timestamp" in str(palio.parse(text, zone="Asia/Kolkata"))
    assert "from_utc_timestamp" not in str(in_new_york(text))
