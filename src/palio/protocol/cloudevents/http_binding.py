"""CloudEvents in HTTP requests and responses: binary, structured and batched mode (http-protocol-binding.md).

binary       ce-id: 1   ce-source: /a   ...   content-type: that of the data        body: the data
structured   content-type: application/cloudevents+json                             body: the event
batched      content-type: application/cloudevents-batch+json                       body: the events
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import TypeAlias
from urllib.parse import unquote_to_bytes

from palio.errors import InvalidValue
from palio.model.values import shortened
from palio.protocol.cloudevents import json_format
from palio.protocol.cloudevents.event import AttributeValue, Event, media_type

HeaderPairs: TypeAlias = list[tuple[str, str]]
_PREFIX = "ce-"


class Mode(StrEnum):
    """How events stand in a request or a response."""

    BINARY = "binary"
    STRUCTURED = "structured"
    BATCHED = "batched"


def mode_of(content_type: str | None) -> Mode:
    """By the content type; raises InvalidValue for an event format that is not JSON."""
    found = media_type(content_type or "")
    if not found.startswith("application/cloudevents"):
        return Mode.BINARY
    known = {json_format.CONTENT_TYPE: Mode.STRUCTURED, json_format.BATCH_TYPE: Mode.BATCHED}
    if found not in known:
        raise InvalidValue(
            f"the event format {shortened(found)} is not known",
            remedy=f"send {json_format.CONTENT_TYPE} or {json_format.BATCH_TYPE}",
        )
    return known[found]


def is_event(headers: Iterable[tuple[str, str]]) -> bool:
    """Does a request hold CloudEvents, as far as its headers tell?"""
    for name, value in headers:
        lower = name.lower()
        if lower == "ce-specversion":
            return True
        if lower == "content-type" and media_type(value).startswith("application/cloudevents"):
            return True
    return False


def read_http(headers: Iterable[tuple[str, str]], body: bytes) -> list[Event]:
    """The events of a request or a response, whatever the mode; raises InvalidValue."""
    pairs = [(name.lower(), value) for name, value in headers]
    content_types = [value for name, value in pairs if name == "content-type"]
    if len(content_types) > 1:
        raise InvalidValue("there is more than one Content-Type")
    content_type = content_types[0] if content_types else None
    mode = mode_of(content_type)
    if mode is Mode.STRUCTURED:
        return [json_format.read_event(body)]
    if mode is Mode.BATCHED:
        return json_format.read_batch(body)
    return [_binary(pairs, content_type, body)]


def _binary(pairs: HeaderPairs, content_type: str | None, body: bytes) -> Event:
    attributes: dict[str, AttributeValue] = {}
    for header, value in pairs:
        if not header.startswith(_PREFIX):
            continue
        name = header.removeprefix(_PREFIX)
        if name == "datacontenttype":
            raise InvalidValue("ce-datacontenttype is not sent: the Content-Type says it")
        if name in attributes:
            raise InvalidValue(f"the header {shortened(header)} is there twice")
        attributes[name] = header_decoded(header, value)
    if content_type is not None:
        attributes["datacontenttype"] = content_type
    return Event(attributes, body or None)


def write_binary(event: Event) -> tuple[HeaderPairs, bytes]:
    """Headers and body of a request in binary mode."""
    headers = [
        (f"{_PREFIX}{name}", header_encoded(canonical(value)))
        for name, value in event.attributes.items()
        if name != "datacontenttype"
    ]
    if event.content_type is not None:
        headers.append(("content-type", event.content_type.strip(" ")))  # blanks are not sent
    return headers, event.data or b""


def write_structured(event: Event) -> tuple[HeaderPairs, bytes]:
    return [("content-type", json_format.CONTENT_TYPE)], json_format.write_event(event)


def write_batched(events: list[Event]) -> tuple[HeaderPairs, bytes]:
    return [("content-type", json_format.BATCH_TYPE)], json_format.write_batch(events)


def canonical(value: AttributeValue) -> str:
    """An attribute as a string (spec.md, type system)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


_TO_ENCODE = re.compile(r"[^\x21\x23\x24\x26-\x7e]")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def header_encoded(value: str) -> str:
    """The value of a header: what is not printable ASCII, blanks, `"` and `%` as percent and two digits.

    >>> header_encoded("Euro \u20ac")
    'Euro%20%E2%82%AC'
    """
    return _TO_ENCODE.sub(lambda char: "".join(f"%{byte:02X}" for byte in char[0].encode()), value)


def header_decoded(name: str, value: str) -> str:
    """What a header says; older senders quote. Raises InvalidValue where it is not UTF-8."""
    plain = _QUOTED.sub(lambda found: _ESCAPE.sub(r"\1", found[1]), value.strip(" \t"))
    try:
        raw = plain.encode("latin-1")  # as HTTP libraries hand it over
        return unquote_to_bytes(raw).decode()
    except (UnicodeEncodeError, UnicodeDecodeError):
        raise InvalidValue(f"the header {shortened(name)} is not percent-encoded UTF-8") from None
