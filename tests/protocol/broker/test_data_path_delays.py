"""Delayed messages over the whole path: nobody gets them before their time, and all who then want them do."""

from __future__ import annotations

from palio.protocol.durability.bounds import Bounds, DelayBounds
from palio.protocol.wire.control import Rejected
from palio.protocol.wire.message_headers import NOT_BEFORE_US, packed
from tests.protocol.exchange import Client, Exchange, network

SECOND = 1_000_000


def publish_later(client: Client, x: int, delay_us: int, *, durable: bool = True) -> int:
    headers = packed({NOT_BEFORE_US: client.exchange.now_us + delay_us}, 100)
    text = b'{"x": %d}' % x
    now_us = client.exchange.now_us
    return client.session.publisher.publish(text, b"", now_us, durable, headers)


def test_live_and_durable_here_and_elsewhere() -> None:
    exchange = network([("a", "b")])
    ann, bob = exchange.client("a", "ann"), exchange.client("b", "bob")
    ids = [
        (client, client.session.subscriptions.subscribe("x > 0", durable=name))
        for client, name in ((ann, ""), (ann, "q"), (bob, ""), (bob, "q"))
    ]
    exchange.run()
    number = publish_later(ann, 1, 5 * SECOND)
    ann.publish({"x": 2})
    exchange.run()
    assert ann.session.outbox.unstored == 0, "both are stored"
    assert [client.got(id) for client, id in ids] == [[{"x": 2}]] * 4
    exchange.advance(4 * SECOND)
    assert all(len(client.got(id)) == 1 for client, id in ids)
    late = bob.session.subscriptions.subscribe("x = 1")
    exchange.advance(2 * SECOND)
    assert [client.got(id) for client, id in [*ids, (bob, late)]] == [[{"x": 2}, {"x": 1}]] * 4 + [
        [{"x": 1}]
    ]
    last = bob.arrivals[-1].header
    assert (last.publisher, last.number) == ("anybody/ann", number)
    republished = exchange.brokers["a"].snapshot().queues
    assert (republished.delayed, republished.republished.delayed) == (0, 1)


def test_it_survives_a_crash_of_its_broker() -> None:
    exchange = Exchange()
    exchange.add("a")
    ann = exchange.client("a", "ann")
    publish_later(ann, 1, 5 * SECOND)
    exchange.run()
    exchange.crash("a")
    exchange.start("a")
    bob = exchange.client("a", "bob")
    id = bob.session.subscriptions.subscribe("x > 0")
    exchange.run()
    exchange.advance(4 * SECOND)
    assert bob.got(id) == []
    exchange.advance(2 * SECOND)
    assert bob.got(id) == [{"x": 1}]


def test_what_is_rejected() -> None:
    exchange = Exchange()
    exchange.add("a", bounds=Bounds(delays=DelayBounds(10 * SECOND, 1)))
    ann = exchange.client("a", "ann")
    publish_later(ann, 1, SECOND, durable=False)
    publish_later(ann, 2, 11 * SECOND)
    exchange.run()
    publish_later(ann, 3, 5 * SECOND)
    exchange.run()
    publish_later(ann, 4, 5 * SECOND)
    exchange.run()
    reasons = [one.reason for one in ann.heard(Rejected) if isinstance(one, Rejected)]
    assert len(reasons) == 3
    assert "durable=True" in reasons[0]
    assert "[limits] delay" in reasons[1]
    assert "[limits] delayed" in reasons[2]
    assert ann.session.outbox.unstored == 0
    exchange.advance(SECOND)
    publish_later(ann, 5, -SECOND)
    exchange.run()
    assert len(ann.heard(Rejected)) == 3, "its time has come: it does not wait"
