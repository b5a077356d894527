"""Long poll of a durable subscription: `after` acknowledges, over restarts of the broker too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.net.listeners.http.peer import HttpBroker, http_broker
from tests.net.peers import run

POLL = "/v1/subscriptions/desk/messages?where=n%20%3E%200"


async def polled(broker: HttpBroker, more: str = "") -> tuple[list[tuple[Any, Any]], str]:
    """Numbers and whether they come again; and the last id."""
    found = (await broker.ask("GET", f"{POLL}&wait=5{more}")).json
    return [(one["attributes"]["n"], one["again"]) for one in found["messages"]], found["last"]


def test_what_is_not_acknowledged_comes_again_in_order(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            await broker.ask("GET", POLL)
            await broker.publish(*({"attributes": {"n": n}} for n in range(1, 6)))
            found, last = await polled(broker, "&max=2")
            assert found == [(1, False), (2, False)]
        async with http_broker(tmp_path) as broker:
            found, _ = await polled(broker, "&max=2")
            assert [n for n, _ in found] == [1, 2], "the client has not said that it has them"
            found, last = await polled(broker, f"&max=2&after={last}")
            assert [n for n, _ in found] == [3, 4]
            found, last = await polled(broker, f"&after={last}")
            assert [n for n, _ in found] == [5]
            empty = (await broker.ask("GET", f"{POLL}&after={last}")).json
            assert empty == {"messages": [], "last": last}

    run(scene())


def test_the_newer_of_two_gets_the_messages(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            await broker.ask("GET", POLL)
            older = await broker.connect()
            await older.send("GET", f"{POLL}&wait=30")
            while not broker.server.host.snapshot().subscriptions:
                await broker.ask("GET", "/openapi.json")
            newer = await broker.connect()
            await newer.send("GET", f"{POLL}&wait=30")
            assert (await older.answer()).json["code"] == "taken_over"
            await broker.publish({"attributes": {"n": 1}})
            assert (await newer.answer()).json["messages"][0]["attributes"] == {"n": 1}
            older.close()
            newer.close()

    run(scene())
