"""Functions of instants, with the meaning that Spark SQL gives them in a session of UTC.

A date is its first instant, as everywhere in Palio.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.number_functions import Computed
from palio.model.expressions.text_functions import text
from palio.model.values import shortened


def instant(value: Computed) -> datetime:
    """The argument of a function that takes a time; nothing is cast."""
    if isinstance(value, datetime):
        return value
    raise ExpressionError(f"a time is needed, not {shortened(value)}")


def year(value: Computed) -> int:
    return instant(value).year


def quarter(value: Computed) -> int:
    return (instant(value).month + 2) // 3


def month(value: Computed) -> int:
    return instant(value).month


def day(value: Computed) -> int:
    return instant(value).day


def hour(value: Computed) -> int:
    return instant(value).hour


def minute(value: Computed) -> int:
    return instant(value).minute


def second(value: Computed) -> int:
    return instant(value).second


def dayofweek(value: Computed) -> int:
    """1 is a Sunday."""
    return instant(value).isoweekday() % 7 + 1


def weekday(value: Computed) -> int:
    """0 is a Monday."""
    return instant(value).weekday()


def dayofyear(value: Computed) -> int:
    return instant(value).timetuple().tm_yday


def weekofyear(value: Computed) -> int:
    """By ISO 8601."""
    return instant(value).isocalendar().week


def to_date(value: Computed) -> datetime:
    found = instant(value)
    return datetime(found.year, found.month, found.day, tzinfo=UTC)


def datediff(end: Computed, start: Computed) -> int:
    """In days, from midnight to midnight."""
    return (to_date(end) - to_date(start)).days


def date_trunc(unit: Computed, value: Computed) -> datetime:
    """The beginning of the year, month, week (a Monday), day, ..., in which an instant lies."""
    found, wanted = instant(value), text(unit).upper()
    cut = _CUTS.get(wanted)
    if cut is None:
        raise ExpressionError(f"no unit {shortened(unit)}; there are {', '.join(_CUTS)}")
    if cut == "week":
        return to_date(to_date(found) - timedelta(days=found.weekday()))
    if cut == "quarter":
        return datetime(found.year, 3 * ((found.month - 1) // 3) + 1, 1, tzinfo=UTC)
    if cut == "millisecond":
        return found.replace(microsecond=found.microsecond // 1000 * 1000)
    fields = ("month", "day", "hour", "minute", "second", "microsecond")
    cleared = fields[fields.index(cut) + 1 :] if cut != "year" else fields
    return found.replace(**{field: int(field in ("month", "day")) for field in cleared})  # type: ignore[arg-type]


_CUTS = {
    "YEAR": "year", "YYYY": "year", "YY": "year", "QUARTER": "quarter", "MONTH": "month",
    "MM": "month", "MON": "month", "WEEK": "week", "DAY": "day", "DD": "day", "HOUR": "hour",
    "MINUTE": "minute", "SECOND": "second", "MILLISECOND": "millisecond", "MICROSECOND": "microsecond",
}  # fmt: skip
