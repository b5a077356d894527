"""Metrics, as Prometheus reads them."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from palio.net.broker.server import serving
from palio.protocol.wire.control import Ping, Pong, Published
from tests.net.peers import METRICS, Peer, asked, configured, get, run
from tests.net.stand_in import Cores


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
            assert samples["palio_ready",] == 1
            assert samples["palio_queue_messages", "ann/desk"] == 7
            assert samples["palio_queue_messages", 'bob/"x"'] == 2
            assert samples["palio_queues",] == 3
            assert samples["palio_queue_bytes", "ann/desk"] == 700
            assert samples["palio_queue_oldest_seconds", "ann/desk"] == 2.5
            assert samples["palio_queue_consumers", "ann/desk"] == 1
            assert samples["palio_queue_paused", "ann/desk"] == 1
            assert samples["palio_queue_paused", 'bob/"x"'] == 0
            assert samples["palio_misrouted_total", "astray"] == 3
            assert samples["palio_table_filters",] == 5
            assert samples["palio_table_version",] == 0
            assert samples["palio_received_bytes_total",] == server.host.counts.bytes_in > 0

    run(scene())
