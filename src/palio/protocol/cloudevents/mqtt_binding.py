"""CloudEvents in MQTT PUBLISH packets: binary and structured mode (mqtt-protocol-binding.md).

binary (MQTT 5)   user properties: the attributes    content type: that of the data    payload: the data
structured        content type: application/cloudevents+json (nothing in 3.1.1)        payload: the event
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from palio.errors import InvalidValue
from palio.model.values import shortened
from palio.protocol.cloudevents import json_format
from palio.protocol.cloudevents.event import REQUIRED, AttributeValue, Event, is_name
from palio.protocol.cloudevents.http_binding import HeaderPairs, Mode, canonical, mode_of


class MqttEvent(NamedTuple):
    """What of a PUBLISH packet holds an event."""

    content_type: str | None
    user_properties: HeaderPairs
    payload: bytes


def is_event(content_type: str | None, user_properties: Iterable[tuple[str, str]]) -> bool:
    """Does a packet of MQTT 5 hold a CloudEvent, as far as its properties tell?"""
    if (content_type or "").strip().lower().startswith("application/cloudevents"):
        return True
    names = {name for name, _ in user_properties}
    return names.issuperset(REQUIRED)


def read_mqtt(
    content_type: str | None, user_properties: Iterable[tuple[str, str]], payload: bytes
) -> Event:
    """The event of a PUBLISH packet; without properties (MQTT 3.1.1) it is in JSON. Raises InvalidValue.

    Of properties with equal names the last counts; those that cannot be attributes are left out.
    """
    pairs = list(user_properties)
    mode = mode_of(content_type)
    if mode is Mode.BATCHED:
        raise InvalidValue("MQTT has no batches of events")
    if mode is Mode.STRUCTURED or (content_type is None and not pairs):
        return json_format.read_event(payload)
    attributes: dict[str, AttributeValue] = {n: value for n, value in pairs if is_name(n)}
    if content_type is not None:
        attributes["datacontenttype"] = content_type
    return Event(attributes, payload or None)


def write_binary(event: Event) -> MqttEvent:
    pairs = [
        (name, canonical(value))
        for name, value in event.attributes.items()
        if name != "datacontenttype"
    ]
    for name, value in pairs:
        if len(value.encode()) > 65_535:
            raise InvalidValue(f"{shortened(name)} is longer than a user property of MQTT may be")
    return MqttEvent(event.content_type, pairs, event.data or b"")


def write_structured(event: Event, *, has_properties: bool = True) -> MqttEvent:
    """`has_properties` is False for MQTT 3.1.1."""
    content_type = json_format.CONTENT_TYPE if has_properties else None
    return MqttEvent(content_type, [], json_format.write_event(event))
