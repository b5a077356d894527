"""Values and their types: what an attribute may hold, and how Python's objects become it.

    type     Python   range                                    order
    bool     bool     False, True                              = and != only
    int      int      -2^63 .. 2^63 - 1                        numeric, exact against float
    float    float    IEEE double                              numeric; NaN above all, NaN = NaN
    string   str      any Unicode text without lone surrogates code points (= bytes of UTF-8)
    time     datetime 0001-01-01 .. 9999-12-31, microseconds   the instant, always in UTC

Time zones: an instant needs one. A datetime with a zone is converted to UTC; a naive datetime is
an error, never a guess. A date stands for its first instant in UTC. A decimal is an int where it is
integral and fits, the nearest double otherwise; a UUID is its text. `arrays` has what is no value.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeAlias
from uuid import UUID

from palio.errors import InvalidValue
from palio.model.long_decimals import LongDecimal

Value: TypeAlias = bool | int | float | str | datetime

INT_MIN, INT_MAX = -(2**63), 2**63 - 1


class Type(StrEnum):
    """The type of a value."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    STRING = "string"
    TIME = "time"


NUMBERS = frozenset({Type.INT, Type.FLOAT})

_TYPE_OF: dict[type, Type] = {
    bool: Type.BOOL,
    int: Type.INT,
    float: Type.FLOAT,
    str: Type.STRING,
    datetime: Type.TIME,
    LongDecimal: Type.FLOAT,
}


def type_of(value: Value) -> Type:
    """The type of a value that has been through `as_value`."""
    return _TYPE_OF[type(value)]


def kind_of(content: object) -> Type | None:
    """The type of what an attribute holds; None: it is no value, but an array or bytes."""
    return _TYPE_OF.get(type(content))


def comparable(a: Type, b: Type) -> bool:
    """Values of these types may equal each other: the same type, or both numbers."""
    return a is b or (a in NUMBERS and b in NUMBERS)


def as_value(name: str, value: object) -> Value:
    """Turn a Python object into a value of the attribute `name`, or say why not."""
    convert = _CONVERT.get(type(value))
    if convert is not None:
        return convert(name, value)
    return _from_relative(name, value)


def as_name(name: object) -> str:
    """Check the name of an attribute."""
    if not isinstance(name, str):
        raise InvalidValue(f"an attribute's name is a string, not {name!r}")
    if not name:
        raise InvalidValue("an attribute's name is empty")
    return as_text(name, str(name))


def _from_bool(_name: str, value: Any) -> Value:
    return bool(value)


def _from_int(name: str, value: Any) -> Value:
    if INT_MIN <= value <= INT_MAX:
        return int(value)
    raise InvalidValue(
        f"the integer {shortened(value)} does not fit in 64 bits",
        attribute=name,
        remedy="use a float or a string",
    )


def _from_float(_name: str, value: Any) -> Value:
    return float(value)


