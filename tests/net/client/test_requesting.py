"""Requests and replies, with a real broker in this process, and over three brokers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import palio
from palio.errors import ClientClosed, InvalidValue, NoReply
from palio.model.topics import topic_attributes
from palio.net.broker.server import serving
from palio.net.client.subscription import Note, Subscription
from palio.net.cluster import local_cluster
from palio.protocol.wire.message_headers import CORRELATION, REPLY_TO
from tests.net.peers import configured
from tests.net.running import in_loop


async def answer(subscription: Subscription, times: int = 1) -> None:
    async for note in subscription:
        for n in range(times):
            await note.reply(note.body.upper(), attributes={"of": note.attributes["ask"], "n": n})
        await note.ack()


async def asked_at_once(url: str, count: int) -> list[tuple[object, object]]:
    """What is answered to many requests at once, by a durable and a live responder."""
    async with palio.connect(url) as ann, palio.connect(url) as bob:
        async with (
            bob.subscribe("ask > 0", durable="work") as durable,
            bob.subscribe("ask < 0") as live,
        ):
            tasks = [asyncio.create_task(answer(durable, 2)), asyncio.create_task(answer(live))]
            requests = [ann.request({"ask": n or -1}, body=b"x%d" % n) for n in range(count)]
            notes: list[Note] = await asyncio.gather(*requests)
            for task in tasks:
                task.cancel()
        return [(note.attributes["of"], note.body) for note in notes]


@in_loop
async def test_each_request_gets_its_own_reply(tmp_path: Path) -> None:
    async with serving(configured(tmp_path)) as broker:
        found = await asked_at_once(f"palio://127.0.0.1:{broker.endpoint.port}", 30)
        assert found == [(n or -1, b"X%d" % n) for n in range(30)]


@in_loop
async def test_nobody_answers(tmp_path: Path) -> None:
    async with serving(configured(tmp_path)) as broker:
        url = f"palio://127.0.0.1:{broker.endpoint.port}"
        async with palio.connect(url) as ann, palio.connect(url) as bob:
            async with bob.subscribe("ask > 0", durable="work") as work:
                with pytest.raises(NoReply, match=r"no reply came within 0\.2 s; check") as caught:
                    await ann.request({"ask": 1}, timeout=0.2)
                assert isinstance(caught.value, TimeoutError)
                late = await anext(work)
                await late.reply(b"late")
                await late.ack()
                waiting = asyncio.create_task(ann.request({"ask": 2}))
                note = await anext(work)
                await note.reply(b"now")
                assert (await waiting).body == b"now", "not the late one"
                assert "expires_us" in note.headers
            with pytest.raises(InvalidValue, match="asks for no reply"):
                await (await waiting).reply(b"thanks")


@in_loop
async def test_who_is_closed_waits_for_nothing(tmp_path: Path) -> None:
    async with serving(configured(tmp_path)) as broker:
        ann = await palio.connect(f"palio://127.0.0.1:{broker.endpoint.port}")
        waiting = asyncio.create_task(ann.request({"ask": 1}))
        await asyncio.sleep(0.2)
        await ann.close()
        with pytest.raises(ClientClosed):
            await waiting


@in_loop
async def test_as_clients_of_mqtt_ask_and_answer(tmp_path: Path) -> None:
    async with serving(configured(tmp_path)) as broker:
        url = f"palio://127.0.0.1:{broker.endpoint.port}"
        async with (
            palio.connect(url) as ann,
            palio.connect(url) as device,
            device.subscribe("topic = 'ask/me'") as asked,
            ann.subscribe("topic_1 = 'to'") as to,
        ):
            waiting = asyncio.create_task(ann.request(topic_attributes("ask/me"), b"?"))
            note = await anext(asked)
            topic, key = note.headers[REPLY_TO], note.headers[CORRELATION]
            assert isinstance(topic, str)
            await device.publish(topic_attributes(topic), b"!", headers={CORRELATION: key})
            assert (await waiting).body == b"!"
            headers = {REPLY_TO: "to/device", CORRELATION: b"7"}
            await device.publish(topic_attributes("ask/me"), headers=headers)
            await (await anext(asked)).reply(b"ok")
            reply = await anext(to)
            assert (reply.attributes["topic"], reply.headers) == (
                "to/device",
                {CORRELATION: b"7"},
            )


@pytest.mark.slow
def test_over_three_brokers_and_from_threads(tmp_path: Path) -> None:
    async def responder(url: str, ready: asyncio.Event) -> None:
        async with palio.connect(url) as bob, bob.subscribe("ask > 0", durable="work") as work:
            ready.set()
            await answer(work)

    async def scene(urls: list[str]) -> None:
        ready = asyncio.Event()
        task = asyncio.create_task(responder(urls[2], ready))
        await ready.wait()
        for _ in range(20):  # the first request of each client comes right after its subscription
            async with palio.connect(urls[0]) as ann:
                assert (await ann.request({"ask": 1}, b"a")).body == b"A"
        blocking = await asyncio.to_thread(ask_from_a_thread, urls[1])
        assert blocking == b"B"
        task.cancel()

    with local_cluster(3, "line", data=tmp_path) as cluster:
        asyncio.run(scene(cluster.urls))


def ask_from_a_thread(url: str) -> bytes:
    with palio.blocking.connect(url) as client:
        return client.request({"ask": 2}, b"b", timeout=20).body
