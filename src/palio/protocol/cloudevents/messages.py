"""Events as messages, and messages as events.

    context attribute `source`           attribute `source`
    `time`                               attribute `time`, an instant; the text as it was is the header `ce.time`
    member `temp` of data, if an object  attribute `data.temp`
    data                                 body; the content type is the header `content_type` too

A message that was an event becomes the same event again. Any other message becomes one with the defaults of its
broker: an id, a source, the type `palio.message`; attributes that CloudEvents can name are extensions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from palio.errors import InvalidValue
from palio.model.expressions.cesql_functions import cesql_string
from palio.model.expressions.errors import ExpressionError
from palio.model.values import INT_MAX, INT_MIN, as_name, parse_instant
from palio.protocol.cloudevents.event import (
    INTEGER_MAX,
    JSON_TYPE,
    REQUIRED,
    SPECVERSION,
    AttributeValue,
    Event,
    check,
    declares_json,
    is_name,
    is_text,
)

CONTENT_TYPE = "content_type"
"""The standard header of messages for the content type of the body."""
TIME = "ce.time"
IS_EMPTY = "ce.empty"
"""There is data, and it has no bytes."""
MEMBERS_MAX = 1000
"""Of data that become attributes; the object of an event with more stays in the body only."""
MEMBERS_BYTES_MAX = 65_536
"""Bytes of data that become attributes; larger data stays in the body only."""
DATA = "data."


class EventMessage(NamedTuple):
    """What is published: attributes are matched, headers and body are carried."""

    attributes: dict[str, Any]
    headers: dict[str, Any]
    body: bytes


@dataclass(frozen=True, slots=True)
class Defaults:
    """What messages that are no events lack. `id` is the broker's name of the message."""

    id: str
    source: str = "/palio"
    type: str = "palio.message"


def message_of(event: Event) -> EventMessage:
    """The message of an event."""
    attributes: dict[str, Any] = dict(event.attributes)
    headers: dict[str, Any] = {}
    if "time" in attributes:
        text = str(attributes["time"])
        instant = _instant(text)
        if instant is not None:
            attributes["time"] = instant
            if cesql_string(instant) != text:
                headers[TIME] = text
    if event.content_type is not None:
        headers[CONTENT_TYPE] = event.content_type
    if event.data == b"":
        headers[IS_EMPTY] = True
    attributes |= _members(event)
    return EventMessage(attributes, headers, event.data or b"")


def event_of(
    attributes: Mapping[str, Any], headers: Mapping[str, Any], body: bytes, defaults: Defaults
) -> Event:
    """The event of any message."""
    context = _context(attributes, headers)
    data: bytes | None = body or (b"" if headers.get(IS_EMPTY) is True else None)
    if _is_valid(context):
        return Event(context, data)
    given = {name: value for name, value in context.items() if name not in _STANDARD}
    given |= {"specversion": SPECVERSION, "source": defaults.source}
    given |= {"id": defaults.id, "type": defaults.type}
    for name in (*REQUIRED[1:], "subject", "time", "dataschema"):
        value = context.get(name)
        if value is not None and _is_valid({**given, name: value}):
            given[name] = value
    content_type = headers.get(CONTENT_TYPE)
    if data is None and attributes:
        return Event({**given, "datacontenttype": JSON_TYPE}, _as_json(attributes))
    if isinstance(content_type, str) and _is_valid({**given, "datacontenttype": content_type}):
        given["datacontenttype"] = content_type
    return Event(given, data)


_STANDARD = frozenset({*REQUIRED, "subject", "time", "dataschema", "datacontenttype"})


def _is_valid(context: Mapping[str, object]) -> bool:
    try:
        check(context)
    except InvalidValue:
        return False
    return True


def _context(
    attributes: Mapping[str, Any], headers: Mapping[str, Any]
) -> dict[str, AttributeValue]:
    """The attributes that CloudEvents can name, as values that they can hold."""
    found: dict[str, AttributeValue] = {}
    for name, value in attributes.items():
        if is_name(name) and (known := _value(value)) is not None:
            found[name] = known
    text = headers.get(TIME)
    if isinstance(text, str) and isinstance(attributes.get("time"), datetime):
        found["time"] = text
    return found


def _value(value: Any) -> AttributeValue | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and -INTEGER_MAX - 1 <= value <= INTEGER_MAX:
        return int(value)
    try:
        text = cesql_string(value)
    except (ExpressionError, TypeError, AttributeError):
        return None
    return text if is_text(text) else None


_FRACTION = re.compile(r"(\.\d{1,6})\d*", re.ASCII)


def _instant(text: str) -> datetime | None:
    """None for a time that instants cannot hold: a leap second, a year 0. Nanoseconds are cut off."""
    try:
        return parse_instant(_FRACTION.sub(r"\1", text.upper()))
    except InvalidValue:
        return None


def _members(event: Event) -> dict[str, Any]:
    """The members of data that is a JSON object, as attributes; null and what no attribute holds are left out."""
    if event.data is None or len(event.data) > MEMBERS_BYTES_MAX:
        return {}
    if not declares_json(event.content_type):
        return {}
    if not event.data.lstrip(b" \t\r\n").startswith(b"{"):
        return {}
    try:
        found = msgspec.json.decode(event.data)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return {}
    if len(found) > MEMBERS_MAX:
        return {}
    made: dict[str, Any] = {}
    for name, value in found.items():
        if value is not None and _is_attribute_name(name) and _fits(value):
            made[DATA + name] = value
    return made


def _is_attribute_name(name: str) -> bool:
    try:
        as_name(DATA + name)
    except InvalidValue:
        return False
    return bool(name)


NESTING_MAX = 30
"""Arrays and objects around each other, in a member that becomes attributes."""


def _fits(value: Any, nesting: int = 0) -> bool:
    """Values that attributes hold."""
    if isinstance(value, dict):
        parts, names = list(value.values()), list(value)
    elif isinstance(value, list):
        parts, names = value, []
    else:
        return not isinstance(value, int) or INT_MIN <= value <= INT_MAX
    if nesting > NESTING_MAX or not all(map(_is_attribute_name, names)):
        return False
    return all(_fits(one, nesting + 1) for one in parts)


def _as_json(attributes: Mapping[str, Any]) -> bytes:
    shown = {
        name: cesql_string(v) if isinstance(v, datetime) else v for name, v in attributes.items()
    }
    try:
        return msgspec.json.encode(shown, enc_hook=str)
    except (TypeError, ValueError):
        return b"{}"
