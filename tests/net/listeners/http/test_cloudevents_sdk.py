"""The CloudEvents SDK for JavaScript publishes, and reads what a sink gets. It comes by npm, where that is."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from tests.net.listeners.http.peer import http_broker
from tests.net.peers import LOOPS

pytest.importorskip("httpcore", reason="needs palio[http]")

INSTALL_S_MAX = 60
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


def test_the_sdk_for_javascript(tmp_path: Path) -> None:
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")

    async def scene() -> None:
        (tmp_path / "package.json").write_text('{"type": "module"}')
        flags = ("--no-audit", "--no-fund", "--silent")
        code, out = await said(tmp_path, INSTALL_S_MAX, "npm", "install", *flags, "cloudevents@8")
        if code != 0:
            pytest.skip(f"the package cloudevents is not to be had: {out[-200:]}")
        (tmp_path / "program.mjs").write_text(PROGRAM)
        async with http_broker(tmp_path, more=SINKS) as broker:
            base = f"http://{broker.endpoint}"
            code, out = await said(tmp_path, RUN_S_MAX, "node", "program.mjs", base)
            assert code == 0, out
            expected = [["/js", n] for n in (2, 3)] * 2
            assert sorted(json.loads(out)) == sorted(expected)

    with asyncio.Runner(loop_factory=LOOPS["uvloop"]) as runner:
        runner.run(scene())
