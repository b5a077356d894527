"""Message headers pass brokers unchanged; those that cannot be read are refused where they enter."""

from __future__ import annotations

import msgspec
import pytest

from palio.protocol.wire.batch import KERNEL_MIN
from palio.protocol.wire.control import Bye, Published, Rejected
from palio.protocol.wire.frames import message_frame, payload_frame
from palio.protocol.wire.headers import ForwardHeader, PublishHeader
from palio.protocol.wire.message_headers import EXPIRES_US, NO_HEADERS, packed
from tests.protocol.exchange import Client, Exchange, network

HEADERS = packed({"trace": "7f", "n": 3, "b": b"\xff", "pairs": [["a", "b"]]}, 1000)
NOT_MSGPACK = b"\x01\x00\xc1"


def send(exchange: Exchange, client: Client, frames: list[bytes]) -> None:
    broker = exchange.brokers[client.broker]
    broker.receive(client.link, b"".join(frames), exchange.now_us)
    exchange.run()


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("count", [1, 5 * KERNEL_MIN])
def test_headers_arrive_unchanged(durable: bool, count: int) -> None:
    exchange = network([("a", "b"), ("b", "c")])
    ann, bob = exchange.client("a", "ann"), exchange.client("c", "bob")
    live = ann.session.subscriptions.subscribe("x > 0")
    queue = ann.session.subscriptions.subscribe("x > 0", durable="queue")
    exchange.run()
    blocks = [HEADERS if i % 2 else NO_HEADERS for i in range(count)]
    for block in blocks:
        bob.session.publisher.publish(b'{"x": 1}', b"body", exchange.now_us, durable, block)
    exchange.run()
    for id in (live, queue):
        payloads = [one.frame.payload for one in ann.arrivals if one.id == id]
        assert payloads == [block + b"body" for block in blocks]
    assert [dict(a.frame.headers).get("n") for a in ann.arrivals if a.id == live][1:2] == [3][
        : count - 1
    ]


@pytest.mark.parametrize("count", [1, 5 * KERNEL_MIN])
@pytest.mark.parametrize("durable", [False, True])
def test_what_cannot_be_read_is_rejected_and_the_others_arrive(durable: bool, count: int) -> None:
    exchange = Exchange()
    exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    id = ann.session.subscriptions.subscribe("x > 0")
    exchange.run()
    wrong = [
        NOT_MSGPACK,
        b"\xff\xff",
        b"\x00",
        packed({EXPIRES_US: 1}, 99).replace(b"\x01", b"\xc0"),
    ]
    blocks = [NO_HEADERS, HEADERS, *wrong] + [NO_HEADERS] * count
    for block in blocks:
        bob.session.publisher.publish(b'{"x": 1}', b"", exchange.now_us, durable, block)
    exchange.run()
    assert len(ann.got(id)) == 2 + count
    reasons = [one.reason for one in bob.heard(Rejected) if isinstance(one, Rejected)]
    assert len(reasons) == 4
    assert all("headers" in reason for reason in reasons)
    assert exchange.brokers["a"].snapshot().live.rejected == 4
    assert bool(bob.heard(Published)) is durable
    assert bob.session.outbox.unstored == 0


def test_a_body_beyond_the_limit_in_the_room_of_headers_is_rejected() -> None:
    exchange = Exchange()
    exchange.add("a")
    bob = exchange.client("a", "bob")
    large = exchange.brokers["a"].settings.limits.body + 1
    send(exchange, bob, [message_frame(PublishHeader(10**9, 5, False), b"{}", bytes(large))])
    (rejected,) = bob.heard(Rejected)
    assert isinstance(rejected, Rejected)
    assert "a body of" in rejected.reason


def test_a_publisher_of_very_many_is_cut_off() -> None:
    exchange = Exchange()
    exchange.add("a")
    bob = exchange.client("a", "bob")
    frames = [
        message_frame(PublishHeader(10**9 + i, 5, False), b"{}", b"", NOT_MSGPACK)
        for i in range(500)
    ]
    send(exchange, bob, frames)
    assert not bob.heard(Bye)
    assert exchange.brokers["a"].snapshot().live.rejected == 100


def test_hostile_headers_of_a_neighbour_end_nothing() -> None:
    exchange = network([("a", "b")], routing="iPS")
    ann = exchange.client("a", "ann")
    id = ann.session.subscriptions.subscribe("x > 0")
    exchange.run()
    broker = exchange.brokers["a"]
    (link,) = [one.number for one in broker.parts.links if one.number != ann.link]
    route = msgspec.Raw(msgspec.msgpack.encode((3, "b")))
    for i, block in enumerate((NOT_MSGPACK, b"\xff\xff", b"\x00", b""), start=1):
        header = ForwardHeader(route, "anybody/eve", i, 2, False)
        frame = payload_frame(header, b'{"x": 1}', block)
        broker.receive(link, frame, exchange.now_us)
    exchange.run()
    assert len(ann.got(id)) == 4
    assert all(not one.frame.headers for one in ann.arrivals)
