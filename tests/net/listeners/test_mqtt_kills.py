"""kill -9 of a broker under clients of paho-mqtt: QoS 2 arrives once, QoS 1 at least once; wills too."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from palio.net.cluster.ports import free_ports
from tests.net.listeners.test_mqtt_clients import installed
from tests.net.test_broker_process import Process, processes  # noqa: F401

MESSAGES = 150
KILLS = 3


def test_nothing_is_lost_or_doubled(tmp_path: Path, processes: list[Process]) -> None:  # noqa: F811
    mqtt = installed("paho.mqtt.client")
    port, native = free_ports(0, 2)
    config = tmp_path / "milan.toml"
    config.write_text(
        f'[broker]\nname = "milan"\nlisten = "127.0.0.1:{native}"\ndata = "{tmp_path}/data"\n'
        f'[mqtt]\nlisten = "127.0.0.1:{port}"\n'
    )
    processes.append(Process(config))
    got: dict[str, list[bytes]] = {"q/1": [], "q/2": [], "wills": []}
    subscribed = threading.Event()

    class Client(mqtt.Client):  # type: ignore[misc, name-defined]
        """paho-mqtt 2.2 publishes once more what is released already when a reconnect has failed, with DUP 0
        and against MQTT-4.3.3-6. No broker can tell that from a new message, so it is mended here."""

        def _messages_reconnect_reset_out(self) -> None:
            waiting = self._out_messages.values()
            released = [one for one in waiting if one.state == mqtt.mqtt_ms_resend_pubrel]
            super()._messages_reconnect_reset_out()
            for one in released:
                one.state = mqtt.mqtt_ms_resend_pubrel

    def client(name: str, stays: bool = True) -> Any:
        made = Client(mqtt.CallbackAPIVersion.VERSION2, name, protocol=mqtt.MQTTv5)
        made.reconnect_delay_set(0.05, 0.1)
        if not stays:
            made.will_set("wills", name, 1)
        properties = mqtt.Properties(mqtt.PacketTypes.CONNECT)
        properties.SessionExpiryInterval = 1000 if stays else 0
        made.connect("127.0.0.1", port, clean_start=False, properties=properties)
        made.loop_start()
        return made

    reader = client("reader")
    reader.on_message = lambda _, __, message: got[message.topic].append(message.payload)
    reader.on_subscribe = lambda *_: subscribed.set()
    reader.subscribe([("q/1", mqtt.SubscribeOptions(1)), ("q/2", mqtt.SubscribeOptions(2))])
    reader.subscribe("wills", options=mqtt.SubscribeOptions(2))
    assert subscribed.wait(10)
    mortal, writer = client("mortal", stays=False), client("writer")
    wait(mortal.is_connected)
    mortal.loop_stop()  # it does not come back by itself
    published: list[int] = []
    writer.on_publish = lambda _, __, mid, ___, ____: published.append(mid)
    for number in range(MESSAGES):
        for qos in (1, 2):
            writer.publish(f"q/{qos}", b"%d" % number, qos)
        time.sleep(0.005)
        if number % (MESSAGES // KILLS) == MESSAGES // KILLS // 2:
            processes[-1].end(signal.SIGKILL)
            processes.append(Process(config))
    wait(lambda: len(published) >= 2 * MESSAGES)
    wanted = [b"%d" % number for number in range(MESSAGES)]
    wait(lambda: len(got["q/2"]) >= MESSAGES and len(set(got["q/1"])) >= MESSAGES)
    time.sleep(0.5)  # for what comes twice
    reader.disconnect()
    writer.disconnect()
    for one in (reader, writer):
        one.loop_stop()
    assert sorted(got["q/2"], key=int) == wanted, "once"
    assert sorted(set(got["q/1"]), key=int) == wanted, "at least once"
    assert got["wills"] == [b"mortal"]


def wait(condition: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.02)
