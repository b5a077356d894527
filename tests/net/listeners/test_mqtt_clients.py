"""Clients that others wrote: paho-mqtt, aiomqtt, gmqtt, mosquitto_pub and mosquitto_sub."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from palio.net.broker.server import Server, serving
from palio.net.endpoint import Endpoint
from tests.net.peers import configured, run
from tests.net.running import until

MQTT = '[mqtt]\nlisten = "127.0.0.1:0"\n'
WHERE = ("$where", "temp > 25")
HOT, COLD = b'{"temp": 30}', b'{"temp": 20}'


def installed(name: str) -> ModuleType:
    return pytest.importorskip(name, reason=f"{name} is not installed: pip install palio[dev]")  # type: ignore[no-any-return]


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: apt install mosquitto-clients")
    return found


def at(server: Server) -> Endpoint:
    endpoint = server.mqtt_endpoint
    assert endpoint is not None
    return endpoint


@pytest.mark.parametrize("version", ["5", "311"])
def test_paho(tmp_path: Path, version: str) -> None:
    mqtt = installed("paho.mqtt.client")
    got: list[Any] = []
    granted: list[Any] = []

    def clients(endpoint: Endpoint) -> None:
        protocol = mqtt.MQTTv5 if version == "5" else mqtt.MQTTv311
        client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "c", protocol=protocol)
        client.on_message = lambda _, __, message: got.append(message)
        client.on_subscribe = lambda _, __, ___, codes, ____: granted.extend(codes)
        client.connect(endpoint.host, endpoint.port)
        client.loop_start()
        if version == "5":
            properties = mqtt.Properties(mqtt.PacketTypes.SUBSCRIBE)
            properties.UserProperty = WHERE
            client.subscribe("a/+", options=mqtt.SubscribeOptions(2), properties=properties)
        else:
            client.subscribe("+/b?temp > 25", 2)
        wait(lambda: granted)
        for qos in range(3):
            for payload in (HOT, COLD):
                client.publish("a/b", payload, qos).wait_for_publish(10)
        wait(lambda: len(got) >= 3)
        client.disconnect()
        client.loop_stop()

    async def scene() -> None:
        text = MQTT + 'payload = "json"\n'
        async with serving(configured(tmp_path, text)) as server:
            await asyncio.to_thread(clients, at(server))

    run(scene())
    assert [(one.payload, one.qos) for one in got] == [(HOT, 0), (HOT, 1), (HOT, 2)]


def wait(condition: Any) -> None:
    """As `until`, in a thread."""
    asyncio.run(until(condition))


def test_aiomqtt(tmp_path: Path) -> None:
    aiomqtt = installed("aiomqtt")

    async def scene() -> None:
        async with serving(configured(tmp_path, MQTT)) as server:
            endpoint = at(server)
            will = aiomqtt.Will("wills", b"gone", 1)
            async with aiomqtt.Client(endpoint.host, endpoint.port, identifier="r") as reader:
                await reader.subscribe("#", qos=1)
                async with aiomqtt.Client(
                    endpoint.host, endpoint.port, identifier="w", will=will
                ) as writer:
                    for qos in range(3):
                        await writer.publish("a/b", b"%d" % qos, qos)
                messages = aiter(reader.messages)
                got = [(await anext(messages)).payload for _ in range(3)]
                assert got == [b"0", b"1", b"2"]

    # paho, on which it builds, needs a loop that watches sockets for it: both do
    run(scene())


def test_gmqtt(tmp_path: Path) -> None:
    gmqtt = installed("gmqtt")
    got: list[tuple[str, bytes, int, Any]] = []

    async def scene() -> None:
        async with serving(configured(tmp_path, MQTT)) as server:
            endpoint = at(server)
            client = gmqtt.Client("c")
            subscribed = asyncio.Event()
            client.on_message = lambda _, topic, payload, qos, properties: got.append(
                (topic, payload, qos, properties)
            )
            client.on_subscribe = lambda *_: subscribed.set()
            await client.connect(endpoint.host, endpoint.port)
            client.subscribe("a/#", qos=1, user_property=WHERE, subscription_identifier=9)
            await subscribed.wait()
            for payload in (HOT, COLD):
                client.publish("a/b", payload, qos=1, content_type="application/json")
            await until(lambda: bool(got))
            await client.disconnect()

    run(scene())
    ((topic, payload, qos, properties),) = got
    assert (topic, payload, qos) == ("a/b", HOT, 1)
    assert properties["subscription_identifier"] == [9]
    assert properties["content_type"] == ["application/json"]


@pytest.mark.parametrize("version", ["5", "311"])
def test_mosquitto_pub_and_sub(tmp_path: Path, version: str) -> None:
    pub, sub = program("mosquitto_pub"), program("mosquitto_sub")

    async def scene() -> bytes:
        async with serving(configured(tmp_path, MQTT)) as server:
            endpoint = at(server)
            where = ["-h", endpoint.host, "-p", str(endpoint.port), "-V", version]
            await called(pub, *where, "-t", "a/kept", "-m", "0", "-q", "1", "-r")
            reader = await asyncio.create_subprocess_exec(
                sub, *where, "-t", "a/#", "-q", "2", "-C", "3", "-W", "20", "-F", "%t %q %r %p",
                stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            await until(lambda: server.host.snapshot().subscriptions > 0)
            for qos in ("1", "2"):
                await called(pub, *where, "-t", "a/b", "-m", qos, "-q", qos)
            output, _ = await reader.communicate()
            return output

    assert run(scene()).split(b"\n") == [b"a/kept 1 1 0", b"a/b 1 0 1", b"a/b 2 0 2", b""]


async def called(*words: str) -> None:
    process = await asyncio.create_subprocess_exec(*words)
    assert await process.wait() == 0
