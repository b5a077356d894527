"""Attacks with questions about the network: explanations, topology, quenching."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from palio.protocol.wire.control import (
    Done,
    Explain,
    Explained,
    Forget,
    Quench,
    Refused,
    Show,
    Shown,
    Subscribed,
    SubscribeRequest,
    Wanted,
)
from tests.attack.arena import PUBLISHER, Arena
from tests.attack.attacker import Attacker
from tests.attack.case import case
from tests.attack.durables import subscribed

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


@case("explanations by the hundred, with 3,000 subscriptions and strange attributes", in_test=True)
async def explain_storm(arena: Arena) -> str:
    async with await Attacker.at(arena.endpoint(), "bob") as bob:
        await subscribed(bob, [
            SubscribeRequest(i, f"x > {i} AND s LIKE '%{i}%'")
            for i in range(arena.count(100, 3000))
        ])  # fmt: skip
        async with await Attacker.at(arena.endpoint()) as eve:
            texts = [
                '{"x": 1}',
                "[",
                "",
                '{"x": 1e400}',
                '{"s": "' + "1" * 60_000 + '"}',
                "{" * 999,
            ]
            count = arena.count(12, 300)
            for i in range(count):
                eve.say(Explain(i, texts[i % len(texts)], f"anonymous/bob#{i}"))
            await eve.answered(count, Explained, Refused)
            eve.say(Explain(count, '{"s": "' + "x" * 3_000_000 + '"}'))
            eve.say(Explain(count + 1, '{"x":' + "[" * 1_000_000))
            await eve.answered(count + 2, Explained, Refused)
            assert await eve.alive()
    return f"{eve.counts[Explained]} explained, {eve.counts[Refused]} refused"


@case("an explanation of a message that matches 20,000 subscriptions")
async def explain_many(arena: Arena) -> str:
    count = arena.count(500, 20_000)
    async with await Attacker.at(arena.endpoint(), "bob") as bob:
        await subscribed(bob, [
            SubscribeRequest(i, f"why > 0 AND z{i} IS NULL") for i in range(1, count + 1)
        ])  # fmt: skip
        async with await Attacker.at(arena.endpoint()) as eve:
            eve.say(Explain(1, '{"why": 1}'))
            await eve.answered(1, Explained, Refused)
            assert await eve.alive()
        delivers = sum(len(hop.delivers) for one in eve.all(Explained) for hop in one.hops)
    return f"{delivers:,} reasons given"


@case("2,000 questions for the topology, and for brokers that do not exist to be forgotten")
async def show_storm(arena: Arena) -> str:
    count = arena.count(50, 2000)
    async with await Attacker.at(arena.endpoint()) as eve:
        for i in range(count):
            eve.say(Show(i), Forget(count + i, f"nobody{i}"))
        await eve.answered(2 * count, Shown, Done, Refused)
        assert await eve.alive()
    return f"{eve.counts[Shown]} shown"


@case("quenching by a client that may not subscribe, while 990 filters change and then rest")
async def quench_of_many(arena: Arena) -> str:
    """It learns only what it may serve; and an idle broker stays idle."""
    count = arena.count(100, 990)
    async with (
        await Attacker.at(arena.endpoint(), "bob") as bob,
        await Attacker.at(arena.endpoint(), "quencher", PUBLISHER) as eve,
        await Attacker.at(arena.endpoint(), "all") as everything,
    ):
        await subscribed(bob, [
            SubscribeRequest(i, f"secret{i} > {i} AND s{i % 9} LIKE '%{i}%'")
            for i in range(1, count + 1)
        ])  # fmt: skip
        bob.say(SubscribeRequest(5000, "p = 1 AND q > 3"))
        await bob.got(Subscribed, count + 1)
        eve.say(Quench(1, True))
        everything.say(Quench(1, True))
        await eve.got(Wanted)
        await everything.got(Wanted)
        for i in range(arena.count(3, 30)):  # each change is told again
            bob.say(SubscribeRequest(6000 + i, f"p = 1 AND r = {i}"))
            await asyncio.sleep(0.1)
        await asyncio.sleep(1.0)
        process = arena.processes.process_id("b1")
        before = cpu_s(process)
        await asyncio.sleep(arena.count(1, 5))
        idle = (cpu_s(process) - before) / arena.count(1, 5)
        told = len(eve.all(Wanted)[-1].predicate or "")
    return f"{eve.counts[Wanted]} told ({told} characters), {100 * idle:.0f} % CPU when idle"


@case("quenching turned on and off 3,000 times with 990 filters", in_test=True)
async def quench_storm(arena: Arena) -> str:
    count = arena.count(30, 3000)
    async with await Attacker.at(arena.endpoint()) as eve:
        await subscribed(eve, [
            SubscribeRequest(i, f"q{i % 30} > {i} AND s{i % 9} LIKE '%{i}%'")
            for i in range(1, arena.count(50, 990))
        ])  # fmt: skip
        for i in range(count):
            eve.say(Quench(10_000 + i, i % 2 == 0))
        await eve.answered(count, Done, Refused)
        assert await eve.alive()
    return f"{eve.counts[Wanted]} told"
