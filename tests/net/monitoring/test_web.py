"""The small web server: good and bad requests."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from palio.net.broker.server import serving
from palio.net.monitoring import web
from tests.net.peers import METRICS, asked, configured, run
from tests.net.stand_in import Cores


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
    monkeypatch.setattr(web, "_REQUEST_S_MAX", 0.05)

    async def scene() -> None:
        async with serving(configured(tmp_path, METRICS), Cores()) as server:
            assert server.metrics_endpoint is not None
            reader, writer = await asyncio.open_connection(*server.metrics_endpoint)
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()

    run(scene())
