"""What the HTTP listener reads: requests, frames of a WebSocket, bodies.

    requests   streams of requests to a connection with all handlers, and a broker that takes everything
    sockets    frames of a WebSocket to a conversation
    bodies     messages and CloudEvents as bodies

No case may raise anything but an error of ours, meet a bug (500), or be answered by another status when its bytes
arrive in other pieces. A connection whose request is wrong must end.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from functools import cached_property
from itertools import pairwise
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from palio.errors import NoReply, PalioError
from palio.net.client.attributes import to_bytes
from palio.net.config.values import HttpSettings
from palio.net.endpoint import Endpoint
from palio.net.listeners.http.clients import BrokerClients, Credential
from palio.net.listeners.http.connection import HttpConnection
from palio.net.listeners.http.json_form import read_message
from palio.net.listeners.http.problems import Problem
from palio.net.listeners.http.routes import HttpService
from palio.net.listeners.http.served import Sockets
from palio.protocol.cloudevents.http_binding import read_http, write_binary, write_structured
from palio.protocol.cloudevents.messages import Defaults, event_of, message_of
from palio.protocol.wire.frames import Limits
from palio.protocol.wire.message_headers import Headers, packed
from tests.fuzz.json_grammar import AttributeTexts
from tests.fuzz.target import Target
from tests.protocol.wire.mutation import mutated

_MINUTE = 60_000_000
SETTINGS = HttpSettings(
    Endpoint("127.0.0.1", 7490), False, ("https://app.example.org",), (), 100, 2_000, 20_000, 100_000,
    _MINUTE, _MINUTE, _MINUTE, _MINUTE, _MINUTE, _MINUTE, 100,
)  # fmt: skip
LIMITS = Limits(attributes=4_000, body=8_000)
_TURNS_MAX = 2_000


class _Taker:
    """The client of a broker that takes everything."""

    identity = "ann"
    broker = "milan"

    async def request(self, attributes: Any, body: bytes, **options: Any) -> Any:
        await self.publish(attributes, body, **options)
        raise NoReply(options["timeout"])

    async def publish(self, attributes: Any, body: bytes, **options: Any) -> int:
        return await self.publish_many([(attributes, body, options.get("headers") or {})])

    async def publish_many(self, messages: Any, durable: bool = True) -> int:
        for attributes, _, headers in messages:
            to_bytes(attributes)
            packed(cast(Headers, headers), LIMITS.headers)
        return len(messages)

    async def explain(self, attributes: Any, subscription: str) -> Any:
        return SimpleNamespace(hops=(), silent=[])

    async def topology(self) -> list[Any]:
        return []

    async def forget_durable(self, name: str, group: str | None) -> None:
        pass

    def subscribe(self, *_: Any, **__: Any) -> Any:
        raise Problem(409, "full", "the broker of a fuzzer has no subscriptions")


class _Clients:
    answer_s = 10.0

    @asynccontextmanager
    async def shared(self, who: Credential) -> AsyncIterator[_Taker]:
        yield _Taker()

    @asynccontextmanager
    async def stream(self, who: Credential, peer: str) -> AsyncIterator[Any]:
        yield SimpleNamespace(client=_Taker(), taken=lambda: None)


class Wire(asyncio.Transport):
    """What a connection writes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_ended = False

    def write(self, data: Any) -> None:
        assert not self.is_ended, "it writes after the end"
        self.written += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        pass

    def is_closing(self) -> bool:
        return self.is_ended

    def close(self) -> None:
        self.is_ended = True

    def abort(self) -> None:
        self.is_ended = True


