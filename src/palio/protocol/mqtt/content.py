"""A published packet as a message, and a message as a packet to publish.

attributes   members of a JSON payload, then user properties, then the topic: the last of equal
             names stands, and names of topic attributes belong to the topic alone; of a CloudEvent
             its attributes and data (events.py) instead of the first two
headers      all properties that receivers get back, the QoS and whether it was retained
body         the payload as it came
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from palio.model.message import Message
from palio.model.topics import is_topic_attribute, topic_attributes
from palio.protocol.cloudevents.messages import EventMessage
from palio.protocol.mqtt.packets.fields import TEXT_BYTES_MAX
from palio.protocol.mqtt.packets.properties import Properties
from palio.protocol.mqtt.settings import MqttSettings, PayloadContent
from palio.protocol.wire import message_headers
from palio.protocol.wire.message_headers import EXPIRES_US

_INTEGERS = range(-(1 << 63), 1 << 63)
_SECOND = 1_000_000

# properties and the headers that keep them
_HEADERS = {
    "payload_format": "mqtt.format",
    "content_type": message_headers.CONTENT_TYPE,
    "response_topic": message_headers.REPLY_TO,
    "correlation_data": message_headers.CORRELATION,
    "user": "mqtt.user",
}
QOS, RETAIN = "mqtt.qos", "mqtt.retain"

_decode_object = msgspec.json.Decoder(dict[str, Any]).decode
_encode_json = msgspec.json.Encoder().encode


class _Topic(msgspec.Struct):
    topic: str = ""


_decode_topic = msgspec.json.Decoder(_Topic).decode


def attributes_of(
    topic: str, payload: bytes, properties: Properties, settings: MqttSettings,
    event: EventMessage | None = None,
) -> bytes:  # fmt: skip
    """The attributes of a message, as JSON; `event`: the CloudEvent that it is."""
    found: dict[str, Any] = {}
    if event is not None:
        own = {n: value for n, value in event.attributes.items() if not is_topic_attribute(n)}
        return Message({**own, **topic_attributes(topic)}).to_json().encode()
    if _is_json(payload, properties, settings):
        found = _members(payload)
    for name, value in properties.get("user", ()):
        if name and not is_topic_attribute(name):
            found[name] = value
    found.update(topic_attributes(topic))
    return _encode_json(found)


def _is_json(payload: bytes, properties: Properties, settings: MqttSettings) -> bool:
    if settings.payload is PayloadContent.NONE or len(payload) > settings.payload_bytes_max:
        return False
    if settings.payload is PayloadContent.AUTO:
        kind = properties.get("content_type", "").partition(";")[0].strip().lower()
        if kind != "application/json" and not kind.endswith("+json"):
            return False
    return payload.lstrip()[:1] == b"{"


def _members(payload: bytes) -> dict[str, Any]:
    """The members that can be attributes; none if the payload is not a JSON object after all."""
    try:
        members = _decode_object(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return {}
    return {
        name: value
        for name, value in members.items()
        if name and not is_topic_attribute(name) and _is_value(value)
    }


def _is_value(value: object) -> bool:
    if isinstance(value, list):
        return all(_is_scalar(one) for one in value)
    return _is_scalar(value)


def _is_scalar(value: object) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return value in _INTEGERS
    return isinstance(value, str | float | bool)


def headers_of(properties: Properties, qos: int, retain: bool, now_us: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        header: properties[name] for name, header in _HEADERS.items() if name in properties
    }
    if "user" in properties:
        found[_HEADERS["user"]] = [list(pair) for pair in properties["user"]]
    if qos:
        found[QOS] = qos
    if retain:
        found[RETAIN] = True
    if "message_expiry" in properties:
        found[EXPIRES_US] = now_us + properties["message_expiry"] * _SECOND
    return found


class MqttMessage(msgspec.Struct, frozen=True):
    """A message of the network, as MQTT sees it."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    properties: dict[str, Any]


def received(attributes: bytes, payload: bytes, now_us: int, usual_qos: int) -> MqttMessage | None:
    """A message for MQTT clients, from its attributes and its headers with the body. None: it has no
    valid topic, or has expired. `usual_qos` is that of messages that say none.

    Anybody may have written the headers: what MQTT cannot say is left out.
    """
    try:
        topic = _decode_topic(attributes).topic
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if not topic or "+" in topic or "#" in topic or not _is_text(topic):
        return None
    headers, body = message_headers.headers_of(payload), message_headers.body_of(payload)
    if not headers:
        return MqttMessage(topic, body, usual_qos, False, {})
    properties: dict[str, Any] = {
        name: headers[header]
        for name, header in _HEADERS.items()
        if header in headers and _CAN_SAY[name](headers[header])
    }
    if "user" in properties:
        properties["user"] = tuple([(name, text) for name, text in properties["user"]])
    expires_us = headers.get(EXPIRES_US)
    if isinstance(expires_us, int):
        if expires_us <= now_us:
            return None
        properties["message_expiry"] = min(-(-(expires_us - now_us) // _SECOND), _EXPIRY_MAX)
    qos = headers.get(QOS)
    if type(qos) is not int or qos not in _QOS:
        qos = usual_qos
    retain = headers.get(RETAIN) is True or message_headers.RETAIN in headers
    return MqttMessage(topic, body, qos, retain, properties)


_QOS = range(3)
_EXPIRY_MAX = (1 << 32) - 1


def _is_text(value: object) -> bool:
    """Can it be a text of MQTT (1.5.4)?"""
    return isinstance(value, str) and "\0" not in value and len(value.encode()) <= TEXT_BYTES_MAX


def _are_pairs(value: object) -> bool:
    return isinstance(value, list) and all(_is_text(a) and _is_text(b) for a, b in value)


def _is_response_topic(value: object) -> bool:
    return _is_text(value) and not ({"+", "#"} & set(str(value)))


_CAN_SAY: dict[str, Callable[[object], bool]] = {
    "payload_format": lambda value: type(value) is int and value in (0, 1),
    "content_type": _is_text,
    "response_topic": _is_response_topic,
    "correlation_data": lambda value: isinstance(value, bytes) and len(value) <= TEXT_BYTES_MAX,
    "user": _are_pairs,
}
"""What a property can be, of what a header may be."""
