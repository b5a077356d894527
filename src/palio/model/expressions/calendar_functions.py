"""Moving instants, measuring between them, and other clocks: as Spark SQL in a session of UTC.

Months keep the day of the month where there is one, else the last day is taken.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from palio.errors import InvalidValue
from palio.model.expressions.decimals import EXACT, Exact
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.number_functions import Computed, fitting, number, whole
from palio.model.expressions.text_functions import text
from palio.model.expressions.time_functions import date_trunc, instant, to_date
from palio.model.time_zones import instant_of, parse_instant_in, shown_at, zone_of
from palio.model.values import instant_from_micros, instant_micros, shortened

SECOND = 1_000_000
DAY = 86_400 * SECOND
MICROSECONDS = {
    "MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": SECOND, "MINUTE": 60 * SECOND,
    "HOUR": 3_600 * SECOND, "DAY": DAY, "WEEK": 7 * DAY,
}  # fmt: skip
MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
UNITS = (*MICROSECONDS, *MONTHS)


def at_micros(micros: int) -> datetime:
    try:
        return instant_from_micros(micros)
    except (InvalidValue, OverflowError):
        raise ExpressionError("the time lies outside the years 1 to 9999") from None


def plus_months(value: datetime, months: int) -> datetime:
    year, month = divmod(12 * value.year + value.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise ExpressionError("the time lies outside the years 1 to 9999")
    last = monthrange(year, month + 1)[1]
    return value.replace(year=year, month=month + 1, day=min(value.day, last))


def unit_of(unit: Computed) -> str:
    found = text(unit).upper()
    found = _UNIT_NAMES.get(found, found)
    if found not in UNITS:
        raise ExpressionError(f"no unit {shortened(unit)}; there are {', '.join(UNITS)}")
    return found


_UNIT_NAMES = {"DAYOFYEAR": "DAY"}


def timestampadd(unit: Computed, count: Computed, value: Computed) -> datetime:
    found, by, times = instant(value), unit_of(unit), whole(count)
    if by in MONTHS:
        return plus_months(found, MONTHS[by] * times)
    return at_micros(instant_micros(found) + MICROSECONDS[by] * times)


def timestampdiff(unit: Computed, start: Computed, end: Computed) -> int:
    """Whole units, toward zero."""
    by, begin, finish = unit_of(unit), instant(start), instant(end)
    if by in MICROSECONDS:
        return _toward_zero(instant_micros(finish) - instant_micros(begin), MICROSECONDS[by])
    months = 12 * (finish.year - begin.year) + finish.month - begin.month
    left = _within_month(finish) - _within_month(begin)
    if months > 0 and left < timedelta(0):
        months -= 1
    elif months < 0 and left > timedelta(0):
        months += 1
    return _toward_zero(months, MONTHS[by])


def _within_month(value: datetime) -> timedelta:
    return value - datetime(value.year, value.month, 1, tzinfo=UTC)


def _toward_zero(a: int, b: int) -> int:
    return a // b if a >= 0 else -(-a // b)


def date_add(value: Computed, days: Computed) -> datetime:
    return at_micros(instant_micros(to_date(value)) + DAY * whole(days))


def date_sub(value: Computed, days: Computed) -> datetime:
    return at_micros(instant_micros(to_date(value)) - DAY * whole(days))


def add_months(value: Computed, months: Computed) -> datetime:
    return plus_months(to_date(value), whole(months))


def months_between(end: Computed, start: Computed, is_rounded: Computed = True) -> float:
    """Whole where both are the same day of a month or the last; else in parts of 31 days."""
    a, b = instant(end), instant(start)
    months = float(12 * (a.year - b.year) + a.month - b.month)
    if a.day == b.day or (_is_last(a) and _is_last(b)):
        return months
    seconds = 86_400 * (a.day - b.day) + _second_of_day(a) - _second_of_day(b)
    found = months + seconds / 2_678_400.0
    return _java_round(found * 1e8) / 1e8 if is_rounded else found


def _is_last(value: datetime) -> bool:
    return value.day == monthrange(value.year, value.month)[1]


def _second_of_day(value: datetime) -> int:
    return 3600 * value.hour + 60 * value.minute + value.second


def _java_round(value: float) -> int:
    return int((Decimal(value) + Decimal("0.5")).to_integral_value("ROUND_FLOOR"))


def last_day(value: Computed) -> datetime:
    """Of the month."""
    found = to_date(value)
    return found.replace(day=monthrange(found.year, found.month)[1])


def next_day(value: Computed, day: Computed) -> datetime:
    """The first such day of the week after a date."""
    found, name = to_date(value), text(day).strip().upper()
    wanted = [at for at, full in enumerate(_DAYS) if name in (full, full[:3], full[:2])]
    if not wanted:
        raise ExpressionError(f"no day of the week {shortened(day)}")
    return date_add(found, (wanted[0] - found.weekday() - 1) % 7 + 1)


_DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def dayname(value: Computed) -> str:
    return _DAYS[instant(value).weekday()][:3].title()


def monthname(value: Computed) -> str:
    return _MONTHS[instant(value).month - 1]


def trunc(value: Computed, unit: Computed) -> datetime | None:
    """The first day of the year, quarter, month or week; NULL for other units."""
    wanted = text(unit).upper()
    if wanted not in ("YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MON", "MM", "WEEK"):
        return None
    return date_trunc(wanted, to_date(value))


def make_date(year: Computed, month: Computed, day: Computed) -> datetime:
    try:
        return datetime(whole(year), whole(month), whole(day), tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ExpressionError(f"no date {year}-{month}-{day}") from None


# ---- parts

_FIELDS: dict[str, Callable[[datetime], Computed]] = {
    "YEAROFWEEK": lambda value: value.isocalendar().year,
    "DOW_ISO": lambda value: value.isoweekday(),
    "SECOND": lambda value: Exact(
        Decimal(SECOND * value.second + value.microsecond).scaleb(-6), 8, 6
    ),
}
FIELD_FUNCTIONS = {
    "YEAR": "year", "QUARTER": "quarter", "MONTH": "month", "WEEK": "weekofyear", "DAY": "day",
    "DAYOFWEEK": "dayofweek", "DOY": "dayofyear", "HOUR": "hour", "MINUTE": "minute",
}  # fmt: skip
"""Fields that are functions themselves."""
_FIELD_NAMES = {
    name: field
    for field, names in {
        "YEAR": "Y YEARS YR YRS", "QUARTER": "QTR", "MONTH": "MON MONS MONTHS", "WEEK": "W WEEKS",
        "DAY": "D DAYS", "DAYOFWEEK": "DOW", "DOW_ISO": "DAYOFWEEK_ISO", "DOY": "DAYOFYEAR",
        "HOUR": "H HOURS HR HRS", "MINUTE": "M MIN MINS MINUTES", "SECOND": "S SEC SECONDS SECS",
    }.items()
    for name in names.split()
}  # fmt: skip


def field_name(field: Computed) -> str:
    found = text(field).upper()
    found = _FIELD_NAMES.get(found, found)
    if found not in _FIELDS and found not in FIELD_FUNCTIONS:
        known = ", ".join([*FIELD_FUNCTIONS, *_FIELDS])
        raise ExpressionError(f"a time has no {shortened(field)}; it has {known}")
    return found


def date_part(field: Computed, value: Computed) -> Computed:
    """What has no function of its own: YEAROFWEEK, DOW_ISO, and SECOND with its fraction."""
    name = field_name(field)
    if name not in _FIELDS:
        raise ExpressionError(f"{name} has a function of its own")
    return _FIELDS[name](instant(value))


# ---- seconds since 1970


def unix_seconds(value: Computed) -> int:
    return instant_micros(instant(value)) // SECOND


def unix_timestamp(value: Computed) -> int:
    """Toward zero."""
    return _toward_zero(instant_micros(instant(value)), SECOND)


def unix_millis(value: Computed) -> int:
    return instant_micros(instant(value)) // 1000


def unix_micros(value: Computed) -> int:
    return instant_micros(instant(value))


def unix_date(value: Computed) -> int:
    """In days."""
    return instant_micros(instant(value)) // DAY


def date_from_unix_date(days: Computed) -> datetime:
    return at_micros(DAY * whole(days))


def timestamp_seconds(value: Computed) -> datetime | None:
    found = number(value)
    if isinstance(found, Exact):
        return at_micros(fitting(int(found.value.scaleb(6, EXACT))))
    if isinstance(found, float) and not abs(found) < float("inf"):
        return None
    if abs(found) > _SECONDS_MAX:
        raise ExpressionError("the time lies outside the years 1 to 9999")
    return at_micros(int(found * SECOND))


_SECONDS_MAX = 10**12
"""Of any instant, and less than what is infinite in microseconds."""


def timestamp_millis(value: Computed) -> datetime:
    return at_micros(1000 * whole(value))


def timestamp_micros(value: Computed) -> datetime:
    return at_micros(whole(value))


# ---- other clocks


def check_zone(name: str) -> None:
    """A region such as Europe/Rome, or an offset such as +02:00."""
    try:
        zone_of(name)
    except InvalidValue:
        raise ExpressionError(f"no time zone {name[:40]!r}; write Europe/Rome or +02:00") from None


def from_utc_timestamp(value: Computed, zone: Computed) -> Computed:
    """What a clock there shows, as an instant of UTC; what is no time stays as it is."""
    return _moved(shown_at, value, zone)


def to_utc_timestamp(value: Computed, zone: Computed) -> Computed:
    """The instant at which a clock there shows a time; a text without an offset is read there."""
    if not isinstance(value, str):
        return _moved(instant_of, value, zone)
    check_zone(text(zone))
    try:
        return parse_instant_in(value, text(zone))
    except InvalidValue as error:
        raise ExpressionError(error.detail) from None


def _moved(move: Callable[[datetime, str], datetime], value: Computed, zone: Computed) -> Computed:
    check_zone(text(zone))
    if not isinstance(value, datetime):
        return value
    try:
        return move(value, text(zone))
    except OverflowError:
        raise ExpressionError("the time lies outside the years 1 to 9999") from None
