"""Attacks on what is stored: lazy consumers, many names, equal publishers."""

from __future__ import annotations

import asyncio
import time

import palio
from palio.protocol.wire.control import (
    Bye,
    Credit,
    Nack,
    Published,
    Refused,
    Reject,
    Subscribed,
    SubscribeRequest,
    Unsubscribed,
    UnsubscribeRequest,
)
from palio.protocol.wire.frames import MessageFrame, payload_frame
from palio.protocol.wire.headers import PublishHeader
from palio.protocol.wire.message_headers import EXPIRES_US, NOT_BEFORE_US, packed
from tests.attack.arena import Arena
from tests.attack.attacker import Attacker
from tests.attack.case import case


async def subscribed(one: Attacker, requests: list[SubscribeRequest]) -> None:
    """Say all and wait for all answers."""
    before = one.counts[Subscribed] + one.counts[Refused]
    for at in range(0, len(requests), 500):
        one.say(*requests[at : at + 500])
        await one.drain()
    await one.answered(before + len(requests), Subscribed, Refused)


async def forgotten(arena: Arena, names: list[str], predicate: str, at: str = "b1") -> None:
    """End durable subscriptions for good."""
    async with await Attacker.at(arena.endpoint(at), "cleaner") as cleaner:
        requests = [SubscribeRequest(i, predicate, durable=name) for i, name in enumerate(names, 1)]
        await subscribed(cleaner, requests)
        cleaner.say(*[UnsubscribeRequest(i, forget=True) for i in range(1, len(names) + 1)])
        await cleaner.got(Unsubscribed, len(names))


@case("400 durable subscriptions with names of 200 characters, and one message for all", brokers=2)
async def long_durable_names(arena: Arena) -> str:
    count = arena.count(40, 400)
    names = [f"{i:04}".ljust(200, "n") for i in range(count)]
    async with (
        await Attacker.at(arena.endpoint("b2"), "bob") as bob,
        await Attacker.at(arena.endpoint("b1")) as eve,
    ):
        await subscribed(bob, [
            SubscribeRequest(i, "named = 1", durable=name) for i, name in enumerate(names, 1)
        ])  # fmt: skip
        await asyncio.sleep(1.0)
        eve.publish(b'{"named": 1}', durable=True)
        await eve.got(Published)
        await bob.got(MessageFrame, count)
    await forgotten(arena, names, "named = 1", "b2")
    return f"{count} came"


@case(
    "two clients with one identity and one name, 200 durable messages each",
)
async def one_name_twice(arena: Arena) -> str:
    count = arena.count(20, 200)
    came: list[object] = []

    async def listen(bob: palio.net.client.Client) -> None:
        async for note in bob.subscribe("twin >= 0", durable="twins"):
            came.append(note.attributes["twin"])
            await note.ack()

    async def publish(first: int) -> None:
        async with palio.connect(arena.url(), name="twin", wait=10, max_wait=20) as twin:
            for i in range(count):
                await twin.publish({"twin": first + i})

    async with palio.connect(arena.url(), name="bob") as bob:
        listener = asyncio.create_task(listen(bob))
        await asyncio.sleep(0.3)
        try:
            async with asyncio.timeout(60):
                await asyncio.gather(publish(0), publish(1000))
                while len(set(came)) < 2 * count:
                    await asyncio.sleep(0.05)
        finally:
            listener.cancel()
    return f"{len(came)} of {2 * count} came"


@case("5,000 durable subscriptions, made and left; then a restart")
async def durables_made_and_left(arena: Arena) -> str:
    count = arena.count(200, 5000)
    names = [f"left{i}" for i in range(count)]
    async with await Attacker.at(arena.endpoint(), "eve") as eve:
        await subscribed(eve, [
            SubscribeRequest(i, f"left = {i}", durable=name) for i, name in enumerate(names, 1)
        ])  # fmt: skip
        assert not eve.all(Refused)
    await asyncio.sleep(0.5)
    assert await arena.metric("palio_queue_messages") >= 0
    if arena.full:
        await arena.restart()
    else:
        for i, name in enumerate(names, 1):
            await forgotten(arena, [name], f"left = {i}") if i <= 3 else None
    return f"{count} made and left"


@case(
    'a lazy durable subscriber with full = "block", and publishers that wait for it', in_test=True
)
async def lazy_and_blocking(arena: Arena) -> str:
    """Others are served; that its own publishers wait is what it asked for."""
    async with await Attacker.at(arena.endpoint(), "lazy") as lazy:
        lazy.say(SubscribeRequest(1, "lazy = 1", durable="lazy", full="block", credit=1))
        await lazy.got(Subscribed)
        eves = [await Attacker.at(arena.endpoint(), f"eve{i}") for i in range(3)]
        for eve in eves:
            for _ in range(arena.count(500, 40_000)):
                eve.publish(b'{"lazy": 1}', durable=True)
        await asyncio.sleep(arena.count(1, 20))
        told = [eve.all(Bye)[-1].code for eve in eves if eve.all(Bye)]
        for eve in eves:
            eve.leave()
        lazy.say(UnsubscribeRequest(1, forget=True))
        await lazy.got(Unsubscribed)
    return f"{len(told)} of 3 publishers closed ({', '.join(set(told))})"


