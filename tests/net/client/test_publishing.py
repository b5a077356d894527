"""Publishing against the stand-in broker on a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

import palio
from palio.errors import InvalidValue, RefusedByBroker, Unreachable
from palio.protocol.client.session import SessionSettings
from palio.protocol.wire.frames import Limits
from palio.protocol.wire.message_headers import NO_HEADERS
from tests.net.running import in_loop, until
from tests.net.served import Served


class TestPublishing:
    @in_loop
    async def test_durable_is_stored_when_it_returns(self) -> None:
        async with Served() as served, palio.connect(served.url, name="ann") as client:
            number = await client.publish({"price": 450}, body=b"body")
            payload = NO_HEADERS + b"body"
            assert served.core.stored == [("anyone/ann", number, b'{"price":450}', payload)]
            assert (client.broker, client.identity, client.name) == ("stand-in", "anyone", "ann")
            assert client.unacknowledged == 0

    @in_loop
    async def test_best_effort(self) -> None:
        async with Served() as served:
            async with palio.connect(served.url) as client:
                for x in range(3000):  # far more than may gather between two turns of the loop
                    await client.publish({"x": x}, durable=False)
            await until(lambda: len(served.core.live) == 3000)

    @pytest.mark.parametrize("durable", [True, False])
    @in_loop
    async def test_many(self, durable: bool) -> None:
        async def later() -> AsyncIterator[tuple[dict[str, object], bytes]]:
            for x in range(10):
                await asyncio.sleep(0)
                yield {"x": x}, b"%d" % x

        settings = SessionSettings(outbox_messages_max=100)
        async with Served() as served:
            async with palio.connect(served.url, settings=settings) as client:
                messages = ({"x": x} for x in range(1000))
                assert await client.publish_many(messages, durable=durable) == 1000
                assert not durable or len(served.core.stored) == 1000
                assert await client.publish_many(later(), durable=durable) == 10
                assert await client.publish_many([], durable=durable) == 0
            stored = served.core.stored if durable else served.core.live
            await until(lambda: len(stored) == 1010)
            assert [entry[1] for entry in stored] == sorted(entry[1] for entry in stored)

    @in_loop
    async def test_rejected(self, caplog: pytest.LogCaptureFixture) -> None:
        async with Served() as served, palio.connect(served.url) as client:
            served.core.forbidden = palio.parse("x = 1")
            with pytest.raises(RefusedByBroker, match="no grant matches it"):
                await client.publish({"x": 1})
            with pytest.raises(RefusedByBroker, match="2 of 4 messages: no grant"):
                await client.publish_many([{"x": x} for x in (1, 2, 1, 3)])
            assert len(served.core.stored) == 2, "the others are stored"
            await client.publish({"x": 1}, durable=False)
            await until(lambda: client.rejected == 1)
            assert "no grant matches it" in caplog.text
            await client.publish({"x": 2})

    @in_loop
    async def test_bad_messages_change_nothing(self) -> None:
        settings = SessionSettings(limits=Limits(body=100))
        async with Served() as served, palio.connect(served.url, settings=settings) as client:
            for bad in ({"x": [{1}]}, {"": 1}, {"x": 2**63}, {"x": "\ud800"}, {3: 1}):
                with pytest.raises(InvalidValue):
                    await client.publish(bad)  # type: ignore[arg-type]
            with pytest.raises(InvalidValue, match="a body of 101 bytes"):
                await client.publish({"x": 1}, bytes(101))
            with pytest.raises(InvalidValue):
                await client.publish_many([{"x": 1}, {"x": object()}, {"x": 3}])
            await client.publish({"x": 4})
            assert len(served.core.stored) == 2

    @in_loop
    async def test_quenching(self) -> None:
        async with Served() as served, palio.connect(served.url) as client:
            await client.quench()
            assert await client.publish({"x": 1}) is None, "nobody wants anything"
            async with client.subscribe("x > 5"):
                await until(lambda: client._session.quenching.wants(palio.Message({"x": 6})))
                assert await client.publish({"x": 1}) is None
                assert await client.publish({"x": 6}) is not None
                assert await client.publish_many([{"x": x} for x in range(10)]) == 4
            assert client.quenched == 8
            await client.quench(False)
            assert await client.publish({"x": 1}) is not None

    @in_loop
    async def test_cancelled_publish_is_sent_once(self) -> None:
        async with Served() as served, palio.connect(served.url) as client:
            served.core.holds = True
            task = asyncio.create_task(client.publish({"x": 1}))
            await until(lambda: len(served.core.stored) == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            served.core.release()
            served.flush()
            await client.publish({"x": 2})
            assert len(served.core.stored) == 2

    @in_loop
    async def test_no_acknowledgement_in_time(self) -> None:
        async with Served() as served:
            served.core.holds = True
            client = await palio.connect(served.url, max_wait=0.2)
            with pytest.raises(Unreachable, match=r"not acknowledged within 0\.2 s: the broker is"):
                await client.publish({"x": 1})
            with pytest.raises(Unreachable, match="1 durable messages were not acknowledged"):
                await client.close()

    @in_loop
    async def test_a_slow_broker_slows_the_publisher(self) -> None:
        async with Served() as served:
            settings = SessionSettings(outbox_messages_max=10)
            async with palio.connect(served.url, settings=settings) as client:
                served.core.holds = True
                task = asyncio.create_task(client.publish_many({"x": x} for x in range(50)))
                await until(lambda: len(served.core.stored) == 10)
                await asyncio.sleep(0.05)
                assert (len(served.core.stored), client.unacknowledged) == (10, 10)
                served.core.release()
                served.flush()
                assert await task == 50

    @in_loop
    async def test_many_tasks_at_once(self) -> None:
        async with Served() as served, palio.connect(served.url) as client:
            await asyncio.gather(*(client.publish({"x": x}) for x in range(500)))
            assert len(served.core.stored) == 500

    @in_loop
    async def test_many_tasks_publish_best_effort(self) -> None:
        """Each task may find that the others have filled the next write as well."""
        async with Served() as served, palio.connect(served.url, max_wait=5) as client:
            messages = [{"x": x} for x in range(2000)]
            tasks = (client.publish_many(messages, durable=False) for _ in range(4))
            assert await asyncio.gather(*tasks) == [2000] * 4
            await until(lambda: len(served.core.live) == 8000)
