"""Attacks with bytes: noise, truncated and oversize frames, frames that the sender must not send,
and handshakes that are replayed or forged."""

from __future__ import annotations

import asyncio
import struct
from random import Random

import msgspec

from palio.protocol.wire.control import VERSION, Bye, Confirm, Hello, Ping, Pong, Welcome
from palio.protocol.wire.frames import FrameKind, control_frame, message_frame
from palio.protocol.wire.handshake import NONCE_BYTES, dial
from palio.protocol.wire.headers import CarryHeader, CarryTarget, DeliverHeader, ForwardHeader
from tests.attack.arena import EVIL, SECRET, Arena
from tests.attack.attacker import Attacker
from tests.attack.case import case
from tests.protocol.broker.noise import ROLES, Speaker


@case("random bytes from strangers and from clients")
async def random_bytes(arena: Arena) -> str:
    random, closed = Random(1), 0
    for i in range(arena.count(20, 400)):
        eve = (
            await Attacker.at(arena.endpoint(), f"eve{i}")
            if i % 2
            else await Attacker.stranger(arena.endpoint())
        )
        async with eve:
            eve.send(random.randbytes(random.randrange(5, 50_000)))
            eve.send(b"\xff" * 16)  # no frame begins like this
            closed += await eve.closed() is not None
    return f"{closed} closed with a reason"


@case(
    "frames and control messages of every kind, mutated, from strangers, clients and neighbours",
    in_test=True,
)
async def noise(arena: Arena) -> str:
    random = Random(2)
    speaker, said = Speaker(random), 0
    for i in range(arena.count(30, 600)):
        role = ROLES[i % len(ROLES)]
        eve = await Attacker.stranger(arena.endpoint())
        async with eve:
            if role == "client":
                eve.say(Hello(VERSION, "client", f"eve{i % 5}"))
                await eve.got(Welcome)
            elif role == "neighbour":
                continue  # tests/net/test_broker_fuzz.py: whoever has the secret is trusted
            frames = [speaker.frame(role) for _ in range(40)]
            said += len(frames)
            eve.send(b"".join(frames))
            await eve.drain()
            await asyncio.sleep(0.01)
    return f"{said:,} said"


