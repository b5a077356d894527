"""The worker against a sink on the loopback: order, retries, dead letters, the handshake, refused addresses."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

pytest.importorskip("httpcore", reason="httpcore is not installed")
pytest.importorskip("anyio", reason="anyio is not installed")

from palio.net.sinks.sender import SinkSender
from palio.net.sinks.worker import SinkWorker, WorkerSettings
from palio.protocol.cloudevents.delivery import DeliveryPolicy
from palio.protocol.cloudevents.http_binding import read_http
from palio.protocol.cloudevents.sinks import SinkRules
from palio.protocol.cloudevents.subscriptions import EventSubscription, read_subscription

RULES = SinkRules(networks=("127.0.0.0/8",), allows_http=True)
EVENT = {"specversion": "1.0", "source": "/a", "type": "t"}


@dataclass
class Sink:
    """Answers with these statuses in turn, then 204; keeps what it gets."""

    statuses: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    allows: str | None = "*"
    requests: list[tuple[str, list[tuple[str, str]], bytes]] = field(default_factory=list)
    port: int = 0

    @property
    def ids(self) -> list[object]:
        posts = [one for one in self.requests if one[0] != "OPTIONS"]
        return [read_http(headers, body)[0].attributes["id"] for _, headers, body in posts]


@contextmanager
def serving(sink: Sink) -> Iterator[Sink]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            sink.requests.append((self.command, list(self.headers.items()), body))
            is_handshake = self.command == "OPTIONS"
            self.send_response(
                200 if is_handshake else sink.statuses.pop(0) if sink.statuses else 204
            )
            if is_handshake and sink.allows is not None:
                self.send_header("WebHook-Allowed-Origin", sink.allows)
            for name, value in sink.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_POST = do_OPTIONS = do_PUT = _answer  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    sink.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield sink
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Pending:
    def __init__(self, source: Source, id: str, attributes: dict[str, Any]) -> None:
        self.source, self.id, self.attributes = source, id, attributes
        self.headers: dict[str, Any] = {}
        self.body = b"body"

    async def ack(self) -> None:
        self.source.acknowledged.append(self.id)

    async def dead_letter(self, reason: str) -> None:
        self.source.dead.append((self.id, reason))


class Source:
    def __init__(self, count: int) -> None:
        self.messages = [Pending(self, f"m{at}", {**EVENT, "id": f"e{at}"}) for at in range(count)]
        self.acknowledged: list[str] = []
        self.dead: list[tuple[str, str]] = []

    async def next(self) -> Pending | None:
        return self.messages.pop(0) if self.messages else None


def subscription(sink: Sink, **changes: Any) -> EventSubscription:
    given = {"sink": f"http://127.0.0.1:{sink.port}/in?x=1", "protocol": "HTTP", **changes}
    return read_subscription(given, "s1", RULES)


def run(
    sink: Sink,
    source: Source,
    wanted: EventSubscription | None = None,
    sender: SinkSender | None = None,
    **settings: Any,
) -> tuple[str | None, SinkWorker, list[float]]:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def go() -> tuple[str | None, SinkWorker, list[float]]:
        used = sender or SinkSender(RULES, timeout_s=5)
        worker = SinkWorker(
            wanted or subscription(sink),
            source,
            used,
            WorkerSettings("broker.example", **settings),
            DeliveryPolicy(attempts_max=3, jitter=0),
            sleep=sleep,
        )
        try:
            return await worker.run(), worker, waited
        finally:
            await used.aclose()

    return asyncio.run(go())


def test_events_come_in_order_with_retries_between() -> None:
    with serving(Sink([204, 503, 500, 200])) as sink:
        source = Source(4)
        ended, worker, waited = run(sink, source)
    assert ended is None
    assert sink.ids == ["e0", "e1", "e1", "e1", "e2", "e3"]
    assert source.acknowledged == ["m0", "m1", "m2", "m3"]
    assert waited == [1, 2]
    assert (worker.counts.delivered, worker.counts.retried) == (4, 2)
    method, headers, _ = sink.requests[0]
    assert method == "OPTIONS"
    assert ("WebHook-Request-Origin", "broker.example") in headers
    assert all(("WebHook-Request-Origin", "broker.example") in one[1] for one in sink.requests)


def test_after_the_last_attempt_it_is_a_dead_letter() -> None:
    with serving(Sink([500, 500, 500, 400, 204])) as sink:
        source = Source(3)
        run(sink, source)
    assert [id for id, _ in source.dead] == ["m0", "m1"]
    assert source.dead[0][1] == "3 attempts failed, the last one: status 500"
    assert source.acknowledged == ["m2"]


def test_a_sink_that_is_gone_gets_nothing_more() -> None:
    with serving(Sink([204, 410])) as sink:
        source = Source(4)
        ended, _, _ = run(sink, source)
    assert ended == "the sink is gone: status 410"
    assert (source.acknowledged, source.dead) == (["m0"], [])


def test_a_redirect_is_not_followed() -> None:
    with serving(Sink()) as other, serving(Sink([302])) as sink:
        sink.headers["Location"] = f"http://127.0.0.1:{other.port}/"
        source = Source(1)
        run(sink, source)
        assert other.requests == []
    assert source.dead == [("m0", "the sink refuses it: status 302")]


@pytest.mark.parametrize("allows", [None, "somebody.else"])
def test_a_sink_that_does_not_agree_gets_nothing(allows: str | None) -> None:
    with serving(Sink(allows=allows)) as sink:
        source = Source(1)
        ended, worker, waited = run(sink, source)
    assert ended == "the sink does not allow deliveries"
    assert [method for method, _, _ in sink.requests] == ["OPTIONS"] * 3
    assert (source.acknowledged, worker.counts.handshakes_refused, waited) == ([], 3, [1, 2])


def test_the_allowed_rate_is_kept() -> None:
    with serving(Sink(headers={"WebHook-Allowed-Rate": "120"})) as sink:
        _, _, waited = run(sink, Source(3))
    assert waited == [0.5, 0.5, 0.5]


def test_retry_after() -> None:
    with serving(Sink([429], headers={"Retry-After": "30"})) as sink:
        _, _, waited = run(sink, Source(1))
    assert waited == [30]


def test_modes_methods_and_headers() -> None:
    with serving(Sink()) as sink:
        settings = {"method": "PUT", "headers": {"X-Key": "k"}}
        token = {"credentialtype": "PLAIN", "identifier": "a", "secret": "b"}
        wanted = subscription(
            sink, config={"mode": "binary"}, protocolsettings=settings, sinkcredential=token
        )
        run(sink, Source(1), wanted, handshake=False)
    ((method, headers, body),) = sink.requests
    found = {name.lower(): value for name, value in headers}
    assert (method, body, found["ce-id"], found["x-key"]) == ("PUT", b"body", "e0", "k")
    assert found["authorization"] == "Basic YTpi"
    assert found["host"] == f"127.0.0.1:{sink.port}"
    assert "webhook-request-origin" not in found


def test_a_name_that_leads_to_a_private_address_is_refused() -> None:
    """Also when it did not at the time when the subscription was made."""
    asked: list[str] = []

    async def resolver(host: str, _port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    with serving(Sink()) as sink:
        rules = SinkRules(allows_http=True)
        given = {"sink": f"http://sink.example:{sink.port}/", "protocol": "HTTP"}
        source = Source(1)
        wanted = read_subscription(given, "s1", rules)
        run(sink, source, wanted, SinkSender(rules, resolver=resolver), handshake=False)
        assert sink.requests == []
    assert asked == ["sink.example"] * 3
    assert "the address of this sink is not public" in source.dead[0][1]


def test_a_sink_that_is_not_there_and_one_that_never_answers() -> None:
    with serving(Sink()) as sink:
        pass
    source = Source(1)
    run(sink, source, handshake=False)
    assert "ConnectError" in source.dead[0][1]

    async def silent() -> list[tuple[str, str]]:
        async def ignore(_reader: Any, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(1)
            writer.close()

        server = await asyncio.start_server(ignore, "127.0.0.1", 0)
        slow = Sink(port=server.sockets[0].getsockname()[1])
        sender = SinkSender(RULES, timeout_s=0.05)
        found = await sender.send(subscription(slow).sink, "POST", [], b"x")
        await sender.aclose()
        server.close()
        return [("", found.shown)]

    assert asyncio.run(silent()) == [("", "no answer within 0.05 s")]
