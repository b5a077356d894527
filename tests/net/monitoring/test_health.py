"""Health and readiness, as an orchestrator asks for them."""

from __future__ import annotations

import json
from pathlib import Path

from palio.net.broker.server import serving
from palio.net.storage.store import StoreFull
from palio.protocol.wire.control import Ping
from tests.net.peers import METRICS, Peer, asked, configured, get, run, until
from tests.net.stand_in import Cores


def test_health_and_readiness(tmp_path: Path) -> None:
    async def scene() -> None:
        cores = Cores()
        async with serving(configured(tmp_path, METRICS), cores) as server:
            at = server.metrics_endpoint
            assert (await asked(at, get("/healthz")))[0] == 200
            status, _, body = await asked(at, get("/readyz"))
            assert (status, json.loads(body)["status"]) == (200, "ready")
            server.host.store_unavailable(StoreFull("no room is left"))
            status, _, body = await asked(at, get("/readyz"))
            assert (status, json.loads(body)["reason"]) == (503, "no room is left")
            assert (await asked(at, get("/healthz")))[0] == 200, "a full disk is no reason to kill"
            server.host.outages.end(StoreFull)
            cores.last.fault = KeyError("a bug")
            (await Peer.at(server.endpoint)).say(Ping(1))
            await until(server.host.finished.done)
            assert (await asked(at, get("/healthz")))[0] == 503

    run(scene())
