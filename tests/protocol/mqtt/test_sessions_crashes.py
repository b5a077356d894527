"""Crashes of the broker in the middle of exchanges: each message of QoS 2 arrives once, and wills are published.

The client keeps what a client must keep (4.1): what it has sent and the broker has not acknowledged, and the
packet ids of messages that it has got and that are not released.
"""

from __future__ import annotations

from random import Random

import msgspec

from palio.protocol.broker.access import EVERYTHING, Access, Identity
from palio.protocol.mqtt.packets.codes import ReasonCode
from palio.protocol.mqtt.packets.properties import PacketType
from palio.protocol.mqtt.packets.values import (
    Ack,
    ConnectPacket,
    Packet,
    PublishPacket,
    Version,
    Will,
)
from tests.protocol.mqtt.mqtt_exchange import MqttClient, MqttExchange, one_broker
from tests.seeds import seeds

_SECOND = 1_000_000
_KEPT = {"session_expiry": 1000}


class Crashed(Exception):
    pass


class CrashingExchange(MqttExchange):
    """Crashes before some round, or between two packets."""

    left: int | None = None

    def step(self) -> None:
        if self.left is not None:
            if not self.left:
                raise Crashed
            self.left -= 1

    def round(self) -> bool:
        self.step()
        return super().round()


class CarefulClient:
    """One client over all its connections. It subscribes, and publishes numbers, both with QoS 2."""

    def __init__(self, exchange: CrashingExchange) -> None:
        self.exchange = exchange
        self.sent: dict[
            int, tuple[bytes, bool]
        ] = {}  # packet id: payload, and whether PUBREC has come
        self.unreleased: set[int] = set()
        self.got: list[bytes] = []
        self.connection: MqttClient | None = None

    def connect(self) -> None:
        made = self.exchange.stranger()
        made._reply = self.reply  # type: ignore[method-assign]
        self.connection = made
        made.send(connect_packet())
        assert made.connack.code is ReasonCode.SUCCESS
        if not made.connack.session_present:
            assert not self.got
            self.sent.clear()
            self.unreleased.clear()
        for id, (payload, is_received) in list(self.sent.items()):
            if is_received:
                made.send(Ack(PacketType.PUBREL, id))
            else:
                made.send(PublishPacket("t", payload, 2, duplicate=True, packet_id=id))

    def publish(self, payload: bytes) -> None:
        assert self.connection is not None
        id = next(id for id in range(1, 100) if id not in self.sent)
        self.sent[id] = payload, False
        self.connection.send(PublishPacket("t", payload, 2, packet_id=id))

    def reply(self, packet: Packet) -> Packet | None:
        self.exchange.step()
        if isinstance(packet, PublishPacket):
            if packet.packet_id not in self.unreleased:
                self.unreleased.add(packet.packet_id)
                self.got.append(packet.payload)
            return Ack(PacketType.PUBREC, packet.packet_id)
        if not isinstance(packet, Ack):
            return None
        id = packet.packet_id
        if packet.type is PacketType.PUBREC:
            if id in self.sent:
                self.sent[id] = self.sent[id][0], True
            return Ack(PacketType.PUBREL, id)
        if packet.type is PacketType.PUBREL:
            self.unreleased.discard(id)
            return Ack(PacketType.PUBCOMP, id)
        self.sent.pop(id, None)
        return None


def connect_packet() -> Packet:
    return ConnectPacket(Version.V5, "c", False, 60, _KEPT)


