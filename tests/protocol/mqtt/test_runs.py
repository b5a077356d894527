"""Runs of packets do what packets do one by one: two connections get the same bytes, one of which takes no runs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random
from unittest.mock import patch

import msgspec
import pytest

from palio.model.language import parse
from palio.model.topics import topic_attributes
from palio.protocol.broker.access import EVERYTHING, Access, Identity
from palio.protocol.durability.bounds import LastValueBounds
from palio.protocol.durability.last_values import LastValues
from palio.protocol.mqtt import connection, runs
from palio.protocol.mqtt.connection import MqttConnection
from palio.protocol.mqtt.packets.encoding import encode
from palio.protocol.mqtt.packets.properties import PacketType
from palio.protocol.mqtt.packets.reader import PacketReader
from palio.protocol.mqtt.packets.values import (
    Ack,
    ConnectPacket,
    Packet,
    PublishPacket,
    SubscribePacket,
    SubscriptionOptions,
    Version,
)
from palio.protocol.mqtt.retained import RetainedMessages
from palio.protocol.mqtt.run_layout import RUN_MAX
from palio.protocol.mqtt.runs import DeliveryRun, PubackRun, PublishRun, RunScan, delivery_runs
from palio.protocol.mqtt.session_records import SessionRecords
from palio.protocol.mqtt.sessions import Sessions
from palio.protocol.mqtt.settings import MqttSettings, PayloadContent
from palio.protocol.mqtt.states import READY
from palio.protocol.wire.control import (
    VERSION,
    ControlMessage,
    Published,
    Rejected,
    Subscribed,
    SubscribeRequest,
    Welcome,
)
from palio.protocol.wire.frames import FrameReader, Limits, control_frame, message_frame
from palio.protocol.wire.headers import DeliverHeader
from palio.protocol.wire.message_headers import NO_HEADERS, packed
from tests.protocol.durability.memory_store import MemoryStore
from tests.protocol.mqtt.mqtt_exchange import one_broker
from tests.seeds import seeds

_NOW_US = 1_700_000_000_000_000
_TOPICS = ("t", "a/b", "/", "a//b/", "$x/1", "a/b/c/d/e/f/g/h/i/j/k/l", "x" * 200)
_ODD_TOPICS = ("", "a+b", "#", 'a"b', "a\\b", "caffè", "a\0", "a\tb", "/".join("a" * 40))


class Pair:
    """Two connections that get the same; the second one looks at each packet and each frame."""

    def __init__(self, random: Random, version: Version, settings: MqttSettings) -> None:
        self.random, self.version, self.settings = random, version, settings
        self.runs = 0
        self.both = [self._connection(settings), self._connection(settings)]
        self._reader, self._core = PacketReader(1 << 28, version), FrameReader()
        self.sent: list[Packet] = []
        """To the client."""
        self.told: list[object] = []
        """To the core."""
        self.numbers = _NOW_US
        self.publisher = "pub"
        found = self.both[0].delivering.deliver_run

        def deliver_run(run: DeliveryRun) -> int:
            self.runs += 1
            return found(run)

        self.both[0].delivering.deliver_run = deliver_run  # type: ignore[method-assign]

    def _connection(self, settings: MqttSettings) -> MqttConnection:
        store = MemoryStore()
        sessions = Sessions(9, SessionRecords(store), _NOW_US, lambda: "new")
        retained = RetainedMessages(LastValues(store, LastValueBounds()), Limits())
        return MqttConnection(settings, sessions, retained, Limits(attributes=2000), _NOW_US)

    def connect(self, **properties: object) -> None:
        connect = ConnectPacket(self.version, "c", True, 60, properties)
        self.receive(encode(connect, self.version))
        self.both[1]._packets.runs = None
        self.hear(Welcome(VERSION, "a", "ann"))

    # ---- the same to both

    def receive(self, data: bytes) -> None:
        self._do(lambda one: one.receive(data, _NOW_US))

    def deliver(self, data: bytes) -> None:
        self._do(lambda one: one.deliver(data, _NOW_US))

    def hear(self, *messages: ControlMessage) -> None:
        self.deliver(b"".join(map(control_frame, messages)))

    def _do(self, act: Callable[[MqttConnection], None]) -> None:
        fast, slow = self.both
        act(fast)
        with patch.object(connection, "delivery_runs", lambda frames, _: [frames]):
            act(slow)
        told, sent = fast.core.take(), b"".join(fast.client.take())
        assert (told, sent) == (slow.core.take(), b"".join(slow.client.take()))
        assert (fast.state, fast.close_reason) == (slow.state, slow.close_reason)
        assert fast.publishing._counts == slow.publishing._counts
        self.told += self._core.feed(told)
        self.sent += self._reader.feed(sent)

    # ---- what comes

    def subscribe(self, *asked: tuple[str, SubscriptionOptions], **properties: object) -> list[int]:
        self.receive(encode(SubscribePacket(1, asked, properties), self.version))
        made = [one.id for one in self.told if isinstance(one, SubscribeRequest)]
        self.told.clear()
        self.hear(*map(Subscribed, made))
        self.sent.clear()
        return made

    def packets(self) -> bytes:
        """Many that are alike, and a few that are not."""
        random, found = self.random, list[bytes]()
        for _ in range(random.randrange(1, 4)):
            qos, first = random.randrange(2), random.choice((1, 40, random.randrange(1, 60_000)))
            topics, stays = random.sample(_TOPICS, 3), random.choice((99, 99, 30))
            for i in range(random.randrange(60)):
                payload = bytes(random.randrange(40))
                one = PublishPacket(
                    random.choice(topics), payload, qos, packet_id=qos * (first + i % stays)
                )
                found.append(encode(one, self.version))
            found += [self.odd() for _ in range(random.randrange(3))]
        return b"".join(found)

    def odd(self) -> bytes:
        random = self.random
        qos = random.randrange(3)
        properties = {"user": (("k", "v"),)} if self.version is Version.V5 else {}
        one = PublishPacket(
            random.choice((*_TOPICS, *_TOPICS, _ODD_TOPICS[5])),
            random.choice((b"", b"x", b'{"a":1}', b" {}", bytes(300))),
            qos, random.random() < 0.3, False, qos and random.randrange(1, 9),
            random.choice(({}, properties)),
        )  # fmt: skip
        return encode(one, self.version)

    def frames(self, ids: list[int]) -> bytes:
        """Messages for these subscriptions."""
        random, found = self.random, list[bytes]()
        for _ in range(random.randrange(1, 5)):
            topics, headers = random.sample(_TOPICS, 2), random.choice((NO_HEADERS, _QOS_1))
            self.publisher = random.choice(("pub", self.both[0].delivering.publisher))
            some = random.sample(ids, min(3, len(ids)))
            for _ in range(random.randrange(60)):
                self.numbers += 1
                text = text_of(random.choice(topics))
                found.append(self._frame((random.choice(some),), text, headers))
            for _ in range(random.randrange(3)):
                self.numbers += random.randrange(2)  # else for another subscription, too
                text = random.choice((text_of(random.choice(_TOPICS)), *_ODD_TEXTS))
                to = tuple(random.sample([*ids, 77], random.choice((1, 1, 2))))
                if random.random() < 0.1:
                    found.append(control_frame(Subscribed(99)))
                found.append(self._frame(to, text, random.choice(_ODD_HEADERS)))
        return b"".join(found)

    def _frame(self, ids: tuple[int, ...], text: bytes, headers: bytes) -> bytes:
        body = self.random.choice((b"", b"body", bytes(500)))
        header = DeliverHeader(ids, 0, self.publisher, self.numbers, 5)
        return message_frame(header, text, body, headers)

    # ---- what follows

    def answer(self) -> None:
        """The client acknowledges some of what it has got, and the core stores some of what it has been sent."""
        random = self.random
        ids = [
            one.packet_id for one in self.sent if isinstance(one, PublishPacket) and one.qos == 1
        ]
        self.sent.clear()
        if random.random() < 0.3:
            random.shuffle(ids)
        acks = [
            encode(Ack(PacketType.PUBACK, id), self.version) for id in ids if random.random() < 0.9
        ]
        self.receive(b"".join([*acks, b"\x40\x02\0\x05"]))
        last, stored = self.both[0].core.number, _stored(self.both[0])
        if random.random() < 0.3 and stored:
            self.hear(Rejected(random.choice(stored), "no"))
        if last and random.random() < 0.7:
            self.hear(Published(last - random.randrange(20)))


_QOS_1 = packed({"mqtt.qos": 1}, 99)
_ODD_HEADERS = (
    NO_HEADERS, _QOS_1, packed({"mqtt.qos": 2}, 99), packed({"mqtt.retain": True}, 99), b"\xff\xff", _QOS_1[:-1],
)  # fmt: skip


def text_of(topic: str) -> bytes:
    return msgspec.json.encode(topic_attributes(topic))


_ODD_TEXTS = (
    b'{"topic":"a","topic_levels":1,"topic_1":"a","x":1}', b'{"x":1,"topic":"a"}', b'{"topic":"a"}',
    b'{"topic":"a","topic_levels":2,"topic_1":"a"}', b'{"topic":"a","topic_levels":1,"topic_1":"b"}',
    b'{"topic":"a+","topic_levels":1,"topic_1":"a+"}', b'{"topic":"","topic_levels":1,"topic_1":""}',
    b'{"topic":"a/b","topic_levels":2,"topic_1":"a","topic_2":"b" }', b'{"x":1}', b"{}",
    b'{"topic":"a/b","topic_levels":2,"topic_1":"a","topic_3":"b"}', b'{"topic":7}',
    '{"topic":"è","topic_levels":1,"topic_1":"è"}'.encode(), b'{"topic":"\\u0041"}',
    b'{"topic":"a","topic_levels":1,"topic_1":"a","topic":"b"}', b'{"topic":"a","topic_levels":1,"topic_1":"a"',
)  # fmt: skip


def _stored(connection: MqttConnection) -> list[int]:
    session = connection._session
    assert session is not None
    found = []
    for some in session.unstored:
        members = some.members() if hasattr(some, "members") else [some]
        found += [one.number for one in members]
    return found


@seeds(12, 300)
def test_a_run_is_what_its_packets_are(seed: int) -> None:
    random = Random(seed)
    version = random.choice(list(Version))
    settings = MqttSettings(
        payload=random.choice(list(PayloadContent)), receive_maximum=random.choice((200, 65_535)),
        topic_alias_maximum=random.choice((0, 10)), credit=random.choice((10, 1000)), waiting_bytes_max=20_000,
    )  # fmt: skip
    pair = Pair(random, version, settings)
    is_small = version is Version.V5 and random.random() < 0.5
    properties = {"receive_maximum": 30} if is_small else {}
    if is_small and random.random() < 0.5:
        properties["maximum_packet_size"] = 300
    pair.connect(**properties)
    plain = [SubscriptionOptions(0), SubscriptionOptions(1), SubscriptionOptions(2)]
    if version is Version.V5 and random.random() < 0.5:
        plain.append(SubscriptionOptions(1, no_local=True))
    ids = pair.subscribe(*[(f"s{i}", options) for i, options in enumerate(plain)])
    if version is Version.V5 and random.random() < 0.3:
        ids += pair.subscribe(("i", SubscriptionOptions(1)), subscription_identifier=(7,))
    for _ in range(8):
        data = pair.packets()
        cuts = sorted(random.sample(range(1, len(data) + 1), min(2, len(data))))
        for begin, end in pairwise([0, *cuts, len(data)]):
            pair.receive(data[begin:end])
        pair.deliver(pair.frames(random.sample(ids, random.randrange(1, len(ids) + 1))))
        if pair.both[0].state is not READY:
            break  # a client over its receive maximum
        pair.answer()
    if pair.both[0].state is READY:
        pair.receive(pair.packets() + bytes([random.randrange(256)]) * 9 + pair.packets())


@pytest.mark.parametrize("version", Version)
@pytest.mark.parametrize("topic", [*_TOPICS, *_ODD_TOPICS])
@pytest.mark.parametrize("qos", [0, 1])
def test_topics(version: Version, topic: str, qos: int) -> None:
    pair = Pair(Random(1), version, MqttSettings())
    pair.connect()
    packets = [PublishPacket(topic, bytes(30), qos, packet_id=qos * i) for i in range(1, 40)]
    pair.receive(b"".join([encode(one, version) for one in packets]))


def test_the_fast_path_is_taken() -> None:
    """By packets and frames for which it is there; else the comparison says nothing."""
    packets = [PublishPacket("a/b", bytes(30), 1, packet_id=i) for i in range(1, 700)]
    data = b"".join([encode(one, Version.V5) for one in packets])
    reader = PacketReader(1 << 20)
    reader.runs = RunScan(MqttSettings(), Limits(), Version.V5)
    found = list(reader.feed(data))
    assert [type(one) for one in found] == [PublishRun, PublishRun]
    assert [len(one) for one in found if isinstance(one, PublishRun)] == [RUN_MAX, 699 - RUN_MAX]
    frames = [
        message_frame(DeliverHeader((3,), 0, "pub", i, 5), text_of("a/b"), b"x", _QOS_1)
        for i in range(40)
    ]
    (run,) = delivery_runs(b"".join(frames), 1000)
    assert isinstance(run, DeliveryRun)
    assert (run.ids, run.qualities, run.rest(39)) == ([3] * 40, [1] * 40, frames[-1])
    (acks,) = reader.feed(runs.encode_pubacks(range(1, 100)))
    assert isinstance(acks, PubackRun)
    assert list(acks.packet_ids) == list(range(1, 100))


def test_a_message_for_two_subscriptions_is_one_packet() -> None:
    """Wherever in the data the two frames are."""
    pair = Pair(Random(1), Version.V311, MqttSettings())
    pair.connect()
    a, b = pair.subscribe(("t", SubscriptionOptions(0)), ("+", SubscriptionOptions(0)))
    for place in range(40):
        numbers = [*range(place + 1), *range(place, 40)]
        frames = [
            message_frame(
                DeliverHeader((b if n == m else a,), 0, "pub", n, 5), text_of("t"), b"x" * 50
            )
            for m, n in zip([-1, *numbers], numbers, strict=False)
        ]
        pair.deliver(b"".join(frames))
        assert len(pair.sent) == 40
        pair.sent.clear()
    assert pair.runs


def test_packet_ids_begin_again_and_those_in_flight_are_left_out() -> None:
    pair = Pair(Random(1), Version.V311, MqttSettings(credit=1 << 20))
    pair.connect()
    (id,) = pair.subscribe(("t", SubscriptionOptions(1)))
    kept: set[int] = set()
    for turn in range(150):
        frames = [
            message_frame(
                DeliverHeader((id,), 0, "pub", turn * 500 + i, 5), text_of("t"), b"x", _QOS_1
            )
            for i in range(500)
        ]
        pair.deliver(b"".join(frames))
        ids = [one.packet_id for one in pair.sent if isinstance(one, PublishPacket)]
        assert len(ids) == 500
        assert kept.isdisjoint(ids)
        pair.sent.clear()
        kept |= {ids[-1]} if turn % 40 == 0 else set()
        pair.receive(runs.encode_pubacks([one for one in ids if one not in kept]))
    assert len(pair.both[0].delivering.session.in_flight) == len(kept)


def test_messages_of_a_run_that_are_refused() -> None:
    """By a grant: each has its own answer, and the others theirs."""
    identity = Identity("anybody", EVERYTHING, parse("topic = 'a'"))
    exchange = one_broker(access=Access(anonymous=identity))
    client = exchange.mqtt()
    packets = [
        PublishPacket("a" if i % 3 else "b", bytes(30), 1, packet_id=i) for i in range(1, 100)
    ]
    client.send(*packets)
    acks = {one.packet_id: one.code for one in client.acks(PacketType.PUBACK)}
    assert {id for id, code in acks.items() if code.is_error} == {*range(3, 100, 3)}
    assert len(acks) == 99


def test_runs_from_end_to_end() -> None:
    exchange = one_broker()
    reader, writer = (
        exchange.mqtt(client_id="r"),
        exchange.mqtt(client_id="w", version=Version.V311),
    )
    reader.subscribe("s/+", qos=1)
    packets = [PublishPacket(f"s/{i}", b"%d" % i * 9, 1, packet_id=i) for i in range(1, 600)]
    writer.send(*packets)
    got = reader.all(PublishPacket)
    assert [(one.topic, one.payload) for one in got] == [
        (one.topic, one.payload) for one in packets
    ]
    assert {one.qos for one in got} == {1}
    assert len(writer.acks(PacketType.PUBACK)) == 599
    assert not reader.mqtt.delivering.session.in_flight
    assert not writer.mqtt.delivering.session.unstored
