"""Events of the CloudEvents SDK for Python are read, and it reads ours."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given

from palio.model.values import parse_instant
from palio.protocol.cloudevents import http_binding, json_format
from palio.protocol.cloudevents.event import Event, declares_json
from palio.protocol.cloudevents.http_binding import canonical
from tests.protocol.cloudevents.drawing import events

http: Any = pytest.importorskip("cloudevents.core.bindings.http", reason="no cloudevents 2")
json: Any = pytest.importorskip("cloudevents.core.formats.json", reason="no cloudevents 2")
sdk: Any = pytest.importorskip("cloudevents.core.v1.event", reason="no cloudevents 2")


def with_time(event: Event) -> Event:
    """The SDK adds a time where there is none, and reads no leap seconds and nanoseconds."""
    time = str(event.attributes.get("time", "2024-03-01T10:00:00Z"))
    if ":60Z" in time or "789" in time or "t" in time or time < "1000":
        time = "2018-04-26T14:48:09+02:00"
    return Event({**event.attributes, "time": time}, event.data)


def plain(attributes: Any, *, are_strings: bool) -> dict[str, Any]:
    """With times as instants."""
    found = {
        name: canonical(one) if are_strings else one
        for name, one in attributes.items()
        if name != "time"
    }
    time = attributes["time"]
    return {**found, "time": time if isinstance(time, datetime) else parse_instant(time)}


def as_bytes(data: Any, content_type: str | None) -> Any:
    """Data of the SDK is parsed where it is JSON."""
    if data is None or isinstance(data, bytes):
        return data
    if declares_json(content_type):
        return msgspec.json.decode(msgspec.json.encode(data))
    return data.encode()


def ours(event: Event) -> Any:
    name, _ = (
        json_format._written(event.data, event.content_type) if event.data is not None else ("", 0)
    )
    is_json = name == "data" and declares_json(event.content_type)
    return msgspec.json.decode(event.data) if is_json and event.data is not None else event.data


@given(events())
def test_the_sdk_reads_our_json(event: Event) -> None:
    event = with_time(event)
    found = json.JSONFormat().read(None, json_format.write_event(event))
    assert plain(found.get_attributes(), are_strings=False) == plain(
        event.attributes, are_strings=False
    )
    assert as_bytes(found.get_data(), event.content_type) == ours(event)


@given(events())
def test_the_sdk_reads_our_http(event: Event) -> None:
    event = with_time(event)
    headers, body = http_binding.write_binary(event)
    message = http.HTTPMessage(dict(headers), body)
    assume(not declares_json(event.content_type))
    found = http.from_binary_event(message)
    assert plain(found.get_attributes(), are_strings=True) == plain(
        event.attributes, are_strings=True
    )


@given(events())
def test_we_read_the_json_and_http_of_the_sdk(event: Event) -> None:
    event = with_time(event)
    attributes = {**event.attributes, "time": parse_instant(str(event.attributes["time"]))}
    made = sdk.CloudEvent(attributes, event.data)
    found = json_format.read_event(http.to_structured_event(made).body)
    assert plain(found.attributes, are_strings=False) == plain(event.attributes, are_strings=False)
    assert found.data == event.data
    assume(not any(isinstance(one, bool) for one in event.attributes.values()))  # it writes False
    message = http.to_binary_event(made)
    (found,) = http_binding.read_http(message.headers.items(), message.body)
    assert plain(found.attributes, are_strings=True) == plain(event.attributes, are_strings=True)
    assert (found.data or None) == (event.data or None)
