"""Subscriptions with sinks at a broker: made over HTTP, delivered, changed, kept over a restart."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpcore", reason="needs palio[http]")

import palio
from tests.net.listeners.http.peer import Answer, HttpBroker, http_broker, identity
from tests.net.peers import run
from tests.net.sinks.test_worker import Sink, serving

SINKS = '[sinks]\nnetworks = ["127.0.0.0/8"]\nhttp = true\nretry = "10 ms"\nattempts = 3\n'
PATH = "/v1/cloudevents/subscriptions"
JSON = {"Content_Type": "application/json"}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


async def made(broker: HttpBroker, sink: Sink, token: str = "", **members: Any) -> Answer:
    return await asked(broker, "POST", PATH, document(sink, **members), token)


def document(sink: Sink, **members: Any) -> dict[str, Any]:
    return {"protocol": "HTTP", "sink": f"http://127.0.0.1:{sink.port}/in", **members}


async def asked(
    broker: HttpBroker, method: str, path: str, value: Any = None, token: str = ""
) -> Answer:
    fields = dict(JSON) | ({"Authorization": f"Bearer {token}"} if token else {})
    body = b"" if value is None else json.dumps(value).encode()
    return await broker.ask(method, path, body, **fields)


async def event(broker: HttpBroker, id: str, token: str = "", **members: Any) -> None:
    value = {"specversion": "1.0", "id": id, "source": "/a", "type": "t", **members}
    fields = {"Authorization": f"Bearer {token}"} if token else {}
    kind = "application/cloudevents+json"
    answer = await broker.ask(
        "POST", "/v1/events", json.dumps(value).encode(), Content_Type=kind, **fields
    )
    assert answer.status == 200


def test_events_that_a_filter_selects_reach_the_sink_in_order(tmp_path: Path) -> None:
    async def scene(sink: Sink) -> None:
        async with http_broker(tmp_path, more=SINKS) as broker:
            answer = await made(broker, sink, filters=[{"sql": "n > 1"}, {"prefix": {"type": "t"}}])
            assert answer.status == 201, answer.json
            path = answer.headers["location"]
            assert (await asked(broker, "GET", path)).json == answer.json
            for n in range(5):
                await event(broker, str(n), n=n)
            await until(lambda: len(sink.ids) == 3)
            assert sink.ids == ["2", "3", "4"]
            origin = [
                dict(headers).get("WebHook-Request-Origin") for _, headers, _ in sink.requests
            ]
            assert set(origin) == {"milan"}
            assert (await asked(broker, "DELETE", path)).status == 204
            await event(broker, "5", n=5)
            assert (await asked(broker, "GET", PATH)).json == []
            assert (await asked(broker, "GET", path)).status == 404
            assert len(broker.server.host.snapshot().queues.largest) == 0
            assert sink.ids == ["2", "3", "4"]

    with serving(Sink()) as sink:
        run(scene(sink))


def test_a_subscription_survives_a_restart_and_loses_nothing(tmp_path: Path) -> None:
    async def before(sink: Sink) -> None:
        sink.statuses = [503] * 1000
        async with http_broker(
            tmp_path, more=SINKS.replace("attempts = 3", "attempts = 1000")
        ) as broker:
            secret = {"credentialtype": "PLAIN", "identifier": "a", "secret": "b"}
            answer = await made(broker, sink, types=["t"], sinkcredential=secret)
            assert answer.json["sinkcredential"] == {"credentialtype": "PLAIN"}
            for n in range(3):
                await event(broker, str(n))
            await until(lambda: len(sink.ids) > 1)

    async def after(sink: Sink) -> None:
        sink.statuses, sink.requests = [], []
        async with http_broker(tmp_path, more=SINKS) as broker:
            await until(lambda: len(sink.ids) == 3)
            assert sink.ids == ["0", "1", "2"]
            assert dict(sink.requests[-1][1])["Authorization"] == "Basic YTpi"
            (found,) = (await asked(broker, "GET", PATH)).json
            await asked(broker, "DELETE", f"{PATH}/{found['id']}")

    async def last() -> None:
        async with http_broker(tmp_path, more=SINKS) as broker:
            assert (await asked(broker, "GET", PATH)).json == []

    with serving(Sink()) as sink:
        run(before(sink))
        run(after(sink))
        run(last())


def test_an_update_takes_its_place(tmp_path: Path) -> None:
    async def scene(one: Sink, two: Sink) -> None:
        async with http_broker(tmp_path, more=SINKS) as broker:
            path = (await made(broker, one, types=["t"])).headers["location"]
            await event(broker, "1")
            await until(lambda: one.ids == ["1"])
            answer = await asked(broker, "PUT", path, document(two, types=["t"]))
            assert (answer.status, answer.json["sink"]) == (200, document(two)["sink"])
            await event(broker, "2")
            await until(lambda: two.ids == ["2"])
            wrong = document(two, filters=[{"exact": {}}])
            assert (await asked(broker, "PUT", path, wrong)).status == 400
            answer = await asked(
                broker, "PUT", path, document(two, types=["u"], config={"mode": "binary"})
            )
            assert answer.status == 200
            await event(broker, "3")
            await event(broker, "4", type="u")
            await until(lambda: two.ids == ["2", "4"])
            assert (one.ids, len(broker.server.host.snapshot().queues.largest)) == (["1"], 1)

    with serving(Sink()) as one, serving(Sink()) as two:
        run(scene(one, two))


def test_each_identity_has_its_own_and_its_grants_hold(tmp_path: Path) -> None:
    more = (
        SINKS
        + "identity_subscriptions = 1\n"
        + identity("ann", 'subscribe = "n = 1"\npublish = "TRUE"')
    )
    more += identity("bob", 'subscribe = "TRUE"')

    async def scene(sink: Sink) -> None:
        async with http_broker(tmp_path, more=more) as broker:
            assert (await made(broker, sink)).status == 401
            assert (await made(broker, sink, "ann")).status == 403
            assert (await asked(broker, "GET", PATH, token="ann")).json == []
            answer = await made(broker, sink, "ann", filters=[{"sql": "TRUE"}])
            assert answer.status == 403
            answer = await made(broker, sink, "bob")
            path = answer.headers["location"]
            assert (await made(broker, sink, "bob")).status == 429
            for method, value in (("GET", None), ("DELETE", None), ("PUT", document(sink))):
                assert (await asked(broker, method, path, value, "ann")).status == 404
            login = await broker.ask("POST", "/v1/login", Authorization="Bearer bob")
            cookie = {"Cookie": login.headers["set-cookie"].partition(";")[0]}
            assert (await broker.ask("GET", PATH, **cookie)).status == 401
            await event(broker, "1", "ann")
            await until(lambda: sink.ids == ["1"])

    with serving(Sink()) as sink:
        run(scene(sink))


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:1/",
        "https://127.0.0.1/",
        "https://[::ffff:10.0.0.1]/",
        "https://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "https://user:password@example.org/",
    ],
)
def test_sinks_are_public_by_default(tmp_path: Path, url: str) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path, more="[sinks]\n") as broker:
            answer = await asked(broker, "POST", PATH, {"protocol": "HTTP", "sink": url})
            assert (answer.status, answer.json["place"]) == (400, "sink")
            assert (await asked(broker, "GET", PATH)).json == []
            assert len(broker.server.host.snapshot().queues.largest) == 0

    run(scene())


def test_without_the_section_there_are_no_sinks(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            assert (await asked(broker, "GET", PATH)).json["code"] == "sinks"

    run(scene())


def test_a_dead_letter_is_a_message_and_goes_to_no_sink(tmp_path: Path) -> None:
    async def scene(sink: Sink) -> None:
        sink.statuses = [500] * 3
        async with http_broker(tmp_path, more=SINKS) as broker:
            url = f"palio://{broker.server.endpoint}"
            async with (
                palio.connect(url) as client,
                client.subscribe("dead_letter IS NOT NULL", durable="dead") as dead,
            ):
                answer = await made(broker, sink)
                await event(broker, "1", data={"a": 1})
                async with asyncio.timeout(10):
                    note = await anext(dead)
                assert note.attributes["dead_letter"] == f"sink-{answer.json['id']}-1"
                assert "500" in str(note.attributes["dead_text"])
                assert note.attributes["original.id"] == "1"
                assert json.loads(note.body) == {"a": 1}
                await event(broker, "2")
                await until(lambda: len(sink.ids) == 4)
                assert sink.ids == ["1", "1", "1", "2"]

    with serving(Sink()) as sink:
        run(scene(sink))


def test_a_sink_that_is_gone_gets_nothing_more(tmp_path: Path) -> None:
    async def scene(sink: Sink) -> None:
        sink.statuses = [410]
        async with http_broker(tmp_path, more=SINKS) as broker:
            await made(broker, sink)
            await event(broker, "1")
            await event(broker, "2")
            await until(lambda: len(sink.ids) == 1)
            await asyncio.sleep(0.1)
            assert sink.ids == ["1"]

    with serving(Sink()) as sink:
        run(scene(sink))
