"""CloudEvents: documents of subscriptions with their filters, and the answers of sinks.

subscriptions   a document is refused, or selects what its filters say in the words of the specification
sinks           bytes in the place of an answer, whole and in pieces: a decision, whatever they are
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from random import Random
from typing import Any

import httpcore

import palio
from palio.errors import LimitExceeded, PalioError
from palio.model.dialects import cloudevents_filters
from palio.model.message import Message
from palio.net.sinks.sender import SinkSender
from palio.protocol.cloudevents.delivery import Answer, DeliveryPolicy, decide
from palio.protocol.cloudevents.sinks import SinkRules, check_sink
from palio.protocol.cloudevents.subscriptions import read_subscription
from tests.fuzz.target import Target
from tests.model.dialects.cesql_drawing import draw_expression
from tests.model.dialects.test_cloudevents_filters import draw, draw_event, holds
from tests.protocol.wire.mutation import mutated

sys.modules.setdefault("sniffio", None)  # type: ignore[arg-type]  # httpcore looks for it 7 times a request
RULES = SinkRules(networks=("10.1.0.0/16",), allows_http=True)
_SINKS = [
    "https://example.com/in", "http://10.1.2.3:8080/x?y=z", "https://[2606:2800::1]/", "https://127.0.0.1/",
    "http://0x7f000001/", "http://[::ffff:10.0.0.1]/", "https://a@b.example/", "ftp://example.com", "https://",
    "https://example.com:0/", "https://example.com/\r\nX: y", "https://" + "a" * 300 + ".example/", "http://[::1",
]  # fmt: skip
_CREDENTIALS = [
    {"credentialtype": "PLAIN", "identifier": "ann", "secret": "the secret"},
    {"credentialtype": "ACCESSTOKEN", "accesstoken": "the secret", "accesstokentype": "Bearer"},
    {"credentialtype": "ACCESSTOKEN", "accesstoken": "a\r\nb", "accesstokentype": "Bearer"},
    {"credentialtype": []}, None, 5,
]  # fmt: skip
_SETTINGS = [
    {"method": "PUT", "headers": {"X-Tenant": "a"}}, {"headers": {"Host": "b"}}, {"headers": {"a\n": "b"}},
    {"headers": {"x": 5}}, {"method": "GET"}, {"headers": {"ce-id": "x"}}, {}, [],
]  # fmt: skip


def document(random: Random) -> dict[str, Any]:
    found: dict[str, Any] = {"sink": _SINKS[0], "protocol": "HTTP"}
    if random.random() < 0.8:
        found["filters"] = [_filter(random) for _ in range(random.choice((0, 1, 1, 3)))]
    for name, values in {
        "sink": _SINKS, "sinkcredential": _CREDENTIALS, "protocolsettings": _SETTINGS,
        "types": [["a"], ["a", "b"], [], [5], "a"], "source": ["/a", "it's", "", 5],
        "config": [{"mode": "binary"}, {"mode": 5}, {"x": 1}], "protocol": ["HTTP", "MQTT"], "id": ["x"],
        "unknown": [1],
    }.items():  # fmt: skip
        if random.random() < 0.08:
            found[name] = random.choice(values)
    return found


def _filter(random: Random) -> dict[str, Any]:
    given = draw(random)
    if random.random() < 0.2:
        return {random.choice(("all", "any")): [given, {"sql": draw_expression(random, 2)}]}
    return given


_CLOSING = str.maketrans({"{": "}", "[": "]", **dict.fromkeys('"not: all', "")})


class Subscriptions(Target):
    """A case is a document, in JSON."""

    name, goal, chunk = "subscriptions", 10_000_000, 300

    def draw(self, random: Random) -> list[bytes]:
        text = json.dumps(document(random), ensure_ascii=random.random() < 0.5)
        if random.random() < 0.01:
            deep, word = random.choice((30, 900, 30_000)), random.choice(('{"not": ', '{"all": ['))
            inner = word * deep + '{"exact": {"a": "b"}}' + word.translate(_CLOSING) * deep
            text = text.replace('"filters": [', f'"filters": [{inner}, ').replace(", ]", "]")
        data = text.encode("utf-8", "surrogatepass")
        if random.random() < 0.7:
            return [mutated(random, [data, json.dumps(document(random)).encode()])]
        return [data]

    def check(self, case: list[bytes]) -> None:
        data = b"".join(case)
        refusal = ""
        try:
            made = read_subscription(data, "one", RULES)
        except PalioError as error:
            refusal = str(error)
        assert "the secret" not in refusal
        if refusal:
            return
        again = read_subscription(made.stored(), "one", RULES)
        assert again == made, "stored, and read again"
        assert "the secret" not in str(made.shown())
        self._compare(made.document.get("filters", []))

    def _compare(self, filters: list[Any]) -> None:
        """An event is selected as the specification says, and by what is printed too."""
        predicate, random = cloudevents_filters.read(filters), Random(str(filters))
        try:
            printed = palio.parse(str(predicate))
        except LimitExceeded:  # written without NOT and brackets it is longer
            printed = predicate
        for _ in range(3):
            event = draw_event(random)
            wanted = all(holds(one, event) for one in filters)
            assert predicate.matches(Message(event)) == wanted, event
            assert printed.matches(Message(event)) == wanted, ("printed, then parsed", event)


_HEADS = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 503 Busy\r\nRetry-After: 120\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 429 Slow down\r\nRetry-After: Wed, 21 Oct 2035 07:28:00 GMT\r\nConnection: close\r\n\r\nlater",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n",
    b"HTTP/1.0 500 Oops\r\n\r\nrest", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nraw",
    b"HTTP/1.1 200 OK\r\nWebHook-Allowed-Origin: *\r\nWebHook-Allowed-Rate: 120\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nWebHook-Allowed-Origin: palio.example\r\nWebHook-Allowed-Rate: 9999999999999\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nx", b"HTTP/1.1 999 x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc",
]  # fmt: skip
_RETRIES = [
    "-1", "1e9", "9" * 30, "\u0663", "Mon, 01 Jan 99999999999999 00:00:00 GMT", "0", " 5 ", "5, 6", "x" * 3_000,
    "Fri, 31 Dec 9999 23:59:59 -2359", "Mon, 01 Jan 0001 00:00:00 +2359", "Mon, 01 Jan 2030 99:99:99 GMT",
    "Mon, 01 Jan 2030 00:00:00 +99999999",
]  # fmt: skip


class SinkAnswers(Target):
    """A case is the bytes that a sink sends, after which it closes."""

    name, goal, chunk = "sink_answers", 10_000_000, 500

    @cached_property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return asyncio.new_event_loop()

    _tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _sink = check_sink("http://10.1.2.3/in", RULES)
    _policy = DeliveryPolicy()
    _now = datetime(2026, 1, 1, tzinfo=UTC)

    def draw(self, random: Random) -> list[bytes]:
        data = random.choice(_HEADS)
        if random.random() < 0.3:
            line = f"Retry-After: {random.choice(_RETRIES)}\r\n".encode("latin-1", "replace")
            head, end, rest = data.partition(b"\r\n")
            data = head + end + line + rest
        if random.random() < 0.7:
            data = mutated(random, [data, *_HEADS])
        if random.random() < 0.02:
            data += b"x" * 200_000
        return [data]

    def check(self, case: list[bytes]) -> None:
        data = b"".join(case)
        random = Random(data)
        cuts = sorted(random.randrange(len(data) + 1) for _ in range(random.choice((1, 3, 8))))
        pieces = [part for a, b in pairwise((0, *cuts, len(data))) if (part := data[a:b])]
        whole = self._loop.run_until_complete(self._answered([data]))
        parts = self._loop.run_until_complete(self._answered(pieces))
        told = (parts.status, parts.retry_after_s, bool(parts.error))  # h11's words may differ
        assert (whole.status, whole.retry_after_s, bool(whole.error)) == told, (whole, parts)
        decide(self._policy, 1, whole, 0.5)
        assert whole.retry_after_s >= 0, whole
        assert bool(whole.error) != bool(whole.status), whole
        self._loop.run_until_complete(self._asked([data]))

    def _sender(self, pieces: list[bytes]) -> SinkSender:
        sender = SinkSender(RULES, tls=self._tls, clock=lambda: self._now)
        sender._pool._network_backend = httpcore.AsyncMockBackend(pieces)
        return sender

    async def _answered(self, pieces: list[bytes]) -> Answer:
        sender = self._sender([*pieces])
        try:
            headers = [("Content-Type", "application/json")]
            return await sender.send(self._sink, "POST", headers, b"{}")
        finally:
            await sender.aclose()

    async def _asked(self, pieces: list[bytes]) -> None:
        sender = self._sender([*pieces])
        try:
            permission = await sender.ask(self._sink, "palio.example", 60)
        finally:
            await sender.aclose()
        assert permission is None or permission.interval_s >= 0
