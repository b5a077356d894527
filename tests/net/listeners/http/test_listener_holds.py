"""How long HTTP holds the event loop: the processor time of its thread between two turns, 50 ms at most.

The broker runs in a thread of its own, so that the time of its clients does not count.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from palio.net.broker.rehearsal import rehearse
from tests.net.listeners.http.peer import HttpBroker, http_broker, websockets
from tests.net.peers import run

HOLD_S_MAX = 0.1
"""About twice what it takes on a quiet machine: other processes cost processor time too."""
_SAMPLE_S = 0.001
PATIENCE_S = 60.0


class WatchedBroker(threading.Thread):
    """A broker with HTTP, and the longest hold of its event loop."""

    def __init__(self, folder: Path, http: str = "") -> None:
        super().__init__(daemon=True)
        self._folder, self._http = folder, http
        self._ready = threading.Event()
        self.longest_s = 0.0
        self.busy_s = 0.0
        """All processor time of its thread."""

    def __enter__(self) -> WatchedBroker:
        self.start()
        assert self._ready.wait(PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self.join(PATIENCE_S)

    def run(self) -> None:
        run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        async with http_broker(self._folder, self._http) as self.broker:
            await asyncio.sleep(0.2)
            watch = asyncio.create_task(self._watch())
            self._ready.set()
            await self._end.wait()
            watch.cancel()

    async def _watch(self) -> None:
        while True:
            began = time.thread_time()
            await asyncio.sleep(_SAMPLE_S)
            self.longest_s = max(self.longest_s, time.thread_time() - began)
            self.busy_s = time.thread_time()


@pytest.fixture(scope="module", autouse=True)
def warm() -> Iterator[None]:
    """`palio broker` does this before it listens."""
    rehearse(os.urandom)
    before = gc.get_threshold()
    gc.set_threshold(5_000, 10, 1_000)
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


def lines(count: int) -> bytes:
    return b"\n".join(
        json.dumps({"attributes": {"dest": "MXP", "price": n}, "body": "12A"}).encode()
        for n in range(count)
    )


async def many_lines(broker: HttpBroker) -> None:
    for durable in ("true", "false"):
        answer = await broker.ask(
            "POST", f"/v1/messages?durable={durable}", lines(9_900), Content_Type="application/x-ndjson"
        )  # fmt: skip
        assert answer.status in (200, 202)


async def smallest_lines(broker: HttpBroker) -> None:
    body = b'{"attributes":{}}\n' * 10_000
    kind = "application/x-ndjson"
    assert (await broker.ask("POST", "/v1/messages", body, Content_Type=kind)).status == 200


async def empty_lines(broker: HttpBroker) -> None:
    kind = "application/x-ndjson"
    body = b"\n" * (8 << 20)
    assert (await broker.ask("POST", "/v1/messages", body, Content_Type=kind)).status == 400


async def one_long_line(broker: HttpBroker) -> None:
    for body in (
        b'{"attributes": {"a": 1}, "body": "' + b"\\u00e9" * 600_000 + b'"}',
        b'{"attributes": {"a": [' + b"[],[]," * 1_300_000 + b"1]}}",
        b'{"attributes": {"a": 1}, "headers": {' + b",".join(b'"%d":1' % n for n in range(700_000)) + b"}}",
        b'{"attributes": {"a": 1}, ' + b'"a":1,' * 1_300_000 + b'"b": 1}',
        b'{"attributes":' * 500_000,
    ):  # fmt: skip
        for kind in ("application/json", "application/x-ndjson"):
            answer = await broker.ask("POST", "/v1/messages", body[: 8 << 20], Content_Type=kind)
            assert answer.status in (200, 400, 413)


async def small_chunks(broker: HttpBroker) -> None:
    peer = await broker.connect()
    await peer.send("POST", "/v1/messages", Transfer_Encoding="chunked", Content_Type="text/plain",
                    Palio_Attributes="{}")  # fmt: skip
    peer.writer.write((b"41\r\n" + b"x" * 65 + b"\r\n") * 60_000)
    peer.writer.write(b"0\r\n\r\n")
    assert (await peer.answer()).status == 200
    peer.close()


async def batches_of_events(broker: HttpBroker) -> None:
    event = {"specversion": "1.0", "id": "1", "source": "/a", "type": "t"}
    kind = "application/cloudevents-batch+json"
    small = json.dumps([event | {"data": {"n": n}} for n in range(9_900)]).encode()
    for body, status in (
        (small, 200),
        (b"[" + b"{}," * 2_700_000 + b"{}]", 400),
        (b"[" + b"1," * 4_000_000 + b"1]", 400),
        (json.dumps([event | {"data": [[]] * 200_000}]).encode(), 200),
        (json.dumps([event | {"data": {str(n): n for n in range(200_000)}}]).encode(), 200),
        (json.dumps([event] * 150_000).encode()[: 8 << 20], 400),
    ):
        answer = await broker.ask("POST", "/v1/events", body, Content_Type=kind)
        assert answer.status == status, answer


async def a_storm_on_a_websocket(broker: HttpBroker) -> None:
    url = f"ws://{broker.endpoint}/v1/socket"
    async with websockets.connect(url, proxy=None, ping_interval=None) as connection:
        for n in range(3_000):
            await connection.send(json.dumps({"op": "publish", "id": n, "attributes": {"n": 1}}))
        for _ in range(3_000):
            assert json.loads(await connection.recv())["op"] == "published"
        await connection.send(
            '{"op": "publish", "id": 1, "attributes": {"a": [' + "[]," * 2_000_000 + "1]}}"
        )
        assert json.loads(await connection.recv())["op"] == "error"
        await connection.send('{"op": "ack", "id": 1, "positions": [' + "1," * 2_000_000 + "1]}")
        assert json.loads(await connection.recv())["op"] == "error"


@pytest.mark.parametrize(
    "scene", [many_lines, smallest_lines, empty_lines, one_long_line, small_chunks, batches_of_events, a_storm_on_a_websocket],
    ids=lambda scene: scene.__name__,
)  # fmt: skip
def test_it_holds_the_loop_shortly(
    tmp_path: Path, scene: Callable[[HttpBroker], Awaitable[None]]
) -> None:
    gc.freeze()
    with WatchedBroker(tmp_path) as watched:
        run(scene(watched.broker))
    print(f"{watched.longest_s * 1000:.0f} ms")
    assert watched.longest_s < HOLD_S_MAX


def test_idle_streams_cost_nothing(tmp_path: Path) -> None:
    """Between their heartbeats there is no work for them: the links in the process are not pinged."""
    count = 300

    async def scene(watched: WatchedBroker) -> tuple[float, float]:
        broker = watched.broker
        streams = [await broker.connect() for _ in range(count)]
        for one in streams:
            await one.send("GET", "/v1/events?where=a%20=%201")
        for one in streams:
            assert (await one.head()).status == 200
        await asyncio.sleep(1)
        before = watched.busy_s
        await asyncio.sleep(1)
        idle = watched.busy_s - before
        for one in streams:
            one.close()
        await asyncio.sleep(1)
        before = watched.busy_s
        await asyncio.sleep(1)
        return idle, watched.busy_s - before

    with WatchedBroker(tmp_path, 'heartbeat = "60 s"\n') as watched:
        idle, none = run(scene(watched))
    print(f"{idle:.3f} s with {count} streams, {none:.3f} s without")
    assert idle < none + 0.05
