"""Attacks with very many subscriptions and advertisements of one client."""

from __future__ import annotations

import asyncio

from palio.protocol.wire.control import (
    AdvertiseRequest,
    Done,
    Refused,
    Subscribed,
    SubscribeRequest,
    UnadvertiseRequest,
    Unsubscribed,
    UnsubscribeRequest,
)
from palio.protocol.wire.frames import MessageFrame
from tests.attack.arena import LIMITED, Arena
from tests.attack.attacker import Attacker
from tests.attack.case import case
from tests.attack.durables import subscribed


async def gone(arena: Arena, least: float) -> None:
    """Wait until the table has at most so many filters."""
    async with asyncio.timeout(120):
        while await arena.metric("palio_table_filters") > least:
            await asyncio.sleep(0.2)


@case("23,000 live subscriptions of one client, matched by one message")
async def one_message_for_many(arena: Arena) -> str:
    count = arena.count(1000, 23_000)
    least = await arena.metric("palio_table_filters")
    async with await Attacker.at(arena.endpoint(), "bob") as bob:
        await subscribed(bob, [
            SubscribeRequest(i, f"many > 0 AND i{i} IS NULL") for i in range(1, count + 1)
        ])  # fmt: skip
        async with await Attacker.at(arena.endpoint()) as eve:
            for _ in range(3):
                eve.publish(b'{"many": 1}')
            await bob.until(
                lambda: sum(len(f.header.subscriptions) for f in bob.all(MessageFrame)) >= 3 * count
            )
    await gone(arena, least)
    return f"{3 * count:,} deliveries in {bob.counts[MessageFrame]} frames"


@case("30,000 live subscriptions of one client, which then disconnects", in_test=True)
async def many_live_then_gone(arena: Arena) -> str:
    count = arena.count(1000, 30_000)
    least = await arena.metric("palio_table_filters")
    async with await Attacker.at(arena.endpoint()) as eve:
        await subscribed(eve, [
            SubscribeRequest(i, f"x{i % 97} = {i} AND y > {i % 7}") for i in range(1, count + 1)
        ])  # fmt: skip
    await gone(arena, least)
    return f"{count:,} added and removed"


@case("30,000 nested subscriptions (x > 1, x > 2, ...), then disconnect")
async def nested_subscriptions(arena: Arena) -> str:
    count = arena.count(500, 10_000)
    least = await arena.metric("palio_table_filters")
    async with await Attacker.at(arena.endpoint()) as eve:
        await subscribed(eve, [SubscribeRequest(i, f"nest > {i}") for i in range(1, count + 1)])
    await gone(arena, least)
    return f"{count:,} added and removed"


@case("subscribing and unsubscribing 10,000 times", in_test=True)
async def subscription_churn(arena: Arena) -> str:
    count = arena.count(500, 10_000)
    async with await Attacker.at(arena.endpoint()) as eve:
        for i in range(1, count + 1):
            eve.say(SubscribeRequest(1, f"churn = {i}"), UnsubscribeRequest(1))
            if i % 500 == 0:
                await eve.drain()
        await eve.answered(2 * count, Subscribed, Unsubscribed, Refused)
        assert eve.counts[Subscribed] == count, eve.counts
    return f"{count:,} times"


