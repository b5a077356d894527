"""The MQTT listener on sockets: TCP and TLS, both event loops, ends of connections, and restarts."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any, TypeVar

import pytest

import palio
from palio.net import security
from palio.net.broker.server import Server, serving
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
    Will,
)
from tests.net.peers import METRICS, asked, configured, get, run
from tests.net.running import until
from tests.net.test_security import Office, tls_text

pytestmark = pytest.mark.usefixtures("loop")
MQTT = '[mqtt]\nlisten = "127.0.0.1:0"\n'
P = TypeVar("P")


class MqttPeer:
    """A client on a socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self._packets = PacketReader(1 << 28)
        self._items: list[Packet] = []

    @classmethod
    async def at(
        cls, server: Server, client_id: str = "c", tls: ssl.SSLContext | None = None, **fields: Any
    ) -> MqttPeer:
        endpoint = server.mqtt_endpoint
        assert endpoint is not None
        peer = cls(
            *await asyncio.open_connection(
                endpoint.host, endpoint.port, ssl=tls, server_hostname="localhost" if tls else None
            )
        )
        fields = {"clean_start": True, "keep_alive_s": 60, **fields}
        peer.send(ConnectPacket(Version.V5, client_id, **fields))
        return peer

    def send(self, *packets: Packet) -> None:
        self.writer.write(b"".join([encode(one, Version.V5) for one in packets]))

    async def next(self, kind: type[P]) -> P:
        """The next packet, which is of this kind."""
        while not self._items:
            data = await self.reader.read(1 << 16)
            assert data, "the connection has ended"
            self._items += self._packets.feed(data)
        found = self._items.pop(0)
        assert isinstance(found, kind), found
        return found

    async def subscribe(self, text: str, qos: int = 1) -> ReasonCode:
        self.send(SubscribePacket(1, ((text, SubscriptionOptions(qos)),)))
        return (await self.next(SubscribeAck)).codes[0]


def test_messages_pass_between_mqtt_and_native_clients(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path, MQTT)) as server:
            peer = await MqttPeer.at(server)
            assert (await peer.next(Connack)).code is ReasonCode.SUCCESS
            assert await peer.subscribe("a/+?temp > 20") is ReasonCode.GRANTED_QOS_1
            async with (
                palio.connect(f"palio://{server.endpoint}", name="n") as client,
                client.subscribe("topic_2 = 'b' AND temp > 20") as notes,
            ):
                peer.send(
                    PublishPacket("a/b", b'{"temp": 21}', 1, packet_id=3,
                            properties={"content_type": "application/json"})
                )  # fmt: skip
                got = [await peer.next((Ack, PublishPacket)) for _ in range(2)]  # type: ignore[type-var]
                assert {type(one) for one in got} == {Ack, PublishPacket}
                note = await anext(aiter(notes))
                assert note.attributes["topic"] == "a/b"
            peer.send(DisconnectPacket())
            assert await peer.reader.read() == b""
            await until(lambda: server.host.connection_count == 0)

    run(scene())


def test_no_socket_of_a_client_that_has_left_is_waited_for(tmp_path: Path) -> None:
    """A broker that stops waits for sockets that are closing, here for hours."""

    async def scene() -> None:
        text = MQTT + '[times]\nstop = "1 h"\n'
        async with serving(configured(tmp_path, text)) as server:
            for client_id in ("polite", "rude", "there"):
                peer = await MqttPeer.at(server, client_id)
                await peer.next(Connack)
                if client_id == "polite":
                    peer.send(DisconnectPacket())
                    assert await peer.reader.read() == b""
                if client_id != "there":
                    peer.writer.close()
            await until(lambda: server.host.connection_count == 1)

    run(scene())


def test_a_certificate_says_who_the_client_is(tmp_path: Path) -> None:
    async def scene() -> None:
        office = Office(tmp_path)
        text = tls_text(office, *office.issue("milan", "localhost"))
        text += f'[identities.ann]\ncertificate = "ann"\nsubscribe = "topic_1 = \'a\'"\n{MQTT}'
        async with serving(configured(tmp_path, text)) as server:
            tls = security.connecting(office.authority, *office.issue("ann", common_name="ann"))
            peer = await MqttPeer.at(server, tls=tls)
            assert (await peer.next(Connack)).code is ReasonCode.SUCCESS
            assert await peer.subscribe("a/#") is ReasonCode.GRANTED_QOS_1
            assert await peer.subscribe("#") is ReasonCode.NOT_AUTHORIZED
            stranger = await MqttPeer.at(server, tls=security.connecting(office.authority))
            assert (await stranger.next(Connack)).code is ReasonCode.NOT_AUTHORIZED

    run(scene())


def test_clients_are_told_when_the_broker_stops(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path, MQTT)) as server:
            peer = await MqttPeer.at(server)
            await peer.next(Connack)
            away = await MqttPeer.at(server, "away", properties={"session_expiry": 100})
            await away.next(Connack)
            away.writer.transport.abort()
            await until(lambda: server.host.connection_count == 2)
        assert (await peer.next(DisconnectPacket)).code is ReasonCode.SERVER_SHUTTING_DOWN

    run(scene())


def test_a_will_is_published_when_the_socket_is_cut(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path, MQTT)) as server:
            reader = await MqttPeer.at(server, "r")
            await reader.next(Connack)
            await reader.subscribe("wills")
            peer = await MqttPeer.at(server, will=Will("wills", b"gone", 1))
            await peer.next(Connack)
            peer.writer.transport.abort()
            assert (await reader.next(PublishPacket)).payload == b"gone"
            await until(lambda: server.host.connection_count == 1)

    run(scene())


def test_many_messages_are_read_at_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path, MQTT)) as server:
            peer = await MqttPeer.at(server)
            await peer.next(Connack)
            await peer.subscribe("t/#", 0)
            await peer.subscribe("t/+?topic_levels = 3", 0)
            peer.send(*[PublishPacket(f"t/{number}", b"x" * 100) for number in range(3000)])
            got = [(await peer.next(PublishPacket)).topic for _ in range(3000)]
            assert got == [f"t/{number}" for number in range(3000)]

    run(scene())


def test_a_client_need_not_wait_for_connack(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path, MQTT)) as server:
            peer = await MqttPeer.at(server)
            peer.send(
                *[PublishPacket("t", b"x" * 1000, 1, packet_id=1 + number) for number in range(900)]
            )
            assert (await peer.next(Connack)).code is ReasonCode.SUCCESS
            assert (await peer.next(Ack)).type is PacketType.PUBACK

    run(scene())


def test_metrics_tell_what_mqtt_clients_do(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path, MQTT + METRICS)) as server:
            peer = await MqttPeer.at(server)
            await peer.next(Connack)
            await peer.subscribe("t")
            peer.send(PublishPacket("t", b"x", 0, True))
            await peer.next(PublishPacket)
            assert server.metrics_endpoint is not None
            _, _, body = await asked(server.metrics_endpoint, get("/metrics"))
            lines = body.decode().splitlines()
            for line in ("mqtt_published_total", "mqtt_delivered_total", "mqtt_sessions"):
                assert f'palio_{line}{{broker="milan"}} 1.0' in lines

    run(scene())
