"""Three real brokers: subscriptions with expressions, live and durable, and arrays in messages."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import palio
from palio.net.cluster import local_cluster

TEXTS = {
    "lower(name) = 'ann'": [1, 4], "a < b": [2], "array_contains(tags, 'x')": [3, 4],
    "name LIKE 'A%x_'": [5], "abs(lat - 45.3) < 0.1": [6], "exists(tags, t -> t = 'q') OR a * 2 = 2": [2, 4],
}  # fmt: skip
MESSAGES = [
    {"n": 1, "name": "Ann"}, {"n": 2, "a": 1, "b": 2}, {"n": 3, "tags": ["x", 1]},
    {"n": 4, "name": "ANN", "tags": ["q", "x"]}, {"n": 5, "name": "Annxy"}, {"n": 6, "lat": 45.35},
    {"n": 7},
]  # fmt: skip


@pytest.mark.slow
def test_expressions_in_a_cluster(tmp_path: Path) -> None:
    async def received(client: palio.net.client.Client, text: str, durable: str) -> list[object]:
        found: list[object] = []
        async with client.subscribe(f"({text}) OR n = 7", durable=durable or None) as subscription:
            ready.release()
            async for note in subscription:
                found.append(note.attributes["n"])
                if durable:
                    await note.ack()
                if found[-1] == 7:
                    break
        return found

    async def scene() -> None:
        async with local_cluster(3, "line", data=tmp_path) as cluster:
            for place, name in (("b3", ""), ("b3", "d"), ("b1", "")):
                async with (
                    palio.connect(cluster.url(place)) as ann,
                    palio.connect(cluster.url("b1")) as bob,
                ):
                    tasks = [
                        asyncio.create_task(received(ann, text, name and f"{name}{i}"))
                        for i, text in enumerate(TEXTS)
                    ]
                    for _ in tasks:
                        await ready.acquire()
                    await cluster.agreed()
                    for message in MESSAGES:
                        await bob.publish(message)
                    assert await asyncio.gather(*tasks) == [[*own, 7] for own in TEXTS.values()]

    ready = asyncio.Semaphore(0)
    asyncio.run(asyncio.wait_for(scene(), 120))


@pytest.mark.slow
def test_patterns_and_explanations_of_expressions_in_a_cluster(tmp_path: Path) -> None:
    """A pattern of expressions over three brokers; why a message does not reach a subscription."""

    async def scene() -> None:
        async with (
            local_cluster(3, "line", data=tmp_path) as cluster,
            palio.connect(cluster.url("b3")) as ann,
            palio.connect(cluster.url("b1")) as bob,
        ):
            pattern = (
                "[lower(kind) = 'start' AND x % 2 = 0] then [abs(x - 45.3) < 0.5] within 60 seconds"
            )
            async with (
                ann.watch(pattern) as watched,
                ann.subscribe("10 / x > 1 AND name LIKE 'a%b_'", durable="late") as late,
            ):
                await watched.ready()
                await late.ready()
                await cluster.agreed()
                for message in (
                    {"kind": "START", "x": 3}, {"kind": "Start", "x": 4}, {"kind": "x", "x": 44.0},
                    {"kind": "x", "x": 45.5}, {"x": 0, "name": "axbc"}, {"x": 2, "name": "axbc"},
                ):  # fmt: skip
                    await bob.publish(message)
                found = await anext(aiter(watched))
                assert [note.attributes["x"] for note in found] == [4, 45.5]
                note = await anext(aiter(late))
                assert note.attributes["x"] == 2
                await note.ack()
                said = str(await bob.explain({"x": 0, "name": "axbc"}, "late"))
                assert "division by zero" in said, said
                said = str(await bob.explain({"x": 2, "name": "axbc"}, "late"))
                assert "10 / x is 5" in said, said

    asyncio.run(asyncio.wait_for(scene(), 240))
