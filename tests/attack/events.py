"""Attacks by CloudEvents, logins and long polls: sinks that are slow or elsewhere, batches, floods."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from tests.attack.arena import SLOW_HOST, Arena
from tests.attack.case import case
from tests.attack.http import HttpAttacker, is_served, post

SUBSCRIPTIONS = "/v1/cloudevents/subscriptions"
PATIENCE_S = 120.0


async def asked(
    arena: Arena, method: str, path: str, body: bytes = b"", *fields: str
) -> tuple[int, bytes]:
    """Status and body of one request on a connection of its own."""
    one = await HttpAttacker.at(arena)
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", *fields]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    await one.send("\r\n".join([*lines, "", ""]).encode() + body)
    head, _, rest = (await one.rest()).partition(b"\r\n\r\n")
    one.leave()
    return (int(head.split(b" ")[1]) if head else 0), rest


async def subscription(arena: Arena, sink: str, **members: Any) -> tuple[int, bytes]:
    document = {"protocol": "HTTP", "sink": sink, "types": ["attack"], **members}
    body = json.dumps(document).encode()
    return await asked(arena, "POST", SUBSCRIPTIONS, body, "Content-Type: application/json")


def event(number: int, **members: Any) -> bytes:
    given = {"specversion": "1.0", "id": str(number), "source": "/a", "type": "attack", **members}
    return json.dumps(given).encode()


@case("sinks: 60 that never answer, drip a byte a second or answer without end; private addresses")
async def sinks(arena: Arena) -> str:
    held: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        try:
            await reader.readuntil(b"\r\n\r\n")
            kind = len(held) % 3
            endless = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            writer.write(endless if kind == 2 else b"HTTP/1.1 200 O" if kind else b"")
            while kind:
                writer.write(b"400\r\n" + bytes(1024) + b"\r\n" if kind == 2 else b"K")
                await writer.drain()
                await asyncio.sleep(0.01 if kind == 2 else 1)
        except (OSError, asyncio.IncompleteReadError):
            pass

    private = [
        "http://127.0.0.1/", "http://[::1]/", "http://169.254.169.254/latest", "http://10.0.0.1/", "http://0x7f000001/",
        "http://2130706433/", "http://127.1/", "http://[::ffff:127.0.0.1]/", "http://[64:ff9b::7f00:1]/", "http://0/",
        "http://localhost/", f"http://{arena.http}/v1/messages", "file:///etc/passwd", "http://a@127.0.0.2/",
        "gopher://127.0.0.2/", "http://127.0.0.2\\@127.0.0.1/", "http://[fe80::1%25lo]/", "http://\u2460.0.0.127/",
    ]  # fmt: skip
    paths, refused = [], 0
    async with await asyncio.start_server(serve, SLOW_HOST, 0) as server:
        port = server.sockets[0].getsockname()[1]
        for n in range(arena.count(9, 60)):
            status, body = await subscription(arena, f"http://{SLOW_HOST}:{port}/{n}")
            assert status == 201, (status, body)
            paths.append(f"{SUBSCRIPTIONS}/{json.loads(body)['id']}")
        for sink in private:
            status, body = await subscription(arena, sink)
            assert status in (201, 400), (sink, status)
            refused += status == 400
            if status == 201:  # a name: refused when it is resolved
                paths.append(f"{SUBSCRIPTIONS}/{json.loads(body)['id']}")
        for n in range(arena.count(20, 500)):
            kind = "Content-Type: application/cloudevents+json"
            assert (await asked(arena, "POST", "/v1/events", event(n), kind))[0] == 200
        await asyncio.sleep(arena.count(2, 15))
        await is_served(arena)
        for path in paths:
            assert (await asked(arena, "DELETE", path))[0] == 204
        for writer in held:
            writer.transport.abort()
    return f"{refused} of {len(private)} sinks refused, {len(held)} requests reached the slow ones"


@case("5,000 logins, and 20,000 requests with wrong cookies and tokens", in_test=True)
async def logins(arena: Arena) -> str:
    before, statuses = arena.memory(), set()
    login = b"POST /v1/login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n%s\r\n"
    for fields, count in (
        (b"Authorization: Bearer token-of-limited\r\n", arena.count(300, 5_000)),
        (b"Authorization: Bearer %s\r\n" % (b"x" * 4_000), arena.count(300, 10_000)),
        (b"Cookie: palio_login=%s\r\n" % (b"y" * 4_000), arena.count(300, 10_000)),
    ):
        for _ in range(0, count, 100):
            one = await HttpAttacker.at(arena)
            await one.send((login % fields) * 100)
            while (status := await one.status()) != 0 and len(statuses) < 10:
                statuses.add(status)
                if status >= 400:
                    break
                async with asyncio.timeout(PATIENCE_S):
                    if b"more" in await one.reader.read(1 << 20):
                        break
                break
            one.leave()
    grown_mib = (arena.memory() - before) >> 20
    assert grown_mib < 50, f"memory grew by {grown_mib} MiB"
    await is_served(arena)
    return f"answered with {sorted(statuses)}, memory grew by {grown_mib} MiB"


@case("1,500 long polls that wait for what never comes, for one name and for many")
async def long_polls(arena: Arena) -> str:
    count, before = arena.count(60, 1_500), arena.memory()
    eves = [await HttpAttacker.at(arena) for _ in range(count)]
    for n, eve in enumerate(eves):
        name = "poll" if n % 2 else f"poll{n % 100}"
        await eve.send(
            f"GET /v1/subscriptions/{name}/messages?where=poll%20%3D%20{n % 3}&wait=20 HTTP/1.1\r\n"
            "Host: localhost\r\n\r\n".encode()
        )
    await asyncio.sleep(1)
    await is_served(arena)
    for eve in eves[: count // 2]:
        eve.leave()
    statuses = {await eve.status() for eve in eves[-arena.count(5, 40) :]}
    for eve in eves:
        eve.leave()
    assert statuses <= {200, 400, 409, 429, 503}, statuses
    for name in ["poll", *[f"poll{n}" for n in range(0, 100, 2)]]:
        status, body = await asked(arena, "DELETE", f"/v1/subscriptions/{name}")
        assert status in (200, 204, 404), (status, body)
    await is_served(arena)
    grown_mib = (arena.memory() - before) >> 20
    return f"answered with {sorted(statuses)}, memory grew by {grown_mib} MiB"


@case(
    "batches of events at the limit of a body: many small ones, large data, deep data, long names"
)
async def event_batches(arena: Arena) -> str:
    kind, statuses = "Content-Type: application/cloudevents-batch+json", []
    wide = {f"n{n}": n for n in range(300)}
    deep: Any = 1
    for _ in range(200):
        deep = {"a": deep}
    began = time.monotonic()
    for members in (
        {},
        {"data": wide},
        {"data": "x" * 20_000},
        {"data": deep},
        {"data": [wide] * 20},
        wide,
    ):
        one = event(1, **members)
        many = b"[" + b",".join([one] * ((8 << 20) // (len(one) + 1) - 1)) + b"]"
        statuses += [
            (await asked(arena, "POST", "/v1/events", many, kind))[0]
            for _ in range(arena.count(1, 5))
        ]
    for _ in range(arena.count(3, 30)):  # at the number of messages
        many = b"[" + b",".join(event(n, data=wide) for n in range(1_000)) + b"]"
        statuses.append((await asked(arena, "POST", "/v1/events", many, kind))[0])
    assert set(statuses) <= {200, 400, 413}, statuses
    lines = post(b'{"attributes":{"a":1}}\n' * 10_000, "Content-Type: application/x-ndjson")
    eve = await HttpAttacker.at(arena)
    await eve.send(lines)
    assert await eve.status() == 200
    eve.leave()
    await is_served(arena)
    return f"answered with {sorted(set(statuses))} in {time.monotonic() - began:.0f} s"
