"""The client against the stand-in broker on a real socket."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
import trustme

import palio
from palio.errors import (
    ClientClosed,
    InvalidValue,
    RefusedByBroker,
    SubscriptionEnded,
    Unreachable,
)
from palio.net.attributes import from_bytes, to_bytes
from palio.net.client import Client, Subscription
from palio.protocol import words
from palio.protocol.client.session import Settings
from palio.protocol.frames import Limits
from tests.net.running import in_loop, until
from tests.net.served import Served
from tests.protocol.stand_in import StandIn


def numbers(served: Served) -> list[int]:
    return [number for _publisher, number, _attributes, _body in served.core.stored]


async def take(subscription: Subscription, count: int) -> list[palio.Message]:
    return [(await anext(subscription)).attributes for _ in range(count)]


class TestPublishing:
    @in_loop
    async def test_durable_is_stored_when_it_returns(self) -> None:
        async with Served() as served, palio.connect(served.url, name="ann") as client:
            number = await client.publish({"price": 450}, body=b"body")
            assert served.core.stored == [("anyone/ann", number, b'{"price":450}', b"body")]
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

        settings = Settings(outbox_messages_max=100)
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
        settings = Settings(limits=Limits(body=100))
        async with Served() as served, palio.connect(served.url, settings=settings) as client:
            for bad in ({"x": [1]}, {"": 1}, {"x": 2**63}, {"x": "\ud800"}, {3: 1}):
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
                await until(lambda: client._session.wants(palio.Message({"x": 6})))
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
            settings = Settings(outbox_messages_max=10)
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
                assert (note.position, note.again) == (0, False)
                await note.ack()

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
            with pytest.raises(RefusedByBroker, match=r"\^"):
                await client.subscribe("x = = 1").ready()
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
            served.core.say(link, words.Ended(subscription._id, "more than 10 wait"))
            served.flush()
            await until(lambda: subscription._inbox.failure is not None)
            assert (await anext(subscription)).attributes["x"] == 1, "what came is not lost"
            with pytest.raises(SubscriptionEnded, match="more than 10 wait"):
                await anext(subscription)

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
            items = tuple(words.Item(f'{{"x":{x}}}', "p", x, 0) for x in (1, 2))
            served.core.say(link, words.Occurred(watch._id, items))
            served.flush()
            compound = await anext(watch)
            assert [note.attributes["x"] for note in compound] == [1, 2]
            await compound[0].ack()

    @in_loop
    async def test_many_notes_at_once(self) -> None:
        async with Served() as served, palio.connect(served.url) as client:
            async with client.subscribe("x >= 0") as subscription:
                await client.publish_many([{"x": x} for x in range(20)])
                await until(lambda: len(subscription._inbox.items) == 20)
                assert len(await subscription.many(5)) == 5
                assert len(await subscription.many()) == 15
            assert await subscription.many() == []


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


class TestReconnecting:
    @pytest.mark.parametrize("seed", range(12))
    @in_loop
    async def test_in_the_middle_of_everything(
        self, seed: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Connections end after a random number of bytes; the applications do not notice."""
        monkeypatch.setattr("palio.net.connection.BACKOFF_S", 0.002)
        monkeypatch.setattr("palio.net.connection.UNSTEADY_S_MAX", 0.002)
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


class TestOpening:
    def test_no_broker(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            url = f"palio://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Unreachable, match=f"no broker at {url} .*palio broker --config"):
            asyncio.run(self.enter(url))

    async def enter(self, url: str, **options: object) -> None:
        async with palio.connect(url, **options):  # type: ignore[arg-type]
            pass

    @in_loop
    async def test_waits_for_the_first_broker(self) -> None:
        served = Served()
        await served.start()
        await served.stop()
        task = asyncio.create_task(self.enter(served.url, wait=10))
        await asyncio.sleep(0.1)
        await served.start()
        await task
        await served.stop()

    @in_loop
    async def test_refused(self) -> None:
        core = StandIn()
        async with Served(core) as served:
            core.tokens = {"right": "ann"}
            with pytest.raises(RefusedByBroker, match="nobody here knows this token"):
                await self.enter(served.url, token="wrong")
            core.tokens = None
            core.version = 2
            with pytest.raises(RefusedByBroker, match="speaks version 2 of the protocol"):
                await self.enter(served.url)

    @in_loop
    async def test_something_else_listens_there(self) -> None:
        async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(Unreachable, match="is no Palio broker, or it wants palios"):
            await self.enter(f"palio://127.0.0.1:{port}")
        server.close()

    @in_loop
    async def test_tls(self) -> None:
        import ssl

        authority, stranger = trustme.CA(), trustme.CA()
        server_side = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        authority.issue_cert("127.0.0.1").configure_cert(server_side)
        async with Served(tls=server_side) as served:
            with authority.cert_pem.tempfile() as trusted, stranger.cert_pem.tempfile() as other:
                async with palio.connect(served.url, tls=trusted) as client:
                    await client.publish({"x": 1})
                assert len(served.core.stored) == 1
                for tls in (None, other):
                    with pytest.raises(Unreachable, match=r"certificate of .* is not trusted"):
                        await self.enter(served.url, tls=tls)
            with pytest.raises(Unreachable, match="wants palios://"):
                await self.enter(served.url.replace("palios", "palio"))
            with pytest.raises(InvalidValue, match="certificates for"):
                palio.connect(served.url, tls="no-such-file")
        async with Served() as served:
            with pytest.raises(Unreachable, match="plain palio://"):
                await self.enter(served.url.replace("palio", "palios"))

    @pytest.mark.parametrize(
        "url", ["http://x", "palio://", "palio://h:99999", "palio://u:p@h", "palio://h/x", "h:7400"]
    )
    def test_bad_addresses(self, url: str) -> None:
        with pytest.raises(InvalidValue):
            palio.connect(url)

    def test_tls_needs_its_scheme(self) -> None:
        with pytest.raises(InvalidValue, match="palios"):
            palio.connect("palio://h", tls="ca.pem")

    def test_a_token_in_the_clear_is_told_and_never_shown(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        client = palio.connect("palio://far.example", token="s3cret")
        assert "in the clear" in caplog.text
        assert "s3cret" not in caplog.text + repr(client)
        caplog.clear()
        palio.connect("palio://127.0.0.1", token="s3cret")
        assert caplog.text == ""

    def test_import_is_lazy(self) -> None:
        script = (
            "import palio, sys; assert 'asyncio' not in sys.modules, 'too early'; "
            "palio.connect; palio.blocking.connect; assert 'numba' not in sys.modules"
        )
        subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


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


@pytest.mark.parametrize(
    "attributes",
    [
        {"s": 'ü\x00"', "i": -(2**63), "f": 1.5e300, "b": True, "z": -0.0},
        {"at": datetime(2013, 1, 31, tzinfo=UTC), "x": 1},
        {"nan": float("nan"), "inf": float("-inf")},
        {"none": None, "x": 1},
        {"a.b": 1, "$time": "x"},
        {},
    ],
)
def test_attributes_come_back(attributes: dict[str, object]) -> None:
    message = palio.Message(attributes)
    for given in (attributes, message):
        data = to_bytes(given)
        assert from_bytes(data) == message
        assert palio.Message.from_json(data) == message
