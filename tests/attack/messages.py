"""Attacks with messages: attributes that are no JSON or strange JSON, large bodies, odd clocks."""

from __future__ import annotations

import asyncio
import json
import time

from palio.protocol.wire.codes import CloseCode
from palio.protocol.wire.control import (
    Acknowledge,
    Occurred,
    Published,
    Refused,
    Rejected,
    Subscribed,
    SubscribeRequest,
    Unsubscribed,
    UnsubscribeRequest,
)
from palio.protocol.wire.frames import MessageFrame
from tests.attack.arena import Arena
from tests.attack.attacker import Attacker
from tests.attack.case import case

_DEEP = 30_000
ATTRIBUTES: dict[str, bytes] = {
    "BOM": b'\xef\xbb\xbf{"bad": 1}',
    "UTF-16": '{"bad": 1}'.encode("utf-16"),
    "UTF-16 without BOM": '{"bad": 1}'.encode("utf-16-le"),
    "UTF-32": '{"bad": 1}'.encode("utf-32"),
    "Latin-1": '{"bad": "\xe9"}'.encode("latin-1"),
    "overlong UTF-8": b'{"bad": "\xc0\x80"}',
    "surrogate as UTF-8": b'{"bad": "\xed\xa0\x80"}',
    "lone surrogate": b'{"bad": "\\ud800"}',
    "lone surrogate as name": b'{"bad": 1, "\\udc00": 1}',
    "surrogates reversed": b'{"bad": "\\udc00\\ud800"}',
    "NUL": b'{"bad": "\\u0000"}',
    "raw NUL": b'{"bad": "\x00"}',
    "raw control character": b'{"bad": "\n\t"}',
    "deep lists": b'{"bad":' + b"[" * _DEEP + b"]" * _DEEP + b"}",
    "deep objects": b'{"bad":' + b'{"a":' * (_DEEP // 4) + b"1" + b"}" * (_DEEP // 4) + b"}",
    "open lists": b'{"bad":' + b"[" * (2 * _DEEP),
    "1e400": b'{"bad": 1e400}',
    "-1e400": b'{"bad": -1e400}',
    "1e-400": b'{"bad": 1e-400}',
    "huge exponent": b'{"bad": 1e' + b"9" * 4000 + b"}",
    "int of 60,000 digits": b'{"bad": ' + b"9" * 60_000 + b"}",
    "float of 60,000 digits": b'{"bad": 0.' + b"9" * 60_000 + b"}",
    "2^63": b'{"bad": 9223372036854775808}',
    "2^64": b'{"bad": 18446744073709551616}',
    "-2^63-1": b'{"bad": -9223372036854775809}',
    "-0": b'{"bad": -0}',
    "NaN": b'{"bad": NaN}',
    "Infinity": b'{"bad": -Infinity}',
    "duplicate names": b'{"bad": 1, "bad": "x", "bad": null}',
    "duplicate names, escaped": b'{"bad": 1, "b\\u0061d": 2}',
    "many duplicates": b'{"bad":1' + b',"bad":1' * 7000 + b"}",
    "many names": json.dumps({"bad": 1} | {f"n{i}": i for i in range(4000)}).encode(),
    "empty name": b'{"": 1, "bad": 1}',
    "long name": b'{"bad": 1, "' + b"n" * 60_000 + b'": 1}',
    "long text": b'{"bad": "' + b"x" * 60_000 + b'"}',
    "no object": b"[1]",
    "nothing": b"",
    "spaces": b" " * 60_000,
    "two objects": b'{"bad": 1}{"bad": 2}',
    "comment": b'{"bad": 1 /* */}',
    "trailing comma": b'{"bad": 1,}',
    "true": b'{"bad": true}',
    "null": b'{"bad": null}',
    "nested value": b'{"bad": {"a": 1}}',
    "timestamp": b'{"bad": "9999-99-99T99:99:99Z"}',
}


@case("attributes that are no JSON or strange JSON, live and durable, then a restart")
async def hostile_attributes(arena: Arena) -> str:
    name = "strange"
    async with await Attacker.at(arena.endpoint()) as eve:
        eve.say(
            SubscribeRequest(1, "bad IS NOT NULL", credit=10_000),
            SubscribeRequest(2, "bad > 0 OR bad LIKE '%x%' OR bad IS NULL AND \"\" = 1"),
            SubscribeRequest(3, "bad IS NOT NULL", durable=name, credit=10_000, full="drop"),
        )
        await eve.got(Subscribed, 3)
        for _ in range(arena.count(1, 20)):
            for text in ATTRIBUTES.values():
                eve.publish(text)
                last = eve.publish(text, durable=True)
        eve.publish(b'{"bad": "last"}', durable=True)
        await eve.until(lambda: any(p.number > last for p in eve.all(Published)))
        assert await eve.alive()
        rejected = eve.counts[Rejected]
    await arena.restart()
    async with await Attacker.at(arena.endpoint(), "mallory") as mallory:
        mallory.say(SubscribeRequest(1, "bad IS NOT NULL", durable=name, credit=10_000))
        waiting = (await mallory.got(Subscribed))[0].last
        await mallory.got(MessageFrame, 1)
        await mallory.until(lambda: b'"last"' in mallory.all(MessageFrame)[-1].attributes)
        stored = mallory.counts[MessageFrame]
        mallory.say(UnsubscribeRequest(1, forget=True))
        await mallory.got(Unsubscribed)
    return f"{rejected} rejected, {stored} stored and read after the restart (last {waiting})"


@case(
    "messages of 60 KiB that take a schema as long as any, and thousands of small ones at once",
    in_test=True,
)
async def worst_for_a_schema(arena: Arena) -> str:
    worst: list[dict[str, object]] = [
        {"text": "ab" * 14_000 + "x" * 32_000},
        {"text": "x" * 60_000},
        {"unique": [[[i]] for i in range(6_000)]},
        {"unique": [{} for _ in range(14_000)]},
        {"unique": [[i] for i in range(700)]},
        {"several": [1] * 20_000},
        {"several": [19] * 1_000},
        {f"a{i}b": i for i in range(1_400)},
        {f"n{i}": i for i in range(4_000)},
    ]
    texts = [json.dumps({"worst": 1} | one).encode() for one in worst]
    small = b'{"worst": 1, "text": "x", "bad": "x"}'
    async with await Attacker.at(arena.endpoint()) as eve:
        for _ in range(arena.count(1, 5)):
            for text in texts:
                eve.publish(text, durable=True)
                await eve.drain()
            for _ in range(arena.count(2_000, 5_000)):
                eve.publish(small)
            await eve.drain()
        last = eve.publish(b'{"worst": 1}', durable=True)
        await eve.until(lambda: any(p.number >= last for p in eve.all(Published)))
        assert await eve.alive()
        return f"{eve.counts[Rejected]} rejected"


@case(
    "100 live messages of 4 MiB to 4 subscriptions that do not take them",
)
async def large_messages_for_the_slow(arena: Arena) -> str:
    count, size = arena.count(8, 100), (4 << 20) - 1000
    before = arena.memory()
    slow = [await Attacker.at(arena.endpoint(), f"slow{i}") for i in range(4)]
    async with await Attacker.at(arena.endpoint()) as eve:
        for one in slow:
            one.say(SubscribeRequest(1, "large = 1", credit=1))
            await one.got(Subscribed)
        for _ in range(count):
            eve.publish(b'{"large": 1}', bytes(size))
            await eve.drain()
        assert await eve.alive()
        most = arena.memory() - before
    for one in slow:
        one.leave()
    assert most < 512 << 20, f"{most >> 20} MiB more for messages that nobody takes"
    return f"{most >> 20} MiB more"


@case("a client that reads no deliveries at all", in_test=True)
async def deliveries_that_are_not_read(arena: Arena) -> str:
    """Its connection is congested, then messages wait within bounds, and then it is closed."""
    slow = await Attacker.at(arena.endpoint(), "slow")
    async with await Attacker.at(arena.endpoint()) as eve, slow:
        slow.say(SubscribeRequest(1, "bulk = 1", credit=1 << 20))
        await slow.got(Subscribed)
        slow.is_reading.clear()
        for _ in range(arena.count(100, 4000)):
            for _ in range(10):
                eve.publish(b'{"bulk": 1}', bytes(10_000))
            await eve.drain()
        assert await eve.alive()
        more = arena.memory()
    return f"{more >> 20} MiB in all"


@case(
    "patterns watched while publishers' clocks say 2^63-1 and 0",
)
async def publishers_clocks(arena: Arena) -> str:
    async with await Attacker.at(arena.endpoint()) as eve:
        eve.say(
            SubscribeRequest(1, pattern="[tick = 1] then [tick = 2]"),
            SubscribeRequest(
                2, pattern="([tick = 1] or [tick = 3]) then [tick = 2] then [tick = 3]"
            ),
        )
        await eve.answered(2, Subscribed, Refused)
        for i in range(arena.count(50, 2000)):
            for time_us in (2**63 - 1, 0, 2**63 - 2, 1, 2**62):
                eve.publish(json.dumps({"tick": i % 4}).encode(), time_us=time_us)
            if i % 50 == 0:
                await eve.drain()
        await asyncio.sleep(0.5)
        assert await eve.alive()
        eve.say(UnsubscribeRequest(1), UnsubscribeRequest(2))
        async with await Attacker.at(arena.endpoint(), "bob") as bob:
            bob.say(SubscribeRequest(1, pattern="[tock = 1] then [tock = 2]"))
            await bob.got(Subscribed)
            now_us = time.time_ns() // 1000
            for i in range(20):
                bob.publish(b'{"tock": 1}', time_us=now_us + 2 * i)
                bob.publish(b'{"tock": 2}', time_us=now_us + 2 * i + 1)
            await bob.got(Occurred, 10)
    return "others' patterns still occur"


@case("acknowledgements of unknown subscriptions and positions, by the thousand")
async def unknown_acknowledgements(arena: Arena) -> str:
    async with await Attacker.at(arena.endpoint()) as eve:
        eve.say(SubscribeRequest(1, "acked = 1", durable="acked"))
        await eve.got(Subscribed)
        huge = tuple(range(2**62, 2**62 + 20_000))
        for _ in range(arena.count(2, 20)):
            eve.say(Acknowledge(1, huge), Acknowledge(99, huge), Acknowledge(2**63 - 1, (0,)))
            eve.say(Acknowledge(1, (0,) * 20_000), Acknowledge(1, (2**63 - 1,)), Acknowledge(1, ()))
            await eve.drain()
        assert await eve.alive()
        eve.publish(b'{"acked": 1}', durable=True)
        await eve.got(MessageFrame)
        eve.say(UnsubscribeRequest(1, forget=True))
        await eve.got(Unsubscribed)
    return "the next message came"


@case("4,000 tiny messages that nobody can read, in one write, ten times", in_test=True)
async def tiny_and_unreadable(arena: Arena) -> str:
    count = arena.count(500, 4000)
    async with await Attacker.at(arena.endpoint(), "bob") as bob:
        bob.say(SubscribeRequest(1, "tiny = 1", credit=1000))
        await bob.got(Subscribed)
        for i in range(10):
            async with await Attacker.at(arena.endpoint(), f"eve{i}") as eve:
                for _ in range(count):
                    eve.publish(b"{")
                bob.publish(b'{"tiny": 1}')
                bye = await eve.closed()
                assert bye is not None
                assert bye.code == CloseCode.PROTOCOL
                assert "cannot be read" in bye.reason
        await bob.got(MessageFrame, 10)
    return f"{10 * count:,} messages, 10 publishers closed"
