"""Subscriptions and advertisements that end by covering, at a real broker (2000, 2.4.3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import palio
from palio.errors import ClientClosed, ParseError, SubscriptionEnded
from palio.net import blocking
from palio.net.broker.server import Server, serving
from palio.net.client import Client
from tests.net.peers import configured, run


def url(server: Server) -> str:
    return f"palio://127.0.0.1:{server.endpoint.port}"


@asynccontextmanager
async def connected(folder: Path) -> AsyncIterator[Client]:
    async with serving(configured(folder)) as server, palio.connect(url(server)) as client:
        yield client


async def subscribed(client: Client) -> list[str]:
    """What the broker has: predicates and patterns."""
    return sorted(row.expression for row in await client.subscriptions())


def test_an_unsubscription_ends_what_it_covers(tmp_path: Path) -> None:
    async def scene() -> None:
        async with connected(tmp_path) as client:
            texts = ["price < 100", "price < 500 AND dest = 'MXP'", "price < 600", "dest = 'MXP'"]
            made = [await client.subscribe(text).__aenter__() for text in texts]
            pattern = "[price < 50] then [price < 40]"
            watched = await client.watch(pattern).__aenter__()
            await client.publish({"price": 450, "dest": "MXP"})
            ended = await client.unsubscribe_covered("price < 500")
            assert ended == made[:2]
            assert await client.unsubscribe_covered("price < 500") == []
            assert [one.predicate for one in ended] == texts[:2]
            assert await subscribed(client) == sorted([*texts[2:], pattern])
            with pytest.raises(StopAsyncIteration):
                await anext(made[0])
            with pytest.raises(SubscriptionEnded):
                await made[1].ready()
            for one in made[2:]:
                assert (await anext(one)).attributes["price"] == 450
            await watched.close()
            assert await client.unsubscribe_covered("TRUE") == made[2:]
            assert await subscribed(client) == []

    run(scene())


def test_what_does_not_stand_is_not_ended(tmp_path: Path) -> None:
    async def scene() -> None:
        async with (
            serving(configured(tmp_path)) as server,
            palio.connect(url(server)) as client,
            palio.connect(url(server)) as other,
        ):
            closed = client.subscribe("x = 1")
            await closed.close()
            wrong = client.subscribe("x <")
            async with other.subscribe("x = 2"):
                assert await client.unsubscribe_covered("TRUE") == []
                assert await subscribed(client) == ["x = 2"]
            with pytest.raises(ParseError):
                await wrong.ready()
            with pytest.raises(ParseError):
                await client.unsubscribe_covered("x <")
        with pytest.raises(ClientClosed):
            await client.unsubscribe_covered("TRUE")

    run(scene())


def test_nobody_refers_to_a_subscription_that_is_gone(tmp_path: Path) -> None:
    async def scene() -> None:
        async with connected(tmp_path) as client:
            client.subscribe("x = 1")
            assert await client.unsubscribe_covered("TRUE") == []

    run(scene())


def test_a_durable_one_keeps_its_messages_unless_it_is_forgotten(tmp_path: Path) -> None:
    async def scene() -> None:
        async with connected(tmp_path) as client:
            first = await client.subscribe("price < 100", durable="desk").__aenter__()
            assert await client.unsubscribe_covered("price < 500") == [first]
            await client.publish({"price": 1})
            again = await client.subscribe("price < 100", durable="desk").__aenter__()
            assert (await anext(again)).attributes["price"] == 1
            assert await client.unsubscribe_covered("price < 500", forget=True) == [again]
            assert [row.name for row in await client.queues()] == []

    run(scene())


def test_an_unadvertisement_withdraws_what_it_covers(tmp_path: Path) -> None:
    async def scene() -> None:
        async with connected(tmp_path) as client:
            login = await client.advertise("what = 'login'", "typeof(user) = 'string'")
            alarm = await client.advertise("what = 'alarm'")
            level = await client.advertise("what = 'alarm'", "level > 3")
            wide = ("what = 'alarm'", "what = 'login'", palio.Constraint("user", "any"))
            assert await client.unadvertise_covered(*wide) == [login, alarm]
            assert await client.unadvertise_covered(*wide) == []
            both = palio.Advertisement((palio.Constraint("level", "any"),))
            assert await client.unadvertise_covered(both, "what IS NOT NULL") == [level]

    run(scene())


def test_threads(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path)) as server:
            await asyncio.to_thread(ask, url(server))

    def ask(address: str) -> None:
        with blocking.connect(address) as client:
            cheap, dear = client.subscribe("price < 100"), client.subscribe("price > 900")
            lost = client.subscribe("price < 1")
            del lost
            assert client.unsubscribe_covered("price < 500") == [cheap]
            assert list(cheap) == []
            client.publish({"price": 1_000})
            assert dear.next(10).attributes["price"] == 1_000
            id = client.advertise("price > 0")
            assert client.unadvertise_covered("price IS NOT NULL") == [id]
            assert client.unsubscribe_covered("TRUE") == [dear]

    run(scene())
