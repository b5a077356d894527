"""CAST between the types of values, with the meaning of Spark SQL's ANSI mode in a session of UTC.

A text that does not say a value of the type is an error, and so is a number out of its range.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal

from palio.errors import InvalidValue
from palio.model.expressions.decimals import EXACT, Exact
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.number_functions import Computed, Plain
from palio.model.expressions.time_functions import to_date
from palio.model.literals import read_double
from palio.model.time_zones import parse_instant_in
from palio.model.values import instant_from_micros, instant_micros, shortened

_INTEGER = re.compile(r"[\s\x00-\x1f]*([+-]?[0-9]+)[\s\x00-\x1f]*", re.ASCII)
_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
_SECOND = 1_000_000


def _no(value: Plain, wanted: str) -> ExpressionError:
    return ExpressionError(f"{shortened(value)} cannot be cast to {wanted}")


def to_string(value: Plain) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, Exact):
        return f"{value.value:f}"
    if isinstance(value, datetime):
        shown = value.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0")
        return f"{shown}.{value.microsecond:06d}".rstrip("0") if value.microsecond else shown
    return java_double(value)


def java_double(value: float) -> str:
    """As Java prints a double: 1.0E10, 1.0E-5, 123.0."""
    if value != value:
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value) if "e" not in repr(value) else f"{Decimal(repr(value)):f}"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    power = len(digits) - 1 + int(exponent)
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{digits[0]}.{rest}E{power}"


def to_integer(value: Plain, bits: int = 64) -> int:
    limit = 1 << (bits - 1)
    if isinstance(value, str):
        found = _INTEGER.fullmatch(value)
        if not found or len(found[1]) > 40:
            raise _no(value, "an integer")
        whole = int(found[1])
    elif isinstance(value, datetime):
        whole = instant_micros(value) // _SECOND
    elif isinstance(value, Exact):
        whole = int(value.value)
    elif isinstance(value, float) and not math.isfinite(value):
        raise _no(value, "an integer")
    else:
        whole = int(value)
    if not -limit <= whole < limit:
        raise ExpressionError(f"the integer {whole} does not fit in {bits} bits")
    return whole


def to_double(value: Plain) -> float:
    if isinstance(value, str):
        try:
            return read_double(value)
        except InvalidValue:
            raise _no(value, "a double") from None
    if isinstance(value, datetime):
        return instant_micros(value) / _SECOND
    return float(value)


def to_float(value: Plain) -> float:
    """A double that has been through 32 bits."""
    wide = to_double(value)
    try:
        (narrow,) = struct.unpack("f", struct.pack("f", wide))
    except OverflowError:
        return math.copysign(math.inf, wide)
    return float(narrow)


def to_boolean(value: Plain) -> bool:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        raise _no(value, "a boolean")
    if isinstance(value, datetime):
        raise _no(value, "a boolean")
    return float(value) != 0


def to_time(value: Plain) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        if isinstance(value, str):
            return parse_instant_in(value, None)
        if isinstance(value, bool):
            raise _no(value, "a time")
        if isinstance(value, Exact):
            return instant_from_micros(int(EXACT.multiply(value.value, Decimal(_SECOND))))
        if isinstance(value, float) and not math.isfinite(value):
            raise _no(value, "a time")
        return instant_from_micros(int(value * _SECOND))
    except (InvalidValue, OverflowError):
        raise _no(value, "a time") from None


def cast_to_date(value: Plain) -> datetime:
    if isinstance(value, str | datetime):
        return to_date(to_time(value))
    raise _no(value, "a date")


def _of_plain(convert: Callable[[Plain], Plain]) -> Callable[[Computed], Plain]:
    def cast(value: Computed) -> Plain:
        if isinstance(value, tuple | dict | bytes):
            raise ExpressionError("an array or an object cannot be cast")
        return convert(value)

    return cast


_CONVERSIONS: dict[str, Callable[[Plain], Plain]] = {
    "STRING": to_string,
    "BIGINT": to_integer,
    "INT": lambda value: to_integer(value, 32),
    "SMALLINT": lambda value: to_integer(value, 16),
    "TINYINT": lambda value: to_integer(value, 8),
    "DOUBLE": to_double,
    "FLOAT": to_float,
    "BOOLEAN": to_boolean,
    "TIMESTAMP": to_time,
    "DATE": cast_to_date,
}

CASTS = {name: _of_plain(convert) for name, convert in _CONVERSIONS.items()}