@case("a group with 2,000 members that come and go")
async def large_group(arena: Arena) -> str:
    count = arena.count(100, 2000)
    async with await Attacker.at(arena.endpoint()) as eve:
        await subscribed(eve, [
            SubscribeRequest(i, "grouped = 1", group="g") for i in range(1, count + 1)
        ])  # fmt: skip
        for _ in range(100):
            eve.publish(b'{"grouped": 1}')
        await eve.got(MessageFrame, 100)
        eve.say(*[UnsubscribeRequest(i) for i in range(1, count + 1, 2)])
        await eve.got(Unsubscribed, count // 2)
    return f"{count:,} members"


@case(
    "3,000 members of one group, and of 1,000 groups with others, of one client, which disconnects",
    in_test=True,
)
async def large_group_left(arena: Arena) -> str:
    count, groups = arena.count(200, 3000), arena.count(50, 1000)
    least = await arena.metric("palio_table_filters")
    requests = [SubscribeRequest(i, "left = 1", group="g") for i in range(1, count + 1)]
    shared = [SubscribeRequest(count + i, "left = 1", group=f"g{i}") for i in range(1, groups + 1)]
    async with await Attacker.at(arena.endpoint(), "bob") as bob:
        await subscribed(bob, [requests[0], *shared])
        async with await Attacker.at(arena.endpoint()) as eve:
            await subscribed(eve, requests + shared)
        await asyncio.sleep(0.1)
        for _ in range(10):
            bob.publish(b'{"left": 1}')
        await bob.until(
            lambda: (
                sum(len(f.header.subscriptions) for f in bob.all(MessageFrame)) >= 10 * (groups + 1)
            )
        )
    await gone(arena, least)
    return f"{count:,} members left"


async def advertise(arena: Arena, count: int, text: str) -> None:
    async with await Attacker.at(arena.endpoint()) as eve:
        for i in range(1, count + 1):
            eve.say(AdvertiseRequest(i, (text.format(i=i), f"y = {i}")))
            if i % 500 == 0:
                await eve.drain()
        await eve.answered(count, Done, Refused)
        assert await eve.alive()
    await asyncio.sleep(0.3)


@case("800 advertisements of one client, which then disconnects")
async def advertisements_800(arena: Arena) -> str:
    await advertise(arena, arena.count(50, 800), "x{i} = {i}")
    return "all taken back"


@case("3,000 advertisements of one client, which then disconnects")
async def advertisements_3000(arena: Arena) -> str:
    await advertise(arena, arena.count(100, 3000), "x{i} = {i}")
    return "all taken back"


@case("2,000 advertisements, each covering the one before, then disconnect")
async def nested_advertisements(arena: Arena) -> str:
    await advertise(arena, arena.count(100, 2000), "x > -{i}")
    return "all taken back"


@case("1,000 advertisements, taken back and replaced one by one")
async def advertisement_churn(arena: Arena) -> str:
    count = arena.count(50, 1000)
    async with await Attacker.at(arena.endpoint()) as eve:
        eve.say(*[AdvertiseRequest(i, (f"x{i} = 1",)) for i in range(count)])
        await eve.got(Done, count)
        eve.say(*[AdvertiseRequest(i, (f"x{i} = 2",)) for i in range(count)])
        await eve.got(Done, 2 * count)
        eve.say(*[UnadvertiseRequest(i) for i in range(count)])
        await eve.got(Done, 3 * count)
    return f"{count:,} replaced and taken back"


@case("advertisements with 10,000 constraints")
async def wide_advertisements(arena: Arena) -> str:
    count = arena.count(500, 10_000)
    async with await Attacker.at(arena.endpoint()) as eve:
        for i in range(arena.count(2, 10)):
            eve.say(AdvertiseRequest(i, tuple(f"x{k} = {k + i}" for k in range(count))))
            eve.say(AdvertiseRequest(100 + i, tuple(f"z > {k + i}" for k in range(count))))
        eve.say(AdvertiseRequest(200, ("x = 1" + " OR x = 1" * 20_000,)))
        eve.say(AdvertiseRequest(201, ("x = '" + "y" * 1_000_000 + "'",)))
        eve.say(AdvertiseRequest(202, ("x IN (" + "1, " * 100_000 + "1)",)))
        eve.say(AdvertiseRequest(203, ("(" * 50_000,)))
        await eve.answered(2 * arena.count(2, 10) + 4, Done, Refused)
        assert await eve.alive()
        refused = eve.counts[Refused]
    return f"{refused} refused"


@case("800 requests of an identity with a small grant: each is compared with it")
async def grants(arena: Arena) -> str:
    count = arena.count(40, 800)
    async with await Attacker.at(arena.endpoint(), "mallory", LIMITED) as mallory:
        requests = []
        for i in range(count):
            long = f"x%{'ab' * (i % 200)}%{'ba' * 100}%"
            text = [
                f"a = 1 AND s LIKE '{long}'", f"b BETWEEN 1 AND {i}", f"s LIKE '%{'a' * i}%'",
                " OR ".join(f"a = 1 AND s LIKE 'x{k}%'" for k in range(100)),
            ][i % 4]  # fmt: skip
            requests.append(SubscribeRequest(i, text))
        await subscribed(mallory, requests)
        assert await mallory.alive()
    return f"{mallory.counts[Subscribed]} accepted, {mallory.counts[Refused]} refused"
