"""The CloudEvents SDK for JavaScript publishes over HTTP and MQTT, and reads what a sink gets."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

import palio
from palio.net.broker.server import serving
from tests.net.listeners.fetched import npm_package, program
from tests.net.listeners.http.peer import http_broker
from tests.net.peers import LOOPS, configured

pytest.importorskip("httpcore", reason="needs palio[http]")

RUN_S_MAX = 60
PROGRAM = """
import http from "node:http";
import { CloudEvent, HTTP } from "cloudevents";

const base = process.argv[2];
const received = [];
const sink = http.createServer((request, response) => {
  let body = "";
  request.on("data", (part) => (body += part));
  request.on("end", () => {
    if (request.method === "OPTIONS") {
      response.setHeader("WebHook-Allowed-Origin", request.headers["webhook-request-origin"]);
    } else {
      received.push(HTTP.toEvent({ headers: request.headers, body }));
    }
    response.end();
  });
});
await new Promise((ready) => sink.listen(0, "127.0.0.1", ready));
for (const mode of ["binary", "structured"]) {
  const made = await fetch(`${base}/v1/cloudevents/subscriptions`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({
      protocol: "HTTP", sink: `http://127.0.0.1:${sink.address().port}/`, config: { mode },
      filters: [{ sql: "EXISTS sequence AND sequence > 1" }],
    }),
  });
  if (made.status !== 201) throw new Error(await made.text());
}
for (const [sequence, write] of [[1, HTTP.binary], [2, HTTP.structured], [3, HTTP.binary]]) {
  const event = new CloudEvent({ source: "/js", type: "made", sequence, data: { sequence } });
  const { headers, body } = write(event);
  const answer = await fetch(`${base}/v1/events`, { method: "POST", headers, body });
  if (answer.status !== 200) throw new Error(await answer.text());
}
while (received.length < 4) await new Promise((go) => setTimeout(go, 20));
console.log(JSON.stringify(received.map((event) => [event.source, event.data.sequence])));
process.exit(0);
"""
SINKS = '[sinks]\nnetworks = ["127.0.0.0/8"]\nhttp = true\n'


async def said(folder: Path, seconds: float, *command: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(seconds):
            out, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return None, "it took too long"
    return process.returncode, out.decode()


def prepared(folder: Path, text: str, *packages: str) -> list[str]:
    """The command that runs a program with packages of npm."""
    node = program("node")
    (folder / "node_modules").mkdir()
    for package in packages:
        for module in npm_package(package).iterdir():
            place = folder / "node_modules" / module.name
            if not place.exists():
                place.symlink_to(module)
    (folder / "program.mjs").write_text(text)
    return [node, "--preserve-symlinks", "program.mjs"]


def test_the_sdk_for_javascript(tmp_path: Path) -> None:
    command = prepared(tmp_path, PROGRAM, "cloudevents@8")

    async def scene() -> None:
        async with http_broker(tmp_path, more=SINKS) as broker:
            code, out = await said(tmp_path, RUN_S_MAX, *command, f"http://{broker.endpoint}")
            assert code == 0, out
            expected = [["/js", n] for n in (2, 3)] * 2
            assert sorted(json.loads(out)) == sorted(expected)

    with asyncio.Runner(loop_factory=LOOPS["uvloop"]) as runner:
        runner.run(scene())


OVER_MQTT = """
import mqtt from "mqtt";
import { CloudEvent, MQTT } from "cloudevents";

const client = await mqtt.connectAsync(process.argv[2], { protocolVersion: 5, clientId: "js" });
for (const [sequence, write] of [[1, MQTT.binary], [2, MQTT.structured]]) {
  const event = new CloudEvent({ source: "/js", type: "made", sequence, datacontenttype: "application/json", data: { temp: 30 } });
  const message = write(event);
  const headers = message["User Properties"] ?? {};
  const said = Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined));
  const properties = { contentType: message.PUBLISH?.["Content Type"] };
  if (Object.keys(said).length) properties.userProperties = said;  // MQTT.js cannot send none of them
  const payload = typeof message.payload === "string" ? message.payload : JSON.stringify(message.payload);
  await client.publishAsync("events/made", payload, { qos: 1, properties });
}
await client.endAsync();
"""


def test_the_sdk_for_javascript_over_mqtt(tmp_path: Path) -> None:
    """Binary and structured mode are one event to whoever subscribes."""
    command = prepared(tmp_path, OVER_MQTT, "cloudevents@8", "mqtt@5")

    async def scene() -> None:
        text = '[mqtt]\nlisten = "127.0.0.1:0"\n'
        async with (
            serving(configured(tmp_path, text)) as server,
            palio.connect(f"palio://{server.endpoint}", name="n") as client,
            client.subscribe("type = 'made' AND source = '/js' AND data.temp > 25") as notes,
        ):
            where = f"mqtt://{server.mqtt_endpoint}"
            code, out = await said(tmp_path, RUN_S_MAX, *command, where)
            assert code == 0, out
            got = [(await anext(aiter(notes))).attributes["sequence"] for _ in range(2)]
            assert sorted(map(int, got)) == [1, 2]  # in a header of MQTT it is a text

    with asyncio.Runner(loop_factory=LOOPS["uvloop"]) as runner:
        runner.run(scene())
