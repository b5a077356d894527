"""Requests, and the end of a client, against the stand-in broker on a real socket."""

from __future__ import annotations

import asyncio
import gc
import logging
from datetime import datetime

import pytest

import palio
from palio.errors import ClientClosed, Unreachable
from tests.net.running import in_loop, until
from tests.net.served import Served


class TestRequests:
    @in_loop
    async def test_answers(self) -> None:
        async with Served() as served, palio.connect(served.url) as client:
            (place,) = await client.topology()
            assert place.broker == "stand-in"
            explained = await client.explain({"x": 1})
            assert explained.hops[0].delivers == (("all", '{"x":1}'),)
            constraint = palio.Constraint("y", "=", 2)
            id = await client.advertise("x > 1", palio.Advertisement((constraint,)))
            assert [*served.core.advertised.values()] == [("x > 1", "y = 2")]
            await client.unadvertise(id)
            await client.unadvertise(id)
            assert not served.core.advertised

    @in_loop
    async def test_asked_while_there_is_no_connection(self) -> None:
        async with Served() as served, palio.connect(served.url) as client:
            await client.advertise("x > 1")
            served.cut_all()
            await until(lambda: not client.is_connected, pause=0)
            assert (await client.topology())[0].broker == "stand-in"
            assert len(served.core.advertised) == 1, "stated again"


class TestArguments:
    @in_loop
    async def test_wrong_types_are_said_before_anything_is_sent(self) -> None:
        async with Served() as served, palio.connect(served.url) as client:
            number = await client.publish({"x": 1})
            assert number is not None
            for body in ("text", None, 5):
                with pytest.raises(palio.InvalidValue, match="the body of a message is bytes"):
                    await client.publish({"x": 1}, body)  # type: ignore[arg-type]
            with pytest.raises(palio.InvalidValue, match="bytes, not a str"):
                await client.publish_many([({"x": 1}, "text")])  # type: ignore[list-item]
            assert await client.publish({"x": 1}, bytearray(b"report")) == number + 1
            wrong: list[tuple[str, dict[str, object]]] = [
                ("durable=7", {"durable": 7}),
                ("needs a name", {"durable": ""}),
                ("group=3", {"group": 3}),
                ("full=3", {"full": 3}),
                ("time zone", {"durable": "d", "since": datetime(2026, 1, 1)}),  # noqa: DTZ001
                ("time zone", {"durable": "d", "since": "1 h"}),
            ]
            for text, options in wrong:
                with pytest.raises(palio.InvalidValue, match=text):
                    client.subscribe("x > 1", **options)  # type: ignore[arg-type]
            with pytest.raises(palio.InvalidValue, match="a predicate is a text"):
                client.subscribe(None)  # type: ignore[arg-type]


class TestClosing:
    @in_loop
    async def test_closing_waits_for_what_is_under_way(self) -> None:
        async with Served() as served:
            async with palio.connect(served.url) as client:
                served.core.holds = True
                task = asyncio.create_task(client.publish({"x": 1}))
                await until(lambda: len(served.core.stored) == 1)
                asyncio.get_running_loop().call_later(0.05, served.core.release)
                asyncio.get_running_loop().call_later(0.06, served.flush)
            assert await task is not None

    @in_loop
    async def test_an_error_inside_is_the_one_that_is_raised(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with Served() as served:
            served.core.holds = True
            tasks = []

            async def fail() -> None:
                async with palio.connect(served.url, max_wait=0.1) as client:
                    tasks.append(asyncio.create_task(client.publish({"x": 1})))
                    await asyncio.sleep(0)
                    raise ZeroDivisionError

            with pytest.raises(ZeroDivisionError):
                await fail()
            assert "1 durable messages were not acknowledged" in caplog.text
            with pytest.raises((ClientClosed, Unreachable)):
                await tasks[0]

    @in_loop
    async def test_afterwards(self) -> None:
        async with Served() as served:
            async with palio.connect(served.url) as client:
                subscription = client.subscribe("x = 1")
                waits = asyncio.create_task(anext(subscription, None))
                await asyncio.sleep(0)
            assert await waits is None
            await client.close()
            with pytest.raises(ClientClosed, match="is closed"):
                await client.publish({"x": 1})
            with pytest.raises(ClientClosed, match="is closed"):
                client.subscribe("x = 1")
            await until(lambda: not served.core.links)

    def test_before_and_in_another_loop(self) -> None:
        client = palio.connect("palio://127.0.0.1:1")

        async def publish() -> None:
            await client.publish({"x": 1})

        with pytest.raises(ClientClosed, match=r"async with palio\.connect"):
            asyncio.run(publish())

        async def two_loops() -> None:
            async with Served() as served, palio.connect(served.url) as client:

                async def foreign() -> None:
                    await client.publish({"x": 1})

                with pytest.raises(ClientClosed, match="another event loop"):
                    await asyncio.to_thread(lambda: asyncio.run(foreign()))
                await client.publish({"x": 1})

        asyncio.run(two_loops())

    def test_nothing_is_left_behind(self, caplog: pytest.LogCaptureFixture) -> None:
        """No task and no error that nobody looked at."""
        caplog.set_level(logging.ERROR, "asyncio")

        async def run() -> None:
            async with Served() as served:
                async with palio.connect(served.url) as client:
                    await client.publish({"x": 1})
                    served.cut_all()
                    asyncio.create_task(client.topology()).cancel()
                await asyncio.sleep(0.01)
                assert asyncio.all_tasks() == {asyncio.current_task()}

        asyncio.run(run(), debug=True)
        gc.collect()
        assert caplog.text == ""
