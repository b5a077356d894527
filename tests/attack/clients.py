"""Attacks by many clients at once: many links, many identities reloaded."""

from __future__ import annotations

import asyncio
import signal

from palio.protocol.wire.control import Refused, Subscribed, SubscribeRequest
from tests.attack.arena import LIMITED, Arena
from tests.attack.attacker import Attacker
from tests.attack.case import case
from tests.attack.durables import subscribed


@case("SIGHUP while 200 clients with small grants have 40 subscriptions each")
async def reload_with_many_clients(arena: Arena) -> str:
    """Only the operator can do this; but what it costs is up to clients."""
    count = arena.count(10, 200)
    eves = [await Attacker.at(arena.endpoint(), f"held{i}", LIMITED) for i in range(count)]
    for i, eve in enumerate(eves):
        await subscribed(eve, [
            SubscribeRequest(k, f"a = 1 AND s LIKE 'x{i}{'ab' * k}%' AND c > {k}") for k in range(40)
        ])  # fmt: skip
        assert eve.counts[Subscribed] == 40, eve.all(Refused)[:1]
    for _ in range(3):
        arena.processes.signal("b1", signal.SIGHUP)
        await asyncio.sleep(1.0)
    for eve in eves:
        assert await eve.alive()
        eve.leave()
    return f"{40 * count} subscriptions checked three times"


@case("1,000 idle clients")
async def idle_clients(arena: Arena) -> str:
    eves = [await Attacker.at(arena.endpoint(), f"idle{i}") for i in range(arena.count(50, 1000))]
    await asyncio.sleep(arena.count(1, 10))
    assert not any(eve.is_closed for eve in eves)
    for eve in eves:
        eve.leave()
    return f"{len(eves):,} stayed"


@case("300,000 live messages from three clients as fast as they can")
async def flood(arena: Arena) -> str:
    """Not hostile at all; the loop must not be held by it either."""
    count = arena.count(3000, 100_000)
    eves = [await Attacker.at(arena.endpoint(), f"flood{i}") for i in range(3)]
    eves[0].say(*[SubscribeRequest(i, f"flood = {i}", credit=1 << 20) for i in range(300)])
    await eves[0].got(Subscribed, 300)

    async def publish(eve: Attacker) -> None:
        for i in range(count):
            eve.publish(b'{"flood": %d, "y": 2}' % (i % 600), bytes(100))
            if i % 500 == 0:
                await eve.drain()
                await asyncio.sleep(0)
        assert await eve.alive()

    await asyncio.gather(*map(publish, eves))
    for eve in eves:
        eve.leave()
    return f"{3 * count:,} published"


@case(
    "60,000 durable messages from three clients as fast as they can, to a lazy queue", in_test=True
)
async def durable_flood(arena: Arena) -> str:
    count = arena.count(500, 20_000)
    eves = [await Attacker.at(arena.endpoint(), f"store{i}") for i in range(3)]
    eves[0].say(SubscribeRequest(1, "store >= 0", durable="store", credit=1, full="drop"))
    await eves[0].got(Subscribed)

    async def publish(eve: Attacker) -> None:
        from palio.protocol.wire.control import Published

        for i in range(count):
            eve.publish(b'{"store": %d}' % i, bytes(1000), durable=True)
            if i % 200 == 0:
                await eve.drain()
        await eve.until(lambda: bool(p := eve.all(Published)) and p[-1].number >= count)

    await asyncio.gather(*map(publish, eves))
    from palio.protocol.wire.control import Unsubscribed, UnsubscribeRequest

    eves[0].say(UnsubscribeRequest(1, forget=True))
    await eves[0].got(Unsubscribed)
    for eve in eves:
        eve.leave()
    return f"{3 * count:,} stored"