@case("a consumer that never acknowledges, connecting again and again", in_test=True)
async def never_acknowledged(arena: Arena) -> str:
    count = arena.count(50, 2000)
    came = 0
    async with await Attacker.at(arena.endpoint()) as eve:
        async with await Attacker.at(arena.endpoint(), "mute") as first:
            first.say(SubscribeRequest(1, "mute = 1", durable="mute", credit=count))
            await first.got(Subscribed)
        for _ in range(count):
            eve.publish(b'{"mute": 1}', bytes(1000), durable=True)
        await eve.until(lambda: bool(eve.all(Published)) and eve.all(Published)[-1].number >= count)
        for i in range(arena.count(5, 30)):
            async with await Attacker.at(arena.endpoint(), f"mute{i}") as mute:
                mute.say(SubscribeRequest(1, "mute = 1", durable="mute", credit=count))
                await mute.got(MessageFrame, count)
                came += mute.counts[MessageFrame]
    await forgotten(arena, ["mute"], "mute = 1")
    return f"{came:,} redelivered"


@case("a replay of 4,000 messages through a predicate with 900 filters", in_test=True)
async def costly_replay(arena: Arena) -> str:
    count, filters = arena.count(100, 4000), 900
    predicate = "old = 1 AND (" + " OR ".join(f"z = {k}" for k in range(filters)) + ")"
    async with await Attacker.at(arena.endpoint()) as eve:
        eve.say(SubscribeRequest(1, "old = 1", durable="keeper", credit=1, full="drop"))
        await eve.got(Subscribed)
        for i in range(count):
            z = filters - 1 if i % 100 == 99 else -1
            eve.publish(b'{"old": 1, "z": %d}' % z, durable=True)
        await eve.until(lambda: bool(eve.all(Published)) and eve.all(Published)[-1].number >= count)
        async with await Attacker.at(arena.endpoint(), "bob") as bob:
            bob.say(SubscribeRequest(1, predicate, durable="past", since=0, credit=1000))
            await bob.got(Subscribed)
            await bob.got(MessageFrame, count // 100)
            bob.say(UnsubscribeRequest(1, forget=True))
            await bob.got(Unsubscribed)
        eve.say(UnsubscribeRequest(1, forget=True))
        await eve.got(Unsubscribed)
    return f"{count // 100} of {count:,} came"


@case("credit of 0, 2^63-1, 2^30 and none at all, on subscriptions of all kinds and unknown ones")
async def credit_games(arena: Arena) -> str:
    async with await Attacker.at(arena.endpoint()) as eve:
        requests = []
        for i, credit in enumerate((0, 2**63 - 1, 2**30, 2**30 + 1, 1)):
            requests += [
                SubscribeRequest(3 * i + 1, "credit = 1", credit=credit),
                SubscribeRequest(3 * i + 2, "credit = 1", durable=f"credit{i}", credit=credit),
                SubscribeRequest(
                    3 * i + 3, pattern="[credit = 1] then [credit = 2]", credit=credit
                ),
            ]
        await subscribed(eve, requests)
        accepted = eve.counts[Subscribed]
        for _ in range(arena.count(20, 500)):
            eve.say(*[Credit(id, 2**30) for id in (1, 2, 3, 99, 2**63 - 1)])
            eve.publish(b'{"credit": 1}')
            await eve.drain()
        assert await eve.alive()
        async with await Attacker.at(arena.endpoint(), "zero") as zero:
            zero.say(Credit(1, 0))
            assert await zero.closed() is not None
        async with await Attacker.at(arena.endpoint(), "much") as much:
            much.say(Credit(1, 2**63 - 1))
            assert await much.closed() is not None
        async with await Attacker.at(arena.endpoint(), "negative") as negative:
            negative.send(b"\x0c\x00\x00\x00\x00\x93\xa6Credit\x01\xff")  # Credit(1, -1)
            assert await negative.closed() is not None
        durable = [i for i, r in enumerate(requests) if r.durable]
        eve.say(*[UnsubscribeRequest(requests[i].id, forget=True) for i in durable])
        await eve.answered(len(requests) + len(durable), Subscribed, Refused, Unsubscribed)
    return f"{accepted} of {len(requests)} accepted"


async def published(eve: Attacker, count: int) -> None:
    await eve.until(lambda: bool(eve.all(Published)) and eve.all(Published)[-1].number >= count)


@case("a nack storm: 5,000 messages given back again and again, at once, later, twice, by numbers")
async def nack_storm(arena: Arena) -> str:
    count, rounds = arena.count(200, 5_000), arena.count(3, 40)
    async with (
        await Attacker.at(arena.endpoint(), "eve-nack") as eve,
        await Attacker.at(arena.endpoint(), "nack") as nack,
    ):
        nack.say(SubscribeRequest(1, "nack = 1", durable="nack", credit=count))
        await nack.got(Subscribed)
        for _ in range(count):
            eve.publish(b'{"nack": 1}', durable=True)
        await published(eve, count)
        await nack.got(MessageFrame, count)
        came = 0
        for at in range(rounds):
            came = nack.counts[MessageFrame]
            delay_us = (0, 1, 50_000)[at % 3]
            for first in range(1, count + 1, 1000):
                some = tuple(range(first, min(first + 1000, count + 1)))
                nack.say(Nack(1, some, delay_us), Nack(1, some[::-1], 0), Nack(2, some))
            nack.say(*[Nack(1, (1 + n,), 0) for n in range(0, count, 7)])
            await nack.got(MessageFrame, came + count)
        nack.say(*[Nack(1, (n,), 3_600_000_000) for n in range(1, count + 1)])
        assert await nack.alive()
    await forgotten(arena, ["nack"], "nack = 1")
    return f"{count * rounds:,} given back"


async def stored_with(
    arena: Arena, eve: Attacker, count: int, name: str, header: str, step_us: int
) -> None:
    """Publish durable messages whose instants lie in no order."""
    begin_us = time.time_ns() // 1000 + 2_000_000
    for number in range(1, count + 1):
        block = packed({header: begin_us + number * 7919 % count * step_us}, 100)
        eve.send(payload_frame(PublishHeader(number, 1, True), b'{"%s": 1}' % name.encode(), block))
        if number % 2_000 == 0:
            await eve.drain()
    await published(eve, count)


@case("100,000 messages that expire within seconds, in no order, for somebody who does not read")
async def expiring_flood(arena: Arena) -> str:
    count = arena.count(2_000, 100_000)
    async with (
        await Attacker.at(arena.endpoint(), "eve-expiring") as eve,
        await Attacker.at(arena.endpoint(), "late") as late,
    ):
        before = await arena.metric("palio_durable_expired_total")
        late.say(SubscribeRequest(1, "expiring = 1", durable="late", credit=1))
        await late.got(Subscribed)
        await stored_with(arena, eve, count, "expiring", EXPIRES_US, 20)
        async with asyncio.timeout(60):
            while await arena.metric("palio_durable_expired_total") - before < count - 1:
                await asyncio.sleep(0.5)  # one is with the client
    await forgotten(arena, ["late"], "expiring = 1")
    return f"{count - 1:,} expired"


@case("100,000 delayed messages, in no order, due within two seconds; one more is refused")
async def delayed_flood(arena: Arena) -> str:
    count = arena.count(2_000, 100_000)
    async with (
        await Attacker.at(arena.endpoint(), "eve-delayed") as eve,
        await Attacker.at(arena.endpoint(), "reader") as reader,
    ):
        reader.say(SubscribeRequest(1, "delayed = 1", durable="reader", credit=2 * count))
        await reader.got(Subscribed)
        await stored_with(arena, eve, count, "delayed", NOT_BEFORE_US, 20)
        waiting = count - reader.counts[MessageFrame]
        await reader.got(MessageFrame, count)
        assert reader.counts[MessageFrame] == count
    await forgotten(arena, ["reader"], "delayed = 1")
    return f"{count:,} came once, {waiting:,} of them waited when the last was stored"


@case("a flood of dead letters: 50,000 messages rejected at once, for 20 who want dead letters")
async def dead_letter_flood(arena: Arena) -> str:
    count, collectors = arena.count(500, 50_000), arena.count(3, 20)
    names = [f"undertaker{n}" for n in range(collectors)]
    async with (
        await Attacker.at(arena.endpoint(), "eve-dead") as eve,
        await Attacker.at(arena.endpoint(), "dead") as dead,
        await Attacker.at(arena.endpoint(), "undertaker") as undertaker,
    ):
        await subscribed(undertaker, [
            SubscribeRequest(n, "dead_letter = 'dead'", durable=name, credit=1, full="drop")
            for n, name in enumerate(names, 1)
        ])  # fmt: skip
        dead.say(SubscribeRequest(1, "dead = 1", durable="dead", credit=count))
        await dead.got(Subscribed)
        for _ in range(count):
            eve.publish(b'{"dead": 1}', bytes(100), durable=True)
        await published(eve, count)
        await dead.got(MessageFrame, count)
        before = await arena.metric("palio_dead_letters_total")
        for first in range(1, count + 1, 1000):
            some = tuple(range(first, min(first + 1000, count + 1)))
            dead.say(Reject(1, some, "x" * 200), Reject(1, some), Reject(1, (1 << 60,)))
        async with asyncio.timeout(200):
            while await arena.metric("palio_dead_letters_total") - before < count:
                await asyncio.sleep(0.5)
        assert await dead.alive()
    await forgotten(arena, ["dead"], "dead = 1")
    await forgotten(arena, names, "dead_letter = 'dead'")
    return f"{count:,} dead letters for {collectors} subscriptions"
