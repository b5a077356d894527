"""Readers that are no clients of Palio: one of MQTT, one of Server-Sent Events; both connect again by themselves.

paho-mqtt         QoS 1, in a session that stays: what it has not acknowledged comes again, marked
Server-Sent Events  a durable subscription, acknowledged by Last-Event-ID: each message once
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from palio.net.cluster.ports import HOST
from tests.net.judgement import TOPIC, Draws, Id, Repeats, Taken

MQTT, HTTP = "mqtt", "http"
LISTENING = {MQTT: "b2", HTTP: "b3"}
"""The brokers with a listener, by its section in broker.toml."""
_NEEDED = {MQTT: ("paho",), HTTP: ("h11", "websockets")}
_MORE: dict[str, dict[str, object]] = {MQTT: {}, HTTP: {"heartbeat": "500 ms"}}
_SILENT_S_MAX = 3.0
_AGAIN_S = 0.1
_CREDIT = 20
"""The answer ends after so many."""
_SESSION_S = 86_400
_KEEPALIVE_S = 2


def possible() -> list[str]:
    """The listeners whose libraries are installed."""
    return [
        name
        for name, modules in _NEEDED.items()
        if all(importlib.util.find_spec(module) for module in modules)
    ]


def section(listener: str, port: int) -> Mapping[str, Mapping[str, object]]:
    """Of the broker.toml of its home."""
    return {listener: {"listen": f"{HOST}:{port}", **_MORE[listener]}}


def taken_by(listener: str, predicate: str) -> Taken:
    """`predicate`: what it asks for; a topic filter asks for a topic, too."""
    text, repeats = predicate, Repeats.NEVER
    if listener == MQTT:
        text = f"({predicate}) AND topic_1 = '{TOPIC}' AND topic_levels >= 1"
        repeats = Repeats.MARKED
    return Taken(f"{listener}-reader", listener, LISTENING[listener], text, repeats=repeats,
                 has_pauses=True)  # fmt: skip


class MqttReader:
    """Its callbacks run in a thread of paho-mqtt."""

    def __init__(self, address: str, taken: Taken, predicate: str, draws: Draws) -> None:
        self._host, _, port = address.partition(":")
        self._port = int(port)
        self._taken, self._predicate, self._draws = taken, predicate, draws
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Until it is cancelled."""
        from paho.mqtt import client as mqtt

        loop = asyncio.get_running_loop()
        client: Any = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "chaos", protocol=mqtt.MQTTv5)
        client.reconnect_delay_set(_AGAIN_S, 5 * _AGAIN_S)
        client.on_message = lambda _, __, message: loop.call_soon_threadsafe(self._came, message)
        client.on_subscribe = lambda *_: loop.call_soon_threadsafe(self.ready.set)
        stays = mqtt.Properties(mqtt.PacketTypes.CONNECT)
        stays.SessionExpiryInterval = _SESSION_S
        where = mqtt.Properties(mqtt.PacketTypes.SUBSCRIBE)
        where.UserProperty = ("$where", self._predicate)
        await asyncio.to_thread(client.connect, self._host, self._port, _KEEPALIVE_S,
                                clean_start=False, properties=stays)  # fmt: skip
        client.loop_start()
        try:
            client.subscribe(f"{TOPIC}/#", options=mqtt.SubscribeOptions(1), properties=where)
            await asyncio.Event().wait()
        finally:
            client.disconnect()
            await asyncio.shield(asyncio.to_thread(client.loop_stop))

    def _came(self, message: Any) -> None:
        id = Id.of(message.payload)
        self._taken.came(id, message.dup, self._draws.terms(id))


class EventReader:
    """As an EventSource does: it says the last id when it connects again."""

    def __init__(self, address: str, taken: Taken, predicate: str, draws: Draws) -> None:
        self._host, _, port = address.partition(":")
        self._port = int(port)
        self._taken, self._draws = taken, draws
        self._path = f"/v1/events?where={quote(predicate)}&durable=chaos&credit={_CREDIT}"
        self._last_id = ""
        self.ready = asyncio.Event()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            with suppress(OSError, EOFError, TimeoutError):  # the broker or the line is gone
                await self._connected()
            await asyncio.sleep(_AGAIN_S)

    async def _connected(self) -> None:
        async with asyncio.timeout(_SILENT_S_MAX):
            reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            lines = [f"GET {self._path} HTTP/1.1", "Host: localhost"]
            if self._last_id:
                lines.append(f"Last-Event-ID: {self._last_id}")
            writer.write("\r\n".join([*lines, "", ""]).encode())
            async with asyncio.timeout(_SILENT_S_MAX):
                head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                return  # it has not let the other connection go, or not begun to serve
            self.ready.set()
            async for event in _events(reader):
                self._came(event)
        finally:
            writer.transport.abort()

    def _came(self, event: dict[str, str]) -> None:
        if "data" not in event or "event" in event:  # a heartbeat, or the end
            return
        message = json.loads(event["data"])
        id = Id.of(message["body"].encode())
        self._taken.came(id, message.get("again", False), self._draws.terms(id))
        self._last_id = event.get("id", self._last_id)


async def _events(reader: asyncio.StreamReader) -> AsyncIterator[dict[str, str]]:
    """Of an answer in chunks, until it ends."""
    waiting = b""
    while True:
        async with asyncio.timeout(_SILENT_S_MAX):
            size = int(await reader.readuntil(b"\r\n"), 16)
            waiting += (await reader.readexactly(size + 2))[:-2]
        if not size:
            return
        *whole, waiting = waiting.split(b"\n\n")
        for one in whole:
            fields = (line.partition(": ") for line in one.decode().split("\n"))
            yield {name: value for name, _, value in fields}
