"""Departures drawn at random, for machines that do not have the real ones (see flights.py).

The shares of the carriers, the share of cancelled flights, the delays and the weather resemble
those of the real data. A flight number of a carrier always goes the same way, and a plane stays
with its carrier, so subscriptions to them are as selective as on the real data.

Always: the same arguments give the same rows, and what is missing is null, never NaN.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_CARRIERS = {  # code: (name, departures in 2013)
    "UA": ("United Air Lines Inc.", 58_665),
    "B6": ("JetBlue Airways", 54_635),
    "EV": ("ExpressJet Airlines Inc.", 54_173),
    "DL": ("Delta Air Lines Inc.", 48_110),
    "AA": ("American Airlines Inc.", 32_729),
    "MQ": ("Envoy Air", 26_397),
    "US": ("US Airways Inc.", 20_536),
    "9E": ("Endeavor Air Inc.", 18_460),
    "WN": ("Southwest Airlines Co.", 12_275),
    "VX": ("Virgin America", 5_162),
}

_AIRPORTS = {  # code: (name, miles)
    "ORD": ("Chicago Ohare Intl", 729),
    "ATL": ("Hartsfield Jackson Atlanta Intl", 757),
    "LAX": ("Los Angeles Intl", 2_468),
    "BOS": ("General Edward Lawrence Logan Intl", 191),
    "MCO": ("Orlando Intl", 943),
    "CLT": ("Charlotte Douglas Intl", 538),
    "SFO": ("San Francisco Intl", 2_578),
    "FLL": ("Fort Lauderdale Hollywood Intl", 1_070),
    "MIA": ("Miami Intl", 1_091),
    "DCA": ("Ronald Reagan Washington Natl", 211),
    "DTW": ("Detroit Metro Airport", 498),
    "DFW": ("Dallas Fort Worth Intl", 1_383),
    "DEN": ("Denver Intl", 1_614),
    "IAH": ("George Bush Intercontinental", 1_407),
    "MSP": ("Minneapolis St Paul Intl", 1_017),
    "SEA": ("Seattle Tacoma Intl", 2_412),
    "SJU": (None, 1_599),
    "HNL": ("Honolulu Intl", 4_972),
}

_MODELS = [
    ("AIRBUS", "A320-232", 200),
    ("AIRBUS INDUSTRIE", "A321-211", 199),
    ("BOEING", "737-824", 149),
    ("BOEING", "757-222", 178),
    ("BOMBARDIER INC", "CL-600-2D24", 95),
    ("EMBRAER", "EMB-145LR", 55),
    ("EMBRAER", "ERJ 190-100 IGW", 20),
]

_PLANES_PER_CARRIER = 400
_FLIGHTS_PER_CARRIER = 380


def draw(rows: int, seed: int) -> pa.Table:
    """Draw that many departures of 2013, in the order of their days."""
    rng = np.random.default_rng(seed)
    departures = np.array([count for _, count in _CARRIERS.values()], dtype=np.float64)
    carrier = rng.choice(len(_CARRIERS), size=rows, p=departures / departures.sum())
    # A flight number of a carrier always goes the same way: draw from a timetable.
    slot = carrier * _FLIGHTS_PER_CARRIER + rng.integers(_FLIGHTS_PER_CARRIER, size=rows)
    slots = len(_CARRIERS) * _FLIGHTS_PER_CARRIER
    flight = rng.integers(1, 5_000, size=slots)[slot]
    origin = rng.integers(3, size=slots)[slot]
    dest = ((rng.geometric(0.09, size=slots) - 1) % len(_AIRPORTS))[slot]
    minute_of_day = rng.integers(5 * 12, 23 * 12, size=slots)[slot] * 5
    day = np.sort(rng.integers(365, size=rows))
    plane = carrier * _PLANES_PER_CARRIER + rng.integers(_PLANES_PER_CARRIER, size=rows)
    planes = len(_CARRIERS) * _PLANES_PER_CARRIER
    model = rng.integers(len(_MODELS), size=planes)[plane]

    cancelled = rng.random(rows) < 0.0245
    diverted = cancelled | (rng.random(rows) < 0.0036)
    no_tailnum = cancelled & (rng.random(rows) < 0.3)
    no_plane = no_tailnum | (plane % 7 == 0)
    no_weather = rng.random(rows) < 0.005
    late = np.where(rng.random(rows) < 0.3, rng.exponential(42, size=rows), 0)
    dep_delay = np.rint(rng.normal(-3, 3, size=rows) + late).astype(np.int64)
    miles = np.array([miles for _, miles in _AIRPORTS.values()])[dest]
    air_time = np.rint(miles / 7.5 + 18 + rng.normal(0, 6, size=rows)).astype(np.int64)
    season = np.cos((day - 200) * 2 * np.pi / 365)

    columns = {
        "carrier": _named(list(_CARRIERS), carrier),
        "airline": _named([name for name, _ in _CARRIERS.values()], carrier),
        "flight": pa.array(flight),
        "tailnum": _named([f"N{10_000 + 13 * i}" for i in range(planes)], plane, no_tailnum),
        "origin": _named(["EWR", "JFK", "LGA"], origin),
        "dest": _named(list(_AIRPORTS), dest),
        "dest_name": _named([name for name, _ in _AIRPORTS.values()], dest),
        "distance": pa.array(miles),
        "scheduled": pa.array(_new_york_to_utc(day, minute_of_day)),
        "cancelled": pa.array(cancelled),
        "dep_delay": pa.array(dep_delay, mask=cancelled),
        "arr_delay": pa.array(dep_delay + rng.integers(-25, 16, size=rows), mask=diverted),
        "air_time": pa.array(air_time, mask=diverted),
        "temp": pa.array(np.round(55 + 24 * season + rng.normal(0, 8, rows), 2), mask=no_weather),
        "wind_speed": pa.array(np.round(rng.gamma(3.5, 3.1, rows), 2), mask=no_weather),
        "precip": pa.array(
            np.round(np.maximum(rng.normal(-0.3, 0.2, rows), 0), 2), mask=no_weather
        ),
        "visib": pa.array(np.round(10 - np.minimum(rng.exponential(0.7, rows), 9.9), 2)),
        "maker": _named([maker for maker, _, _ in _MODELS], model, no_plane),
        "model": _named([name for _, name, _ in _MODELS], model, no_plane),
        "seats": pa.array(np.array([seats for _, _, seats in _MODELS])[model], mask=no_plane),
    }
    return pa.table(columns)


def _named(
    names: Sequence[str | None], index: NDArray[np.int64], missing: NDArray[np.bool_] | None = None
) -> pa.Array:
    return pa.array(names, type=pa.string()).take(pa.array(index, mask=missing))


def _new_york_to_utc(
    day: NDArray[np.int64], minute_of_day: NDArray[np.int64]
) -> NDArray[np.datetime64]:
    """Summer time was from 10 March to 3 November (days 68 to 306), and nobody flies at 2 a.m."""
    hours_behind = np.where((day >= 68) & (day < 306), 4, 5)
    minutes = day * 1440 + minute_of_day + hours_behind * 60
    new_year = np.datetime64("2013-01-01", "us")
    utc: NDArray[np.datetime64] = new_year + minutes * np.timedelta64(60_000_000, "us")
    return utc