@seeds(20, 400)
def test_each_message_of_qos_2_arrives_once_over_crashes(seed: int) -> None:
    random = Random(seed)
    exchange = CrashingExchange()
    exchange.add("a")
    client = CarefulClient(exchange)
    client.connect()
    assert client.connection is not None
    client.connection.subscribe("t", "other")
    published = [b"%d" % number for number in range(random.randrange(3, 15))]
    crashes, at = random.randrange(1, 8), 0
    while at < len(published) or crashes:
        exchange.left = random.randrange(0, 25) if crashes else None
        try:
            if client.connection is None:
                client.connect()
            while at < len(published):
                at += 1
                client.publish(published[at - 1])
            if crashes:
                raise Crashed
        except Crashed:
            crashes -= 1
            exchange.left = None
            if random.random() < 0.5:
                exchange.stores["a"].crash(is_done=True)
            exchange.crash("a")
            exchange.start("a")
            client.connection = None
    exchange.left = None
    if client.connection is None:
        client.connect()
    exchange.run()
    assert sorted(client.got) == sorted(published), "each once"
    assert not client.sent
    assert not client.unreleased
    session = client.connection.mqtt.delivering.session  # type: ignore[union-attr]
    assert not session.in_flight
    assert not session.incoming
    assert not session.reserved


def test_a_packet_id_is_free_for_another_message_after_pubcomp_although_the_broker_crashed() -> (
    None
):
    exchange = one_broker()
    client = exchange.mqtt(properties=_KEPT)
    client.subscribe("t")
    client.send(PublishPacket("t", b"1", 2, packet_id=7))
    exchange.crash("a")
    exchange.start("a")
    client = exchange.mqtt(properties=_KEPT, clean_start=False)
    client.send(PublishPacket("t", b"2", 2, packet_id=7))
    assert client.payloads == [b"2"]


def test_wills_are_published_after_a_crash() -> None:
    exchange = one_broker()
    reader = exchange.mqtt(client_id="r", properties=_KEPT, keep_alive_s=0)
    reader.subscribe("wills/#")
    exchange.mqtt(client_id="x", will=Will("wills/x", b"", 1))
    exchange.mqtt(
        client_id="y", will=Will("wills/y", b"", 1, properties={"will_delay": 5}), properties=_KEPT
    )
    exchange.mqtt(client_id="left", will=Will("wills/left", b"", 1)).leave()
    exchange.mqtt(
        client_id="back", will=Will("wills/back", b"", 1, properties={"will_delay": 5}),
        properties=_KEPT,
    )  # fmt: skip
    exchange.crash("a")
    exchange.start("a")
    reader = exchange.mqtt(client_id="r", properties=_KEPT, clean_start=False, keep_alive_s=0)
    exchange.expire("a")
    assert [one.topic for one in reader.all(PublishPacket)] == ["wills/x"]
    exchange.mqtt(client_id="back", properties=_KEPT, clean_start=False, keep_alive_s=0)
    exchange.advance(6 * _SECOND)
    assert [one.topic for one in reader.all(PublishPacket)] == ["wills/x", "wills/y"]
    for _ in range(2):
        exchange.crash("a")
        exchange.start("a")
        exchange.stranger()
        exchange.expire("a")
        assert not exchange.sessions["a"].bereaved(9)
    keys = [key for key, _ in exchange.stores["a"].scan("mqtt/s/")]
    assert keys == ["mqtt/s/back/anybody", "mqtt/s/r/anybody", "mqtt/s/y/anybody"]


def test_the_will_of_an_identity_that_is_gone_is_dropped() -> None:
    exchange = one_broker()
    exchange.mqtt(client_id="x", will=Will("wills/x", b"", 1))
    exchange.crash("a")
    access = Access(anonymous=Identity("other", EVERYTHING, EVERYTHING))
    exchange.settings["a"] = msgspec.structs.replace(exchange.settings["a"], access=access)
    exchange.start("a")
    exchange.stranger()
    exchange.expire("a")
    exchange.expire("a")
    assert not [key for key, _ in exchange.stores["a"].scan("mqtt/")]


def test_the_queues_of_a_session_that_ends_with_its_connection_do_not_outlive_a_crash() -> None:
    exchange = one_broker()
    exchange.mqtt(properties=_KEPT).subscribe("t")
    exchange.mqtt(properties={"session_expiry": 0}, clean_start=False).publish("t", b"", 1)
    exchange.crash("a")
    exchange.start("a")
    exchange.stranger()
    exchange.expire("a")
    assert exchange.brokers["a"].snapshot().queues.count == 0