class _Peers:
    """Connections of a listener, in a loop of its own that is never idle."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._failed)
        log = logging.Handler(logging.ERROR)
        log.emit = self._logged  # type: ignore[method-assign]
        logging.getLogger("palio.net").addHandler(log)
        self.failure: BaseException | str | None = None
        self._service, self._sockets = self._run(self._made())

    async def _made(self) -> tuple[HttpService, Sockets]:
        sockets = Sockets(SETTINGS.connections_max, SETTINGS.bodies_bytes_max)
        clients = cast(BrokerClients, _Clients())
        return HttpService(SETTINGS, clients, LIMITS, sockets.counts), sockets

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(work)

    def _failed(self, _: Any, context: dict[str, Any]) -> None:
        self.failure = context.get("exception") or context["message"]

    def _logged(self, record: logging.LogRecord) -> None:
        self.failure = record.exc_info[1] if record.exc_info else record.getMessage()

    def say(self, pieces: list[bytes]) -> bytes:
        """What a new connection answers."""
        self.failure = None
        written: bytes = self._run(self._said(pieces))
        assert self.failure is None, self.failure
        assert b" 500 " not in written[:4_000], written[:400]
        assert not len(self._sockets), "a connection is left"
        return written

    async def _said(self, pieces: list[bytes]) -> bytes:
        wire, connection = Wire(), HttpConnection(self._service, SETTINGS, self._sockets)
        connection.connection_made(wire)
        for piece in pieces:
            if wire.is_ended:
                break
            connection.data_received(piece)
            await self._settle(connection)
        await self._settle(connection)
        connection.connection_lost(None)
        for _ in range(10):
            await asyncio.sleep(0)
        return bytes(wire.written)

    async def _settle(self, connection: HttpConnection) -> None:
        """Until nothing is under way."""
        for _ in range(_TURNS_MAX):
            if connection._task is None or connection._answering.upgraded is not None:
                break
            await asyncio.sleep(0)
        for _ in range(4):
            await asyncio.sleep(0)


_TARGETS = [
    "/v1/messages", "/v1/messages?durable=false", "/v1/messages?durable=x", "/v1/messages?delay=1&expires_in=1e9", "/v1/requests", "/v1/requests?timeout=1e5", "/openapi.json", "/v1/topology",
    "/v1/explain", "/v1/subscriptions/desk", "/v1/subscriptions/a@b", "/v1/subscriptions/%64%FF", "/v1/subscriptions/a?group=g",
    "/v1/subscriptions/a/messages?where=TRUE&wait=0", "/v1/events?where=a%20%3E%201&credit=5", "/v1/events",
    "/v1/login", "*", "/", "//", "/v1/messages?a=1&a=2", "http://localhost/v1/messages", "/v1/messages?%", "a:1",
]  # fmt: skip
_FIELDS = [
    "Host: localhost", "Host: evil.example", "Content-Type: application/json", "Origin: null",
    "Content-Type: application/x-ndjson; charset=utf-8", "Content-Type: text/plain", "Content-Encoding: gzip",
    'Palio-Attributes: {"a": 1}', "Palio-Attributes: {", "Authorization: Bearer ann", "Authorization: Basic x",
    "Cookie: palio_login=x", "Cookie: palio_login=\"\\", "Connection: close", "Connection: keep-alive, Upgrade",
    "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    "Transfer-Encoding: chunked", "Transfer-Encoding: chunked, chunked", "Transfer-Encoding: gzip",
    "Transfer-Encoding:\x0bchunked", "Content-Length: 5", "Content-Length: +5", "Content-Length: 99999999999999999",
    "Content-Length: 0, 0", "Content-Length: 5, 6", "Expect: 100-continue", "Sec-Fetch-Site: cross-site",
    "Last-Event-ID: 1-2", "Accept: */*", " folded: x", "Name : x", "X: \x00", "X-Long: " + "x" * 500, ": x",
    "Origin: https://app.example.org", "Ce-Id: 1", "Ce-Source: /a", "Ce-Type: t", "Ce-Specversion: 1.0",
]  # fmt: skip
_BODIES = [
    b"", b"hello", b'{"attributes": {"a": 1}}', b'{"attributes": {"a": 1}}\n{"attributes": {}}\n', b"\n\n",
    b'{"attributes": {"a": 1}, "body": "x", "headers": {"n": 1}}', b'{"attributes": {}, "body_base64": "AA=="}',
]  # fmt: skip


def request(random: Random) -> bytes:
    """Most are right, as the deep ends are behind that."""
    method = random.choices(
        ["POST", "GET", "DELETE", "OPTIONS", "HEAD", "PUT", "X Y"], [9, 6, 2, 1, 1, 1, 1]
    )[0]
    lines = [
        f"{method} {random.choice(_TARGETS)} HTTP/{random.choices(['1.1', '1.0', '2', '9'], [30, 2, 1, 1])[0]}"
    ]
    fields = random.sample(_FIELDS, random.choice((0, 1, 2, 4)))
    if random.random() < 0.9:
        fields.insert(0, _FIELDS[0])
    if random.random() < 0.6:
        fields.append(random.choice((_FIELDS[2], _FIELDS[4])))
    body = random.choice(_BODIES)
    if random.random() < 0.2:
        body = AttributeTexts(random).text()[:5_000]
    roll = random.random()
    if roll < 0.6 and body:
        fields.append(f"Content-Length: {len(body)}")
    elif roll < 0.9 and body:
        fields.append("Transfer-Encoding: chunked")
        parts = [body[i : i + 7] for i in range(0, len(body), 7)][:50]
        end = random.choice(
            [b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"00\r\n\r\n", b"-1\r\n", b"ffffffffffffffff\r\n"]
        )
        body = (
            b"".join(b"%x%s\r\n%s\r\n" % (len(p), random.choice((b"", b";a=b")), p) for p in parts)
            + end
        )
    end = random.choices(["\r\n", "\n"], [9, 1])[0]
    head = end.join([*lines, *fields, "", ""])
    return head.encode("latin-1", "replace") + body


def frame(random: Random) -> bytes:
    """A frame of a client, mostly with a mask."""
    texts = [
        b'{"op": "publish", "id": 1, "attributes": {"a": 1}}', b'{"op": "subscribe", "id": 1, "where": "a > 1"}',
        b'{"op": "nack", "id": 1, "positions": [1], "delay": 1e9}', b'{"op": "reject", "id": 1, "positions": []}',
        b'{"op": "ack", "id": 1, "positions": [1]}', b'{"op": "unsubscribe", "id": 1, "forget": true}', b"", b"\xff",
        b'{"op": "publish", "id": 1, "attributes": {"a": 1, "a": 2}}', b'{"op": "publish", "id": -1}', b"x" * 300,
    ]  # fmt: skip
    data = mutated(random, texts) if random.random() < 0.4 else random.choice(texts)
    opcode = random.choices([1, 0, 8, 9, 10, 2, 3, 15], [12, 4, 1, 3, 2, 1, 1, 1])[0]
    first = (
        opcode
        | (0x80 if random.random() < 0.7 else 0)
        | random.choices([0, 0x40, 0x10], [30, 1, 1])[0]
    )
    is_masked = random.random() < 0.96
    size, mask = len(data), 0x80 if is_masked else 0
    if size < 126 and random.random() < 0.95:
        head = bytes([first, mask | size])
    elif random.random() < 0.9:
        head = bytes([first, mask | 126]) + size.to_bytes(2)
    else:
        head = bytes([first, mask | 127]) + random.choice([size, 2**63, 2**40]).to_bytes(8)
    if not is_masked:
        return head + data
    key = random.randbytes(4)
    return head + key + bytes(byte ^ key[i % 4] for i, byte in enumerate(data))


_STATUS = re.compile(rb"HTTP/1.1 (\d+)")


def _statuses(answers: bytes) -> list[bytes]:
    """A head that is too long may be wrong before that, if it comes at once."""
    return [b"400" if one == b"431" else one for one in _STATUS.findall(answers)]


class Requests(Target):
    name, goal, chunk = "requests", 10_000_000, 500
    _HEAD = b""
    _is_answered_in_order = True

    @cached_property
    def _peers(self) -> _Peers:
        return _Peers()

    def run(self, seed: int) -> int:
        random = Random(f"{self.name} {seed}")
        count = 0
        while count < self.chunk:
            case = self.draw(random)
            self._seed = random.random()
            self.check_small(case)
            count += len(case)
        return count

    def draw(self, random: Random) -> list[bytes]:
        found = [request(random) for _ in range(random.choice((1, 2, 4, 8)))]
        if random.random() < 0.5:
            at = random.randrange(len(found))
            found[at] = mutated(random, [found[at], request(random)])
        return found

    def check(self, case: list[bytes]) -> None:
        random = Random(self._seed)
        data = self._HEAD + b"".join(case)
        whole = self._peers.say([data])
        cuts = sorted(
            {
                0,
                len(data),
                *(random.randrange(len(data) + 1) for _ in range(random.choice((1, 2, 8)))),
            }
        )
        pieces = self._peers.say([data[a:b] for a, b in pairwise(cuts)])
        if self._is_answered_in_order:
            assert _statuses(whole) == _statuses(pieces), (whole[-300:], pieces[-300:])

    _seed = 0.0


class SocketBytes(Requests):
    """What it asks is answered as it is done, and after a Close not at all: so pieces make a difference."""

    name, goal, chunk = "sockets", 10_000_000, 500
    _is_answered_in_order = False
    _HEAD = (
        b"GET /v1/socket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )

    def draw(self, random: Random) -> list[bytes]:
        found = [frame(random) for _ in range(random.choice((1, 2, 5, 12)))]
        if random.random() < 0.3:
            at = random.randrange(len(found))
            found[at] = mutated(random, [found[at], frame(random)])
        return found


_EVENTS = [
    b'{"specversion": "1.0", "id": "1", "source": "/a", "type": "t", "data": {"a": 1, "b": [1, {"c": null}]}}',
    b'{"specversion": "1.0", "id": "1", "source": "/a", "type": "t", "time": "2024-03-01T10:00:00.1234567Z",'
    b' "datacontenttype": "text/plain", "data": "x", "n": 5, "flag": true}',
    b'{"specversion": "1.0", "id": "\\u00e9", "source": "/a", "type": "t", "data_base64": "AAEC", "dataschema": "a:b"}',
]  # fmt: skip
_KINDS = [
    "application/cloudevents+json",
    "application/cloudevents-batch+json",
    "application/json",
    "text/plain",
]


class Bodies(Target):
    """A case is the content type, header fields, and the body."""

    name, goal, chunk = "bodies", 10_000_000, 2_000

    def draw(self, random: Random) -> list[bytes]:
        kind = random.choice(_KINDS)
        body = (
            mutated(random, [*_EVENTS, *_BODIES])
            if random.random() < 0.8
            else random.choice(_EVENTS)
        )
        if random.random() < 0.2:
            body = b'{"attributes": ' + AttributeTexts(random).text()[:5_000] + b"}"
        if kind == _KINDS[1]:
            body = b"[" + b",".join([body] * random.choice((0, 1, 3))) + b"]"
        fields = [
            "ce-id: 1",
            "ce-source: /a",
            "ce-type: t",
            "ce-specversion: 1.0",
            "ce-time: x",
            'ce-ext: "a\\"%41%C3"',
        ]
        head = "\n".join(random.sample(fields, random.randrange(len(fields) + 1)))
        return [
            kind.encode(),
            mutated(random, [head.encode() or b"-"]) if random.random() < 0.3 else head.encode(),
            body,
        ]

    def check(self, case: list[bytes]) -> None:
        kind, head, body = [*case, b"", b"", b""][:3]
        try:
            posted = read_message(body, LIMITS)
        except PalioError:
            pass
        else:
            assert set(json.loads(body)) >= {"attributes"}
            to_bytes(posted.attributes)
        pairs = [
            (n, v.strip())
            for n, _, v in (x.partition(":") for x in head.decode("latin-1").split("\n"))
        ]
        try:
            events = read_http([("content-type", kind.decode("latin-1")), *pairs], body)
        except PalioError:
            return
        for event in events:
            message = message_of(event)
            again = event_of(
                message.attributes, message.headers, message.body, Defaults("0", "/palio")
            )
            assert dict(again.attributes) == dict(event.attributes), "an event that came back"
            assert again.data == event.data, "its data"
            for write in (write_binary, write_structured):
                headers, written = write(event)
                (read,) = read_http(headers, written)
                if write is write_structured:
                    assert dict(read.attributes) == dict(event.attributes), "written, then read"
