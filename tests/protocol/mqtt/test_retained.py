"""Retained messages are the last values of topics: at all brokers, and for native clients too."""

from __future__ import annotations

import pytest

from palio.protocol.durability.bounds import LastValueBounds
from palio.protocol.mqtt.packets.codes import ReasonCode
from palio.protocol.mqtt.packets.properties import PacketType
from palio.protocol.mqtt.packets.values import PublishPacket, SubscriptionOptions
from palio.protocol.wire.message_headers import RETAINED
from tests.protocol.broker.last_value_client import given, last, retain

from .mqtt_exchange import MqttExchange, one_broker


def two_brokers() -> MqttExchange:
    exchange = MqttExchange()
    exchange.add("a", ["b"])
    exchange.add("b", ["a"])
    exchange.join("a", "b")
    return exchange


def test_at_another_broker_and_after_a_crash() -> None:
    exchange = two_brokers()
    writer = exchange.mqtt("a", client_id="w")
    writer.publish("s/1", b"old", 1, retain=True)
    writer.publish("s/1", b"new", 2, retain=True)
    writer.publish("s/2", b"gone", 0, retain=True)
    writer.publish("s/2", b"", 0, retain=True)
    for name in ("b", "a"):
        reader = exchange.mqtt(name, client_id="r")
        reader.subscribe("s/+")
        (got,) = reader.all(PublishPacket)
        assert (got.payload, got.retain, got.qos) == (b"new", True, 2)
        reader.leave()
    exchange.crash("b")
    exchange.start("b")
    exchange.join("a", "b")
    reader = exchange.mqtt("b", client_id="r")
    reader.subscribe("s/1", "s/2", "#")
    assert reader.payloads == [b"new", b"new"]


def test_native_clients_and_mqtt_clients_retain_for_each_other() -> None:
    exchange = two_brokers()
    writer, ann = exchange.mqtt("a", client_id="w"), exchange.client("b", "ann")
    writer.publish("s/1", b"1", 1, retain=True, user=(("v", "7"),))
    exchange.run()
    id = last(ann, "topic_1 = 's'")
    exchange.run()
    (found,) = given(ann, id)
    assert (found["topic"], found["v"]) == ("s/1", "7")
    topic = {"topic_1": "s", "topic_2": "1", "topic_levels": 2}
    retain(ann, "topic", topic="s/1", **topic, v=8)
    retain(ann, "v", topic="s/1", **topic, v=9)
    retain(ann, "topic", topic="no/+", topic_1="no", topic_2="+", topic_levels=2)
    exchange.run()
    reader = exchange.mqtt("a", client_id="r")
    reader.subscribe("#", options=SubscriptionOptions(1))
    (got,) = reader.all(PublishPacket)
    assert (got.topic, got.payload, got.retain) == ("s/1", b"", True), "by topic, and only that"
    reader.subscribe(
        "s/1", options=SubscriptionOptions(1, retain_handling=2, retain_as_published=True)
    )
    retain(ann, "topic", topic="s/1", **topic, v=10)
    exchange.run()
    assert reader.all(PublishPacket)[-1].retain


def test_what_does_not_fit_is_delivered_and_not_retained() -> None:
    exchange = one_broker(last_values=LastValueBounds(1))
    reader, writer = exchange.mqtt(client_id="r"), exchange.mqtt(client_id="w")
    reader.subscribe("#")
    for topic in ("t", "u"):
        writer.publish(topic, topic.encode(), 1, retain=True)
    assert reader.payloads == [b"t", b"u"]
    assert [one.code for one in writer.acks(PacketType.PUBACK)] == [ReasonCode.SUCCESS] * 2
    assert exchange.retained["a"].dropped == 1
    late = exchange.mqtt(client_id="l")
    late.subscribe("#")
    assert late.payloads == [b"t"]


@pytest.mark.parametrize("values", [0, 10])
def test_headers_that_leave_no_room_and_a_broker_that_holds_none(values: int) -> None:
    exchange = one_broker(last_values=LastValueBounds(values))
    client = exchange.mqtt()
    client.subscribe("#")
    client.publish("t", b"1", 1, retain=True, user=(("a", "x" * 15_900),))
    client.publish("t", b"", 1, retain=True)
    assert client.payloads == [b"1", b""]
    assert exchange.retained["a"].dropped == 1
    client.subscribe("t")
    assert client.payloads == [b"1", b""]
    assert RETAINED not in client.all(PublishPacket)[0].properties
