"""The casts of CESQL, the expression language of CloudEvents (CESQL 1.0, 3.2 and 3.7), and its `=`.

CESQL has three types: String, Integer (32 bits) and Boolean. An attribute of any other type, and an integer
that does not fit in 32 bits, is a String. What cannot be cast is an error.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TypeAlias

from palio.model.expressions.casts import to_string
from palio.model.expressions.errors import ExpressionError
from palio.model.expressions.number_functions import Computed

CesqlValue: TypeAlias = bool | int | str

INTEGER_MAX = (1 << 31) - 1
_INTEGER = re.compile(r"[+-]?0*([0-9]{1,10})", re.ASCII)


def fits(value: int) -> bool:
    return -INTEGER_MAX - 1 <= value <= INTEGER_MAX


def cesql_value(value: Computed) -> CesqlValue:
    """An attribute as CESQL sees it."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return int(value) if fits(value) else str(int(value))
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, tuple | dict):
        raise ExpressionError("an array or an object is no value of CESQL")
    return to_string(value)


def cesql_int(value: Computed) -> int:
    """A 32-bit integer: of a boolean, or of a text with nothing but digits and a sign."""
    found = cesql_value(value)
    if isinstance(found, str):
        if not _INTEGER.fullmatch(found):
            raise ExpressionError(f"{found[:40]!r} is no integer of CESQL")
        found = int(found)
        if not fits(found):
            raise ExpressionError(f"the integer {found} does not fit in 32 bits")
    return int(found)


def cesql_bool(value: Computed) -> bool:
    """A boolean: of `true` and `false` in any case, and of integers, of which only 0 is false."""
    found = cesql_value(value)
    if isinstance(found, str):
        word = found.lower()
        if word not in ("true", "false"):
            raise ExpressionError(f"{found[:40]!r} is no boolean of CESQL")
        return word == "true"
    return bool(found)


def cesql_string(value: Computed) -> str:
    """A text: `true`, `5`, a time as `2024-03-01T10:00:00Z`."""
    found = cesql_value(value)
    if isinstance(found, bool):
        return "true" if found else "false"
    return str(found)


def cesql_equal(value: Computed, other: Computed) -> bool:
    """Equal, after the first is cast to the type of the second."""
    wanted = cesql_value(other)
    if isinstance(wanted, bool):
        return cesql_bool(value) == wanted
    if isinstance(wanted, int):
        return cesql_int(value) == wanted
    return cesql_string(value) == wanted
