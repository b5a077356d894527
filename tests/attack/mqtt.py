"""Attacks by MQTT: slow and half packets, floods of what a broker keeps, promises that are not kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self, TypeVar

from palio.protocol.mqtt.packets.codes import ReasonCode
from palio.protocol.mqtt.packets.encoding import encode
from palio.protocol.mqtt.packets.fields import put_varint
from palio.protocol.mqtt.packets.properties import PacketType
from palio.protocol.mqtt.packets.reader import PacketReader
from palio.protocol.mqtt.packets.values import (
    Ack,
    Connack,
    ConnectPacket,
    DisconnectPacket,
    Packet,
    PublishPacket,
    SubscribeAck,
    SubscribePacket,
    SubscriptionOptions,
    Version,
    Will,
)
from tests.attack.arena import Arena
from tests.attack.case import case
from tests.attack.http import frame

P = TypeVar("P")
PATIENCE_S = 60.0
GROWTH_MIB_MAX = 150


class MqttAttacker:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.came: list[Packet] = []
        self._packets = PacketReader(1 << 28)

    @classmethod
    async def stranger(cls, arena: Arena) -> Self:
        return cls(*await asyncio.open_connection(*arena.mqtt_endpoint()))

    @classmethod
    async def at(cls, arena: Arena, client_id: str = "eve", **fields: Any) -> Self:
        made = await cls.stranger(arena)
        fields = {"clean_start": True, "keep_alive_s": 0, **fields}
        made.send(ConnectPacket(Version.V5, client_id, **fields))
        assert (await made.got(Connack)).code is ReasonCode.SUCCESS
        return made

    def send(self, *packets: Packet) -> None:
        self.writer.write(b"".join([encode(one, Version.V5) for one in packets]))

    async def got(self, kind: type[P], what: Callable[[P], bool] = lambda _: True) -> P:
        """Read until such a packet comes."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                data = await self.reader.read(1 << 16)
                assert data, f"closed; it got {self.came[-3:]}"
                for one in self._packets.feed(data):
                    self.came = [*self.came[-99:], one]
                found = [one for one in self.came if isinstance(one, kind) and what(one)]
                if found:
                    return found[0]

    async def ended(self) -> ReasonCode | None:
        """Read until the broker closes; what its DISCONNECT or CONNACK says."""
        code = None
        with suppress(OSError):
            async with asyncio.timeout(PATIENCE_S):
                while data := await self.reader.read(1 << 16):
                    for one in self._packets.feed(data):
                        if isinstance(one, DisconnectPacket | Connack):
                            code = one.code
        return code

    def leave(self) -> None:
        self.writer.transport.abort()


def bare(first: int, size: int, body: bytes) -> bytes:
    head = bytearray((first,))
    put_varint(head, size)
    return bytes(head) + body


@case(
    "MQTT: strangers that say nothing, half a CONNECT, 256 MB before CONNECT, other packets",
    in_test=True,
)
async def mqtt_strangers(arena: Arena) -> str:
    before = arena.memory()
    halves = (b"", b"\x10", b"\x10\xff\xff\xff\x7f" + b"x" * 100_000, b"\x10\x20\x00\x04MQTT\x05")
    slow = []
    for at in range(arena.count(40, 800)):
        one = await MqttAttacker.stranger(arena)
        one.writer.write(halves[at % len(halves)])
        slow.append(one)
    for data in (b"\xc0\x00" * 10_000, b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 1000, b"\xff" * 1000):
        one = await MqttAttacker.stranger(arena)
        one.writer.write(data)
        await one.ended()
    codes = [await one.ended() for one in slow if one.writer]
    grown_mib = (arena.memory() - before) >> 20
    assert grown_mib < GROWTH_MIB_MAX, f"memory grew by {grown_mib} MiB"
    return f"{len(codes)} strangers closed, memory grew by {grown_mib} MiB"


@case("MQTT: a read full of the smallest packets, again and again", in_test=True)
async def mqtt_small_packets(arena: Arena) -> str:
    eve = await MqttAttacker.at(arena)
    count = 0
    for packet in (b"\xc0\x00", b"\x30\x03\x00\x01a", b"\x40\x02\x00\x01", b"\x62\x02\x00\x01"):
        for _ in range(arena.count(1, 10)):
            eve.writer.write(packet * 100_000)
            reading = asyncio.create_task(eve.reader.read(1 << 20))
            await eve.writer.drain()
            await asyncio.wait([reading], timeout=1)
            reading.cancel()
            count += 100_000
    eve.leave()
    return f"{count:,} packets"


