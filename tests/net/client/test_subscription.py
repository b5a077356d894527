"""Subscriptions and watches against the stand-in broker on a real socket."""

from __future__ import annotations

import asyncio
import gc
import random
import time
from datetime import UTC, datetime, timedelta

import pytest

import palio
from palio.errors import InvalidValue, ParseError, RefusedByBroker, SubscriptionEnded
from palio.net.client import Subscription
from palio.protocol.wire import control
from palio.protocol.wire.codes import EndCode
from tests.net.running import in_loop, until
from tests.net.served import Served


async def take(subscription: Subscription, count: int) -> list[palio.Message]:
    return [(await anext(subscription)).attributes for _ in range(count)]


class TestSubscribing:
    @in_loop
    async def test_notes(self) -> None:
        async with Served() as served, palio.connect(served.url, name="ann") as client:
            at = datetime(2013, 1, 31, 10, tzinfo=UTC)
            async with client.subscribe("price < 500") as subscription:
                number = await client.publish({"price": 450, "at": at, "to": "MXP"}, b"body")
                note = await anext(subscription)
                assert note.attributes == palio.Message({"price": 450, "at": at, "to": "MXP"})
                assert (note.body, note.publisher, note.number) == (b"body", "anyone/ann", number)
                assert abs((note.time - datetime.now(UTC)).total_seconds()) < 60
                assert (note.position, note.again, dict(note.headers)) == (0, False, {})
                await note.ack()

    @in_loop
    async def test_headers(self) -> None:
        headers = {"a": 1, "b": b"\xff", "correlation": b"7", "c": [["x", "y"]], "d": True}
        async with Served() as served, palio.connect(served.url, name="ann") as client:
            async with client.subscribe("x > 0", durable="d") as subscription:
                await client.publish({"x": 1}, b"body", headers=headers)
                await client.publish_many([({"x": 2}, b"", {"n": 2}), ({"x": 3}, b"three")])
                notes = [await anext(subscription) for _ in range(3)]
                assert [dict(note.headers) for note in notes] == [headers, {"n": 2}, {}]
                assert [note.body for note in notes] == [b"body", b"", b"three"]
                before_us = time.time_ns() // 1000
                await client.publish({"x": 4}, headers={"n": 4}, expires_in=timedelta(minutes=1))
                found = dict((await anext(subscription)).headers)
                assert found.pop("n") == 4
                assert 0 <= int(found.pop("expires_us")) - before_us - 60_000_000 < 30_000_000  # type: ignore[arg-type]
                assert not found
                await client.publish({"x": 5})
                note = await anext(subscription)
                assert (note.deliveries, note.again) == (1, False)
            for wrong in (0, -1, 1e9, True, float("nan"), "1 s"):
                with pytest.raises(InvalidValue, match=r"expires_in=.*more than 0"):
                    await client.publish({"x": 1}, expires_in=wrong)  # type: ignore[arg-type]
            with pytest.raises(InvalidValue, match="the most are 16384"):
                await client.publish({"x": 1}, headers={"a": "b" * 20_000})
            with pytest.raises(InvalidValue, match="is a NoneType"):
                await client.publish({"x": 1}, headers={"a": None})  # type: ignore[dict-item]

    @in_loop
    async def test_the_contract_of_the_design(self) -> None:
        async with Served() as served:
            async with palio.connect(served.url, token=None) as client:
                subscription = client.subscribe("price < 500", durable="desk-7")
                await client.publish({"price": 450}, body=b"...")
                async for note in subscription:
                    await note.ack()
                    break
            assert served.core.queues["anyone/desk-7"].entries == {}

    @in_loop
    async def test_what_is_not_acknowledged_comes_again(self) -> None:
        async with Served() as served:
            async with palio.connect(served.url) as client:
                async with client.subscribe("x >= 0", durable="d") as subscription:
                    await client.publish_many([{"x": x} for x in range(4)])
                    notes = [await anext(subscription) for _ in range(4)]
                    await notes[1].ack()
                with pytest.raises(SubscriptionEnded, match="has ended"):
                    await notes[2].ack()
            async with palio.connect(served.url) as client:
                subscription = client.subscribe("x >= 0", durable="d")
                again = [await anext(subscription) for _ in range(3)]
                assert [note.attributes["x"] for note in again] == [0, 2, 3]
                assert all(note.again for note in again)

    @in_loop
    async def test_durable_with_best_effort_messages(self) -> None:
        async with (
            Served() as served,
            palio.connect(served.url) as client,
            client.subscribe("x >= 0", durable="d", credit=4) as subscription,
        ):
            for x in range(100):
                await client.publish({"x": x}, durable=x % 2 == 0)
                note = await anext(subscription)
                assert note.attributes["x"] == x
                await note.ack()

    @in_loop
    async def test_a_slow_consumer_slows_only_itself(self) -> None:
        async with Served() as served, palio.connect(served.url) as client:
            slow = client.subscribe("x >= 0", credit=10)
            quick = client.subscribe("x >= 0", credit=10)
            await quick.ready()
            for start in range(0, 1000, 10):
                await client.publish_many([{"x": x} for x in range(start, start + 10)])
                assert [m["x"] for m in await take(quick, 10)] == [*range(start, start + 10)]
            assert len(slow._inbox.items) == 10
            assert [m["x"] for m in await take(slow, 1000)] == [*range(1000)]

    @in_loop
    async def test_durable_without_acknowledgements_stops_and_says_so(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with Served() as served, palio.connect(served.url) as client:
            subscription = client.subscribe("x >= 0", durable="d", credit=3)
            await client.publish_many([{"x": x} for x in range(5)])
            notes = [await anext(subscription) for _ in range(3)]
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(subscription), 0.05)
            assert caplog.text.count("waits for acknowledgements") == 1
            for note in notes:
                await note.ack()
            assert [m["x"] for m in await take(subscription, 2)] == [3, 4]

    @in_loop
    async def test_refused(self) -> None:
        async with Served() as served, palio.connect(served.url) as client:
            served.core.refuses = "secret"
            with pytest.raises(RefusedByBroker, match="no grant covers secret = 1"):
                async with client.subscribe("secret = 1"):
                    pass
            with pytest.raises(RefusedByBroker, match="no grant covers"):
                async for _note in client.subscribe("secret = 2"):
                    pass
            with pytest.raises(ParseError, match=r"\^") as wrong:
                await client.subscribe("x = = 1").ready()
            assert (wrong.value.text, wrong.value.position) == ("x = = 1", 4)
            with pytest.raises(InvalidValue, match="durable"):
                client.subscribe("x = 1", since=0)

    @in_loop
    async def test_ended_by_the_broker(self) -> None:
        async with (
            Served() as served,
            palio.connect(served.url) as client,
            client.subscribe("x = 1") as subscription,
        ):
            await client.publish({"x": 1})
            (link,) = served.core.links
            served.core.say(
                link, control.SubscriptionEnded(subscription._id, "more than 10 wait", EndCode.FULL)
            )
            served.flush()
            await until(lambda: subscription._inbox.failure is not None)
            assert (await anext(subscription)).attributes["x"] == 1, "what came is not lost"
            with pytest.raises(SubscriptionEnded, match="more than 10 wait") as ended:
                await anext(subscription)
            assert ended.value.code == EndCode.FULL

    @in_loop
    async def test_forget_and_keep(self) -> None:
        async with Served() as served, palio.connect(served.url) as client:
            async with client.subscribe("x = 1", durable="kept"):
                pass
            gone = client.subscribe("x = 1", durable="gone")
            await gone.close(forget=True)
            await gone.close()
            assert set(served.core.queues) == {"anyone/kept"}
            assert [note async for note in gone] == []

    @in_loop
    async def test_forget_over_a_lost_connection(self) -> None:
        async with Served() as served, palio.connect(served.url) as client:
            gone = client.subscribe("x = 1", durable="gone")
            await gone.ready()
            served.cut_all()
            await until(lambda: not client.is_connected, pause=0)
            await gone.close(forget=True)
            assert not served.core.queues

    @in_loop
    async def test_abandoned_subscriptions_end(self) -> None:
        async with Served() as served, palio.connect(served.url) as client:
            await client.subscribe("x = 1").ready()
            await client.publish({"x": 1})
            async for note in client.subscribe("x = 1", durable="d", since=0):  # noqa: B007
                break
            gc.collect()
            (state,) = served.core.links.values()
            await until(lambda: len(state.interests) == 1)
            await note.ack()  # the note keeps its subscription
            del note
            gc.collect()
            await until(lambda: not state.interests)
            assert served.core.queues["anyone/d"].entries == {}

    @in_loop
    async def test_tasks_share_a_subscription_and_may_be_cancelled(self) -> None:
        async with (
            Served() as served,
            palio.connect(served.url) as client,
            client.subscribe("x >= 0", durable="d") as subscription,
        ):
            got: list[object] = []

            async def consume() -> None:
                async for note in subscription:
                    got.append(note.attributes["x"])
                    await note.ack()
                    await asyncio.sleep(0)

            chance = random.Random(1)
            tasks = [asyncio.create_task(consume()) for _ in range(5)]
            for x in range(200):
                await client.publish({"x": x})
                victim = chance.randrange(5)
                tasks[victim].cancel()
                tasks[victim] = asyncio.create_task(consume())
            await until(lambda: len(got) == 200)
            assert sorted(got) == [*range(200)]  # type: ignore[type-var]
            for task in tasks:
                task.cancel()

    @in_loop
    async def test_replay(self) -> None:
        async with Served() as served, palio.connect(served.url) as client:
            await client.publish_many([{"x": x} for x in range(3)])
            early = datetime(1970, 1, 1, tzinfo=UTC)
            replay = client.subscribe("x > 0", durable="r", since=early)
            assert [m["x"] for m in await take(replay, 2)] == [1, 2]

    @in_loop
    async def test_watch(self) -> None:
        async with (
            Served() as served,
            palio.connect(served.url) as client,
            client.watch("[x = 1] then [x = 2]") as watch,
        ):
            (link,) = served.core.links
            items = tuple(control.PatternItem(f'{{"x":{x}}}', "p", x, 0) for x in (1, 2))
            served.core.say(link, control.Occurred(watch._id, items))
            served.flush()
            compound = await anext(watch)
            assert [note.attributes["x"] for note in compound] == [1, 2]
            await compound[0].ack()

    @in_loop
    async def test_the_zone_of_the_text(self) -> None:
        async with Served() as served, palio.connect(served.url) as client:
            text, zone = "at = TIMESTAMP '2024-03-01 10:00:00'", "America/New_York"
            wanted = client.subscribe(text, zone=zone)
            assert wanted._request["predicate"] == str(palio.parse(text, zone=zone))
            watch = client.watch(f"[{text}] then [x = 2]", zone=zone)
            assert "2024-03-01T15:00:00Z" in watch._request["pattern"]
            with pytest.raises(InvalidValue, match="no time zone"):
                client.watch("[x = 1] then [x = 2]", zone="Nowhere")
            async with wanted as subscription:
                for hour in (10, 15):
                    await client.publish({"at": datetime(2024, 3, 1, hour, tzinfo=UTC)})
                assert (await anext(subscription)).attributes["at"].hour == 15  # type: ignore[union-attr]

    @in_loop
    async def test_many_notes_at_once(self) -> None:
        async with Served() as served, palio.connect(served.url) as client:
            async with client.subscribe("x >= 0") as subscription:
                await client.publish_many([{"x": x} for x in range(20)])
                await until(lambda: len(subscription._inbox.items) == 20)
                assert len(await subscription.many(5)) == 5
                assert len(await subscription.many()) == 15
            assert await subscription.many() == []
