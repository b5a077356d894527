"""An expression that is written in a time zone, as one that means the same in UTC.

    in America/New_York            what it becomes
    year(ts)                       year(from_utc_timestamp(ts, 'America/New_York'))
    date_trunc('DAY', ts)          to_utc_timestamp(date_trunc('DAY', from_utc_timestamp(ts, ...)), ...)
    CAST(text AS TIMESTAMP)        CAST(to_utc_timestamp(text, 'America/New_York') AS TIMESTAMP)

`from_utc_timestamp` moves an instant such that UTC shows what a clock of the zone shows. So the name of
an attribute says its zone, and means the same anywhere.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache

from palio.model.expressions.tree import Call, Constant, Expression, Lambda
from palio.model.time_zones import zone_of

FROM_UTC, TO_UTC = "from_utc_timestamp", "to_utc_timestamp"
_PARTS = "year quarter month day hour minute second dayofweek weekday dayofyear weekofyear dayname monthname"
SHOWN: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(_PARTS.split(), (0,)),
    "date_part": (1,),
    "datediff": (0, 1),
    "months_between": (0, 1),
    "timestampdiff": (1, 2),
    "unix_date": (0,),
    "cast as STRING": (0,),
}
"""Functions of what a clock shows, and which of their arguments are times."""
BEGINS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(
        (
            "to_date",
            "cast as DATE",
            "trunc",
            "last_day",
            "next_day",
            "date_add",
            "date_sub",
            "add_months",
        ),
        (0,),
    ),
    "date_trunc": (1,),
    "timestampadd": (2,),
    "make_date": (),
    "date_from_unix_date": (),
}
"""Functions that give an instant at which a clock shows what they compute."""
_BELOW_HOURS = frozenset({"MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"})


def in_zone(expression: Expression, zone: str | None) -> Expression:
    """The expression, written in a zone, as it means the same in UTC; None is UTC."""
    if zone is None:
        return expression
    if isinstance(expression, Lambda):
        return Lambda(expression.level, in_zone(expression.body, zone))
    if not isinstance(expression, Call):
        return expression
    call, function = expression, expression.function
    arguments = tuple(in_zone(argument, zone) for argument in expression.arguments)
    places = SHOWN.get(function, BEGINS.get(function))
    if places is not None and (function in SHOWN or not is_same_in_utc(call, zone)):
        shown = (Call(FROM_UTC, (argument, Constant(zone))) for argument in arguments)
        given = [
            moved if place in places else argument
            for place, (argument, moved) in enumerate(zip(arguments, shown, strict=True))
        ]
        found = Call(function, tuple(given))
        return found if function in SHOWN else Call(TO_UTC, (found, Constant(zone)))
    if function == "cast as TIMESTAMP":
        return Call(function, (Call(TO_UTC, (arguments[0], Constant(zone))),))
    return Call(function, arguments)


def is_same_in_utc(call: Call, zone: str | None) -> bool:
    """Does the function of a unit give the same in UTC as in the zone?"""
    if zone is None:
        return True
    if call.function not in ("date_trunc", "timestampadd"):
        return False
    unit = call.arguments[0]
    if not isinstance(unit, Constant) or not isinstance(unit.value, str):
        return False
    name = unit.value.upper()
    if name == "HOUR":
        return call.function == "timestampadd" or _has_whole_hours(zone)
    return name in _BELOW_HOURS


@cache
def _has_whole_hours(zone: str) -> bool:
    found, hour = zone_of(zone), timedelta(hours=1)
    days = [datetime(y, month, 15, tzinfo=UTC) for y in range(1970, 2038) for month in (1, 7)]
    return not any((day.astimezone(found).utcoffset() or hour) % hour for day in days)


def unwrapped(expression: Expression, function: str) -> tuple[Expression, str | None]:
    """What stands in `from_utc_timestamp` or `to_utc_timestamp`, and its zone; None: it is none."""
    if isinstance(expression, Call) and expression.function == function:
        inner, zone = expression.arguments
        if isinstance(zone, Constant) and isinstance(zone.value, str):
            return inner, zone.value
    return expression, None