@case(
    "MQTT: SUBSCRIBE with 1,000 filters, 500,000 filters, conditions of 4 KiB, wildcards of 65,535 bytes"
)
async def mqtt_subscriptions(arena: Arena) -> str:
    deep = "+/" * 32_767 + "+"
    options = SubscriptionOptions(1)
    packets = {
        "many": SubscribePacket(1, tuple([(f"a/{n}", options) for n in range(1000)])),
        "wildcards": SubscribePacket(1, tuple([(deep, options)] * 60)),
        "conditions": SubscribePacket(
            1, tuple([(f"b/{n}?" + " OR ".join([f"x = {n}{i}" for i in range(250)]), options) for n in range(arena.count(30, 200))])
        ),
        "brackets": SubscribePacket(1, tuple([(f"c/{n}?" + "(" * 4000, options) for n in range(arena.count(30, 200))])),
        "explosion": SubscribePacket(
            1, tuple([(f"d/{n}?" + " AND ".join([f"(a{i} = 1 OR b{i} = 2)" for i in range(40)]), options)
                      for n in range(arena.count(30, 300))])
        ),
    }  # fmt: skip
    granted = {}
    for name, packet in packets.items():
        eve = await MqttAttacker.at(arena, f"eve-{name}", properties={"session_expiry": 1})
        eve.send(packet)
        answer = await eve.got(SubscribeAck)
        granted[name] = sum(not code.is_error for code in answer.codes)
        eve.send(DisconnectPacket())
        await eve.ended()
    eve = await MqttAttacker.at(arena, "eve")
    body = b"\x00\x01\x00" + b"\x00\x01a\x00" * 500_000
    eve.writer.write(bare(0x82, len(body), body))
    assert await eve.ended() is ReasonCode.QUOTA_EXCEEDED
    return f"granted {granted}"


@case(
    "MQTT: 500,000 user properties, topics of 65,535 levels, aliases over the limit, headers over 16 KiB"
)
async def mqtt_properties(arena: Arena) -> str:
    codes = {}
    users = b"\x26\x00\x01a\x00\x01b" * 500_000
    properties = bytearray()
    put_varint(properties, len(users))
    body = b"\x00\x01t" + bytes(properties) + users
    for name, data in {
        "user properties": bare(0x30, len(body), body),
        "levels": encode(PublishPacket("/" * 65_535, b""), Version.V5),
        "alias": encode(PublishPacket("t", b"", properties={"topic_alias": 101}), Version.V5),
        "alias unset": encode(PublishPacket("", b"", properties={"topic_alias": 7}), Version.V5),
        "too large": bare(0x30, 100 << 20, b"x" * 1000),
    }.items():
        eve = await MqttAttacker.at(arena)
        eve.writer.write(data)
        codes[name] = await eve.ended()
    assert None not in codes.values(), codes
    eve = await MqttAttacker.at(arena)
    pairs = tuple([("a" * 20, "b" * 60)] * 900)
    eve.send(PublishPacket("t", b"", 1, packet_id=1, properties={"user": pairs}))
    assert (await eve.got(Ack)).code is ReasonCode.QUOTA_EXCEEDED
    eve.leave()
    return ", ".join(f"{name}: {code.name}" for name, code in codes.items() if code is not None)


@case("MQTT: 100,000 retained messages, and clients that subscribe to # and do not read")
async def mqtt_retained(arena: Arena) -> str:
    eve, count = await MqttAttacker.at(arena), arena.count(2_000, 100_000)
    for begin in range(0, count, 500):
        eve.send(*[
            PublishPacket(f"r/{n}", b"x" * 1000, 1, True, packet_id=1 + n % 500)
            for n in range(begin, begin + 500)
        ])  # fmt: skip
        await eve.got(Ack, lambda ack: ack.packet_id == 500)
        eve.came.clear()
    before = arena.memory()
    readers = [await MqttAttacker.at(arena, f"r{n}") for n in range(arena.count(3, 20))]
    for one in readers:
        one.send(SubscribePacket(1, (("#", SubscriptionOptions(0)),)))
    await asyncio.sleep(arena.count(2, 10))
    grown_mib = (arena.memory() - before) >> 20
    for one in readers:
        one.leave()
    eve.leave()
    assert grown_mib < GROWTH_MIB_MAX, f"memory grew by {grown_mib} MiB"
    return f"{count:,} retained, memory grew by {grown_mib} MiB"


@case("MQTT: sessions and wills of clients that connect and are cut, 1,000 at once")
async def mqtt_wills(arena: Arena) -> str:
    count = arena.count(100, 1000)
    for kept in (0, 1):
        made = [
            await MqttAttacker.at(
                arena, f"w{number}", will=Will("w", b"x" * 1000, 1, True),
                properties={"session_expiry": kept},
            )
            for number in range(count)
        ]  # fmt: skip
        for one in made:
            one.leave()
    async with asyncio.timeout(PATIENCE_S):
        while await arena.metric("palio_mqtt_sessions"):
            await asyncio.sleep(0.1)
    return f"{2 * count} wills published, no session is left"


