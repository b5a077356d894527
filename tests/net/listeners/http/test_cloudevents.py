"""CloudEvents over HTTP: in, in three modes; out, by a long poll; and by the SDK for Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import palio
from tests.net.listeners.http.peer import http_broker, identity
from tests.net.peers import run

EVENT = {"specversion": "1.0", "id": "1", "source": "/a", "type": "com.example.made"}
STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"


def test_all_modes_arrive_as_messages(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            url = f"palio://{broker.server.endpoint}"
            async with (
                palio.connect(url) as client,
                client.subscribe("`data.temp` > 20", durable="d") as notes,
            ):
                binary = {"ce_specversion": "1.0", "ce_id": "b", "ce_source": "/a", "ce_type": "t"}
                answer = await broker.ask(
                    "POST", "/v1/events", b'{"temp": 21}', Content_Type="application/json", **binary
                )
                assert (answer.status, answer.json) == (200, {"stored": 1})
                one = EVENT | {"id": "s", "data": {"temp": 22}}
                answer = await broker.ask(
                    "POST", "/v1/events", json.dumps(one).encode(), Content_Type=STRUCTURED
                )
                assert answer.status == 200
                many = [EVENT | {"id": f"m{n}", "data": {"temp": n}} for n in (23, 1, 24)]
                answer = await broker.ask(
                    "POST", "/v1/events?durable=true", json.dumps(many).encode(), Content_Type=BATCH
                )
                assert answer.json == {"stored": 3}
                found = [await anext(notes) for _ in range(4)]
                assert [note.attributes["id"] for note in found] == ["b", "s", "m23", "m24"]
                assert found[0].body == b'{"temp": 21}'

    run(scene())


@pytest.mark.parametrize(
    ("kind", "body", "fields", "status", "said"),
    [
        ("text/plain", b"x", {}, 415, "no CloudEvent"),
        (STRUCTURED, b"{", {}, 400, "no JSON"),
        (STRUCTURED, b'{"specversion": "1.0"}', {}, 400, "id"),
        ("application/cloudevents+avro", b"x", {}, 400, "avro"),
        (BATCH, json.dumps([EVENT, EVENT | {"type": ""}]).encode(), {}, 400, "event 2: type"),
        (BATCH, b"[" + b"{}," * 1000 + b"{}]", {}, 400, "specversion"),
        (BATCH, json.dumps([EVENT] * 10_001).encode(), {}, 400, "10,000"),
        ("text/plain", b"x", {"ce_specversion": "1.0", "ce_id": "1"}, 400, "source"),
        ("text/plain", b"x", {"ce_specversion": "1.0", "ce_id": "1", "CE_id": "2"}, 400, "twice"),
        (STRUCTURED, json.dumps(EVENT | {"x" * 150: "y" * 70_000}).encode(), {}, 413, "attributes"),
        (STRUCTURED, json.dumps(EVENT | {"data_base64": "AAAA" * 1_500_000}).encode(), {}, 413, "body"),
    ],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_what_is_no_event_is_refused(
    tmp_path: Path, kind: str, body: bytes, fields: dict[str, str], status: int, said: str
) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            answer = await broker.ask("POST", "/v1/events", body, Content_Type=kind, **fields)
            assert (answer.status, said in answer.json["detail"]) == (status, True), answer.json
            assert broker.server.host.snapshot().durable.published == 0

    run(scene())


def test_grants_decide(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(
            tmp_path, more=identity("ann", "publish = \"type = 'a'\"")
        ) as broker:
            for kind, token, status in (("a", "ann", 200), ("b", "ann", 403), ("a", "eve", 401)):
                body = json.dumps(EVENT | {"type": kind}).encode()
                fields = {"Content_Type": STRUCTURED, "Authorization": f"Bearer {token}"}
                assert (await broker.ask("POST", "/v1/events", body, **fields)).status == status

    run(scene())


def test_a_long_poll_gives_events(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            path = "/v1/subscriptions/desk/messages?where=TRUE"
            assert (await broker.ask("GET", path, Accept=BATCH)).json == []
            event = EVENT | {"data": {"temp": 21.5}, "time": "2024-03-01T10:00:00Z"}
            await broker.ask(
                "POST", "/v1/events", json.dumps(event).encode(), Content_Type=STRUCTURED
            )
            await broker.publish({"attributes": {"price": 450}})
            answer = await broker.ask("GET", path, Accept=BATCH)
            assert answer.headers["content-type"] == BATCH
            first, second = answer.json
            assert first == event | {"datacontenttype": "application/json"}
            assert (second["type"], second["data"]) == ("palio.message", {"price": 450})
            assert second["id"].startswith("anonymous/http/")
            after = f"{path}&after={answer.headers['palio-last']}"
            assert (await broker.ask("GET", after, Accept=BATCH)).json == []

    run(scene())


def test_the_sdk_for_python_publishes(tmp_path: Path) -> None:
    http: Any = pytest.importorskip("cloudevents.core.bindings.http", reason="no cloudevents 2")
    formats: Any = pytest.importorskip("cloudevents.core.formats.json", reason="no cloudevents 2")
    sdk: Any = pytest.importorskip("cloudevents.core.v1.event", reason="no cloudevents 2")
    event = sdk.CloudEvent(
        attributes=dict(EVENT) | {"datacontenttype": "application/json"}, data={"temp": 25}
    )
    messages = [
        http.to_binary(event, formats.JSONFormat()),
        http.to_structured(event, formats.JSONFormat()),
    ]

    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            path = "/v1/subscriptions/desk/messages?where=`data.temp`=25".replace("`", "%60")
            await broker.ask("GET", path)
            for message in messages:
                fields = {name.replace("-", "_"): value for name, value in message.headers.items()}
                answer = await broker.ask("POST", "/v1/events", message.body, **fields)
                assert answer.status == 200
            answer = await broker.ask("GET", path, Accept=BATCH)
            assert [one["data"] for one in answer.json] == [{"temp": 25}] * 2
            read = formats.JSONFormat().read(sdk.CloudEvent, json.dumps(answer.json[0]).encode())
            assert read.get_type() == "com.example.made"

    run(scene())
