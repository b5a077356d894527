"""Random MQTT packets of clients: most are right, many almost, and some are bytes."""

from __future__ import annotations

from random import Random
from typing import Any

from palio.protocol.mqtt.packets.codes import ReasonCode
from palio.protocol.mqtt.packets.encoding import encode
from palio.protocol.mqtt.packets.properties import PacketType
from palio.protocol.mqtt.packets.values import (
    Ack,
    Auth,
    ConnectPacket,
    DisconnectPacket,
    Packet,
    PingRequest,
    PublishPacket,
    SubscribePacket,
    SubscriptionOptions,
    UnsubscribePacket,
    Version,
    Will,
)
from tests.protocol.wire.mutation import mutated

TOPICS = ["a", "a/b", "a/b/c", "/", "$SYS/x", "é/ü", "a//b", "x" * 300, "+", "#", "", "a/#", "a\0b"]
FILTERS = [
    "a", "a/+", "#", "+/+", "a/#", "$SYS/#", "$share/g/a/#", "$share/h/+/b", "$share//a", "$share/g", "a/b?x > 1",
    "#?name = 'x' AND", "a?temp IN (1, 2)", "+/a+/b", "a/#/b", "", "?", "a/" * 40, "a?" + "(" * 50,
]  # fmt: skip
TEXTS = ["", "x", "text/plain", "application/json", "é", "x" * 500, "a/b", "$where", "1"]
PAYLOADS = [
    b"",
    b"x",
    b'{"x": 1, "temp": 2.5, "l": [1, 2]}',
    b"{",
    b"\xff" * 50,
    b"[" * 200,
    b"x" * 3000,
]
ACKS = (PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBREL, PacketType.PUBCOMP)
CODES = [
    ReasonCode.SUCCESS,
    ReasonCode.SUCCESS,
    ReasonCode.UNSPECIFIED,
    ReasonCode.PACKET_ID_NOT_FOUND,
]
CLIENTS = ["c", "d", "", "e/f", "é"]


class MqttPackets:
    def __init__(self, random: Random) -> None:
        self.random = random

    def version(self) -> Version:
        return Version.V5 if self.random.random() < 0.7 else Version.V311

    def bytes(self, version: Version, *, connect: bool = False) -> bytes:
        """A packet, or what should be none."""
        random = self.random
        data = encode(self.connect(version) if connect else self.packet(version), version)
        roll = random.random()
        if roll < 0.05:
            return mutated(random, [data])
        if roll < 0.08:
            flips = bytearray(data)
            flips[random.randrange(len(flips))] ^= 1 << random.randrange(8)
            return bytes(flips)
        return data

    def packet(self, version: Version) -> Packet:
        random = self.random
        kind = random.choices(range(8), (40, 25, 12, 6, 3, 2, 2, 1))[0]
        if kind == 0:
            return self.publish(version)
        if kind == 1:
            code = random.choice(CODES) if version is Version.V5 else ReasonCode.SUCCESS
            properties = self.some(version, reason_string=self.text, user=self.users)
            return Ack(random.choice(ACKS), self.id(), code, properties)
        if kind == 2:
            return self.subscribe(version)
        if kind == 3:
            filters = tuple(random.choices(FILTERS, k=random.choice((1, 1, 2, 5))))
            return UnsubscribePacket(self.id(), filters, self.some(version, user=self.users))
        if kind == 4:
            return PingRequest()
        if kind == 5:
            code = random.choice((ReasonCode.SUCCESS, ReasonCode.DISCONNECT_WITH_WILL))
            if version is Version.V311:
                return DisconnectPacket()
            return DisconnectPacket(code, self.some(version, session_expiry=self.seconds))
        if kind == 6:
            return self.connect(version)
        return Auth(ReasonCode.SUCCESS, {}) if version is Version.V5 else PingRequest()

    def publish(self, version: Version) -> PublishPacket:
        random = self.random
        qos = random.choice((0, 1, 1, 2, 2))
        properties = self.some(
            version, message_expiry=self.seconds, content_type=self.text, response_topic=self.text,
            correlation_data=lambda: b"\x00\xff" * random.randrange(9), user=self.users,
            topic_alias=lambda: random.choice((0, 1, 2, 9, 65535)), payload_format=self.flag,
            subscription_identifier=lambda: (7,),
        )  # fmt: skip
        return PublishPacket(
            random.choice(TOPICS), random.choice(PAYLOADS), qos, random.random() < 0.2,
            bool(qos) and random.random() < 0.2, self.id() if qos else 0, properties,
        )  # fmt: skip

    def subscribe(self, version: Version) -> SubscribePacket:
        random = self.random
        filters = []
        for text in random.choices(FILTERS, k=random.choice((1, 1, 2, 5))):
            options = SubscriptionOptions(random.randrange(3))
            if version is Version.V5:
                options = SubscriptionOptions(
                    random.randrange(3), random.random() < 0.2, random.random() < 0.3,
                    random.randrange(3),
                )  # fmt: skip
            filters.append((text, options))
        properties = self.some(
            version,
            user=lambda: (("$where", random.choice(("x > 1", "x >", "TRUE", "x = 'y'"))),),
            subscription_identifier=lambda: (random.choice((1, 127, 128, 268_435_455)),),
        )
        return SubscribePacket(self.id(), tuple(filters), properties)

    def connect(self, version: Version) -> ConnectPacket:
        random = self.random
        will = None
        if random.random() < 0.3:
            properties = self.some(version, will_delay=self.seconds, user=self.users)
            will = Will(
                random.choice(TOPICS),
                b"gone",
                random.randrange(3),
                random.random() < 0.3,
                properties,
            )
        properties = self.some(
            version, session_expiry=self.seconds, topic_alias_maximum=lambda: random.randrange(5),
            receive_maximum=lambda: random.choice((1, 2, 100)), user=self.users,
            maximum_packet_size=lambda: random.choice((20, 200, 1 << 20)),
            request_problem_information=self.flag, authentication_method=self.text,
        )  # fmt: skip
        name = random.choice((None, None, None, "", "anybody", "x"))
        password = None if name is None else random.choice((None, b"", b"x", b"\xff"))
        return ConnectPacket(
            version, random.choice(CLIENTS), random.random() < 0.5, random.choice((0, 5, 60)),
            properties, will, name, password,
        )  # fmt: skip

    # ---- parts

    def some(self, version: Version, **properties: Any) -> dict[str, Any]:
        if version is Version.V311 or self.random.random() < 0.5:
            return {}
        chosen = [name for name in properties if self.random.random() < 0.15]
        return {name: properties[name]() for name in chosen}

    def id(self) -> int:
        return self.random.choice((1, 1, 2, 3, 4, 5, 65_535))

    def seconds(self) -> int:
        return self.random.choice((0, 1, 30, 0xFFFF_FFFF))

    def text(self) -> str:
        return self.random.choice(TEXTS)

    def flag(self) -> int:
        return self.random.randrange(2)

    def users(self) -> tuple[tuple[str, str], ...]:
        count = self.random.choice((1, 1, 2, 40))
        return tuple([(self.text(), self.text()) for _ in range(count)])
