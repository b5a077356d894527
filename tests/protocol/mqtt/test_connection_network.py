"""Clients of MQTT at several brokers, beside native ones: content crosses the network, sessions do not."""

from __future__ import annotations

import pytest

from palio.protocol.mqtt.packets.codes import ReasonCode
from palio.protocol.mqtt.packets.values import PublishPacket
from palio.topics import attributes
from tests.protocol.mqtt.mqtt_exchange import MqttExchange


def three_brokers() -> MqttExchange:
    """A line."""
    exchange = MqttExchange()
    for name, neighbours in (("a", "b"), ("b", "ac"), ("c", "b")):
        exchange.add(name, neighbours)
    exchange.join("a", "b")
    exchange.join("b", "c")
    exchange.run()
    return exchange


@pytest.mark.parametrize("kept", [0, 50])
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_native_publisher_reaches_a_condition_at_another_broker(qos: int, kept: int) -> None:
    exchange = three_brokers()
    reader = exchange.mqtt("c", properties={"session_expiry": kept})
    asked = reader.subscribe("site/+/temp", qos=qos, user=(("$where", "temp > 25"),))
    assert asked == (ReasonCode(qos),)
    native = exchange.client("a", "n")
    exchange.run()
    for site, temp in ((7, 21.5), (8, 30.5), (9, 26)):
        native.publish({**attributes(f"site/{site}/temp"), "temp": temp}, b"%d" % site)
    native.publish({**attributes("site/7"), "temp": 99}, b"another topic")
    native.publish({"temp": 99}, b"no topic")
    exchange.run()
    found = [(one.topic, one.payload, one.qos) for one in reader.all(PublishPacket)]
    assert [one[:2] for one in found] == [("site/8/temp", b"8"), ("site/9/temp", b"9")]
    most = 1 if kept else 0  # of native messages, from a durable subscription and from a live one
    assert {one[2] for one in found} == {min(qos, most)}


def test_a_client_of_mqtt_reaches_a_native_subscriber_at_another_broker() -> None:
    exchange = three_brokers()
    native = exchange.client("c", "n")
    id = native.session.subscriptions.subscribe("topic_1 = 'site' AND temp > 25", durable="hot")
    exchange.run()
    writer = exchange.mqtt("a")
    for temp in (20, 30):
        writer.publish("site/8", b'{"temp": %d}' % temp, 1, content_type="application/json")
    exchange.run()
    assert [one["temp"] for one in native.got(id)] == [30]


def test_sessions_and_shared_groups_live_at_one_broker() -> None:
    exchange = three_brokers()
    kept = {"session_expiry": 50}
    here = exchange.mqtt("a", properties=kept)
    here.subscribe("t", qos=1)
    here.lose()
    there = exchange.mqtt("c", clean_start=False, properties=kept)
    assert not there.connack.session_present
    readers = [exchange.mqtt(broker, f"r{broker}") for broker in "ac"]
    for reader in readers:
        reader.subscribe("$share/g/t", qos=1)
    exchange.run()
    writer = exchange.mqtt("b", "w")
    writer.publish("t", b"1", 1)
    exchange.run()
    assert [reader.payloads for reader in readers] == [[b"1"], [b"1"]], "two groups"
    assert not there.payloads
    here = exchange.mqtt("a", clean_start=False, properties=kept)
    assert here.connack.session_present
    assert here.payloads == [b"1"]
