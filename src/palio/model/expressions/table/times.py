"""The table, part five: times. A date is its first instant; the zone is UTC."""

from __future__ import annotations

from palio.model.expressions import calendar_functions as calendar
from palio.model.expressions import time_functions as times
from palio.model.expressions.casts import CASTS
from palio.model.expressions.table.entry import Function, lines

_AT = "TIMESTAMP '2024-02-29 13:05:06.5'"
_PARTS = (
    ("year", "", "of the year"),
    ("quarter", "", "1 to 4"),
    ("month", "", "1 to 12"),
    ("day", "dayofmonth", "1 to 31"),
    ("hour", "", "0 to 23"),
    ("minute", "", "0 to 59"),
    ("second", "", "0 to 59, without the fraction"),
    ("dayofweek", "", "1 is a Sunday"),
    ("weekday", "", "0 is a Monday"),
    ("dayofyear", "", "1 to 366"),
    ("weekofyear", "", "by ISO 8601"),
)
TIMES = lines(
    *[
        Function(name, getattr(times, name), "time", meaning, f"{name}({_AT})", words=words)
        for name, words, meaning in _PARTS
    ],
    Function("date_part", calendar.date_part, "field time", "a field; also `extract(field FROM time)`; SECOND has its fraction", f"date_part('SECOND', {_AT})", words="datepart"),
    Function("dayname", calendar.dayname, "time", "Mon to Sun", f"dayname({_AT})"),
    Function("monthname", calendar.monthname, "time", "Jan to Dec", f"monthname({_AT})"),
    Function("to_date", CASTS["DATE"], "time", "the day of a time, or of a string", f"to_date({_AT})", words="date"),
    Function("date_trunc", times.date_trunc, "unit time", "the beginning of the year, quarter, month, week (a Monday), day, hour, minute, second", f"date_trunc('month', {_AT})"),
    Function("trunc", calendar.trunc, "time unit", "the first day of the year, quarter, month or week", f"trunc({_AT}, 'year')"),
    Function("last_day", calendar.last_day, "time", "of the month", f"last_day({_AT})"),
    Function("next_day", calendar.next_day, "time day", "the first such day of the week after a date", f"next_day({_AT}, 'Mon')"),
    Function("make_date", calendar.make_date, "year month day", "a day", "make_date(2024, 2, 29)"),
    Function("date_add", calendar.date_add, "time days", "days later, without the time of day", f"date_add({_AT}, 1)"),
    Function("date_sub", calendar.date_sub, "time days", "days earlier, without the time of day", f"date_sub({_AT}, 1)"),
    Function("add_months", calendar.add_months, "time months", "months later, without the time of day", f"add_months({_AT}, 12)"),
    Function("timestampadd", calendar.timestampadd, "unit count time", "so many units later; also `dateadd(unit, count, time)` and `time + INTERVAL 1 DAY`", f"timestampadd(HOUR, 12, {_AT})", words="dateadd"),
    Function("timestampdiff", calendar.timestampdiff, "unit start end", "whole units between; also `datediff(unit, start, end)` and `end - start < INTERVAL 1 DAY`", f"timestampdiff(MINUTE, TIMESTAMP '2024-02-29 12:00:00', {_AT})"),
    Function("datediff", times.datediff, "end start", "days between, from midnight to midnight", f"datediff({_AT}, DATE '2024-02-01')", words="date_diff"),
    Function("months_between", calendar.months_between, "end start [rounded]", "months, and parts of 31 days, to eight digits", f"months_between({_AT}, DATE '2024-01-29')"),
    Function("unix_timestamp", calendar.unix_timestamp, "time", "seconds since 1970, toward zero", f"unix_timestamp({_AT})", words="to_unix_timestamp"),
    Function("unix_seconds", calendar.unix_seconds, "time", "seconds since 1970", f"unix_seconds({_AT})"),
    Function("unix_millis", calendar.unix_millis, "time", "milliseconds since 1970", f"unix_millis({_AT})"),
    Function("unix_micros", calendar.unix_micros, "time", "microseconds since 1970", f"unix_micros({_AT})"),
    Function("unix_date", calendar.unix_date, "time", "days since 1970", f"unix_date(to_date({_AT}))"),
    Function("timestamp_seconds", calendar.timestamp_seconds, "seconds", "the time so long after 1970", "timestamp_seconds(1709211906.5)"),
    Function("timestamp_millis", calendar.timestamp_millis, "milliseconds", "the time so long after 1970", "timestamp_millis(1709211906500)"),
    Function("timestamp_micros", calendar.timestamp_micros, "microseconds", "the time so long after 1970", "timestamp_micros(1709211906500000)"),
    Function("date_from_unix_date", calendar.date_from_unix_date, "days", "the day so long after 1970", "date_from_unix_date(19782)"),
    Function("from_utc_timestamp", calendar.from_utc_timestamp, "time zone", "what a clock in a zone shows", f"from_utc_timestamp({_AT}, 'Europe/Rome')"),
    Function("to_utc_timestamp", calendar.to_utc_timestamp, "time zone", "the instant at which a clock in a zone shows a time", f"to_utc_timestamp({_AT}, 'Europe/Rome')"),
)  # fmt: skip
