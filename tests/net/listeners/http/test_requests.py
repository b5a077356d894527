"""POST /v1/requests: a request and its reply in one call, and what bounds it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import palio
from tests.net.listeners.http.peer import Answer, HttpBroker, http_broker, identity
from tests.net.peers import run

JSON = {"Content_Type": "application/json"}


async def ask(broker: HttpBroker, message: object, query: str = "", **fields: str) -> Answer:
    body = json.dumps(message).encode()
    return await broker.ask("POST", f"/v1/requests{query}", body, **JSON, **fields)


@asynccontextmanager
async def responder(broker: HttpBroker, predicate: str = "ask > 0") -> AsyncIterator[None]:
    """A native client that answers with what it is asked."""

    async def answer(notes: palio.net.client.subscription.Subscription) -> None:
        async for note in notes:
            await note.reply(note.body * 2, attributes={"of": note.attributes["ask"]})

    url = f"palio://{broker.server.endpoint}"
    async with palio.connect(url) as client, client.subscribe(predicate) as notes:
        task = asyncio.create_task(answer(notes))
        try:
            yield
        finally:
            task.cancel()


def test_each_gets_its_own_reply(tmp_path: Path) -> None:
    """More come back than a connection may have unread: nothing of it waits for anybody."""

    async def scene() -> None:
        more = '[limits]\nlink = "1 KiB"\n'
        async with http_broker(tmp_path, more=more) as broker, responder(broker):
            for _ in range(3):
                asked = [
                    ask(broker, {"attributes": {"ask": n}, "body": f"{n}," * 100}, "?timeout=20")
                    for n in range(1, 11)
                ]
                for n, answer in enumerate(await asyncio.gather(*asked), 1):
                    assert answer.status == 200, answer
                    assert answer.json["attributes"]["of"] == n
                    assert answer.json["body"] == f"{n}," * 200
                    assert answer.json["publisher"].startswith("anonymous/client-")

    run(scene())


def test_a_body_of_any_type(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker, responder(broker):
            answer = await broker.ask(
                "POST", "/v1/requests?durable=false", b"\xff",
                Content_Type="image/png", Palio_Attributes='{"ask": 7}',
            )  # fmt: skip
            assert (answer.status, answer.json["body_base64"]) == (200, "//8=")

    run(scene())


def test_nobody_answers(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            answer = await ask(broker, {"attributes": {"ask": 1}}, "?timeout=0.2")
            assert (answer.status, answer.json["code"]) == (504, "no_reply")
            async with responder(broker):
                assert (await ask(broker, {"attributes": {"ask": 1}})).status == 200

    run(scene())


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("?timeout=0", {"attributes": {"ask": 1}}),
        ("?timeout=-1", {"attributes": {"ask": 1}}),
        ("?timeout=61", {"attributes": {"ask": 1}}),
        ("?timeout=nan", {"attributes": {"ask": 1}}),
        ("?wait=1", {"attributes": {"ask": 1}}),
        ("", {"attributes": {"ask": 1}, "expires_in": 1}),
        ("", {"attributes": {"ask": 1}, "delay": 1}),
        ("", {"attributes": {"ask": 1}, "headers": {"not_before_us": 1}}),
        ("", {"attributes": {"ask": 1}, "reply": 1}),
    ],
)
def test_what_is_wrong_is_refused(tmp_path: Path, query: str, message: object) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            answer = await ask(broker, message, query)
            assert (answer.status, answer.json["code"]) == (400, "invalid")

    run(scene())


def test_an_identity_has_so_many_at_once(tmp_path: Path) -> None:
    """Others are served, and what has left makes room."""
    grants = 'subscribe = "TRUE"\npublish = "TRUE"'
    more = identity("ann", grants) + identity("bob", grants)
    ann, bob = ({"Authorization": f"Bearer {name}"} for name in ("ann", "bob"))

    async def scene() -> None:
        async with http_broker(tmp_path, "requests = 3\n", more) as broker:
            message = {"attributes": {"ask": 1}}
            peers = [await broker.connect() for _ in range(3)]
            body = json.dumps(message).encode()
            for peer in peers:
                await peer.send("POST", "/v1/requests?timeout=60", body, **JSON, **ann)
            while (answer := await ask(broker, message, "?timeout=0.1", **ann)).status == 504:
                pass  # not all of them have arrived
            assert (answer.status, answer.json["code"]) == (429, "limit")
            assert answer.headers["retry-after"]
            assert (await ask(broker, message, "?timeout=0.1", **bob)).status == 504
            peers.pop().close()
            while (answer := await ask(broker, message, "?timeout=0.1", **ann)).status == 429:
                pass  # the broker has yet to see that it has left
            assert answer.status == 504
            for peer in peers:
                peer.close()

    run(scene())


def test_grants_decide(tmp_path: Path) -> None:
    """Of the request, and of the replies: they are a subscription to the topic of the identity."""
    more = identity("ann", 'subscribe = "topic LIKE \'replies/ann/%\'"\npublish = "ask = 1"')
    more += identity("bob", 'publish = "ask = 1"')

    async def scene() -> None:
        async with http_broker(tmp_path, more=more) as broker:
            for token, number, status in (
                ("ann", 1, 504), ("ann", 2, 403), ("bob", 1, 403), ("eve", 1, 401),
            ):  # fmt: skip
                fields = {"Authorization": f"Bearer {token}"}
                message = {"attributes": {"ask": number}}
                answer = await ask(broker, message, "?timeout=0.1", **fields)
                assert answer.status == status, (token, number, answer)

    run(scene())
