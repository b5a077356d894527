"""Connections that are lost and made again, against the stand-in broker on a real socket."""

from __future__ import annotations

import asyncio
from collections import defaultdict

import pytest

import palio
from palio.errors import RefusedByBroker, Unreachable
from palio.net.client import Client, Subscription
from tests.net.running import in_loop, until
from tests.net.served import Served


async def take(subscription: Subscription, count: int) -> list[palio.Message]:
    return [(await anext(subscription)).attributes for _ in range(count)]


class TestReconnecting:
    @pytest.mark.parametrize("seed", range(12))
    @in_loop
    async def test_in_the_middle_of_everything(
        self, seed: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Connections end after a random number of bytes; the applications do not notice."""
        monkeypatch.setattr("palio.net.client.reconnecting.BACKOFF_S", 0.002)
        monkeypatch.setattr("palio.net.client.reconnecting.UNSTEADY_S_MAX", 0.002)
        served = Served(seed=seed)
        async with served:
            got = await self.traffic(served)
        assert served.cuts >= 5
        stored = defaultdict(list)
        for publisher, number, _attributes, _body in served.core.stored:
            stored[publisher].append(number)
        assert {publisher: len(all) for publisher, all in stored.items()} == {
            "anyone/p0": 150,
            "anyone/p1": 150,
        }
        for all in (*stored.values(), *got.values()):
            assert len(all) == len(set(all)), "nothing twice"
        for publisher in stored:
            assert stored[publisher] == sorted(stored[publisher])
            for name, notes in got.items():
                mine = [number for who, number in notes if who == publisher]
                assert mine == sorted(mine), "the order of each publisher"
                predicate = palio.parse(name)
                assert set(mine) == {
                    number
                    for who, number, attributes, _ in served.core.stored
                    if who == publisher and predicate.matches(palio.Message.from_json(attributes))
                }

    async def traffic(self, served: Served) -> dict[str, list[tuple[str, int]]]:
        """Two publishers, and a client with two durable subscriptions; what they got."""
        got: dict[str, list[tuple[str, int]]] = defaultdict(list)

        async def publish(client: Client) -> None:
            for x in range(50):
                await client.publish({"x": x % 10})
            await client.publish_many([{"x": x % 10} for x in range(100)])

        async def consume(subscription: Subscription, name: str) -> None:
            async for note in subscription:
                got[name].append((note.publisher, note.number))
                await note.ack()

        async def open_client(name: str) -> Client:
            return await palio.connect(served.url, name=name, wait=10)

        subscriber, p0, p1 = [await open_client(name) for name in ("s", "p0", "p1")]
        names = ("x < 5", "x > 2")
        subscriptions = [subscriber.subscribe(n, durable=n, credit=20) for n in names]
        for subscription in subscriptions:
            await subscription.ready()
        tasks = [
            asyncio.create_task(consume(subscription, name))
            for subscription, name in zip(subscriptions, names, strict=True)
        ]
        await asyncio.gather(publish(p0), publish(p1))
        served.be_reliable()
        for client in (p0, p1):
            await client.close()
        await until(lambda: all(not queue.entries for queue in served.core.queues.values()))
        await subscriber.close()
        await asyncio.gather(*tasks)  # they end when the client does
        return got

    @in_loop
    async def test_the_broker_is_away_for_a_while(self) -> None:
        served = Served()
        await served.start()
        async with palio.connect(served.url) as client:
            subscription = client.subscribe("x >= 0")
            await subscription.ready()
            await served.stop()
            await until(lambda: not client.is_connected, pause=0)
            durable = asyncio.create_task(client.publish({"x": 1}))
            live = asyncio.create_task(client.publish({"x": 2}, durable=False))
            await asyncio.sleep(0.1)
            assert not durable.done()
            assert not live.done()
            await served.start()
            await asyncio.gather(durable, live)
            assert sorted(m["x"] for m in await take(subscription, 2)) == [1, 2]  # type: ignore[type-var]
        await served.stop()

    @in_loop
    async def test_one_of_several_addresses_answers(self) -> None:
        """The broker moves to its other address, and back; one that refuses is passed over."""
        here, there = Served(), Served()
        await here.start()
        await there.start()
        await here.stop()
        url = f"{here.url},{there.url.removeprefix('palio://')}"
        async with palio.connect(url) as client:
            await client.publish({"x": 1})
            await here.start()
            here.core.tokens = {"t": "ann"}
            there.cut_all()
            await client.publish({"x": 2})
            here.core.tokens = {}
            assert [len(served.core.stored) for served in (here, there)] == [0, 2]
        await there.stop()
        await here.stop()
        with pytest.raises(
            Unreachable, match=f"no broker at {here.url} .*; no broker at {there.url}"
        ):
            await palio.connect(url)

    @in_loop
    async def test_away_for_too_long(self) -> None:
        served = Served()
        await served.start()
        client = await palio.connect(served.url, max_wait=0.2)
        await served.stop()
        await until(lambda: not client.is_connected, pause=0)
        with pytest.raises(Unreachable, match="no broker at palio://127"):
            await asyncio.gather(client.publish({"x": 1}))
        with pytest.raises(Unreachable, match=r"nothing could be sent .* for 0\.2 s"):
            await client.publish({"x": 1}, durable=False)
        with pytest.raises(Unreachable, match="did not answer"):
            await client.topology()
        with pytest.raises(Unreachable, match="1 durable messages were not acknowledged"):
            await client.close()

    @in_loop
    async def test_refused_when_it_comes_back(self) -> None:
        async with Served() as served:
            served.core.tokens = {"t": "ann"}
            client = await palio.connect(served.url, token="t", max_wait=0.3)
            subscription = client.subscribe("x = 1")
            await subscription.ready()
            served.core.tokens = {}
            served.cut_all()
            with pytest.raises(RefusedByBroker, match="nobody here knows this token"):
                await anext(subscription)
            with pytest.raises(RefusedByBroker, match="nobody here knows this token"):
                await client.publish({"x": 1})
            await client.close()

    @in_loop
    async def test_a_silent_broker_is_left(self) -> None:
        async with Served() as served:
            served.core.keepalive_us = 150_000
            async with palio.connect(served.url) as client:
                await asyncio.sleep(0.4)
                assert len(served.core.links) == 1, "both say that they live"
                assert 1 in served.core.links
                served.core.is_silent = True
                await until(lambda: not client.is_connected, pause=0)
                served.core.is_silent = False
                served.cut_all()
                await client.publish({"x": 1})

    @in_loop
    async def test_a_dial_that_is_cancelled_leaves_no_trace(self) -> None:
        """Its socket closes later, while the next connection is in use."""
        async with Served() as served:
            for turns in range(12):
                task = asyncio.ensure_future(palio.connect(served.url).open())
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                if not task.cancelled():
                    await task.result().close()
            async with palio.connect(served.url) as client:
                await client.publish({"x": 1})
            await until(lambda: not served.core.links)
