"""CloudEvents in PUBLISH packets: their attributes and the members of their data are attributes of the message.

The packet itself goes on as it is (MQTT-3.3.2-17, -20): who subscribes by MQTT gets the event in the mode in which
it came.
"""

from __future__ import annotations

from palio.errors import InvalidValue
from palio.protocol.cloudevents.messages import EventMessage, message_of
from palio.protocol.cloudevents.mqtt_binding import is_event, read_mqtt
from palio.protocol.mqtt.packets.properties import Properties
from palio.protocol.mqtt.settings import MqttSettings, PayloadContent


def event_in(payload: bytes, properties: Properties, settings: MqttSettings) -> EventMessage | None:
    """The event of a packet, as a message; None: it has none that is valid."""
    content_type, pairs = properties.get("content_type"), properties.get("user", ())
    if not is_event(content_type, pairs):
        return None
    if settings.payload is PayloadContent.NONE or len(payload) > settings.payload_bytes_max:
        return None
    try:
        return message_of(read_mqtt(content_type, pairs, payload))
    except InvalidValue:  # it is a message all the same
        return None
