"""Values in query documents: those of JSON, of Python, and of MongoDB's extended JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from palio.errors import InvalidValue
from palio.model.dialects.documents import RefusedRule
from palio.model.values import parse_instant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class MongoRegex:
    """A regular expression and its options, a string of i, m and s."""

    pattern: str
    options: str = ""

    def __post_init__(self) -> None:
        if strange := set(self.options) - set("imsu"):
            raise RefusedRule(
                f"the option {min(strange)} of $regex is not supported; i, m and s are"
            )


def value_of(raw: Any) -> Any:
    """A value of an operand: a plain one, a list, a MongoRegex, or a document as it is."""
    if isinstance(raw, dict):
        return _extended(raw)
    if isinstance(raw, list | tuple):
        return [value_of(one) for one in raw]
    if isinstance(raw, re.Pattern):
        return _of_pattern(raw)
    if isinstance(raw, Decimal):
        return int(raw) if raw == raw.to_integral_value() and abs(raw) < 2**63 else float(raw)
    if isinstance(raw, date) and not isinstance(raw, datetime):
        return datetime(raw.year, raw.month, raw.day, tzinfo=UTC)
    return str(raw) if isinstance(raw, UUID) else raw


def is_value(raw: Any) -> bool:
    """A document that stands for a value: {"$date": "2024-03-01T00:00:00Z"}."""
    return isinstance(raw, dict) and len(raw) == 1 and next(iter(raw)) in _EXTENDED


def _extended(raw: dict[str, Any]) -> Any:
    if "$regex" in raw and raw.keys() <= {"$regex", "$options"}:
        return regex_of(raw["$regex"], raw.get("$options", ""))
    if not is_value(raw):
        return raw
    ((name, inner),) = raw.items()
    try:
        return _EXTENDED[name](inner)
    except (InvalidValue, ArithmeticError, TypeError, ValueError):
        raise RefusedRule(f"this is no {name}") from None


def regex_of(pattern: Any, options: Any) -> MongoRegex:
    found = value_of(pattern)
    if isinstance(found, MongoRegex):
        return MongoRegex(found.pattern, options or found.options)
    if not isinstance(pattern, str) or not isinstance(options, str):
        raise RefusedRule("a regular expression and its options are strings")
    return MongoRegex(pattern, options)


def _of_pattern(pattern: re.Pattern[Any]) -> MongoRegex:
    if not isinstance(pattern.pattern, str):
        raise RefusedRule("a regular expression of bytes finds nothing in a string")
    flags = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
    return MongoRegex(
        pattern.pattern, "".join(name for name, flag in flags.items() if pattern.flags & flag)
    )


def _date(inner: Any) -> datetime:
    if isinstance(inner, str):
        return parse_instant(inner)
    millis: Any = inner.get("$numberLong") if isinstance(inner, dict) else inner
    return _EPOCH + timedelta(milliseconds=int(millis))


def _whole(inner: Any) -> int:
    if not re.fullmatch(r"-?[0-9]{1,19}", str(inner)):
        raise ValueError
    return int(inner)


def _text(inner: Any) -> str:
    if not isinstance(inner, str):
        raise TypeError
    return inner


def _decimal(inner: Any) -> Any:
    return value_of(Decimal(inner))


_EXTENDED: dict[str, Callable[[Any], Any]] = {
    "$date": _date,
    "$numberInt": _whole,
    "$numberLong": _whole,
    "$numberDouble": float,
    "$numberDecimal": _decimal,
    "$oid": _text,
    "$uuid": _text,
}
