"""Intervals: what is written as one becomes a number of microseconds, or of months.

INTERVAL 1 DAY      INTERVAL '2' HOURS      INTERVAL '1 02:03:04' DAY TO SECOND
INTERVAL 3 MONTHS   INTERVAL '1-6' YEAR TO MONTH       INTERVAL '1 day 2 hours'
"""

from __future__ import annotations

import re
from decimal import Decimal

from palio.model.expressions.calendar_functions import MICROSECONDS, MONTHS
from palio.model.expressions.errors import ExpressionError
from palio.model.values import INT_MAX

TEXT_MAX = 200
_AMOUNT = re.compile(r"\s*([+-]?)\s*([0-9]{1,18})(?:\.([0-9]{1,9}))?\s*")
_PART = re.compile(r"\s*([+-]?[0-9]{1,18}(?:\.[0-9]{1,9})?)\s*([a-zA-Z]+)")
_YEARS = re.compile(r"\s*([+-]?)([0-9]{1,4})-([0-9]{1,2})\s*")
_DAYS = re.compile(
    r"\s*([+-]?)(?:([0-9]{1,9})\s+)?([0-9]{1,9})(?::([0-9]{1,2}))?(?::([0-9]{1,2}))?(?:\.([0-9]{1,9}))?\s*"
)
_DAY_FIELDS = ("DAY", "HOUR", "MINUTE", "SECOND")


def interval(written: str, unit: str) -> tuple[int, bool]:
    """Microseconds, or months (then it is True). `unit` is empty, as `DAY`, or as `DAY TO SECOND`."""
    if len(written) > TEXT_MAX:
        raise ExpressionError(f"an interval has up to {TEXT_MAX} characters")
    first, _, last = unit.upper().partition(" TO ")
    if last:
        found = _span(written, first, last)
    elif first:
        found = _of_unit(written, first)
    else:
        found = _of_parts(written)
    if abs(found[0]) > INT_MAX:
        raise ExpressionError("the interval does not fit in 64 bits")
    return found


def _known(unit: str) -> str:
    name = unit.upper()
    name = name.removesuffix("S") if name not in MICROSECONDS else name
    if name not in MICROSECONDS and name not in MONTHS:
        raise ExpressionError(f"no unit {unit!r} of intervals")
    return name


def _of_unit(written: str, unit: str) -> tuple[int, bool]:
    name, found = _known(unit), _AMOUNT.fullmatch(written)
    if not found or (found[3] and name != "SECOND"):
        raise ExpressionError(f"{written[:40]!r} is no number of {name.lower()}s")
    sign = -1 if found[1] == "-" else 1
    if name in MONTHS:
        return sign * MONTHS[name] * int(found[2]), True
    amount = Decimal(f"{found[2]}.{found[3] or 0}") * MICROSECONDS[name]
    return sign * int(amount), False


def _of_parts(written: str) -> tuple[int, bool]:
    """1 day 2 hours"""
    at, totals = 0, {False: 0, True: 0}
    words = written.strip()
    while at < len(words):
        found = _PART.match(words, at)
        if not found:
            raise ExpressionError(f"{written[:40]!r} is no interval; write INTERVAL 1 DAY")
        amount, is_months = _of_unit(found[1], found[2])
        totals[is_months] += amount
        at = found.end()
    if not words or (totals[True] and totals[False]):
        raise ExpressionError("an interval has months and years, or days and less")
    return (totals[True], True) if totals[True] else (totals[False], False)


def _span(written: str, first: str, last: str) -> tuple[int, bool]:
    if (first, last) == ("YEAR", "MONTH"):
        found = _YEARS.fullmatch(written)
        if not found or int(found[3]) > 11:
            raise ExpressionError(f"{written[:40]!r} is no interval of years and months, as '1-6'")
        months = 12 * int(found[2]) + int(found[3])
        return (-months if found[1] == "-" else months), True
    if first not in _DAY_FIELDS or last not in _DAY_FIELDS:
        raise ExpressionError(f"no interval {first} TO {last}")
    fields = _DAY_FIELDS[_DAY_FIELDS.index(first) : _DAY_FIELDS.index(last) + 1]
    if not fields:
        raise ExpressionError(f"no interval {first} TO {last}")
    return _days(written, fields), False


def _days(written: str, fields: tuple[str, ...]) -> int:
    found = _DAYS.fullmatch(written)
    given = [part for part in found.groups()[1:5] if part is not None] if found else []
    if not found or len(given) != len(fields) or (found[6] and fields[-1] != "SECOND"):
        raise ExpressionError(f"{written[:40]!r} is no interval {fields[0]} TO {fields[-1]}")
    total = sum(int(part) * MICROSECONDS[field] for part, field in zip(given, fields, strict=True))
    total += int((found[6] or "").ljust(6, "0")[:6])
    return -total if found[1] == "-" else total
