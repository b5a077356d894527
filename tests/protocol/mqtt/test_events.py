"""CloudEvents through the MQTT listener: binary and structured mode, for MQTT and for native subscribers."""

from __future__ import annotations

from palio.protocol.cloudevents.event import Event
from palio.protocol.cloudevents.mqtt_binding import (
    MqttEvent,
    read_mqtt,
    write_binary,
    write_structured,
)
from palio.protocol.mqtt.packets.values import PublishPacket
from palio.protocol.wire.message_headers import body_of, headers_of
from tests.protocol.mqtt.mqtt_exchange import MqttClient, one_broker

EVENT = Event(
    {
        "specversion": "1.0", "id": "7", "source": "/desk", "type": "t.warm", "time": "2026-01-02T03:04:05Z",
        "room": "a", "datacontenttype": "application/json",
    },
    b'{"temp": 21.5, "inner": {"x": 1}}',
)  # fmt: skip
WHERE = "type = 't.warm' AND `data.temp` > 20 AND time > TIMESTAMP '2026-01-01' AND room = 'a'"


def publish(client: MqttClient, event: MqttEvent) -> None:
    properties = {"content_type": event.content_type} if event.content_type else {}
    pairs = {"user": tuple(event.user_properties)} if event.user_properties else {}
    client.publish("events/a", event.payload, 1, **properties, **pairs)


def test_events_are_selected_by_attributes_and_data_and_arrive_as_they_came() -> None:
    exchange = one_broker()
    native = exchange.client("a", "n")
    id = native.session.subscriptions.subscribe(f"{WHERE} AND topic_1 = 'events'")
    reader, writer = exchange.mqtt(client_id="r"), exchange.mqtt(client_id="w")
    reader.subscribe("events/+", user=(("$where", WHERE),))
    for written in (write_binary(EVENT), write_structured(EVENT)):
        publish(writer, written)
    publish(writer, write_binary(Event({**EVENT.attributes, "room": "b"}, EVENT.data)))
    got = reader.all(PublishPacket)
    assert len(got) == len(native.got(id)) == 2
    for packet in got:
        properties = packet.properties
        found = read_mqtt(
            properties.get("content_type"), properties.get("user", ()), packet.payload
        )
        assert found == EVENT


def test_an_event_in_binary_mode_is_the_same_event_for_native_subscribers() -> None:
    exchange = one_broker()
    native = exchange.client("a", "n")
    native.session.subscriptions.subscribe("specversion = '1.0'")
    publish(exchange.mqtt(), write_binary(EVENT))
    (arrival,) = native.arrivals
    attributes = native.got(arrival.id)[0]
    assert attributes["data.temp"] == 21.5
    headers = headers_of(arrival.frame.payload)
    assert headers["content_type"] == "application/json"
    assert body_of(arrival.frame.payload) == EVENT.data


def test_what_is_almost_an_event_is_a_message() -> None:
    exchange = one_broker()
    reader, writer = exchange.mqtt(client_id="r"), exchange.mqtt(client_id="w")
    reader.subscribe("#")
    user = (("specversion", "9"), ("id", ""), ("source", ""), ("type", ""))
    writer.publish("t", b"x", 1, user=user)
    writer.publish("t", b"{", 1, content_type="application/cloudevents+json")
    assert reader.payloads == [b"x", b"{"]
