"""Clients of MQTT that want to read, or to destroy, what their grants do not allow."""

from __future__ import annotations

from itertools import count

from palio.model.language import parse
from palio.protocol.broker.access import EVERYTHING, Access, Identity, token_hash
from palio.protocol.mqtt.packets.codes import ReasonCode
from palio.protocol.mqtt.packets.encoding import encode
from palio.protocol.mqtt.packets.values import PublishPacket, SubscribePacket, SubscriptionOptions

from .mqtt_exchange import MqttClient, MqttExchange, one_broker

ANN = Identity("ann", EVERYTHING, EVERYTHING)
EVE = Identity("eve", parse("topic = 'open'"), parse("topic = 'open'"))


def two_identities() -> MqttExchange:
    return one_broker(access=Access({token_hash(one.name): one for one in (ANN, EVE)}))


def later(client: MqttClient, topic: str, payload: bytes) -> None:
    """Publish and retain, with others in the same turn."""
    packet = PublishPacket(topic, payload, 1, True, False, next(_ids), {})
    client.mqtt.receive(encode(packet, client.version), client.exchange.now_us)


_ids = count(100)


def test_retained_messages_wait_for_the_decision_about_a_grant() -> None:
    exchange = two_identities()
    ann = exchange.mqtt(client_id="a", password=b"ann")
    ann.publish("secret/plan", b"x", 1, retain=True)
    for expiry in ({}, {"session_expiry": 100}):
        eve = exchange.mqtt(client_id="e", properties=expiry, password=b"eve")
        refused = ReasonCode.NOT_AUTHORIZED
        assert eve.subscribe("secret/#", "secret/#") == (refused, refused)
        one = ("secret/#", SubscriptionOptions(1))
        eve.send(SubscribePacket(7, (one,), {}), SubscribePacket(8, (one,), {}))
        assert eve.subscribe("secret/#") == (refused,)
        assert eve.subscribe("open", "open") == (ReasonCode.GRANTED_QOS_2, ReasonCode.GRANTED_QOS_2)
        assert eve.payloads == []
        eve.leave()
    assert exchange.mqtt(client_id="b", password=b"ann").subscribe("secret/#", "secret/#") == (
        ReasonCode.GRANTED_QOS_2, ReasonCode.GRANTED_QOS_2,
    )  # fmt: skip


def test_who_may_not_publish_destroys_nothing_that_is_retained() -> None:
    exchange = two_identities()
    ann = exchange.mqtt(client_id="a", password=b"ann")
    eve = exchange.mqtt(client_id="e", password=b"eve")
    for payload in (b"forged", b""):
        for retained in (b"1", b"2"):
            later(eve, "t", payload)
            later(ann, "t", retained)
            later(eve, "t", payload)
            exchange.run()
            exchange.crash("a")
            exchange.start("a")
            ann = exchange.mqtt(client_id="a", password=b"ann")
            eve = exchange.mqtt(client_id="e", password=b"eve")
            ann.subscribe("t")
            assert ann.payloads == [retained], (payload, retained)
