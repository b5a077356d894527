"""Connections under attack: bounded in bytes, time and number, and the broker goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.net.listeners.http.peer import HttpBroker, http_broker
from tests.net.peers import run, until

SHORT = 'receive = "300 ms"\nidle = "300 ms"\nstalled = "500 ms"\n'


async def works(broker: HttpBroker) -> None:
    assert (await broker.publish({"attributes": {"a": 1}})).status == 200


async def raw(broker: HttpBroker, data: bytes) -> bytes:
    """All that comes back."""
    peer = await broker.connect()
    peer.writer.write(data)
    try:
        return await peer.reader.read()
    finally:
        peer.close()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x00\x01\x02\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n" * 9, 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),  # without Host
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 20_000, 431),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: a\r\n" * 5_000, 431),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n", 431),
        (b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n", 413),
        (b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9" + b"9" * 30 + b"\r\n\r\n", 400),
        (b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET /v1/topology HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n", 400),
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused(tmp_path: Path, data: bytes, status: int) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            answer = await raw(broker, data)
            assert answer.startswith(f"HTTP/1.1 {status} ".encode())
            await works(broker)

    run(scene())


def test_a_head_or_a_body_that_drips_is_late(tmp_path: Path) -> None:
    head = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"

    async def drip(broker: HttpBroker, data: bytes) -> bytes:
        peer = await broker.connect()
        peer.writer.write(data)

        async def more() -> None:
            while True:
                await asyncio.sleep(0.05)
                peer.writer.write(b"x")

        task = asyncio.create_task(more())
        try:
            return await peer.reader.read()
        finally:
            task.cancel()
            peer.close()

    async def scene() -> None:
        async with http_broker(tmp_path, SHORT) as broker:
            for data in (head + b"X: ", head + b"Content-Length: 5000\r\n\r\n"):
                assert (await drip(broker, data)).startswith(b"HTTP/1.1 408 ")
            assert await raw(broker, b"") == b""  # one that says nothing
            await works(broker)

    run(scene())


def test_chunks_beyond_the_limit(tmp_path: Path) -> None:
    head = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def scene() -> None:
        async with http_broker(tmp_path, 'body = "100 KiB"\n') as broker:
            chunk = b"1000\r\n" + b"x" * 4096 + b"\r\n"
            assert (await raw(broker, head + chunk * 26)).startswith(b"HTTP/1.1 413 ")
            assert (await raw(broker, head + b"1\r\nx\r\n" * 20_000)).startswith(b"HTTP/1.1 400 ")
            await works(broker)

    run(scene())


def test_all_bodies_together_are_bounded(tmp_path: Path) -> None:
    async def scene() -> None:
        http = 'body = "100 KiB"\nbodies = "250 KiB"\n'
        async with http_broker(tmp_path, http) as broker:
            peers = [await broker.connect() for _ in range(3)]
            for peer in peers:
                await peer.send("POST", "/v1/messages", Content_Length="100000")
                peer.writer.write(b"x" * 99_000)
            done, waiting = await asyncio.wait(
                [asyncio.create_task(peer.answer()) for peer in peers], timeout=2
            )
            assert [task.result().status for task in done] == [503]
            assert len(waiting) == 2
            for task in waiting:
                task.cancel()
            for peer in peers:
                peer.close()
            await asyncio.sleep(0.1)
            peer = await broker.connect()  # the room is free again
            assert (await peer.ask("POST", "/v1/messages", b"x" * 90_000)).status == 415
            peer.close()

    run(scene())


def test_a_new_connection_takes_the_place_of_one_that_says_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path, "connections = 5\n") as broker:
            silent = [await broker.connect() for _ in range(20)]
            await works(broker)
            streams = []
            for _ in range(5):
                peer = await broker.connect()
                await peer.send("GET", "/v1/events?where=TRUE")
                assert (await peer.head()).status == 200
                streams.append(peer)
            refused = await broker.connect()
            assert (await refused.head()).status == 503
            for peer in [*silent, *streams, refused]:
                peer.close()

    run(scene())


def test_a_stream_that_is_not_read_is_cut_off(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path, SHORT, '[limits]\nbody = "256 KiB"\n') as broker:
            peer = await broker.connect(limit=1024)
            await peer.send("GET", "/v1/events?where=TRUE")
            await peer.reader.read(10)
            publisher = await broker.connect()
            body = "x" * 200_000
            for n in range(100):
                answer = await publisher.publish({"attributes": {"n": n}, "body": body})
                assert answer.status == 200
                if broker.server.host.snapshot().subscriptions == 0:
                    break
            await until(lambda: broker.server.host.snapshot().subscriptions == 0)
            publisher.close()
            peer.close()

    run(scene())


def test_requests_on_one_connection_and_at_once(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            peer = await broker.connect()
            for _ in range(3):
                assert (await peer.publish({"attributes": {"a": 1}})).status == 200
            for _ in range(50):  # pipelined
                await peer.send("GET", "/openapi.json")
            for _ in range(50):
                assert (await peer.answer()).status == 200
            peer.close()

    run(scene())


def test_many_idle_streams(tmp_path: Path) -> None:
    """The loop is free while they are there, and they end without a trace."""

    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            streams = []
            for _ in range(300):
                peer = await broker.connect()
                await peer.send("GET", "/v1/events?where=a%20%3D%201")
                assert (await peer.head()).status == 200
                streams.append(peer)
            await works(broker)
            for peer in streams:
                assert '"a":1' in (await peer.event())["data"].replace(" ", "")
                peer.close()
            await until(lambda: broker.server.host.connection_count <= 1)

    run(scene())


def test_a_stop_ends_streams_soon(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path) as broker:
            streams = []
            for _ in range(50):
                peer = await broker.connect()
                await peer.send("GET", "/v1/events?where=TRUE")
                assert (await peer.head()).status == 200
                streams.append(peer)
            await works(broker)
            clock = asyncio.get_running_loop().time
            began = clock()
        assert clock() - began < 4
        for peer in streams:
            await peer.reader.read()
            peer.close()

    run(scene())
