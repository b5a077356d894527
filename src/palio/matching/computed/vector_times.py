"""Functions of instants by columns: integer arithmetic on microseconds since 1970, in UTC.

A year begins in March here, so that the leap day is its last; days are counted from 0000-03-01.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from palio.matching.computed.columns import ValueColumn
from palio.matching.computed.outcomes import REFUSED, Compute, Outcome, Vector, of_ints, of_times
from palio.matching.encode.codes import STRING, TIME
from palio.matching.encode.columns import Ints
from palio.model.expressions import time_functions as times

SECOND = 1_000_000
DAY = 86_400 * SECOND
_EPOCH = 719_468  # days from 0000-03-01 to 1970-01-01
_ERA = 146_097  # days of 400 years


def days_of(micros: Ints) -> Ints:
    """Since 1970. As int32: dividing these is quicker."""
    return (micros // DAY).astype(np.int32)


def dates_of(days: Ints) -> tuple[Ints, Ints, Ints]:
    """Year, month and day."""
    shifted = days + np.int32(_EPOCH)
    era = shifted // np.int32(_ERA)
    of_era = shifted - era * np.int32(_ERA)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153  # from March
    day = of_year - (153 * month + 2) // 5 + 1
    later = month >= 10
    return year + era * 400 + later, month + np.where(later, np.int32(-9), np.int32(3)), day


def days_from(year: Ints, month: Ints, day: Ints) -> Ints:
    """Since 1970: of the first days of months."""
    moved = year - (month <= 2)
    era = moved // 400
    of_era = moved - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days: Ints = era * _ERA + of_era * 365 + of_era // 4 - of_era // 100 + of_year - _EPOCH
    return days


def _field(of_micros: Callable[[Ints], Ints]) -> Vector:
    def computed(arguments: Sequence[ValueColumn]) -> Outcome | None:
        (at,) = arguments
        if at.kind != TIME:
            return REFUSED
        return Outcome(of_ints(of_micros(at.raw).astype(np.int64)))

    return computed


def _of_date(of_days: Callable[[Ints], Ints]) -> Vector:
    return _field(lambda micros: of_days(days_of(micros)))


def _part(unit: int, count: int) -> Vector:
    """How many units, modulo what makes the next larger one."""
    return _field(lambda micros: micros // unit % count)


def _weekday(days: Ints) -> Ints:
    return (days + 3) % 7  # 1970 began on a Thursday


def _day_of_year(days: Ints) -> Ints:
    year, _, _ = dates_of(days)
    return days - days_from(year, np.ones_like(year), np.ones_like(year)) + 1


def _week_of_year(days: Ints) -> Ints:
    return (_day_of_year(days - _weekday(days) + 3) - 1) // 7 + 1  # the week of its Thursday


# ---- truncated


def _first_of(step: int) -> Callable[[Ints], Ints]:
    """The first day of so many months, counted from January."""

    def first(days: Ints) -> Ints:
        year, month, _ = dates_of(days)
        return days_from(year, (month - 1) // step * step + 1, np.ones_like(year))

    return first


def _cut_days(first: Callable[[Ints], Ints]) -> Callable[[Ints], Ints]:
    return lambda micros: first(days_of(micros)).astype(np.int64) * DAY


def _cut(unit: int) -> Callable[[Ints], Ints]:
    return lambda micros: micros // unit * unit


_YEAR, _MONTH, _DAY = _cut_days(_first_of(12)), _cut_days(_first_of(1)), _cut(DAY)
_CUTS: dict[str, Callable[[Ints], Ints]] = {
    "YEAR": _YEAR, "YYYY": _YEAR, "YY": _YEAR, "QUARTER": _cut_days(_first_of(3)),
    "MONTH": _MONTH, "MM": _MONTH, "MON": _MONTH,
    "WEEK": _cut_days(lambda days: days - _weekday(days)), "DAY": _DAY, "DD": _DAY,
    "HOUR": _cut(3600 * SECOND), "MINUTE": _cut(60 * SECOND), "SECOND": _cut(SECOND),
    "MILLISECOND": _cut(1000), "MICROSECOND": _cut(1),
}  # fmt: skip


def _date_trunc(arguments: Sequence[ValueColumn]) -> Outcome | None:
    unit, at = arguments
    if at.kind != TIME or unit.kind != STRING:
        return REFUSED
    if len(unit) > 1:
        return None
    cut = _CUTS.get(unit.values[0].upper())
    return REFUSED if cut is None else Outcome(of_times(cut(at.raw)))


def to_date(arguments: Sequence[ValueColumn]) -> Outcome | None:
    (at,) = arguments
    return Outcome(of_times(_DAY(at.raw))) if at.kind == TIME else REFUSED


def _datediff(arguments: Sequence[ValueColumn]) -> Outcome | None:
    end, start = arguments
    if end.kind != TIME or start.kind != TIME:
        return REFUSED
    return Outcome(of_ints(end.raw // DAY - start.raw // DAY))


TIME_VECTORS: dict[Compute, Vector] = {
    times.year: _of_date(lambda days: dates_of(days)[0]),
    times.quarter: _of_date(lambda days: (dates_of(days)[1] + 2) // 3),
    times.month: _of_date(lambda days: dates_of(days)[1]),
    times.day: _of_date(lambda days: dates_of(days)[2]),
    times.hour: _part(3600 * SECOND, 24),
    times.minute: _part(60 * SECOND, 60),
    times.second: _part(SECOND, 60),
    times.dayofweek: _of_date(lambda days: (days + 4) % 7 + 1),
    times.weekday: _of_date(_weekday),
    times.dayofyear: _of_date(_day_of_year),
    times.weekofyear: _of_date(_week_of_year),
    times.to_date: to_date,
    times.datediff: _datediff,
    times.date_trunc: _date_trunc,
}
