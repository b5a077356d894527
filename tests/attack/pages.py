"""Attacks on the pages for machines: storms, slow requests, requests that are none."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from palio.protocol.wire.control import SubscribeRequest
from tests.attack.arena import Arena
from tests.attack.attacker import Attacker
from tests.attack.case import case
from tests.attack.durables import subscribed
from tests.net.peers import asked, get


@case("/healthz and /metrics 1,000 times, 30 at once, with 2,000 queues to show", in_test=True)
async def page_storm(arena: Arena) -> str:
    async with await Attacker.at(arena.endpoint(), "pages") as eve:
        names = [f"page{i}" for i in range(arena.count(20, 2000))]
        await subscribed(eve, [
            SubscribeRequest(i, f"page = {i}", durable=name) for i, name in enumerate(names, 1)
        ])  # fmt: skip
        statuses: list[int] = []
        for _ in range(arena.count(2, 17)):
            requests = [
                asked(arena.page(), get("/metrics" if i % 10 == 0 else "/healthz"))
                for i in range(30)
            ]
            for status, _, _ in await asyncio.gather(*requests):
                statuses.append(status)
    return f"{statuses.count(200)} of {len(statuses)} answered with 200"


@case("slow requests (slowloris), 100 at once, and requests that are none")
async def slow_requests(arena: Arena) -> str:
    slow = [await asyncio.open_connection(*arena.page()) for _ in range(arena.count(20, 100))]
    for _ in range(arena.count(2, 8)):
        for _, writer in slow:
            writer.write(b"G")
        await asyncio.sleep(1.0)
    for data in (b"\x00" * 10_000, b"GET " + b"/" * 20_000, b"\r\n\r\n", b"GET / HTTP/9\r\n\r\n"):
        reader, writer = await asyncio.open_connection(*arena.page())
        writer.write(data)
        with suppress(OSError):
            await asyncio.wait_for(reader.read(), 20)
        writer.close()
    closed = 0
    for reader, writer in slow:
        try:
            await asyncio.wait_for(reader.read(), 20)
            closed += 1
        except OSError:
            closed += 1
        writer.close()
    async with asyncio.timeout(30):
        while (await asked(arena.page(), get("/healthz")))[0] != 200:
            await asyncio.sleep(0.2)
    return f"{closed} closed, and /healthz answers"