@case("truncated frames: cut off anywhere, then silence or the end of the connection")
async def truncated_frames(arena: Arena) -> str:
    frame = control_frame(Hello(VERSION, "client", "x" * 150))
    waiting = []
    for i in range(arena.count(20, 150)):
        eve = await Attacker.stranger(arena.endpoint())
        eve.send(frame[: 1 + i % (len(frame) - 1)])
        if i % 3:
            eve.leave()
        else:
            waiting.append(eve)
    async with await Attacker.at(arena.endpoint()) as eve:
        large = message_frame(ForwardHeader(msgspec.Raw(b"\xc0"), "p", 1, 1, False), b"{}", b"")
        eve.send(large[: len(large) // 2])
        await asyncio.sleep(0.1)
    for one in waiting:
        one.leave()
    return "none was answered"


@case("message frames and control messages before Hello, and those that clients must not send")
async def frames_of_every_kind(arena: Arena) -> str:
    raw = msgspec.Raw(b"\xc0")
    target = CarryTarget("b1", 1, 1, ("1@a/b",))
    frames = {
        "CONTROL": control_frame(Confirm(b"x" * 32)),
        "Welcome": control_frame(Welcome(VERSION, "b1")),
        "PUBLISH": struct.pack("<IB", 30, FrameKind.PUBLISH) + bytes(29),
        "DELIVER": message_frame(DeliverHeader((1,), 1, "p", 1, 1), b"{}", b""),
        "FORWARD": message_frame(ForwardHeader(raw, "p", 1, 1, False), b"{}", b""),
        "CARRY": message_frame(CarryHeader("b9", "e", (target,), "p", 1, 1), b"{}", b""),
        "kind 9": struct.pack("<IB", 10, 9) + bytes(9),
    }
    codes = set()
    for i, frame in enumerate(frames.values()):
        for eve in (
            await Attacker.stranger(arena.endpoint()),
            await Attacker.at(arena.endpoint(), f"eve{i}"),
        ):
            async with eve:
                eve.send(frame)
                bye = await eve.closed()
                assert bye is not None, frame
                codes.add(bye.code)
    return f"all closed: {', '.join(codes)}"


@case(
    "frames, control messages, headers, attributes, bodies and names over every limit", in_test=True
)
async def oversize(arena: Arena) -> str:
    endpoint = arena.endpoint()
    for data in (
        struct.pack("<IB", 2**32 - 1, 0),
        struct.pack("<IB", 0, 0),
        struct.pack("<IB", 17 << 20, 0) + bytes(1000),
        struct.pack("<IBII", 9 + (70 << 10), 1, 70 << 10, 0) + bytes(70 << 10),
        struct.pack("<IBII", 9 + (70 << 10), 1, 0, 70 << 10) + bytes(70 << 10),
        struct.pack("<IBII", 9 + (5 << 20), 1, 0, 0) + bytes(5 << 20),
        struct.pack("<IBII", 30, 1, 2**32 - 1, 2**32 - 1) + bytes(21),
    ):
        async with await Attacker.at(endpoint) as eve:
            eve.send(data)
            await eve.drain()
            bye = await eve.closed()
            assert bye is not None, data[:20]
    for hello in (
        Hello(VERSION, "client", "n" * 201),
        Hello(VERSION, "client", "a/b"),
        Hello(VERSION, "client", ""),
        Hello(VERSION, "client", "n" * 20_000),
        Hello(VERSION, "client", "eve", token="t" * 15_000),
        Hello(VERSION + 1, "client", "eve"),
        Hello(VERSION, "what", "eve"),
        Hello(VERSION, "broker", "b1", nonce=bytes(32)),
        Hello(VERSION, "broker", EVIL, nonce=b""),
    ):
        async with await Attacker.stranger(endpoint) as eve:
            eve.say(hello)
            assert await eve.closed() is not None, hello
    return "all closed with a reason"


@case(
    "handshakes of neighbours: replayed, with a wrong proof, with the broker's own proof",
    in_test=True,
)
async def forged_handshakes(arena: Arena) -> str:
    random = Random(3)
    nonce = random.randbytes(NONCE_BYTES)
    dialling, hello = dial(EVIL, "b1", SECRET.encode(), nonce)
    async with await Attacker.stranger(arena.endpoint()) as good:
        good.say(hello)
        confirm = dialling.welcome((await good.got(Welcome))[0])
        good.say(confirm)
        assert await good.alive()
    for i in range(arena.count(5, 100)):
        async with await Attacker.stranger(arena.endpoint()) as eve:
            eve.say(hello)
            welcome = (await eve.got(Welcome))[0]
            own = Confirm(welcome.proof)
            eve.say((confirm, own, Confirm(b""), Confirm(random.randbytes(32)))[i % 4])
            bye = await eve.closed()
            assert bye is not None
            assert bye.code == "denied", bye
    return "all denied"


@case("1,000 connections that say Hello at once")
async def hello_storm(arena: Arena) -> str:
    count = arena.count(50, 1000)
    eves = await asyncio.gather(*[
        Attacker.at(arena.endpoint(), f"storm{i}") for i in range(count)
    ])  # fmt: skip
    for eve in eves:
        assert await eve.alive()
    for eve in eves:
        eve.leave()
    return f"{count:,} welcomed"


@case("connections that come and go, with and without Hello, 3,000 times")
async def connection_churn(arena: Arena) -> str:
    count = arena.count(100, 3000)

    async def one(i: int) -> None:
        eve = await Attacker.stranger(arena.endpoint())
        if i % 2:
            eve.say(Hello(VERSION, "client", f"churn{i % 7}"))
        if i % 3 == 0:
            eve.say(Bye("I leave"))
            await eve.drain()
        await asyncio.sleep(0)
        eve.leave()

    for at in range(0, count, 50):
        await asyncio.gather(*map(one, range(at, at + 50)))
    return f"{count:,} times"


@case(
    "40 connections with 15 MiB of a frame that never ends",
)
async def half_frames(arena: Arena) -> str:
    before, count = arena.memory(), arena.count(5, 40)
    half, eves = bytes(1 << 20), []
    for i in range(count):
        eve = await Attacker.at(arena.endpoint(), f"half{i}")
        eves.append(eve)
        eve.send(struct.pack("<IB", 16 << 20, 0))
        for _ in range(15):
            eve.send(half)
            await eve.drain()
    more = arena.memory() - before
    for eve in eves:
        eve.leave()
    # `[limits] unfinished` is 256 MiB, and buffers that grow have some room.
    assert more < 320 << 20, f"{more >> 20} MiB for frames that never end"
    return f"{more >> 20} MiB more"


@case(
    "a Hello of one byte a second, a Ping before Hello, and 60 idle strangers",
    only_full=True,
)
async def strangers_who_stay(arena: Arena) -> str:
    frame = control_frame(Hello(VERSION, "client", "slow"))
    idle = [await Attacker.stranger(arena.endpoint()) for _ in range(60)]
    pinging = await Attacker.stranger(arena.endpoint())
    slow = await Attacker.stranger(arena.endpoint())
    pinging.say(Ping(1))
    for byte in frame[:20]:
        slow.send(bytes([byte]))
        pinging.say(Ping(1))
        await asyncio.sleep(1.0)
    open_ = [one for one in (*idle, pinging, slow) if not one.is_closed]
    for one in open_:
        one.leave()
    assert not open_, f"{len(open_)} strangers stayed for 20 s"
    return f"all closed; {pinging.counts[Pong]} pongs"


@case("40,000 tiny control messages in one write, from each of 8 clients", in_test=True)
async def tiny_frames(arena: Arena) -> str:
    count = arena.count(2000, 40_000)
    eves = [await Attacker.at(arena.endpoint(), f"tiny{i}") for i in range(8)]
    data = control_frame(Ping(1)) * count
    for eve in eves:
        eve.send(data)
    for eve in eves:
        await eve.got(Pong, count)
        eve.leave()
    return f"{8 * count:,} answered"
