"""Attacks over HTTP and WebSocket: slow heads and bodies, smuggling, chunks, streams, frames, pings."""

from __future__ import annotations

import asyncio
import re
import zlib
from random import Random

from tests.attack.arena import Arena
from tests.attack.case import case

PATIENCE_S = 60.0
UPGRADE = (
    b"GET /v1/socket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n%s\r\n"
)
_MASK = b"\0\0\0\0"


class HttpAttacker:
    """A connection that says anything."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def at(cls, arena: Arena) -> HttpAttacker:
        return cls(*await asyncio.open_connection(*arena.http, limit=1 << 20))

    async def send(self, data: bytes) -> None:
        try:
            self.writer.write(data)
            async with asyncio.timeout(PATIENCE_S):
                await self.writer.drain()
        except ConnectionError:
            pass

    async def status(self) -> int:
        """Of the next answer; 0: the connection ended without one."""
        async with asyncio.timeout(PATIENCE_S):
            try:
                head = await self.reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                return 0
        return int(head.split(b" ")[1])

    async def rest(self) -> bytes:
        """All that comes until the end."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self.reader.read()
        except ConnectionError:
            return b""

    async def upgrade(self, fields: bytes = b"") -> bytes:
        await self.send(UPGRADE % fields)
        async with asyncio.timeout(PATIENCE_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
        assert b" 101 " in head.split(b"\r\n")[0], head
        return head

    def leave(self) -> None:
        self.writer.transport.abort()


def post(body: bytes, *fields: str, length: int | None = None) -> bytes:
    kind = (
        ""
        if any(one.startswith("Content-Type") for one in fields)
        else "Content-Type: application/json\r\n"
    )
    size = f"Content-Length: {len(body) if length is None else length}\r\n" if length != -1 else ""
    more = "".join(f"{one}\r\n" for one in fields)
    return (
        f"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n{kind}{size}{more}\r\n".encode() + body
    )


def frame(opcode: int, data: bytes, *, is_final: bool = True) -> bytes:
    size = len(data)
    head = bytes([0x80 * is_final | opcode])
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 1 << 16:
        head += bytes([0x80 | 126]) + size.to_bytes(2)
    else:
        head += bytes([0x80 | 127]) + size.to_bytes(8)
    return head + _MASK + data


async def is_served(arena: Arena) -> None:
    """A well-behaved client is, at the end of an attack."""
    one = await HttpAttacker.at(arena)
    await one.send(post(b'{"attributes": {"a": 1}}'))
    assert await one.status() == 200
    one.leave()


@case("2,300 connections that send a byte of a head a second, or a byte of a body", in_test=True)
async def slow_requests(arena: Arena) -> str:
    count = arena.count(60, 2300)
    eves = [await HttpAttacker.at(arena) for _ in range(count)]
    head, body = b"GET /v1/topology HTTP/1.1\r\n", post(b"x" * 10, length=1000)
    for second in range(4):
        for i, eve in enumerate(eves):
            part = head[second : second + 1] if i % 2 else (body if second == 0 else b"x")
            if not eve.writer.transport.is_closing():
                eve.writer.write(part)
        await asyncio.sleep(1)
    await is_served(arena)
    late = [await eve.status() for eve in eves[-40:]]
    assert set(late) <= {408, 0}, late
    for eve in eves:
        eve.leave()
    return f"{count:,} cut off after `receive`, others served meanwhile"


_SMUGGLED = b"GET /v1/topology HTTP/1.1\r\nHost: localhost\r\n\r\n"
_FORMS = [
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", b"Content-Length: 5\r\nContent-Length: 6\r\n",
    b"Content-Length: 5, 6\r\n", b"Content-Length: +5\r\n", b"Content-Length: 0x5\r\n", b"Content-Length: -1\r\n",
    b"Content-Length : 5\r\n", b"Transfer-Encoding : chunked\r\n", b"Transfer-Encoding: xchunked\r\n",
    b"Transfer-Encoding: chunked, identity\r\n", b"Transfer-Encoding:\x0bchunked\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n folded: x\r\n",
    b"X: y\rContent-Length: 5\r\n", b"Content-Length: 99999999999999999999\r\n", b"Content-\x00Length: 5\r\n",
    b"Content-Length: \xb2\r\n", b"Content-Length: 1_0\r\n",
]  # fmt: skip


@case("18 forms of request smuggling: lengths that contradict each other, in all ways")
async def smuggling(arena: Arena) -> str:
    statuses = set()
    for form in _FORMS:
        eve = await HttpAttacker.at(arena)
        await eve.send(
            b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + form
            + b"\r\n0\r\n\r\n" + _SMUGGLED
        )  # fmt: skip
        answers = await eve.rest()
        assert len(re.findall(rb"HTTP/1\.1 \d{3} ", answers)) <= 1, (form, answers)
        assert b'"brokers"' not in answers, form
        statuses.add(answers[9:12].decode())
        eve.leave()
    assert statuses <= {"400", "411", "413", "501", "408", ""}, statuses
    await is_served(arena)
    return f"each answered once, with {', '.join(sorted(filter(None, statuses)))}, and closed"


@case(
    "chunks: of a byte, endless sizes, long extensions and trailers, bodies without end",
    in_test=True,
)
async def chunks(arena: Arena) -> str:
    chunked = post(b"", "Transfer-Encoding: chunked", length=-1)
    tiny, mib = b"1\r\nx\r\n" * 50_000, b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
    statuses = []
    for data in (
        tiny, mib * 20, b"f" * 17 + b"\r\n", b"-5\r\n", b"5;" + b"x" * 100_000, b"0\r\n" + b"X: y\r\n" * 20_000,
        b"5\r\nhello", b"g\r\n", b"\r\n" * 100, b"5\r\nhelloX\r\n", b"0x5\r\nhello\r\n",
    ):  # fmt: skip
        eve = await HttpAttacker.at(arena)
        await eve.send(chunked + data)
        statuses.append(await eve.status())
        eve.leave()
    assert set(statuses) <= {400, 408, 413, 431, 0}, statuses
    await is_served(arena)
    return f"answered with {statuses}"


@case("heads of 1 MB, 10,000 fields, targets of 100 KB, and 100,000 requests in one write")
async def heads(arena: Arena) -> str:
    statuses = []
    for data in (
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n", b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000,
        b"GET / HTTP/1.1\r\nX: " + b"y" * (1 << 20), b"\r\n" * 100_000, b"\x16\x03\x01" + bytes(1000),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ):  # fmt: skip
        eve = await HttpAttacker.at(arena)
        await eve.send(data)
        statuses.append(await eve.status())
        eve.leave()
    assert set(statuses) <= {400, 421, 431, 0}, statuses
    eve = await HttpAttacker.at(arena)
    sending = asyncio.create_task(eve.send(_SMUGGLED * arena.count(2_000, 100_000)))
    await asyncio.wait([sending], timeout=2)  # it reads no answer: so nothing more is read of it
    await is_served(arena)
    eve.leave()
    sending.cancel()
    return f"answered with {statuses}"


@case("bodies: JSON nested a million deep, bad UTF-8, gzip bombs, 8 MB of lines", in_test=True)
async def bodies(arena: Arena) -> str:
    bomb = zlib.compress(bytes(50 << 20))
    deep = b'{"attributes": {"a": ' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}}"
    lines, statuses = "Content-Type: application/x-ndjson", []
    for data in (
        post(deep), post(deep, lines), post(b'{"attributes": {"a": "\xff\xfe\xc0\xaf"}}'), post(b'{"attributes": {"a": "\\ud800"}}'),
        post(bomb, "Content-Encoding: gzip"), post(bomb, "Transfer-Encoding: gzip", length=-1),
        post(b'{"attributes":{}}\n' * 10_001, lines), post(b"\n" * 8_000_000, lines), post(b"[]\n" * 1_000_000, lines),
        post(b'{"attributes": {' + b",".join(b'"a%d":1' % i for i in range(500_000)) + b"}}"),
        post(b"", length=1 << 40), post(b'{"attributes": {"a": ' + b"9" * 1_000_000 + b"}}"),
        post(b"{}", "Palio-Attributes: " + "[" * 10_000, "Content-Type: text/plain"),
        post(b'[{"specversion":"1.0"},' * 100_000, "Content-Type: application/cloudevents-batch+json"),
    ):  # fmt: skip
        eve = await HttpAttacker.at(arena)
        await eve.send(data)
        statuses.append(await eve.status())
        eve.leave()
    assert set(statuses) <= {400, 413, 415, 501, 0}, statuses
    await is_served(arena)
    return f"answered with {statuses}"


