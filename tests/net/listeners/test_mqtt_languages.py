"""Clients of MQTT in other languages: MQTT.js, in Node.js and in a browser, Eclipse Paho for Go and for Java.

Each subscribes with `$where`, publishes with QoS 0, 1 and 2, and prints what it got.
"""

from __future__ import annotations

import asyncio
import http.server
import json
import os
import shutil
import threading
from functools import partial
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote

import pytest

from palio.net.broker.server import Server, serving
from palio.net.config import Config
from tests.net.listeners.fetched import go_program, maven_jar, npm_package, program
from tests.net.peers import LOOPS, configured
from tests.net.running import until

RUN_S_MAX = 60
HOT = '{"temp":30}'
GOT = [["a/b", HOT, 0], ["a/b", HOT, 1], ["a/b", HOT, 2]]
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")


def output(tmp_path: Path, *command: str, transport: str = "") -> object:
    """What a client prints; the address of a broker is the last argument."""

    async def scene() -> bytes:
        async with asyncio.timeout(RUN_S_MAX), serving(config(tmp_path)) as server:
            process = await asyncio.create_subprocess_exec(
                *command, address(server, transport), cwd=tmp_path,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            said, errors = await process.communicate()
            assert process.returncode == 0, errors.decode()
            return said

    with asyncio.Runner(loop_factory=LOOPS["uvloop"]) as runner:
        return json.loads(runner.run(scene()))


def config(folder: Path, more: str = "") -> Config:
    text = f'[mqtt]\nlisten = "127.0.0.1:0"\nwebsocket = "127.0.0.1:0"\n{more}'
    return configured(folder, text)


def address(server: Server, transport: str) -> str:
    endpoint = server.mqtt_websocket_endpoint if transport == "ws" else server.mqtt_endpoint
    return f"{transport}://{endpoint}" if transport else str(endpoint)


JAVASCRIPT = """
const got = []
const client = mqtt.connect(ADDRESS, { protocolVersion: 5, clientId: "js" })
client.on("message", (topic, payload, packet) => {
  got.push([topic, payload.toString(), packet.qos])
  if (got.length == 3) { tell(JSON.stringify(got)); client.end() }
})
client.on("connect", () => client.subscribe("a/+", { qos: 2, properties: { userProperties: { $where: "temp > 25" } } }, () => {
  const properties = { contentType: "application/json" }
  for (const qos of [0, 1, 2])
    for (const temp of [20, 30]) client.publish("a/b", JSON.stringify({ temp }), { qos, properties })
}))
"""


@pytest.mark.parametrize("transport", ["ws", "mqtt"])
def test_mqtt_js(tmp_path: Path, transport: str) -> None:
    node = program("node")
    modules = npm_package("mqtt@5")
    head = f"const mqtt = require({json.dumps(str(modules / 'mqtt'))})\n"
    head += "const ADDRESS = process.argv[2], tell = console.log\n"
    (tmp_path / "client.js").write_text(head + JAVASCRIPT)
    assert output(tmp_path, node, "client.js", transport=transport) == GOT


class Pages(http.server.SimpleHTTPRequestHandler):
    """Serves a page, and hears what it tells."""

    told: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        if self.path.startswith("/tell?"):
            self.told.append(unquote(self.path.removeprefix("/tell?")))
            self.send_response(204)
            self.end_headers()
        else:
            super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


def test_mqtt_js_in_a_browser(tmp_path: Path) -> None:
    browser = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if browser is None:
        pytest.skip("no Chromium is installed")
    shutil.copy(npm_package("mqtt@5") / "mqtt" / "dist" / "mqtt.min.js", tmp_path)
    pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Pages, directory=tmp_path))
    threading.Thread(target=pages.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{pages.server_port}"

    async def scene() -> None:
        allowed = f'websocket_origins = ["{origin}"]\n'
        async with asyncio.timeout(RUN_S_MAX), serving(config(tmp_path, allowed)) as server:
            head = f"const ADDRESS = {json.dumps(address(server, 'ws'))}\n"
            head += "const tell = (what) => fetch('/tell?' + encodeURIComponent(what))\n"
            page = f"<script src='mqtt.min.js'></script><script>{head}{JAVASCRIPT}</script>"
            (tmp_path / "page.html").write_text(page)
            options = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0")
            process = await asyncio.create_subprocess_exec(
                browser, *options, f"--user-data-dir={tmp_path}/profile", f"{origin}/page.html",
                stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            try:
                await until(lambda: bool(Pages.told))
            finally:
                process.terminate()
                await process.wait()

    try:
        with asyncio.Runner(loop_factory=LOOPS["uvloop"]) as runner:
            runner.run(scene())
    finally:
        pages.shutdown()
    assert json.loads(Pages.told[0]) == GOT


GO_MODULES = """module client

go 1.23

require github.com/eclipse/paho.golang v0.22.0
"""
GO = """
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/eclipse/paho.golang/paho"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	socket, err := net.Dial("tcp", os.Args[1])
	check(err)
	got := make(chan []any, 10)
	client := paho.NewClient(paho.ClientConfig{
		Conn: socket,
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){
			func(received paho.PublishReceived) (bool, error) {
				packet := received.Packet
				got <- []any{packet.Topic, string(packet.Payload), packet.QoS}
				return true, nil
			}},
	})
	_, err = client.Connect(ctx, &paho.Connect{ClientID: "go", CleanStart: true, KeepAlive: 30})
	check(err)
	_, err = client.Subscribe(ctx, &paho.Subscribe{
		Properties:    &paho.SubscribeProperties{User: paho.UserProperties{{Key: "$where", Value: "temp > 25"}}},
		Subscriptions: []paho.SubscribeOptions{{Topic: "a/+", QoS: 2}},
	})
	check(err)
	for qos := byte(0); qos < 3; qos++ {
		for _, payload := range []string{`{"temp":20}`, `{"temp":30}`} {
			_, err = client.Publish(ctx, &paho.Publish{Topic: "a/b", QoS: qos, Payload: []byte(payload),
				Properties: &paho.PublishProperties{ContentType: "application/json"}})
			check(err)
		}
	}
	var all [][]any
	for len(all) < 3 {
		all = append(all, <-got)
	}
	text, err := json.Marshal(all)
	check(err)
	fmt.Println(string(text))
	check(client.Disconnect(&paho.Disconnect{}))
}
"""


@pytest.mark.slow  # the compiler takes longer than the test
def test_paho_for_go(tmp_path: Path) -> None:
    folder = tmp_path / "go"
    folder.mkdir()
    (folder / "go.mod").write_text(GO_MODULES)
    (folder / "main.go").write_text(GO)
    assert output(tmp_path, str(go_program(folder))) == GOT


JAVA = """
import java.util.*;
import java.util.concurrent.*;
import org.eclipse.paho.mqttv5.client.*;
import org.eclipse.paho.mqttv5.client.persist.MemoryPersistence;
import org.eclipse.paho.mqttv5.common.*;
import org.eclipse.paho.mqttv5.common.packet.*;

public class Client {
  public static void main(String[] given) throws Exception {
    MqttAsyncClient client = new MqttAsyncClient("tcp://" + given[0], "java", new MemoryPersistence());
    BlockingQueue<String> got = new LinkedBlockingQueue<>();
    client.connect().waitForCompletion(20000);
    MqttProperties where = new MqttProperties();
    where.setUserProperties(List.of(new UserProperty("$where", "temp > 25")));
    IMqttMessageListener listener = (topic, message) -> got.add(
        "[\\"" + topic + "\\", \\"" + message.toString().replace("\\"", "\\\\\\"") + "\\", " + message.getQos() + "]");
    client.setCallback(new MqttCallback() {
      public void messageArrived(String topic, MqttMessage message) throws Exception { listener.messageArrived(topic, message); }
      public void disconnected(MqttDisconnectResponse response) {}
      public void mqttErrorOccurred(MqttException error) { error.printStackTrace(); }
      public void deliveryComplete(IMqttToken token) {}
      public void connectComplete(boolean again, String uri) {}
      public void authPacketArrived(int code, MqttProperties properties) {}
    });
    client.subscribe(new MqttSubscription[] {new MqttSubscription("a/+", 2)}, null, null, where).waitForCompletion(20000);
    for (int qos = 0; qos < 3; qos++) {
      for (int temp : new int[] {20, 30}) {
        MqttMessage message = new MqttMessage(("{\\"temp\\":" + temp + "}").getBytes(), qos, false, new MqttProperties());
        message.getProperties().setContentType("application/json");
        client.publish("a/b", message).waitForCompletion(20000);
      }
    }
    List<String> all = new ArrayList<>();
    while (all.size() < 3) all.add(got.take());
    System.out.println(all);
    client.disconnect().waitForCompletion(20000);
    client.close();
    System.exit(0);
  }
}
"""


def test_paho_for_java(tmp_path: Path) -> None:
    program("javac")
    jar = maven_jar("org.eclipse.paho", "org.eclipse.paho.mqttv5.client", "1.2.5")
    (tmp_path / "Client.java").write_text(JAVA)
    got = output(tmp_path, program("java"), "-cp", os.fspath(jar), "Client.java")
    assert got == GOT
