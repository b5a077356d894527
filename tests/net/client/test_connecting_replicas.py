"""Clients with one identity and one name, at a real broker: nothing is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import palio
from palio.net.broker.server import serving
from tests.net.peers import configured, run


def test_replicas_that_share_a_name_lose_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with serving(configured(tmp_path)) as server:
            url = f"palio://127.0.0.1:{server.endpoint.port}"
            async with (
                palio.connect(url, max_wait=10) as reader,
                palio.connect(url, name="app", max_wait=10) as one,
                palio.connect(url, name="app", max_wait=10) as two,
                reader.subscribe("x >= 0", durable="all") as notes,
            ):
                await asyncio.gather(*(publish(client, 200) for client in (one, two)))
                got = [await anext(notes) for _ in range(400)]
                assert {note.publisher for note in got} == {"anonymous/app"}
                assert len({note.session for note in got}) == 2
                assert len({(note.session, note.number) for note in got}) == 400
                assert one.is_connected
                assert two.is_connected

    async def publish(client: palio.net.Client, count: int) -> None:
        for x in range(count):
            await client.publish({"x": x})

    run(scene())