@case("1,500 streams that nobody reads, and a flood of messages for them")
async def unread_streams(arena: Arena) -> str:
    count = arena.count(30, 1500)
    eves = [await HttpAttacker.at(arena) for _ in range(count)]
    for eve in eves:
        await eve.send(b"GET /v1/events?where=unread%20%3E%200 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    streams = 0
    for eve in eves:
        status = await eve.status()
        assert status in (200, 503), status  # an identity has so many connections at most
        streams += status == 200
        eve.reader._transport.pause_reading()  # type: ignore[attr-defined]
    assert streams >= min(count, 900), streams
    body = b"\n".join(
        b'{"attributes": {"unread": %d}, "body": "%s"}' % (i + 1, b"x" * 900) for i in range(500)
    )
    for _ in range(arena.count(2, 20)):
        one = await HttpAttacker.at(arena)
        await one.send(post(body, "Content-Type: application/x-ndjson"))
        assert await one.status() == 200
        one.leave()
    memory = arena.memory() >> 20
    await is_served(arena)
    for eve in eves:
        eve.leave()
    return f"{count:,} streams; the broker has {memory} MiB"


@case(
    "WebSockets: fragments without end, floods of Pings, huge, broken and compressed frames",
    in_test=True,
)
async def sockets(arena: Arena) -> str:
    random, ended = Random(3), 0
    publish = b'{"op": "publish", "id": 1, "attributes": {"a": 1}}'
    rsv1 = bytes([0xC1]) + frame(1, publish)[1:]
    for data in (
        frame(1, b"x", is_final=False) + frame(0, b"", is_final=False) * arena.count(5_000, 200_000),
        frame(1, b"x", is_final=False) + frame(0, b"x" * 60_000, is_final=False) * 200,
        frame(9, b"p" * 125) * arena.count(5_000, 100_000), frame(9, b"p" * 126), frame(10, b"") * 100_000,
        b"\x81\xff" + (1 << 62).to_bytes(8) + _MASK, rsv1, frame(3, b""), frame(2, bytes(10)), b"\x81\x05hello",
        frame(1, b"\xff\xfe"), frame(8, b"\x03"), frame(8, (999).to_bytes(2)), frame(0, b"x"),
        random.randbytes(100_000), frame(1, b"[" * 1_000_000), frame(1, publish) * arena.count(300, 5_000),
        b"".join(frame(1, b'{"op": "subscribe", "id": %d, "where": "a = %d"}' % (i, i)) for i in range(arena.count(50, 2_000))),
    ):  # fmt: skip
        eve = await HttpAttacker.at(arena)
        head = await eve.upgrade(b"Sec-WebSocket-Extensions: permessage-deflate\r\n")
        assert b"deflate" not in head.lower(), "compression lets a few bytes become many"
        sending = asyncio.create_task(eve.send(data))
        await asyncio.wait([sending], timeout=3)  # who reads no Pong is not read either
        sending.cancel()
        try:
            async with asyncio.timeout(0.3):
                while await eve.reader.read(1 << 20):
                    pass
                ended += 1
        except (TimeoutError, ConnectionError):
            pass
        eve.leave()
    await is_served(arena)
    return f"{ended} were closed by the broker"


@case("requests that nobody answers, replies that nobody waits for", in_test=True)
async def requests_without_replies(arena: Arena) -> str:
    """One identity has 256 that wait; the rest is refused, and those that leave make room."""
    body = b'{"attributes": {"nobody": 1}}'
    request = post(body).replace(b"/v1/messages", b"/v1/requests?timeout=60")
    eves = [await HttpAttacker.at(arena) for _ in range(arena.count(300, 1_500))]
    for eve in eves:
        await eve.send(request)
    async with asyncio.timeout(PATIENCE_S):
        while (refused := _refused_of(eves)) < len(eves) - 256:
            await asyncio.sleep(0.05)
    await is_served(arena)
    for eve in eves:
        eve.leave()
    one = await HttpAttacker.at(arena)
    status = 429
    async with asyncio.timeout(PATIENCE_S):
        while status == 429:
            await one.send(request.replace(b"timeout=60", b"timeout=.1"))
            status = await one.status()
            await one.reader.readuntil(b"}\n")
    assert status == 504
    one.leave()
    return f"{refused} of {len(eves):,} were refused"


def _refused_of(eves: list[HttpAttacker]) -> int:
    """How many have an answer, without waiting for one."""
    return sum(b"429" in bytes(eve.reader._buffer) for eve in eves)  # type: ignore[attr-defined]


@case("a WebSocket that gives back all it gets, and positions that it never had", in_test=True)
async def storms_of_nacks(arena: Arena) -> str:
    eve = await HttpAttacker.at(arena)
    await eve.upgrade()
    said = b'{"op": "subscribe", "id": 1, "where": "storm = 1", "durable": "storm", "deliveries_max": 50}'
    await eve.send(frame(1, said))
    lines = b"\n".join([b'{"attributes": {"storm": 1}}'] * arena.count(100, 1_000))
    one = await HttpAttacker.at(arena)
    await one.send(post(lines, "Content-Type: application/x-ndjson"))
    assert await one.status() == 200
    one.leave()
    positions = b",".join(b"%d" % n for n in range(10_000))
    nack = frame(1, b'{"op": "nack", "id": 1, "positions": [%b]}' % positions)
    reading = asyncio.create_task(eve.rest())
    rounds = arena.count(20, 300)
    for _ in range(rounds):
        await eve.send(nack)
        await asyncio.sleep(0.01)
    await eve.send(
        frame(1, b'{"op": "nack", "id": 1, "positions": [%b], "delay": 1e7}' % positions)
    )
    await eve.send(frame(1, b'{"op": "unsubscribe", "id": 1, "forget": true}'))
    await is_served(arena)
    eve.leave()
    reading.cancel()
    return f"{rounds} times 10,000 positions"


@case("cookies, hosts and origins of other pages")
async def other_pages(arena: Arena) -> str:
    refused = 0
    message = b'{"attributes": {"a": 1}}'
    for fields in (
        ("Origin: https://evil.example",), ("Origin: null",), ("Sec-Fetch-Site: cross-site",),
        ("Origin: http://localhost.evil.example",), ("Origin: http://localhost@evil.example",),
        ("Origin: http://localhost", "Origin: https://evil.example"), ("Origin: [",),
    ):  # fmt: skip
        eve = await HttpAttacker.at(arena)
        await eve.send(post(message, *fields))
        status = await eve.status()
        assert status in (400, 403), (fields, status)
        refused += 1
        eve.leave()
    for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", ""):
        eve = await HttpAttacker.at(arena)
        await eve.send(post(message).replace(b"Host: localhost", f"Host: {host}".encode()))
        assert await eve.status() in (400, 421), host
        refused += 1
        eve.leave()
    eve = await HttpAttacker.at(arena)
    await eve.send(UPGRADE % b"Origin: https://evil.example\r\n")
    assert await eve.status() == 403
    eve.leave()
    return f"{refused + 1} refused"
