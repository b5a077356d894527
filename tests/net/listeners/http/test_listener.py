"""The listener as a part of a broker: nothing of it without [http], and its metrics."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from tests.net.listeners.http.peer import HttpPeer, http_broker
from tests.net.peers import METRICS, run


def test_a_broker_without_http_imports_nothing_of_it() -> None:
    code = (
        "import sys, palio.net.broker.server\n"
        "print([n for n in sys.modules if n in ('h11', 'websockets') or '.listeners.http' in n])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_metrics(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_broker(tmp_path, more=METRICS) as broker:
            await broker.publish({"attributes": {"a": 1}})
            await broker.ask("GET", "/nothing")
            at = broker.server.metrics_endpoint
            assert at is not None
            peer = HttpPeer(*await asyncio.open_connection(at.host, at.port))
            text = (await peer.ask("GET", "/metrics")).body.decode()
            peer.close()
            for line in (
                'palio_http_published_total{broker="milan"} 1.0',
                'palio_http_requests_total{broker="milan"} 2.0',
                'palio_http_refused_total{broker="milan"} 1.0',
                'palio_http_answers_total{broker="milan",status="404"} 1.0',
            ):
                assert line in text

    run(scene())
