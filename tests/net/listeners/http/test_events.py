"""Server-Sent Events: live and durable, acknowledged by Last-Event-ID, with heartbeats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.net.listeners.http.peer import HttpBroker, HttpPeer, http_broker, identity
from tests.net.peers import run, until


async def opened(broker: HttpBroker, query: str, **fields: str) -> HttpPeer:
    peer = await broker.connect()
    await peer.send("GET", f"/v1/events?{query}", **fields)
    head = await peer.head()
    assert head.status == 200
    assert head.headers["content-type"].startswith("text/event-stream")
    return peer


def messages(*numbers: int) -> list[object]:
    return [{"attributes": {"n": number}, "body": f"{number}"} for number in numbers]


def test_a_live_stream_gets_what_it_selects(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            peer = await opened(broker, "where=n%20%3E%201")
            await broker.publish(*messages(1, 2, 3), durable="false")
            found = [await peer.event() for _ in range(2)]
            assert [json.loads(event["data"])["body"] for event in found] == ["2", "3"]
            assert "id" not in found[0]
            peer.close()
            await until(lambda: broker.server.host.snapshot().subscriptions == 0)

    run(scene())


def test_a_durable_stream_ends_after_its_credit_and_goes_on_by_the_last_id(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            query = "where=TRUE&durable=desk&credit=2"
            peer = await opened(broker, query)
            await broker.publish(*messages(1, 2, 3, 4, 5))
            first = [await peer.event() for _ in range(2)]
            assert await peer.event() == {}
            again = await opened(broker, query)  # it says nothing of what it has
            assert (await again.event())["id"] == first[0]["id"]
            again.close()
            resumed = await opened(broker, query, Last_Event_ID=first[1]["id"])
            data = [json.loads((await resumed.event())["data"]) for _ in range(2)]
            assert [one["attributes"]["n"] for one in data] == [3, 4]
            resumed.close()

    run(scene())


def test_an_id_of_an_older_subscription_acknowledges_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            query = "where=TRUE&durable=desk"
            peer = await opened(broker, query)
            await broker.publish(*messages(1, 2))
            await peer.event()
            old = (await peer.event())["id"]
            peer.close()
            assert (await broker.ask("DELETE", "/v1/subscriptions/desk")).status == 204
            peer = await opened(broker, query, Last_Event_ID=old)
            await broker.publish(*messages(3))
            assert json.loads((await peer.event())["data"])["body"] == "3"
            peer.close()

    run(scene())


def test_heartbeats(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path, 'heartbeat = "100 ms"\n') as broker:
            peer = await opened(broker, "where=TRUE")
            assert await peer.chunk() == b"retry: 1000\n\n"
            assert await peer.chunk() == b":\n\n"
            peer.close()

    run(scene())


def test_whoever_ends_the_subscription_is_told(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            peer = await opened(broker, "where=TRUE&durable=desk")
            newcomer = await opened(broker, "where=TRUE&durable=desk")
            event = await peer.event()
            assert event["event"] == "ended"
            assert json.loads(event["data"])["code"] == "taken_over"
            newcomer.close()

    run(scene())


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("", 400, "invalid"),
        ("where=a%20%3E%3E", 400, "parse"),
        ("where=TRUE&credit=0", 400, "invalid"),
        ("where=TRUE&credit=x", 400, "invalid"),
        ("where=TRUE&since=now&durable=a", 400, "invalid"),
        ("where=TRUE&since=2026-01-31T12:00:00Z", 400, "invalid"),
        ("where=TRUE&where=FALSE", 400, "invalid"),
        ("where=TRUE&token=ann", 400, "invalid"),
        ("where=%FF", 400, "invalid"),
        ("where=TRUE&durable=d&group=g", 400, "invalid"),
        ("where=TRUE&durable=", 400, "invalid"),
        ("where=TRUE&durable=d&after=x", 400, "invalid"),
    ],
)
def test_what_is_wrong_is_a_status_and_no_stream(
    tmp_path: Path, query: str, status: int, code: str
) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            answer = await broker.ask("GET", f"/v1/events?{query}")
            assert (answer.status, answer.json["code"]) == (status, code)

    run(scene())


def test_grants_and_limits_of_an_identity(tmp_path: Path) -> None:
    more = identity("ann", 'subscribe = "desk = 7"') + "[limits]\nidentity_connections = 2\n"

    async def scene() -> None:
        async with http_broker(tmp_path, more=more) as broker:
            ann = {"Authorization": "Bearer ann"}
            answer = await broker.ask("GET", "/v1/events?where=TRUE", **ann)
            assert (answer.status, answer.json["code"]) == (403, "denied")
            query = "where=desk%20=%207"
            streams = [await opened(broker, query, **ann) for _ in range(2)]
            answer = await broker.ask("GET", f"/v1/events?{query}", **ann)
            assert (answer.status, answer.json["code"]) == (503, "too_many_connections")
            for stream in streams:
                stream.close()

    run(scene())


def test_a_stream_begins_with_the_last_values(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            for sensor, value in (("x", 1), ("y", 2), ("x", 3)):
                attributes = {"sensor": sensor, "value": value}
                await broker.publish({"attributes": attributes, "retain": ["sensor"]})
            await broker.publish(
                {"attributes": {"sensor": "y"}, "retain": ["sensor"], "forget": True}
            )
            peer = await opened(broker, "where=value%20%3E%200&last=true")
            found = json.loads((await peer.event())["data"])
            assert (found["attributes"], found["retained"]) == ({"sensor": "x", "value": 3}, True)
            assert found["headers"] == {"retain": '["sensor"]'}
            await broker.publish({"attributes": {"sensor": "x", "value": 4}, "retain": ["sensor"]})
            found = json.loads((await peer.event())["data"])
            assert (found["attributes"]["value"], "retained" in found) == (4, False)
            peer.close()

    run(scene())
