"""A broker that has to read its database while that is away starts again in place, when it is back."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

import palio
from palio.lab.bench.loopback.postgres import PostgresPair, postgres_pair, why_no_postgres
from tests.net.replicated import PATIENCE_S, ReplicatedProcess, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("postgres")]

COUNT = 3_000
AWAY_S = 6.0
"""Longer than a read is repeated."""
AGAIN = "the broker starts again when the database is back"


def test_a_read_while_the_database_is_away_restarts_the_broker_in_place(tmp_path: Path) -> None:
    if reason := why_no_postgres():
        pytest.skip(reason)
    with postgres_pair(fsync=False) as pair:
        broker = ReplicatedProcess(tmp_path, "reads", pair, 1.0, '[log]\nmemory = "64 KiB"\n')
        try:
            broker.wait_for("broker listens")
            asyncio.run(received_in_spite_of_an_outage(broker, pair))
            assert broker.process.poll() is None, broker.text
            assert broker.has_logged(AGAIN), broker.text
            broker.signal(signal.SIGTERM)
            assert broker.process.wait(PATIENCE_S) == 0
        finally:
            broker.end()


async def received_in_spite_of_an_outage(broker: ReplicatedProcess, pair: PostgresPair) -> None:
    """What the consumer needs next is in the database alone when that goes away."""
    got: Counter[int] = Counter()
    url = f"palio://127.0.0.1:{broker.port}"
    async with palio.connect(url, name="ann", max_wait=PATIENCE_S) as ann:
        async with ann.subscribe("x >= 0", durable="all"):
            pass
        await ann.publish_many([({"x": x}, bytes(500)) for x in range(COUNT)])
    async with (
        palio.connect(url, name="bob", max_wait=PATIENCE_S) as bob,
        bob.subscribe("x >= 0", durable="all", credit=100) as notes,
    ):
        async with asyncio.timeout(2 * PATIENCE_S):
            async for note in notes:
                got[int(note.attributes["x"])] += 1  # type: ignore[call-overload]
                await note.ack()
                if len(got) == 500:
                    await asyncio.to_thread(away, pair, broker)
                if len(got) == COUNT:
                    break
        await asyncio.sleep(0.3)
    assert set(got.values()) == {1}, "nothing comes twice"


def away(pair: PostgresPair, broker: ReplicatedProcess) -> None:
    pair.kill("a")
    began = time.monotonic()

    def back() -> None:
        wait_until(lambda: broker.has_logged(AGAIN), lambda: broker.text)
        time.sleep(max(0.0, AWAY_S - (time.monotonic() - began)))
        pair.start_node("a")

    # The consumer goes on meanwhile: what it acknowledges lets the broker read the next messages.
    threading.Thread(target=back, daemon=True).start()
