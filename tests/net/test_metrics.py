"""Metrics, health and log lines, as those who read them do."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from palio.net import health, logs
from palio.net.counts import BUCKETS_S, Durations
from palio.net.sections import Endpoint
from palio.net.server import serving
from palio.protocol.words import Ping, Pong, Published
from tests.net.peers import Peer, configured, run, until
from tests.net.test_server import Cores

METRICS = '[metrics]\nlisten = "127.0.0.1:0"\n'


async def asked(address: Endpoint | None, request: bytes) -> tuple[int, dict[str, str], bytes]:
    assert address is not None
    reader, writer = await asyncio.open_connection(*address)
    writer.write(request)
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    status, *lines = head.decode().split("\r\n")
    return int(status.split()[1]), dict(line.split(": ", 1) for line in lines), body


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()


def test_prometheus_can_read_it(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path, METRICS), Cores()) as server:
            peer = await Peer.at(server.endpoint)
            peer.say(Ping(1))
            assert await peer.next() == Pong(1)
            for number in (1, 2, 3):
                peer.publish(number, durable=True)
                assert await peer.next() == Published(number)
            status, headers, body = await asked(server.metrics_endpoint, get("/metrics"))
            assert status == 200
            assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
            samples = {}
            for family in text_string_to_metric_families(body.decode()):
                assert family.documentation
                for sample in family.samples:
                    assert sample.labels.pop("broker") == "milan"
                    samples[(sample.name, *sample.labels.values())] = sample.value
            assert samples["palio_connections",] == 1
            assert samples["palio_connections_accepted_total",] == 1
            assert samples["palio_commit_keys_total",] == 3
            assert samples["palio_commit_seconds_count",] == 3
            assert samples["palio_taking",] == 1
            assert samples["palio_queue_messages", "ann/desk"] == 7
            assert samples["palio_queue_messages", 'bob/"x"'] == 2
            assert samples["palio_received_bytes_total",] == server.host.counts.bytes_in > 0

    run(scene())


def test_health_and_readiness(tmp_path: Path) -> None:
    async def scene() -> None:
        cores = Cores()
        async with serving(configured(tmp_path, METRICS), cores) as server:
            at = server.metrics_endpoint
            assert (await asked(at, get("/healthz")))[0] == 200
            status, _, body = await asked(at, get("/readyz"))
            assert (status, json.loads(body)["status"]) == (200, "ready")
            server.host.trouble = "no room is left"
            status, _, body = await asked(at, get("/readyz"))
            assert (status, json.loads(body)["reason"]) == (503, "no room is left")
            assert (await asked(at, get("/healthz")))[0] == 200, "a full disk is no reason to kill"
            server.host.trouble = None
            cores.last.fault = KeyError("a bug")
            (await Peer.at(server.endpoint)).say(Ping(1))
            await until(server.host.finished.done)
            assert (await asked(at, get("/healthz")))[0] == 503

    run(scene())


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"HEAD /healthz HTTP/1.1\r\n\r\n", 200),
        (b"GET /healthz?x=1 HTTP/1.0\r\n\r\n", 200),
        (b"GET /nothing HTTP/1.1\r\n\r\n", 404),
        (b"POST /healthz HTTP/1.1\r\nContent-Length: 0\r\n\r\n", 405),
        (b"\x16\x03\x01 nonsense\r\n\r\n", 400),
        (b"GET /healthz\r\n\r\n", 400),
        (b"GET /" + b"x" * 20_000, 431),
    ],
)
def test_requests_of_all_kinds(tmp_path: Path, request_bytes: bytes, status: int) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path, METRICS), Cores()) as server:
            found, headers, body = await asked(server.metrics_endpoint, request_bytes)
            assert found == status
            assert headers["Connection"] == "close"
            if request_bytes.startswith(b"HEAD"):
                assert body == b""
            else:
                assert len(body) == int(headers["Content-Length"])

    run(scene())


def test_who_says_nothing_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_REQUEST_S_MAX", 0.05)

    async def scene() -> None:
        async with serving(configured(tmp_path, METRICS), Cores()) as server:
            assert server.metrics_endpoint is not None
            reader, writer = await asyncio.open_connection(*server.metrics_endpoint)
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()

    run(scene())


def test_durations_fall_into_their_buckets() -> None:
    durations = Durations()
    for seconds in (0.0005, 0.001, 0.003, 100.0):
        durations.add(seconds)
    assert durations.buckets[:3] == [2, 0, 1]
    assert (durations.buckets[len(BUCKETS_S)], durations.count) == (1, 4)
    assert durations.total_s == pytest.approx(100.0045)


@pytest.fixture
def lines() -> io.StringIO:
    return io.StringIO()


@pytest.fixture(autouse=True)
def _quiet() -> object:
    log = logging.getLogger("palio.net")
    before = log.handlers[:], log.propagate, log.level
    yield
    log.handlers[:], log.propagate = before[0], before[1]
    log.setLevel(before[2])


def test_log_lines_for_machines(lines: io.StringIO) -> None:
    logs.start("json", stream=lines)
    logs.told(logging.INFO, "connection closed", link=3, reason="a\nb", address=Endpoint("::1", 7))
    logs.told(logging.DEBUG, "not shown")
    try:
        raise KeyError("x")
    except KeyError as error:
        logs.failed("a bug", error)
    first, second = map(json.loads, lines.getvalue().splitlines())
    assert first.pop("time").endswith("Z")
    assert first == {
        "level": "info", "event": "connection closed", "link": 3, "reason": "a\nb",
        "address": "[::1]:7",
    }  # fmt: skip
    assert "KeyError" in second["traceback"]


def test_log_lines_for_people_are_lines(lines: io.StringIO) -> None:
    logs.start("human", stream=lines)
    logs.told(logging.WARNING, "connection closed", reason="a\n2026 forged\x1b[31m" + "x" * 1000)
    (line,) = lines.getvalue().splitlines()
    assert r"WARNING  connection closed  reason=a\n2026 forged\x1b[31mxxx" in line
    assert len(line) < 700


def test_nothing_secret_is_logged(tmp_path: Path, lines: io.StringIO) -> None:
    logs.start("json", logging.DEBUG, lines)

    async def scene() -> None:
        text = '[neighbours.rome]\nsecret = "the secret of rome"\n'
        async with serving(configured(tmp_path, text), Cores()) as server:
            peer = await Peer.at(server.endpoint)
            peer.publish(1, durable=True, body=b"the body of a message")
            assert await peer.next() == Published(1)
            peer.writer.write(b"the token of a client, in bytes that are no frame")
            await peer.rest()

    run(scene())
    shown = lines.getvalue()
    assert "connection closed" in shown
    for secret in ("the secret", "the body", "the token", '"x":1'):
        assert secret not in shown
