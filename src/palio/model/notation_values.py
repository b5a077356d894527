"""Values in the papers' notation: read from the end of a line, or from a JSON list, and printed.

`READ` has a function for each type, and one for `number`: there the digits decide, so 3 is an int
and 3.0 a float.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, NoReturn

from palio.errors import InvalidValue
from palio.model.values import (
    INT_MAX,
    INT_MIN,
    Type,
    Value,
    format_instant,
    parse_instant,
    shortened,
)

NUMBER = "number"  # in place of a type: an int or a float


class _Digits(str):
    """A number of a JSON list, not read yet."""


def _no_constant(word: str) -> NoReturn:
    raise InvalidValue(f'{word} is not JSON; write "inf" or "-inf" in a list')


JSON = json.JSONDecoder(parse_int=_Digits, parse_float=_Digits, parse_constant=_no_constant)

_INT = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPECIAL = dict.fromkeys(("inf", "Infinity"), math.inf)
_SPECIAL |= dict.fromkeys(("-inf", "-Infinity"), -math.inf)
_SPECIAL |= dict.fromkeys(("nan", "NaN"), math.nan)
_CLOCK = re.compile(r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?")


def _bool(token: str) -> bool:
    if token not in ("true", "false"):
        raise InvalidValue(f"{shortened(token, 40)} is not a bool", remedy="write true or false")
    return token == "true"


def _int(token: str) -> int:
    if not _INT.fullmatch(token):
        raise InvalidValue(f"{shortened(token, 40)} is not an int")
    if len(token) > 4000 or not INT_MIN <= int(token) <= INT_MAX:
        raise InvalidValue(f"the integer {shortened(token, 40)} does not fit in 64 bits")
    return int(token)


def _float(token: str) -> float:
    if token in _SPECIAL:
        return _SPECIAL[token]
    if not _FLOAT.fullmatch(token):
        raise InvalidValue(f"{shortened(token, 40)} is not a float")
    value = float(token)
    if math.isinf(value):
        raise InvalidValue(f"the number {shortened(token, 40)} does not fit in a double")
    return value


def _number(token: str) -> int | float:
    return _int(token) if _INT.fullmatch(token) else _float(token)


def _time(token: str) -> datetime:
    """An instant; a time of day, as in the papers' tables, is of 1970-01-01."""
    return parse_instant(f"1970-01-01 {token}" if _CLOCK.fullmatch(token) else token)


READ: dict[str, Callable[[str], Value]] = {
    Type.BOOL: _bool,
    Type.INT: _int,
    Type.FLOAT: _float,
    NUMBER: _number,
    Type.STRING: str,
    Type.TIME: _time,
}


def read_members(kind: str, token: str) -> list[Value]:
    if token[0] != "[":
        raise InvalidValue('in takes a JSON list, such as ["UA", "AA"]')
    values = [_member(kind, member) for member in JSON.decode(token)]
    if kind is Type.FLOAT and all(type(value) is int for value in values):
        return [float(value) for value in values]  # type: ignore[arg-type]
    return values


def _member(kind: str, member: Any) -> Value:
    """A value of a list. Beside a float an int stays one, so that it stays exact."""
    if type(member) is _Digits:
        if kind in (Type.INT, NUMBER):
            return READ[kind](member)
        if kind is Type.FLOAT:
            short = _INT.fullmatch(member) and len(member) <= 20
            return _int(member) if short and INT_MIN <= int(member) <= INT_MAX else _float(member)
    elif type(member) is str:
        if kind is Type.STRING:
            return member
        if kind is Type.TIME or (kind in (Type.FLOAT, NUMBER) and member in _SPECIAL):
            return READ[kind](member)
    elif type(member) is bool and kind is Type.BOOL:
        return member
    shown = member[:40] if type(member) is _Digits else shortened(member, 40)
    raise InvalidValue(f"the list holds {shown}, which is not of type {kind}")


def value_text(value: Value) -> str:
    if isinstance(value, str):
        bare = value and value.isprintable() and value == value.strip() and value[0] != '"'
        return value if bare else json_text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return format_instant(value)
    return repr(value)


def member_text(value: Value) -> str:
    text = value if isinstance(value, str) else value_text(value)
    quoted = isinstance(value, str | datetime) or text in _SPECIAL
    return json_text(text) if quoted else text


def json_text(text: str) -> str:
    """A JSON string in which nothing is invisible."""
    return json.dumps(text, ensure_ascii=not text.isprintable())
