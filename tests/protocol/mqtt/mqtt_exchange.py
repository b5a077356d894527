"""Clients of MQTT beside native ones, in one process: each packet that is sent has arrived when `send` returns."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import count
from typing import Any, TypeVar

import msgspec

from palio.protocol.mqtt.connection import MqttConnection
from palio.protocol.mqtt.packets.codes import ReasonCode
from palio.protocol.mqtt.packets.encoding import encode
from palio.protocol.mqtt.packets.properties import PacketType
from palio.protocol.mqtt.packets.reader import PacketReader
from palio.protocol.mqtt.packets.values import (
    Ack,
    Connack,
    ConnectPacket,
    DisconnectPacket,
    Packet,
    PublishPacket,
    SubscribeAck,
    SubscribePacket,
    SubscriptionOptions,
    Version,
)
from palio.protocol.mqtt.retained import RetainedMessages
from palio.protocol.mqtt.session_records import SessionRecords
from palio.protocol.mqtt.sessions import Sessions
from palio.protocol.mqtt.settings import MqttSettings
from palio.protocol.mqtt.states import ENDED
from palio.protocol.wire.frames import Limits
from tests.protocol.exchange import Exchange

P = TypeVar("P")


class MqttClient:
    """One connection of a client."""

    def __init__(self, exchange: MqttExchange, broker: str, version: Version) -> None:
        self.version, self.exchange, self.broker = version, exchange, broker
        self.link = exchange.new_link()
        self.mqtt = MqttConnection(
            exchange.mqtt_settings, exchange.sessions[broker], exchange.retained[broker],
            Limits(), exchange.now_us,
        )  # fmt: skip
        self.packets: list[Packet] = []
        self.answers = True
        """Whether it acknowledges what it gets."""
        self.is_open = True
        self._reader = PacketReader(1 << 28, version)
        self._ids = count(1)

    # ---- what it does

    def send(self, *packets: Packet) -> None:
        self.send_bytes(b"".join([encode(one, self.version) for one in packets]))

    def send_bytes(self, data: bytes) -> None:
        self.mqtt.receive(data, self.exchange.now_us)
        self.exchange.run()

    def subscribe(
        self,
        *filters: str,
        qos: int = 2,
        options: SubscriptionOptions | None = None,
        **properties: Any,
    ) -> tuple[ReasonCode, ...]:
        asked = tuple([(one, options or SubscriptionOptions(qos)) for one in filters])
        self.send(SubscribePacket(next(self._ids), asked, properties))
        return self.all(SubscribeAck)[-1].codes

    def publish(
        self,
        topic: str,
        payload: bytes = b"",
        qos: int = 0,
        retain: bool = False,
        **properties: Any,
    ) -> None:
        id = next(self._ids) if qos else 0
        self.send(PublishPacket(topic, payload, qos, retain, False, id, properties))

    def lose(self) -> None:
        """The connection is cut."""
        self.is_open = False
        self.mqtt.lost(self.exchange.now_us)
        self.exchange.run()

    def leave(self, code: ReasonCode = ReasonCode.SUCCESS, **properties: Any) -> None:
        self.send(DisconnectPacket(code, properties))
        self.is_open = False

    # ---- what it got

    def all(self, kind: type[P]) -> list[P]:
        return [one for one in self.packets if isinstance(one, kind)]

    @property
    def connack(self) -> Connack:
        return self.all(Connack)[0]

    @property
    def payloads(self) -> list[bytes]:
        return [one.payload for one in self.all(PublishPacket)]

    def acks(self, type: PacketType) -> list[Ack]:
        return [one for one in self.all(Ack) if one.type is type]

    @property
    def end(self) -> ReasonCode | None:
        """What the last DISCONNECT says."""
        found = self.all(DisconnectPacket)
        return found[-1].code if found else None

    def arrived(self, data: bytes) -> bool:
        """Packets have come; True: there is something to answer."""
        found = list(self._reader.feed(data))
        self.packets += found
        replies = [reply for one in found if (reply := self._reply(one)) is not None]
        if replies and self.answers and self.is_open:
            text = b"".join([encode(one, self.version) for one in replies])
            self.mqtt.receive(text, self.exchange.now_us)
            return True
        return False

    def _reply(self, packet: Packet) -> Packet | None:
        if isinstance(packet, PublishPacket) and packet.qos:
            type = PacketType.PUBACK if packet.qos == 1 else PacketType.PUBREC
            return Ack(type, packet.packet_id)
        if (
            isinstance(packet, Ack)
            and packet.type is PacketType.PUBREC
            and not packet.code.is_error
        ):
            return Ack(PacketType.PUBREL, packet.packet_id)
        if isinstance(packet, Ack) and packet.type is PacketType.PUBREL:
            return Ack(PacketType.PUBCOMP, packet.packet_id)
        return None


class MqttExchange(Exchange):
    def __init__(self, settings: MqttSettings | None = None) -> None:
        super().__init__()
        self.mqtt_settings = settings or MqttSettings()
        self.sessions: dict[str, Sessions] = {}
        self.retained: dict[str, RetainedMessages] = {}
        self.mqtt_clients: dict[int, MqttClient] = {}

    def _client_id(self) -> str:
        return f"new-{self.new_link()}"

    def new_link(self) -> int:
        return next(self._links)

    def mqtt(
        self, broker: str = "a", client_id: str = "c", version: Version = Version.V5,
        properties: Mapping[str, Any] | None = None, **fields: Any,
    ) -> MqttClient:  # fmt: skip
        """A client that has said CONNECT."""
        client = self.stranger(broker, version)
        usual = ConnectPacket(version, client_id, True, 60, properties or {})
        client.send(msgspec.structs.replace(usual, **fields))
        return client

    def stranger(
        self, broker: str = "a", version: Version = Version.V5, identity: str = ""
    ) -> MqttClient:
        if broker not in self.sessions:
            records = SessionRecords(self.stores[broker])
            self.sessions[broker] = Sessions(
                self.mqtt_settings.sessions_max, records, self.now_us, self._client_id
            )
            self.retained[broker] = RetainedMessages(
                self.brokers[broker].listener_acts.last_values, Limits()
            )
        client = MqttClient(self, broker, version)
        self.mqtt_clients[client.link] = client
        self.brokers[broker].open(client.link, self.now_us)
        if identity:
            self.brokers[broker].listener_acts.vouch(client.link, identity)
        return client

    def crash(self, name: str) -> None:
        super().crash(name)
        del self.sessions[name], self.retained[name]
        self.mqtt_clients = {
            link: one for link, one in self.mqtt_clients.items() if one.broker != name
        }

    def expire(self, broker: str) -> None:
        """As the listener does."""
        for name in self.sessions[broker].expired(self.now_us):
            self.brokers[broker].listener_acts.forget_durable(*name, self.now_us)
        for key in self.sessions[broker].bereaved(200):
            client = self.stranger(broker, identity=key.identity)
            client.is_open = False
            client.mqtt.restore(key)
        self.run()

    def round(self) -> bool:
        busy = super().round()
        for client in list(self.mqtt_clients.values()):
            if client.mqtt.has_more:
                busy = True
                client.mqtt.read(self.now_us)
            data, ticket = client.mqtt.core.take(), client.mqtt.ticket()
            if data:
                busy = True
                self.brokers[client.broker].receive(client.link, data, self.now_us)
            if ticket:
                busy = True
                call = partial(client.mqtt.client.committed, ticket)
                self.brokers[client.broker].listener_acts.after_commit(call)
            if packets := client.mqtt.client.take():
                busy |= client.is_open and client.arrived(b"".join(packets))
        return busy

    def advance(self, us: int, step_us: int = 100_000) -> None:
        end_us = self.now_us + us
        while self.now_us < end_us:
            super().advance(step_us, step_us)
            for client in list(self.mqtt_clients.values()):
                at = client.mqtt.deadline_us
                if at is not None and at <= self.now_us:
                    client.mqtt.wake(self.now_us)
            self.run()

    def _carry(self, name: str, link: int, data: bytes) -> None:
        client = self.mqtt_clients.get(link)
        if client is None:
            super()._carry(name, link, data)
        else:
            client.mqtt.deliver(data, self.now_us)

    def _close(self, name: str, link: int) -> None:
        client = self.mqtt_clients.get(link)
        if client is None:
            super()._close(name, link)
            return
        assert client.mqtt.state is ENDED
        if packets := client.mqtt.client.take():
            client.arrived(b"".join(packets))
        del self.mqtt_clients[link]


def one_broker(settings: MqttSettings | None = None, **options: object) -> MqttExchange:
    exchange = MqttExchange(settings)
    exchange.add("a", **options)  # type: ignore[arg-type]
    return exchange
