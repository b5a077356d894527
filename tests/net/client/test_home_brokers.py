"""Durable subscriptions that live at another broker."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import palio
from palio.errors import LivesElsewhere, RefusedByBroker, Unreachable
from palio.net.client.home_brokers import HomeBrokers
from palio.net.cluster import local_cluster


def elsewhere(address: str) -> LivesElsewhere:
    return LivesElsewhere("it lives at milan", "milan", address)


@pytest.mark.parametrize("address", ["", "nonsense", "palio://127.0.0.1:1", "http://x"])
def test_where_a_client_does_not_follow(address: str) -> None:
    home_brokers = HomeBrokers(lambda url: palio.connect(url, max_wait=1), is_secure=True)
    with pytest.raises(LivesElsewhere):
        asyncio.run(home_brokers.feeds(elsewhere(address)))


def test_a_broker_that_does_not_answer() -> None:
    home_brokers = HomeBrokers(lambda url: palio.connect(url, max_wait=1), is_secure=False)
    with pytest.raises(LivesElsewhere) as caught:
        asyncio.run(home_brokers.feeds(elsewhere("palio://127.0.0.1:1")))
    assert isinstance(caught.value.__cause__, Unreachable)


def test_from_every_broker(tmp_path: Path) -> None:
    async def scene(urls: list[str], names: list[str]) -> None:
        here, there = names[0], names[1]
        async with palio.connect(urls[0]) as ann, palio.connect(urls[1]) as bob:
            async with ann.subscribe("x > 0", durable=f"work@{there}") as work:
                await ann.publish_many({"x": x} for x in range(1, 4))
                found = []
                async for note in work:
                    found.append(note.attributes["x"])
                    await note.ack()
                    if len(found) == 3:
                        break
                assert sorted(found) == [1, 2, 3]
            work = ann.subscribe("x > 0", durable=f"work@{there}")  # iterated at once
            await bob.publish({"x": 4})
            note = await asyncio.wait_for(anext(work), 20)
            assert note.attributes["x"] == 4
            await note.ack()
            local = bob.subscribe("x > 0", durable=f"work@{there}")
            await local.ready()
            assert local.took_over, "it is the same subscription"
            async with ann.subscribe("x > 0", durable=f"own@{here}"):
                pass
            with pytest.raises(RefusedByBroker, match="no broker 'nowhere'") as caught:
                await ann.subscribe("x > 0", durable="work@nowhere").ready()
            assert caught.value.code == "unknown"

    with local_cluster(2, "line", data=tmp_path) as cluster:
        asyncio.run(scene(cluster.urls, cluster.names))
