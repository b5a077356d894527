"""Whatever clients send, MQTT or native, ends a connection at most and never raises."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palio.protocol.mqtt.packets.encoding import encode
from palio.protocol.mqtt.packets.values import Packet, PublishPacket, Version
from palio.protocol.wire.message_headers import packed
from tests.protocol.mqtt.mqtt_exchange import MqttExchange, one_broker
from tests.protocol.mqtt.packet_strategies import packets


def publish_natively(
    exchange: MqttExchange,
    attributes: dict[str, object],
    headers: dict[str, Any],
    body: bytes = b"x",
) -> None:
    client = exchange.client("a", "n")
    publisher = client.session.publisher
    text = json.dumps(attributes).encode()
    publisher.publish(text, body, exchange.now_us, True, packed(headers, 60_000))
    exchange.run()


@pytest.mark.parametrize("version", Version)
@pytest.mark.parametrize(
    "headers",
    [
        {"mqtt.format": "x"},
        {"mqtt.format": 7},
        {"mqtt.format": b"\1"},
        {"mqtt.user": "ab"},
        {"mqtt.user": [["a", "b\0"]]},
        {"mqtt.user": [["a" * 10_000, "b" * 40_000]]},
        {"mqtt.qos": 3},
        {"mqtt.qos": -1},
        {"mqtt.qos": True},
        {"mqtt.qos": 1.5},
        {"mqtt.retain": "yes"},
        {"content_type": "a\0"},
        {"reply_to": "a/#"},
        {"reply_to": ""},
        {"expires_us": 1 << 62},
        {"correlation": b"x" * 50_000},
    ],
)
def test_headers_of_native_clients(headers: dict[str, Any], version: Version) -> None:
    exchange = one_broker()
    client = exchange.mqtt(version=version, keep_alive_s=0)
    client.subscribe("#")
    topic = {"topic": "t", "topic_1": "t", "topic_levels": 1}
    publish_natively(exchange, topic, headers)
    publish_natively(exchange, topic, {}, b"after")
    assert client.payloads[-1] == b"after"


@pytest.mark.parametrize(
    "topic",
    ["", "a/+", "#", "a\0", "x" * 60_000, 7, None, ["a"], {"a": 1}],
    ids=lambda topic: repr(topic)[:9],
)
def test_topics_of_native_clients(topic: object) -> None:
    exchange = one_broker()
    client = exchange.mqtt()
    client.subscribe("#")
    usual: dict[str, object] = {"topic_1": "t", "topic_levels": 1}
    publish_natively(exchange, usual | {"topic": topic}, {})
    publish_natively(exchange, usual | {"topic": "t"}, {}, b"after")
    assert client.payloads[-1] == b"after"
    assert [one.topic for one in client.all(PublishPacket)][:-1] in ([], [topic])


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(Version))
def test_packets_in_any_order(data: st.DataObject, version: Version) -> None:
    exchange = one_broker()
    sent: list[Packet] = data.draw(st.lists(packets(version), max_size=12))
    client = exchange.mqtt(version=version, properties={})
    for packet in sent:
        if client.link in exchange.mqtt_clients:
            client.send_bytes(encode(packet, version))
    if client.link in exchange.mqtt_clients:
        client.lose()
    other = exchange.mqtt(client_id="other")
    other.subscribe("other/topic")
    other.publish("other/topic", b"works", 1)
    assert other.payloads[-1:] == [b"works"]
