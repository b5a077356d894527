"""Durable subscriptions that live at another broker, and how often they deliver."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from palio.net.broker.server import serving
from tests.net.listeners.http.peer import HttpBroker, http_broker, websockets
from tests.net.peers import SECRET, configured, run

ADDRESS = "palio://rome.example.org:7400"


def test_one_that_lives_elsewhere_says_where(tmp_path: Path) -> None:
    async def scene() -> None:
        more = f"[neighbours.rome]\n{SECRET}"
        async with http_broker(tmp_path, more=more) as milan:
            path = tmp_path / "other"
            path.mkdir()
            address = f'address = "{ADDRESS}"\n'
            link = f'[neighbours.milan]\naddress = "{milan.server.endpoint}"\n{SECRET}'
            async with serving(configured(path, address + link, "rome")):
                await asked_at(milan)

    async def asked_at(milan: HttpBroker) -> None:
        poll = "/v1/subscriptions/work@rome/messages?where=TRUE"
        while (answer := await milan.ask("GET", poll)).status == 404:
            await asyncio.sleep(0.02)  # the topology is not known yet
        for path in (poll, "/v1/events?where=TRUE&durable=work@rome"):
            answer = await milan.ask("GET", path)
            assert (answer.status, answer.json["code"]) == (421, "elsewhere")
            assert (answer.json["broker"], answer.json["address"]) == ("rome", ADDRESS)
        answer = await milan.ask("DELETE", "/v1/subscriptions/work@rome")
        assert (answer.status, answer.json["broker"]) == (421, "rome")
        url = f"ws://{milan.endpoint}/v1/socket"
        async with websockets.connect(url, proxy=None) as socket:
            said = {"op": "subscribe", "id": 1, "where": "TRUE", "durable": "work@rome"}
            await socket.send(json.dumps(said))
            found = json.loads(await socket.recv())
            assert (found["op"], found["problem"]["broker"]) == ("error", "rome")

    run(scene())


def test_one_that_lives_here_may_be_called_so(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            path = "/v1/subscriptions/{}/messages?where=TRUE"
            assert (await broker.ask("GET", path.format("work@milan"))).status == 200
            await broker.publish({"attributes": {"n": 1}})
            answer = await broker.ask("GET", path.format("work") + "&wait=5")
            assert [one["attributes"] for one in answer.json["messages"]] == [{"n": 1}]
            for status in (204, 404):
                answer = await broker.ask("DELETE", "/v1/subscriptions/work@milan")
                assert answer.status == status

    run(scene())


def test_deliveries_are_told_and_bounded(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            poll = "/v1/subscriptions/desk/messages?where=n%20%3E%200&deliveries_max=2&wait=5"
            await broker.ask("GET", poll.replace("wait=5", "wait=0"))
            dead = "/v1/subscriptions/dead/messages?where=dead_letter%20%3D%20'desk'"
            await broker.ask("GET", dead)
            await broker.publish({"attributes": {"n": 1}})
            for count in (1, 2):
                (message,) = (await broker.ask("GET", poll)).json["messages"]
                assert (message["deliveries"], message["again"]) == (count, count > 1)
            answer = await broker.ask("GET", dead + "&wait=5")
            assert answer.json["messages"][0]["attributes"]["dead_reason"] == "deliveries"
            for wrong in ("0", "1.5", "x", "1000001"):
                answer = await broker.ask("GET", poll.replace("max=2", f"max={wrong}"))
                assert answer.status == 400
            peer = await broker.connect()
            await peer.send("GET", "/v1/events?where=n%20%3E%201&durable=sse&deliveries_max=3")
            assert (await peer.head()).status == 200
            await broker.publish({"attributes": {"n": 2}})
            assert json.loads((await peer.event())["data"])["deliveries"] == 1
            peer.close()
            answer = await broker.ask("GET", "/v1/events?where=TRUE&deliveries_max=3")
            assert answer.status == 400, "only of a durable one"

    run(scene())
