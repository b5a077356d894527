"""CloudEvents in JSON: one event, or a batch of them (json-format.md, 3 and 4).

    {"specversion": "1.0", ..., "data": any JSON | a text}     or     "data_base64": "..."

Data of a JSON content type is kept as it was written, byte by byte. Written, data is `data` where the content type says JSON
and it is, or where it says text and it is UTF-8; else it is `data_base64`.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from palio.errors import InvalidValue
from palio.model.values import shortened
from palio.protocol.cloudevents.event import (
    JSON_TYPE,
    AttributeValue,
    Event,
    declares_json,
    media_type,
)

CONTENT_TYPE = "application/cloudevents+json"
BATCH_TYPE = "application/cloudevents-batch+json"
EVENTS_MAX = 100_000
"""Events of a batch."""
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_elements = msgspec.json.Decoder(list[msgspec.Raw])


class _RequiredMembers(msgspec.Struct):
    """What every event has."""

    specversion: msgspec.Raw
    id: msgspec.Raw
    source: msgspec.Raw
    type: msgspec.Raw


_checked = msgspec.json.Decoder(list[_RequiredMembers])
DATA_CHECKED_MAX = 262_144
"""Bytes of data that are parsed to see whether they are JSON. More stay as they are, and are written as Base64."""


def read_event(text: bytes) -> Event:
    """The event of a JSON object; raises InvalidValue."""
    try:
        members = _members.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidValue(f"the event is no JSON object: {error}") from None
    attributes: dict[str, AttributeValue] = {}
    for name, raw in members.items():
        if (
            name not in ("data", "data_base64")
            and (value := _attribute(name, bytes(raw))) is not None
        ):
            attributes[name] = value
    if "data" in members and "data_base64" in members:
        raise InvalidValue("the event has data and data_base64, and one excludes the other")
    if "data" in members:
        attributes.setdefault("datacontenttype", JSON_TYPE)
        return Event(attributes, _data(bytes(members["data"]), str(attributes["datacontenttype"])))
    if "data_base64" in members:
        return Event(attributes, _from_base64(bytes(members["data_base64"])))
    return Event(attributes)


def batch_elements(text: bytes, most: int = EVENTS_MAX) -> list[bytes]:
    """The elements of a JSON array of events; raises InvalidValue."""
    try:
        _checked.decode(
            text
        )  # ends at the first that is no event: millions of them would take long
        elements = _elements.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidValue(f"the batch is no JSON array of events: {error}") from None
    if len(elements) > most:
        raise InvalidValue(f"the batch has {len(elements):,} events, the limit is {most:,}")
    return list(map(bytes, elements))


def read_batch(text: bytes) -> list[Event]:
    """The events of a JSON array; raises InvalidValue, which counts them from 1."""
    events = []
    for number, element in enumerate(batch_elements(text), 1):
        try:
            events.append(read_event(element))
        except InvalidValue as error:
            raise InvalidValue(f"event {number}: {error.reason}", remedy=error.remedy) from None
    return events


def write_event(event: Event) -> bytes:
    members: dict[str, Any] = dict(event.attributes)
    if event.data is not None:
        name, value = _written(event.data, event.content_type)
        members[name] = value
    return msgspec.json.encode(members)


def write_batch(events: list[Event]) -> bytes:
    return b"[" + b",".join(map(write_event, events)) + b"]"


def _attribute(name: str, raw: bytes) -> AttributeValue | None:
    """None where the attribute is null, and so not there."""
    value: Any = _decoded(name, raw)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value
    raise InvalidValue(
        f"{name} is {shortened(value)}; attributes are strings, integers or booleans"
    )


def _decoded(name: str, raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise InvalidValue(f"{shortened(name)} is no JSON: {error}") from None


def _data(raw: bytes, content_type: str) -> bytes:
    if declares_json(content_type):
        if len(raw) <= DATA_CHECKED_MAX:
            _decoded("data", raw)
        return raw
    text = _decoded("data", raw)
    if not isinstance(text, str):
        raise InvalidValue(f"data is a string where the content type is {shortened(content_type)}")
    return text.encode()


def _from_base64(raw: bytes) -> bytes:
    text = _decoded("data_base64", raw)
    if not isinstance(text, str):
        raise InvalidValue("data_base64 is no string")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidValue(f"data_base64 is no Base64: {error}") from None


def _written(data: bytes, content_type: str | None) -> tuple[str, Any]:
    if declares_json(content_type) and len(data) <= DATA_CHECKED_MAX:
        try:
            msgspec.json.decode(data)
            return "data", msgspec.Raw(data)
        except (msgspec.DecodeError, RecursionError, ValueError):
            pass  # it only says so
    elif content_type is not None and _is_textual(content_type):
        try:
            return "data", data.decode()
        except UnicodeDecodeError:
            pass
    return "data_base64", base64.b64encode(data).decode()


def _is_textual(content_type: str) -> bool:
    """A text in UTF-8, as far as the content type says."""
    kind, _, parameters = content_type.lower().partition(";")
    charset = parameters.partition("charset=")[2].partition(";")[0].strip().strip('"')
    if charset and charset not in ("utf-8", "utf8", "us-ascii"):
        return False
    found = media_type(kind)
    return found.startswith("text/") or found.endswith(("/xml", "+xml"))
