"""Clients that want more than their share of sinks, or to keep events from those of others."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

pytest.importorskip("httpcore", reason="needs palio[http]")

import palio
from tests.net.listeners.http.peer import http_broker, identity
from tests.net.peers import run
from tests.net.sinks.test_service import JSON, PATH, SINKS, asked, document, event, made, until
from tests.net.sinks.test_worker import Sink, serving


def test_changes_at_once_leave_no_deliveries_behind(tmp_path: Path) -> None:
    async def scene(sink: Sink) -> None:
        async with http_broker(tmp_path, more=SINKS) as broker:
            service = broker.server.host
            for _ in range(5):
                path = (await made(broker, sink, types=["t"])).headers["location"]
                changes = [
                    asked(broker, "PUT", path, document(sink, types=[f"t{at}"])) for at in range(4)
                ]
                answers = await asyncio.gather(*changes, asked(broker, "DELETE", path))
                assert {one.status for one in answers} <= {200, 204, 404}
            for _ in range(5):
                creating = asyncio.create_task(made(broker, sink, types=["t"]))
                while not creating.done():
                    for one in (await asked(broker, "GET", PATH)).json:
                        answer = await asked(broker, "DELETE", f"{PATH}/{one['id']}")
                        assert answer.status == 204, answer.body
                for one in (await asked(broker, "GET", PATH)).json:
                    await asked(broker, "DELETE", f"{PATH}/{one['id']}")
            assert (await asked(broker, "GET", PATH)).json == []
            for kind in ("t", "t0", "t1", "t2", "t3"):
                await event(broker, "1", type=kind)
            await asyncio.sleep(0.2)
            assert (sink.ids, len(service.snapshot().queues.largest)) == ([], 0)

    with serving(Sink()) as sink:
        run(scene(sink))


def test_who_does_not_wait_for_the_answer_leaves_nothing_half_made(tmp_path: Path) -> None:
    async def scene(sink: Sink) -> None:
        async with http_broker(tmp_path, more=SINKS) as broker:
            body = json.dumps(document(sink)).encode()
            for at in range(20):
                peer = await broker.connect()
                await peer.send("POST", PATH, body, **JSON)
                await asyncio.sleep(at / 1000)
                peer.writer.transport.abort()
            await asyncio.sleep(0.5)
            for one in (await asked(broker, "GET", PATH)).json:
                await asked(broker, "DELETE", f"{PATH}/{one['id']}")
            assert len(broker.server.host.snapshot().queues.largest) == 0

    with serving(Sink()) as sink:
        run(scene(sink))


def test_a_costly_subscription_holds_nobody_up(tmp_path: Path) -> None:
    filters = [{"sql": f"a{at} LIKE 'x%_y'"} for at in range(3000)]

    async def scene(sink: Sink) -> None:
        async with http_broker(tmp_path, more=SINKS) as broker:
            holds = [0.0]

            async def watch() -> None:
                while True:
                    before = time.thread_time()
                    await asyncio.sleep(0.001)
                    holds.append(time.thread_time() - before)

            watching = asyncio.create_task(watch())
            await made(broker, sink, filters=filters)
            watching.cancel()
            assert max(holds) < 0.1

    with serving(Sink()) as sink:
        run(scene(sink))


def test_slow_sinks_of_one_cost_others_no_events(tmp_path: Path) -> None:
    """Waiting for a connection is no attempt."""
    more = SINKS + 'connections = 1\ntimeout = "200 ms"\nhandshake = false\n'
    more += identity("eve", 'subscribe = "TRUE"')
    more += identity("ann", 'subscribe = "TRUE"\npublish = "TRUE"')

    async def scene(sink: Sink) -> None:
        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        tarpit = await asyncio.start_server(silent, "127.0.0.1", 0)
        slow = Sink(port=tarpit.sockets[0].getsockname()[1])
        async with http_broker(tmp_path, more=more) as broker:
            for _ in range(8):
                assert (await made(broker, slow, "eve")).status == 201
            assert (await made(broker, sink, "ann")).status == 201
            url = f"palio://{broker.server.endpoint}"
            async with (
                palio.connect(url, token="ann") as client,
                client.subscribe("dead_letter IS NOT NULL") as dead,
            ):
                for n in range(4):
                    await event(broker, str(n), "ann")
                await until(lambda: len(sink.ids) == 4)
                assert sink.ids == ["0", "1", "2", "3"]
                del dead
        tarpit.close()

    with serving(Sink()) as sink:
        run(scene(sink))


def test_a_content_type_with_blanks_stops_no_sink(tmp_path: Path) -> None:
    async def scene(sink: Sink) -> None:
        async with http_broker(tmp_path, more=SINKS) as broker:
            await made(broker, sink, config={"mode": "binary"})
            async with palio.connect(f"palio://{broker.server.endpoint}") as client:
                for kind in (" text/plain", "text/plain ", "text/plain; a=\u00e9", " "):
                    await client.publish({"x": 1}, b"b", headers={"content_type": kind})
            await until(lambda: len(sink.requests) == 5)  # with the handshake
            kinds = [dict(headers).get("content-type") for _, headers, _ in sink.requests[1:]]
            assert kinds == ["text/plain", "text/plain", None, None]

    with serving(Sink()) as sink:
        run(scene(sink))