def as_text(name: str, value: Any) -> str:
    """Check a string of the attribute `name`."""
    text = str(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidValue(
                f"the string {shortened(text)} holds a lone surrogate, so it is not UTF-8 text",
                attribute=name,
            ) from None
    return text


def _from_datetime(name: str, value: datetime) -> Value:
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidValue(
            f"the datetime {value} has no time zone",
            attribute=name,
            remedy="give it one, for example value.replace(tzinfo=datetime.UTC)",
        )
    if getattr(value, "nanosecond", 0):  # pandas.Timestamp
        raise InvalidValue(
            f"the instant {value} is finer than a microsecond",
            attribute=name,
            remedy="round it first",
        )
    try:
        moved = value.astimezone(UTC)
    except OverflowError:
        raise InvalidValue(
            f"the instant {value} lies outside the years 1 to 9999 of UTC", attribute=name
        ) from None
    return datetime(
        moved.year,
        moved.month,
        moved.day,
        moved.hour,
        moved.minute,
        moved.second,
        moved.microsecond,
        UTC,
    )


def _from_date(_name: str, value: Any) -> Value:
    return datetime(value.year, value.month, value.day, tzinfo=UTC)


_INT_DIGITS = 19
"""More than an integer of 64 bits ever has."""


def _from_decimal(name: str, value: Decimal) -> Value:
    if value.is_finite() and value.adjusted() < _INT_DIGITS and value == value.to_integral_value():
        whole = int(value)
        if INT_MIN <= whole <= INT_MAX:
            return whole
    number = float("nan") if value.is_nan() else float(value)
    if value.is_finite() and number - number != 0.0:
        raise InvalidValue("the decimal does not fit in a double", attribute=name)
    return number


_CONVERT: dict[type, Callable[[str, Any], Value]] = {
    bool: _from_bool,
    int: _from_int,
    float: _from_float,
    str: as_text,
    datetime: _from_datetime,
    date: _from_date,
    Decimal: _from_decimal,
    UUID: as_text,
}


PLAIN = frozenset(_CONVERT)
"""Types whose objects are values, if they are within their range."""


def _from_relative(name: str, value: object) -> Value:
    """Subclasses of the plain types, and numpy's scalars (known by their `dtype`)."""
    for base in (str, bool, int, float, datetime, date, Decimal, UUID):
        if isinstance(value, base):
            return _CONVERT[base](name, value)
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind is not None and getattr(value, "ndim", None) == 0:
        if kind == "M":
            raise InvalidValue(
                "numpy.datetime64 has no time zone",
                attribute=name,
                remedy="use a datetime with one",
            )
        plain = value.item()  # type: ignore[attr-defined]
        if type(plain) in _CONVERT:
            return as_value(name, plain)
    raise InvalidValue(
        f"{shortened(value)} is of type {type(value).__name__}",
        attribute=name,
        remedy="a value is a bool, int, float, str, or a datetime with a time zone",
    )


def shortened(value: object, width: int = 60) -> str:
    """A value as errors show it."""
    if isinstance(value, int) and value.bit_length() > 200:  # printing may be refused: too long
        return f"of {value.bit_length()} bits"
    if isinstance(value, str):
        value = value[:width]
    is_large = isinstance(value, list | tuple | dict | bytes | bytearray)
    text = reprlib.repr(value) if is_large else repr(value)
    return text if len(text) <= width else text[: width - 3] + "..."


_INSTANT = re.compile(
    r"""\s*(\d{4})-(\d{1,2})-(\d{1,2})
        (?:[T\s]\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d*))?)?\s*(Z|z|UTC|[+-]\d{2}:?\d{2})?)?\s*""",
    re.VERBOSE | re.ASCII,
)


def parse_instant(text: str) -> datetime:
    """Read `2013-01-31`, `2013-01-31 10:00:00.25` or `2013-01-31T10:00:00+01:00`.

    Without an offset the text is in UTC.

    >>> parse_instant("2013-01-31 10:00+01:00")
    datetime.datetime(2013, 1, 31, 9, 0, tzinfo=datetime.timezone.utc)
    """
    found = _INSTANT.fullmatch(text)
    if not found:
        raise InvalidValue(
            f"{shortened(text)} is not an instant",
            remedy="write '2013-01-31 10:00:00' (UTC) or '2013-01-31T10:00:00+01:00'",
        )
    year, month, day, hour, minute, second = (int(found[i] or 0) for i in range(1, 7))
    fraction = (found[7] or "").rstrip("0")
    if len(fraction) > 6:
        raise InvalidValue(f"the instant {shortened(text)} is finer than a microsecond")
    try:
        instant = datetime(
            year, month, day, hour, minute, second, int((fraction + "000000")[:6]), UTC
        )
        return instant - _offset(found[8])
    except (ValueError, OverflowError) as error:
        raise InvalidValue(f"{shortened(text)} is not an instant: {error}") from None


def has_offset(text: str) -> bool:
    """Does the text of an instant say its distance from UTC?"""
    found = _INSTANT.fullmatch(text)
    return found is not None and found[8] is not None


def _offset(text: str | None) -> timedelta:
    if text is None or text in ("Z", "z", "UTC"):
        return timedelta(0)
    hours, minutes = int(text[1:3]), int(text[-2:])
    if hours > 18 or minutes > 59:
        raise ValueError(f"no time zone has the offset {text}")
    delta = timedelta(hours=hours, minutes=minutes)
    return -delta if text[0] == "-" else delta


def format_instant(value: datetime) -> str:
    """The ISO 8601 form with a trailing Z.

    >>> format_instant(parse_instant("2013-01-31 10:00:00.5"))
    '2013-01-31T10:00:00.500000Z'
    """
    return value.isoformat().removesuffix("+00:00") + "Z"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def instant_micros(value: datetime) -> int:
    """Microseconds since 1970-01-01T00:00:00Z."""
    return (value - _EPOCH) // _MICROSECOND


def instant_from_micros(micros: int) -> datetime:
    """The instant `micros` microseconds after 1970-01-01T00:00:00Z."""
    return _EPOCH + timedelta(microseconds=micros)


TIME_MIN = instant_micros(datetime(1, 1, 1, tzinfo=UTC))
TIME_MAX = instant_micros(datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC))