@case(
    "MQTT: QoS 2 that is never completed, in both directions; more than the receive maximum",
    in_test=True,
)
async def mqtt_unfinished(arena: Arena) -> str:
    eve = await MqttAttacker.at(arena, properties={"session_expiry": 1})
    eve.send(SubscribePacket(1, (("q/#", SubscriptionOptions(2)),)))
    await eve.got(SubscribeAck)
    before = arena.memory()
    bob = await MqttAttacker.at(arena, "bob")
    rounds = arena.count(3, 100)
    for _ in range(rounds):  # eve answers nothing
        for qos in (0, 1):
            bob.send(*[PublishPacket("q/1", b"x" * 1000, qos, packet_id=qos and 1 + n) for n in range(500)])  # fmt: skip
        await bob.got(Ack, lambda ack: ack.packet_id == 500)
        bob.came.clear()
    bob.send(*[PublishPacket("o", b"", 2, packet_id=1 + n) for n in range(1001)])
    assert await bob.ended() is ReasonCode.RECEIVE_MAXIMUM_EXCEEDED
    grown_mib = (arena.memory() - before) >> 20
    eve.send(*[Ack(PacketType.PUBREC, n) for n in range(1, 60_000)])
    eve.send(DisconnectPacket())
    await eve.ended()
    assert grown_mib < GROWTH_MIB_MAX, f"memory grew by {grown_mib} MiB"
    return f"{1000 * rounds:,} messages to who acknowledges none, memory grew by {grown_mib} MiB"


_UPGRADE = (
    b"GET /mqtt HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Protocol: mqtt\r\n%s\r\n"
)


@case(
    "MQTT over WebSocket: half requests, packets in frames of a byte, fragments without end, Pings, huge frames",
    in_test=True,
)
async def mqtt_websockets(arena: Arena) -> str:
    before, connect = arena.memory(), encode(ConnectPacket(Version.V5, "ws", True, 0), Version.V5)
    small = b"".join(frame(2, b"\xc0\x00"[n : n + 1]) for n in (0, 1))
    head, many = _UPGRADE % b"", arena.count(5_000, 200_000)
    opened = head + frame(2, connect)
    attempts = {
        "half": head[:-2], "long": _UPGRADE % (b"X: " + b"y" * 100_000 + b"\r\n"), "no": b"\0" * 100_000,
        "deflate": _UPGRADE % b"Sec-WebSocket-Extensions: permessage-deflate\r\n" + b"\xc1\x80abcd" * 10_000,
        "frame first": head + frame(2, b"x" * 200_000), "text": opened + frame(1, b"x"),
        "small": opened + small * many, "empty": opened + frame(2, b"") * many,
        "fragments": opened + frame(2, b"", is_final=False) + frame(0, b"", is_final=False) * many,
        "pings": opened + frame(9, b"p" * 125) * many, "pongs": opened + frame(10, b"") * many,
        "huge": opened + b"\x82\xff" + (1 << 62).to_bytes(8) + b"abcd" + b"x" * 100_000,
        "bare": opened + b"\x82\x02\xc0\x00" * 1000, "closes": opened + frame(8, b"\x03\xe8") * many,
        "packets": opened + frame(2, b"\xc0\x00" * many) * 3,
    }  # fmt: skip

    async def is_ended(data: bytes) -> bool:
        reader, writer = await asyncio.open_connection(*arena.mqtt_websocket, limit=1 << 20)
        writer.write(data)  # who reads no answer is not read either
        try:
            async with asyncio.timeout(arena.count(5, 20)):
                while await reader.read(1 << 16):
                    pass
        except TimeoutError:
            return False
        except OSError:
            pass
        finally:
            writer.transport.abort()
        return True

    found = await asyncio.gather(*map(is_ended, attempts.values()))
    ended = [name for name, was in zip(attempts, found, strict=True) if was]
    assert {"no", "text", "huge", "bare", "closes"} <= {*ended}, ended
    slow = [
        await asyncio.open_connection(*arena.mqtt_websocket) for _ in range(arena.count(20, 500))
    ]
    for _, writer in slow:
        writer.write(head[:50])
    reader, writer = await asyncio.open_connection(*arena.mqtt_websocket)
    writer.write(opened)
    async with asyncio.timeout(PATIENCE_S):
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(3), "the frame of CONNACK"
    for _, one in [(reader, writer), *slow]:
        one.transport.abort()
    grown_mib = (arena.memory() - before) >> 20
    assert grown_mib < GROWTH_MIB_MAX, f"memory grew by {grown_mib} MiB"
    return f"{len(ended)} of {len(attempts)} were closed, memory grew by {grown_mib} MiB"
