"""Clients of five kinds at the brokers of a ring, each with what it got.

    MqttPublisher    QoS 1, with a session; publishes JSON on topics
    NativeClient     a durable subscription of Palio's own client
    Page             Server-Sent Events, as an EventSource reads them: again from the last id
    Device           MQTT, QoS 1, with a session and a predicate in $where

All go on by themselves when their broker was killed. What arrives twice is counted once: neither QoS 1 nor a
client that was disconnected before it acknowledged promises more.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
from typing import Any, Self
from urllib.parse import urlencode

import paho.mqtt.client as mqtt

from palio.errors import NetworkError
from palio.net import blocking

HOST = "127.0.0.1"
SESSION_S = 3600
PATIENCE_S = 60
_AGAIN_S = 0.2


class Receiver:
    """`numbers`: the attribute n of each message."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self.is_closed = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.is_closed = True
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        while not self.is_closed:
            try:
                self._receive()
            except (NetworkError, OSError, http.client.HTTPException):
                time.sleep(_AGAIN_S)

    def _receive(self) -> None:
        raise NotImplementedError


class NativeClient(Receiver):
    def __init__(self, url: str, predicate: str) -> None:
        super().__init__()
        self._url, self._predicate = url, predicate

    def _receive(self) -> None:
        with (
            blocking.connect(self._url, name="native") as client,
            client.subscribe(self._predicate, durable="native", timeout=0.5) as notes,
        ):
            while not self.is_closed:
                for note in notes:
                    self.numbers.add(note.attributes["n"])
                    note.ack()


class Page(Receiver):
    def __init__(self, port: int, predicate: str) -> None:
        super().__init__()
        self._port = port
        self._path = "/v1/events?" + urlencode({"where": predicate, "durable": "page"})
        self._last = ""

    def _receive(self) -> None:
        connection = http.client.HTTPConnection(HOST, self._port, timeout=5)
        try:
            fields = {"Last-Event-ID": self._last} if self._last else {}
            connection.request("GET", self._path, headers=fields)
            answer = connection.getresponse()
            id = ""
            while not self.is_closed and (line := answer.readline()):
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name == "id":
                    id = value
                elif name == "data" and value.startswith("{"):
                    self.numbers.add(json.loads(value)["attributes"]["n"])
                elif not name and id:
                    self._last = id
        finally:
            connection.close()


def _session(port: int, name: str) -> mqtt.Client:
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, name, protocol=mqtt.MQTTv5)
    client.reconnect_delay_set(1, 1)
    properties = mqtt.Properties(mqtt.PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = SESSION_S
    client.connect_async(HOST, port, keepalive=5, clean_start=False, properties=properties)
    return client


class Device:
    """`is_ready` once the broker has granted its subscription."""

    def __init__(self, port: int, topics: str, where: str) -> None:
        self.numbers: set[int] = set()
        self.is_ready = threading.Event()
        self._client = _session(port, "device")

        def subscribe(client: mqtt.Client, *_: object) -> None:
            properties = mqtt.Properties(mqtt.PacketTypes.SUBSCRIBE)  # type: ignore[no-untyped-call]
            properties.UserProperty = ("$where", where)
            client.subscribe(topics, options=mqtt.SubscribeOptions(1), properties=properties)

        self._client.on_connect = subscribe
        self._client.on_subscribe = lambda *_: self.is_ready.set()
        self._client.on_message = lambda _, __, message: self._got(message)

    def _got(self, message: Any) -> None:
        self.numbers.add(json.loads(message.payload)["n"])

    def __enter__(self) -> Self:
        self._client.loop_start()
        assert self.is_ready.wait(PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()


class MqttPublisher:
    def __init__(self, port: int) -> None:
        self._client = _session(port, "sensor")
        self._waiting: set[int] = (
            set()
        )  # numbers of packets; paho keeps them while it is not connected
        self._acknowledged: set[int] = set()
        self._client.on_publish = lambda _, __, number, *___: self._acknowledged.add(number)

    def __enter__(self) -> Self:
        self._client.loop_start()
        return self

    def __exit__(self, *_: object) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def publish(self, topic: str, attributes: dict[str, object]) -> None:
        properties = mqtt.Properties(mqtt.PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        properties.ContentType = "application/json"
        sent = self._client.publish(topic, json.dumps(attributes), 1, properties=properties)
        self._waiting.add(sent.mid)

    def wait(self, patience_s: float) -> None:
        """Until the broker has acknowledged all."""
        until = time.monotonic() + patience_s
        while not self._waiting <= self._acknowledged:
            assert time.monotonic() < until, "the broker has not acknowledged all messages"
            time.sleep(0.05)
