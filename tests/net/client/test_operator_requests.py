"""Requests of operators over a real connection, asynchronous and blocking."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import palio
from palio.errors import RefusedByBroker
from palio.net.broker.server import Server, serving
from palio.protocol.wire.codes import RefusalCode, SubscriptionKind
from tests.net.peers import configured, run

COUNT = 450
"""More than two pages."""


def url(server: Server) -> str:
    return f"palio://127.0.0.1:{server.endpoint.port}"


def test_lists_of_many_pages(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(configured(tmp_path)) as server, palio.connect(url(server)) as client:
            own = [client.subscribe("x = 1", durable=f"q{n}") for n in range(COUNT)]
            own += [client.subscribe("x = 2") for _ in range(5)]
            for one in own:
                await one.ready()
            queues, subscriptions = await client.queues(), await client.subscriptions()
            assert [row.name for row in queues] == sorted(f"anonymous/q{n}" for n in range(COUNT))
            assert len(subscriptions) == COUNT + 5
            kinds = {row.kind for row in subscriptions}
            assert kinds == {SubscriptionKind.DURABLE, SubscriptionKind.LIVE}
            assert {row.client for row in subscriptions} == {client.name}

    run(play())


def test_errors_have_codes(tmp_path: Path) -> None:
    async def play() -> None:
        config = configured(tmp_path, "[access]\nanonymous = true\nadmin = false\n")
        async with serving(config) as server, palio.connect(url(server)) as client:
            for call in (client.queues(), client.subscriptions(), client.end_queue("a/b")):
                with pytest.raises(RefusedByBroker, match="ask for the grant `admin`") as caught:
                    await call
                assert caught.value.code == RefusalCode.DENIED
            with pytest.raises(RefusedByBroker, match="no durable subscription") as caught:
                await client.forget_durable("nosuch")
            assert caught.value.code == RefusalCode.UNKNOWN

    run(play())


def test_the_blocking_client(tmp_path: Path) -> None:
    def use(address: str) -> None:
        with palio.blocking.connect(address) as client:
            client.subscribe("x > 0", durable="q").close()
            client.publish({"x": 1})
            client.pause_queue("anonymous/q")
            (row,) = client.queues()
            assert (row.messages, row.is_paused) == (1, True)
            assert client.queue("anonymous/q").name == row.name
            client.resume_queue("anonymous/q")
            assert client.purge_queue("anonymous/q") == 1
            with client.subscribe("x > 0"):
                assert [one.kind.value for one in client.subscriptions()] == ["live"]
            with pytest.raises(RefusedByBroker, match="there is no identity 'zoe'"):
                client.move_queue("anonymous/q", "zoe")
            assert client.end_queue("anonymous/q") == 0
            client.subscribe("x > 0", durable="r").close()
            client.forget_durable("r")
            client.subscribe("x > 0", durable="r", group="g").close()
            with pytest.raises(RefusedByBroker, match="no durable subscription 'anonymous/r'"):
                client.forget_durable("r")
            client.forget_durable("r", "g")
            assert client.queues() == []
            assert client.topology()[0].broker == "milan"

    async def play() -> None:
        async with serving(configured(tmp_path)) as server:
            await asyncio.to_thread(use, url(server))

    run(play())
