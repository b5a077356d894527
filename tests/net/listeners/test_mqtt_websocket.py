"""MQTT over WebSocket: clients that others wrote, origins, frames that are cut anywhere, and what is no packet."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from palio.net import security
from palio.net.broker.server import Server, serving
from palio.net.endpoint import Endpoint
from palio.protocol.mqtt.packets.encoding import encode
from palio.protocol.mqtt.packets.reader import PacketReader
from palio.protocol.mqtt.packets.values import (
    Connack,
    ConnectPacket,
    Packet,
    PingRequest,
    PingResponse,
    PublishPacket,
    SubscribePacket,
    SubscriptionOptions,
    Version,
)
from tests.fuzz.mqtt_sockets import ServedSockets, frame
from tests.net.listeners.test_mqtt_clients import installed, wait
from tests.net.peers import configured, run
from tests.net.running import until
from tests.net.test_security import Office, tls_text

pytestmark = pytest.mark.usefixtures("loop")
MQTT = '[mqtt]\nlisten = "127.0.0.1:0"\nwebsocket = "127.0.0.1:0"\n'
CONNECT = encode(ConnectPacket(Version.V5, "c", True, 60), Version.V5)


def at(server: Server) -> Endpoint:
    endpoint = server.mqtt_websocket_endpoint
    assert endpoint is not None
    return endpoint


def url(server: Server) -> str:
    return f"ws://{at(server)}/mqtt"


async def packets(socket: ClientConnection, count: int) -> list[Packet]:
    reader, found = PacketReader(1 << 20), []
    while len(found) < count:
        data = await socket.recv()
        assert isinstance(data, bytes)
        found += list(reader.feed(data))
    return found


def test_packets_may_lie_in_frames_as_they_like(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path, MQTT)) as server:
            async with connect(url(server), subprotocols=["mqtt"]) as socket:
                for byte in CONNECT:
                    await socket.send(bytes([byte]))
                assert isinstance((await packets(socket, 1))[0], Connack)
                await socket.send(
                    [b"\xc0", b"\x00\xc0", b"\x00"]
                )  # one message, in three fragments
                assert await packets(socket, 2) == [PingResponse()] * 2
                subscribe = SubscribePacket(1, (("t", SubscriptionOptions(0)),))
                many = [PublishPacket("t", b"x" * 1000)] * 2000
                await socket.send(b"".join([encode(one, Version.V5) for one in (subscribe, *many)]))
                assert (await packets(socket, 2001))[1:] == many
            await until(lambda: server.host.connection_count == 0)

    run(scene())


def test_who_is_not_let_in(tmp_path: Path) -> None:
    async def scene() -> None:
        text = MQTT + 'websocket_origins = ["https://app.example.org"]\n'
        async with serving(configured(tmp_path, text)) as server:
            with pytest.raises(InvalidStatus, match="400"):
                await connect(url(server))
            with pytest.raises(InvalidStatus, match="400"):
                await connect(url(server), subprotocols=["wamp"])  # type: ignore[list-item]
            with pytest.raises(InvalidStatus, match="403"):
                await connect(url(server), subprotocols=["mqtt"], origin="https://evil.example.org")  # type: ignore[list-item, arg-type]
            async with connect(
                url(server), subprotocols=["mqtt"], origin="https://app.example.org"  # type: ignore[list-item, arg-type]
            ) as socket:  # fmt: skip
                await socket.send(CONNECT)
                await packets(socket, 1)
                await socket.send("a text")
                with pytest.raises(ConnectionClosed, match="1003"):
                    await socket.recv()
            await until(lambda: server.host.connection_count == 0)

    run(scene())


def test_frames_that_come_with_the_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The request is answered before they are read, whether it is refused or they are wrong."""

    async def answer(server: Server, protocol: bytes, frames: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(*at(server))
        writer.write(
            b"GET /mqtt HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Protocol: %s\r\n\r\n%s" % (protocol, frames)
        )
        async with asyncio.timeout(10):
            found = await reader.read()
        writer.close()
        return found

    async def scene() -> None:
        async with serving(configured(tmp_path, MQTT)) as server:
            assert (await answer(server, b"wamp", b"v=")).startswith(b"HTTP/1.1 400 ")
            found = await answer(server, b"mqtt\r\nHost: other", b"")
            assert found.startswith(b"HTTP/1.1 400 "), "two Hosts"
            for wrong in (b"v=", b"\x8f\x80\0\0\0\0"):
                found = await answer(server, b"mqtt", wrong)
                assert found.startswith(b"HTTP/1.1 101 ")
                assert b"\x03\xea" in found, "1002: a protocol error"
            await until(lambda: server.host.connection_count == 0)

    run(scene())
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def test_what_follows_a_text_is_no_packet() -> None:
    request = (
        b"GET /mqtt HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Protocol: mqtt\r\n\r\n"
    )
    frames = [frame(2, b"one", b"abcd"), frame(1, b"two", b"abcd"), frame(2, b"three", b"abcd")]
    data, _, is_over = ServedSockets().read([request + b"".join(frames)])
    assert data == b"one"
    assert is_over


def test_tls(tmp_path: Path) -> None:
    async def scene() -> None:
        office = Office(tmp_path)
        text = tls_text(office, *office.issue("milan", "localhost"))
        text += '[access]\nanonymous = true\nsubscribe = "TRUE"\npublish = "TRUE"\n' + MQTT
        async with serving(configured(tmp_path, text)) as server:
            tls = security.connecting(office.authority)
            where = f"wss://localhost:{at(server).port}/mqtt"
            async with connect(where, subprotocols=["mqtt"], ssl=tls) as socket:  # type: ignore[list-item]
                await socket.send(CONNECT + encode(PingRequest(), Version.V5))
                assert isinstance((await packets(socket, 2))[1], PingResponse)

    run(scene())


def test_paho(tmp_path: Path) -> None:
    mqtt = installed("paho.mqtt.client")
    got: list[bytes] = []

    def client(endpoint: Endpoint) -> None:
        made = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, "p", transport="websockets", protocol=mqtt.MQTTv5
        )
        subscribed: list[object] = []
        made.on_message = lambda _, __, message: got.append(message.payload)
        made.on_subscribe = lambda *_: subscribed.append(1)
        made.connect(endpoint.host, endpoint.port)
        made.loop_start()
        made.subscribe("a/#", 2)
        wait(lambda: subscribed)
        for qos in range(3):
            made.publish("a/b", b"%d" % qos, qos)
        wait(lambda: len(got) == 3)
        made.disconnect()
        made.loop_stop()

    async def scene() -> None:
        async with serving(configured(tmp_path, MQTT)) as server:
            await asyncio.to_thread(client, at(server))

    run(scene())
    assert got == [b"0", b"1", b"2"]
