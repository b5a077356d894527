"""One CloudEvent: context attributes and data, valid by the specification (CloudEvents 1.0, spec.md).

Attributes are booleans, 32-bit integers and strings; times, URIs and binary values are strings in their canonical form.
Data is bytes, whatever the encoding that it came in, or None where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from palio.errors import InvalidValue
from palio.model.values import shortened

AttributeValue: TypeAlias = bool | int | str

SPECVERSION: Final = "1.0"
REQUIRED: Final = ("specversion", "id", "source", "type")
JSON_TYPE: Final = "application/json"
NAME_MAX: Final = 200
"""Characters of the name of an attribute."""
INTEGER_MAX: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Event:
    """Raises InvalidValue where the attributes are not those of a CloudEvent.

    >>> Event({"specversion": "1.0", "id": "1", "source": "/a", "type": "t"}).attributes["id"]
    '1'
    """

    attributes: Mapping[str, AttributeValue]
    data: bytes | None = None

    def __post_init__(self) -> None:
        check(self.attributes)
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))

    @property
    def content_type(self) -> str | None:
        found = self.attributes.get("datacontenttype")
        return None if found is None else str(found)


def check(attributes: Mapping[str, object]) -> None:
    """Raise InvalidValue, which names the attribute, unless these are the attributes of an event."""
    for name in REQUIRED:
        if name not in attributes:
            raise InvalidValue(f"the event has no {name}, which every CloudEvent has")
    if attributes["specversion"] != SPECVERSION:
        version = shortened(attributes["specversion"])
        raise InvalidValue(f"the event has specversion {version}, and only '1.0' is known")
    for name, value in attributes.items():
        check_name(name)
        _check_value(name, value)
        if name in _CHECKS:
            if not isinstance(value, str):
                raise InvalidValue(f"{name} is a string, not {shortened(value)}")
            _CHECKS[name](name, value)


_NAME = re.compile(r"[a-z0-9]+", re.ASCII)
_REFUSED = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(17))
    + "]"
)
"""Control characters, surrogates and what Unicode calls noncharacters."""


def is_name(name: str) -> bool:
    """May an attribute be called so?"""
    return bool(_NAME.fullmatch(name)) and len(name) <= NAME_MAX and name != "data"


def check_name(name: str) -> None:
    if name == "data":
        raise InvalidValue("no attribute of a CloudEvent is called data")
    if not is_name(name):
        raise InvalidValue(
            f"{shortened(name)} is no name of a CloudEvents attribute",
            remedy="use small letters and digits",
        )


def is_text(value: str) -> bool:
    return not _REFUSED.search(value)


def _check_value(name: str, value: object) -> None:
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        if not -INTEGER_MAX - 1 <= value <= INTEGER_MAX:
            raise InvalidValue(f"{name} is {shortened(value)}, and Integers have 32 bits")
    elif not isinstance(value, str):
        kind = type(value).__name__
        raise InvalidValue(f"{name} is a {kind}, and attributes are strings, integers or booleans")
    elif not is_text(value):
        raise InvalidValue(
            f"{name} has a character that CloudEvents do not allow: {shortened(value)}"
        )


def _not_empty(name: str, value: str) -> None:
    if not value:
        raise InvalidValue(f"{name} is an empty string")


_REFERENCE = re.compile(r"(?:[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=]|%[0-9A-Fa-f]{2}|[^\x00-\x7f])+")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_MEDIA_TYPE = re.compile(
    r" *[!#$%&'*+.^_`|~\w-]+/[!#$%&'*+.^_`|~\w-]+ *(?:;[\x20-\x7e]*)?", re.ASCII
)


def _reference(name: str, value: str) -> None:
    if not _REFERENCE.fullmatch(value):
        raise InvalidValue(f"{name} is no URI-reference: {shortened(value)}")


def _uri(name: str, value: str) -> None:
    if not _ABSOLUTE.match(value) or not _REFERENCE.fullmatch(value):
        raise InvalidValue(f"{name} is no absolute URI: {shortened(value)}")


def _time(name: str, value: str) -> None:
    found = _TIME.fullmatch(value)
    if found is None or not _is_possible(*(int(part) for part in found.groups()[:6])):
        raise InvalidValue(
            f"{name} is no time of RFC 3339: {shortened(value)}",
            remedy="write it as 2024-03-01T10:00:00Z",
        )


_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _is_possible(year: int, month: int, day: int, hour: int, minute: int, second: int) -> bool:
    if not 1 <= month <= 12:
        return False
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = 28 if month == 2 and not is_leap else _DAYS[month - 1]
    return 1 <= day <= days and hour < 24 and minute < 60 and second <= 60


def _media_type(name: str, value: str) -> None:
    if not _MEDIA_TYPE.fullmatch(value):
        raise InvalidValue(f"{name} is no media type: {shortened(value)}")


_CHECKS: Mapping[str, Callable[[str, str], None]] = {
    "specversion": _not_empty,
    "id": _not_empty,
    "source": _reference,
    "type": _not_empty,
    "subject": _not_empty,
    "time": _time,
    "dataschema": _uri,
    "datacontenttype": _media_type,
}


def declares_json(content_type: str | None) -> bool:
    """Is data of this content type JSON? (JSON format, 3.1.1)

    >>> declares_json("application/vnd.a+json; charset=utf-8"), declares_json("text/plain")
    (True, False)
    """
    subtype = media_type(content_type or "").partition("/")[2]
    return subtype == "json" or subtype.endswith("+json")


def media_type(content_type: str) -> str:
    """Without its parameters, in small letters."""
    return content_type.partition(";")[0].strip().lower()
