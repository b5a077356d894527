"""Notes that are given back, with a real broker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import palio
from palio.net.cluster import local_cluster


@pytest.mark.slow
def test_notes_that_are_given_back_come_again(tmp_path: Path) -> None:
    async def scene(url: str) -> None:
        async with palio.connect(url) as client:
            async with client.subscribe("x > 0", durable="queue") as subscription:
                await client.publish({"x": 1}, headers={"trace": "7f"})
                for count in (1, 2, 3):
                    note = await asyncio.wait_for(anext(subscription), 30)
                    assert (note.deliveries, note.again) == (count, count > 1)
                    assert note.headers == {"trace": "7f"}
                    await note.nack(delay=0.1 * count)
            async with client.subscribe("x > 0", durable="queue") as subscription:
                note = await asyncio.wait_for(anext(subscription), 30)
                assert note.deliveries == 4
                await note.ack()
                await note.nack()

    with local_cluster(1, "line", data=tmp_path) as cluster:
        asyncio.run(scene(cluster.urls[0]))
        with (
            palio.blocking.connect(cluster.urls[0]) as client,
            client.subscribe("x > 0", durable="queue") as queue,
        ):
            client.publish({"x": 2}, expires_in=1000)
            note = queue.next(30)
            assert (note.attributes["x"], note.deliveries) == (2, 1)
            note.nack()
            note = queue.next(30)
            assert note.deliveries == 2
            note.ack()
