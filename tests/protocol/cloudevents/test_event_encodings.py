"""CloudEvents: every encoding gives the event back, and what breaks the specification is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palio.errors import InvalidValue
from palio.model.message import Message
from palio.protocol.cloudevents import http_binding, json_format, mqtt_binding
from palio.protocol.cloudevents.event import Event
from palio.protocol.cloudevents.http_binding import canonical, header_decoded, header_encoded
from palio.protocol.cloudevents.messages import TIME, Defaults, event_of, message_of
from tests.protocol.cloudevents.drawing import events, json_values, names, texts

BARE: dict[str, Any] = {"specversion": "1.0", "id": "1", "source": "/a", "type": "t"}
DEFAULTS = Defaults("b1:7")


def as_strings(event: Event) -> Event:
    """As an encoding without types gives it back; it cannot tell empty data from none."""
    attributes = {name: canonical(value) for name, value in event.attributes.items()}
    return Event(attributes, event.data or None)


@given(events())
def test_json_gives_the_event_back(event: Event) -> None:
    assert json_format.read_event(json_format.write_event(event)) == event
    assert json_format.read_batch(json_format.write_batch([event, event])) == [event, event]


@given(events())
def test_http_gives_the_event_back(event: Event) -> None:
    headers, body = http_binding.write_binary(event)
    assert all(value.isascii() and value.isprintable() for _, value in headers)
    assert http_binding.read_http(headers, body) == [as_strings(event)]
    assert http_binding.read_http(*http_binding.write_structured(event)) == [event]
    assert http_binding.read_http(*http_binding.write_batched([event])) == [event]
    assert http_binding.is_event(headers)


@given(events())
def test_mqtt_gives_the_event_back(event: Event) -> None:
    assert mqtt_binding.read_mqtt(*mqtt_binding.write_binary(event)) == as_strings(event)
    assert mqtt_binding.read_mqtt(*mqtt_binding.write_structured(event)) == event
    old = mqtt_binding.write_structured(event, has_properties=False)
    assert old.content_type is None
    assert mqtt_binding.read_mqtt(*old) == event


@given(events())
def test_a_message_gives_the_event_back(event: Event) -> None:
    message = message_of(event)
    Message(message.attributes)  # the model takes them
    assert event_of(message.attributes, message.headers, message.body, DEFAULTS) == event


@given(
    st.dictionaries(
        st.one_of(names, texts.filter(bool)),
        st.one_of(
            texts,
            st.integers(-(1 << 63), (1 << 63) - 1),
            st.floats(),
            st.booleans(),
            st.datetimes(timezones=st.just(UTC)),
        ),
        max_size=5,
    ),
    st.binary(max_size=5),
    st.one_of(st.none(), texts),
)
def test_any_message_is_an_event(attributes: Any, body: bytes, content_type: str | None) -> None:
    headers = {} if content_type is None else {"content_type": content_type}
    event = event_of(attributes, headers, body, DEFAULTS)
    assert json_format.read_event(json_format.write_event(event)) == event


@given(json_values)
def test_data_of_any_json_is_a_message(value: Any) -> None:
    event = Event({**BARE, "datacontenttype": "application/json"}, msgspec.json.encode(value))
    Message(message_of(event).attributes)


def test_a_message_has_the_members_of_data() -> None:
    event = Event(
        {
            **BARE,
            "time": "2024-03-01T12:00:00+02:00",
            "datacontenttype": "application/json",
            "n": 5,
        },
        b'{"temp": 21.5, "at": {"room": "a"}, "tags": ["x"], "none": null, "big": 1e30}',
    )
    message = message_of(event)
    assert message.attributes == {
        **BARE,
        "n": 5,
        "time": datetime(2024, 3, 1, 10, tzinfo=UTC),
        "datacontenttype": "application/json",
        "data.temp": 21.5,
        "data.at": {"room": "a"},
        "data.tags": ["x"],
        "data.big": 1e30,
    }
    assert Message(message.attributes)["data.at.room"] == "a"
    assert message.headers == {
        "content_type": "application/json",
        TIME: "2024-03-01T12:00:00+02:00",
    }
    assert message.body == event.data


def test_the_defaults_of_a_message_that_was_no_event() -> None:
    at = datetime(2024, 3, 1, tzinfo=UTC)
    event = event_of(
        {"price": 5, "Dest": "MXP", "x.y": 1, "at": at, "f": 1.5}, {}, b"body", DEFAULTS
    )
    assert event.attributes == {
        "specversion": "1.0",
        "id": "b1:7",
        "source": "/palio",
        "type": "palio.message",
        "price": 5,
        "at": "2024-03-01T00:00:00Z",
        "f": "1.5",
    }
    assert event.data == b"body"
    bodiless = event_of({"price": 5, "Dest": "MXP"}, {}, b"", DEFAULTS)
    assert bodiless.data == b'{"price":5,"Dest":"MXP"}'
    assert bodiless.content_type == "application/json"
    assert event_of({"type": "mine", "id": 7}, {}, b"x", DEFAULTS).attributes["type"] == "mine"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": None}, "the event has no id"),
        ({"specversion": "0.3"}, "only '1.0' is known"),
        ({"id": ""}, "id is an empty string"),
        ({"id": 5}, "id is a string, not 5"),
        ({"source": ""}, "source is no URI-reference"),
        ({"source": "a b"}, "source is no URI-reference"),
        ({"subject": ""}, "subject is an empty string"),
        ({"time": "yesterday"}, "time is no time of RFC 3339"),
        ({"time": "2023-02-29T10:00:00Z"}, "time is no time of RFC 3339"),
        ({"time": "2023-02-28 10:00:00Z"}, "time is no time of RFC 3339"),
        ({"dataschema": "/relative"}, "dataschema is no absolute URI"),
        ({"datacontenttype": "json"}, "datacontenttype is no media type"),
        ({"My_ext": "x"}, "is no name of a CloudEvents attribute"),
        ({"data": "x"}, "no attribute of a CloudEvent is called data"),
        ({"n": 1 << 31}, "Integers have 32 bits"),
        ({"n": 1.5}, "n is a float"),
        ({"n": "a\nb"}, "a character that CloudEvents do not allow"),
        ({"n": "\ufffe"}, "a character that CloudEvents do not allow"),
    ],
)
def test_what_is_no_event(change: dict[str, Any], reason: str) -> None:
    given = {name: value for name, value in (BARE | change).items() if value is not None}
    with pytest.raises(InvalidValue, match=reason):
        Event(given)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"[]", "the event is no JSON object"),
        (b"{", "the event is no JSON object"),
        (b"\xff", "the event is no JSON object"),
        (b'{"id": "1"}', "the event has no specversion"),
        (b'{"specversion":"1.0","id":"1","source":"/a","type":"t","x":1.5}', "x is 1.5"),
        (b'{"specversion":"1.0","id":"1","source":"/a","type":"t","x":{}}', "x is {}"),
        (b'{"specversion":"1.0","id":"1","source":"/a","type":"t","data_base64":"!"}', "no Base64"),
        (
            b'{"specversion":"1.0","id":"1","source":"/a","type":"t","data":1,"data_base64":""}',
            "one excludes",
        ),
        (
            b'{"specversion":"1.0","id":"1","source":"/a","type":"t","datacontenttype":"text/plain","data":1}',
            "data is a string where",
        ),
        (b"[" * 100_000, "the event is no JSON object"),
    ],
)
def test_what_is_no_event_in_json(text: bytes, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        json_format.read_event(text)
    with pytest.raises(InvalidValue, match=r"event 1: |no JSON array"):
        json_format.read_batch(b"[" + text + b"]")


def test_json_says_what_data_is() -> None:
    known = b'"specversion":"1.0","id":"1","source":"/a","type":"t"'
    implied = json_format.read_event(b'{%b,"data": [1, 2.0],"subject":null}' % known)
    assert implied.data == b"[1, 2.0]"
    assert implied.content_type == "application/json"
    assert "subject" not in implied.attributes
    binary = json_format.read_event(b'{%b,"data_base64":"eyJ4IjoxfQ=="}' % known)
    assert (binary.data, binary.content_type) == (b'{"x":1}', None)
    assert b"data_base64" in json_format.write_event(binary)
    nothing = json_format.read_event(b'{%b,"data":null}' % known)
    assert nothing.data == b"null"


def test_header_values() -> None:
    assert header_encoded("Euro \u20ac \U0001f600") == "Euro%20%E2%82%AC%20%F0%9F%98%80"
    assert header_decoded("x", "Euro%20%e2%82%ac%20%F0%9F%98%80") == "Euro \u20ac \U0001f600"
    assert header_decoded("x", '"a \\"b\\" c"') == 'a "b" c'
    assert header_decoded("x", "%41%zz%") == "A%zz%"
    for wrong in ("%C0%A0", "%ff", "\xff"):
        with pytest.raises(InvalidValue, match="not percent-encoded UTF-8"):
            header_decoded("ce-x", wrong)


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ([("content-type", "application/cloudevents+avro")], "the event format"),
        ([("Content-Type", "a/b"), ("content-type", "a/c")], "more than one Content-Type"),
        ([("ce-datacontenttype", "a/b")], "the Content-Type says it"),
        ([("ce-id", "1"), ("CE-ID", "2")], "is there twice"),
        ([("ce-id", "1")], "the event has no specversion"),
        ([("ce-my_ext", "1")], "the event has no"),
    ],
)
def test_what_is_no_event_in_http(headers: list[tuple[str, str]], reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason):
        http_binding.read_http(headers, b"")


def test_mqtt_has_no_batches() -> None:
    with pytest.raises(InvalidValue, match="no batches"):
        mqtt_binding.read_mqtt("application/cloudevents-batch+json", [], b"[]")
