"""One lazy subscriber that stops all publishers, and what the operator of a real broker does about it."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import palio
from palio.errors import RefusedByBroker, SubscriptionEnded
from palio.net.broker.server import Server, serving
from palio.net.client import Client, Subscription
from palio.protocol.wire.codes import EndCode, Full, RefusalCode
from tests.net.peers import configured, run

BOUND = 50


def identity(name: str, *lines: str) -> str:
    token = hashlib.sha256(name.encode()).hexdigest()
    grants = 'subscribe = "TRUE"\npublish = "TRUE"\n'
    return f'[identities.{name}]\ntoken_sha256 = "{token}"\n{grants}' + "".join(
        f"{line}\n" for line in lines
    )


def text(full: str = "block", names: str = "lazy shop", more: str = "") -> str:
    queues = f'[queues]\nbound = {BOUND}\nfull = "{full}"\n{more}\n'
    people = [identity("root", "admin = true"), *map(identity, names.split())]
    return queues + "".join(people)


def connect(server: Server, name: str) -> Client:
    return palio.connect(f"palio://127.0.0.1:{server.endpoint.port}", token=name, max_wait=20)


async def stuck_publisher(server: Server, shop: Client) -> asyncio.Task[int]:
    """A publisher that waits because the queue of the lazy subscriber is full."""
    task = asyncio.create_task(shop.publish_many([{"x": n} for n in range(3 * BOUND)]))
    async with connect(server, "root") as root:
        while (await root.queue("lazy/q")).messages < BOUND:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    assert not task.done()
    return task


async def read_all(subscription: Subscription) -> None:
    async for _ in subscription:
        pass


def scene(folder: Path, act: Callable[[Client, Subscription], Awaitable[None]]) -> None:
    """The lazy subscriber blocks everybody; after the act the publisher has stored everything."""

    async def play() -> None:
        async with (
            serving(configured(folder, text())) as server,
            connect(server, "lazy") as lazy,
            connect(server, "shop") as shop,
            connect(server, "root") as root,
        ):
            subscription = lazy.subscribe("x >= 0", durable="q", full="block", credit=1)
            await subscription.ready()
            task = await stuck_publisher(server, shop)
            await act(root, subscription)
            assert await task == 3 * BOUND

    run(play())


def test_the_operator_ends_the_lazy_subscription(tmp_path: Path) -> None:
    async def act(root: Client, subscription: Subscription) -> None:
        assert await root.end_queue("lazy/q") == BOUND
        with pytest.raises(SubscriptionEnded, match="operator root/") as caught:
            await read_all(subscription)
        assert caught.value.code == EndCode.OPERATOR
        assert await root.queues() == []

    scene(tmp_path, act)


def test_the_operator_purges_its_queue_again_and_again(tmp_path: Path) -> None:
    async def act(root: Client, subscription: Subscription) -> None:
        for _ in range(2):
            while (await root.queue("lazy/q")).messages < BOUND:
                await asyncio.sleep(0.01)
            assert await root.purge_queue("lazy/q") >= BOUND

    scene(tmp_path, act)


def test_the_operator_moves_it_to_somebody_who_reads(tmp_path: Path) -> None:
    async def act(root: Client, subscription: Subscription) -> None:
        await root.move_queue("lazy/q", "shop")
        with pytest.raises(SubscriptionEnded) as caught:
            await read_all(subscription)
        assert caught.value.code == EndCode.MOVED
        port = str(root).rpartition(":")[2].rstrip(">")
        async with palio.connect(f"palio://127.0.0.1:{port}", token="shop", name="eager") as eager:
            found: list[object] = []
            async for note in eager.subscribe("x >= 0", durable="q"):
                found.append(note.attributes["x"])
                await note.ack()
                if len(found) == 3 * BOUND:
                    break
        assert found == list(range(3 * BOUND)), "nothing was lost or doubled"

    scene(tmp_path, act)


def test_the_operator_sets_full_to_drop_and_restarts(tmp_path: Path) -> None:
    async def play() -> None:
        async with serving(configured(tmp_path, text())) as server:
            async with connect(server, "lazy") as lazy:
                subscription = lazy.subscribe("x >= 0", durable="q", full="block", credit=1)
                await subscription.ready()
            shop = await connect(server, "shop")
            task = await stuck_publisher(server, shop)
            task.cancel()
        shop._connection.status.max_wait = 0.1  # it need not wait for what was not stored
        with pytest.raises(palio.PalioError):
            await shop.close()
        async with serving(configured(tmp_path, text("drop"))) as server:
            async with connect(server, "shop") as shop:
                assert await shop.publish_many([{"x": n} for n in range(3 * BOUND)]) == 3 * BOUND
            async with connect(server, "root") as root:
                row = await root.queue("lazy/q")
                assert (row.full, row.messages) == (Full.DROP, BOUND)
            async with connect(server, "lazy") as lazy:
                with pytest.raises(RefusedByBroker, match="lets no durable subscription") as caught:
                    await lazy.subscribe("x >= 0", durable="q", full="block").ready()
                assert caught.value.code == RefusalCode.DENIED
                await lazy.subscribe("x >= 0", durable="q").ready()

    run(play())


def test_the_operator_removes_the_identity(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        grace = 'orphans = "1 s"'
        async with serving(configured(tmp_path, text(more=grace))) as server:
            async with connect(server, "lazy") as lazy, connect(server, "shop") as shop:
                subscription = lazy.subscribe("x >= 0", durable="q", full="block", credit=1)
                await subscription.ready()
                task = await stuck_publisher(server, shop)
                configured(tmp_path, text(names="shop", more=grace))
                await server.reload()
                assert await task == 3 * BOUND
                async with connect(server, "root") as root:
                    assert await root.queues() == []
            await lazy.close()

    with caplog.at_level(logging.INFO, "palio.net"):
        logging.getLogger("palio.net").propagate = True
        run(play())
    events = [record.getMessage() for record in caplog.records]
    before, after = (
        events.index("identity is gone: its durable subscriptions end"),
        events.index("durable subscription ended: its identity is gone"),
    )
    assert before < after


def test_who_did_it_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def act(root: Client, subscription: Subscription) -> None:
        await root.pause_queue("lazy/q")
        await root.end_queue("lazy/q")

    with caplog.at_level(logging.INFO, "palio.net"):
        logging.getLogger("palio.net").propagate = True
        scene(tmp_path, act)
    found = {
        record.getMessage(): getattr(record, "fields", {})
        for record in caplog.records
        if getattr(record, "fields", {}).get("queue")
    }
    assert list(found) == ["queue paused", "durable subscription ended"]
    for fields in found.values():
        assert fields["queue"] == "lazy/q"
        assert str(fields["by"]).startswith("root/")
    assert found["durable subscription ended"]["messages"] == BOUND
