"""Messages that expire: live, waiting for credit, held, and in streams to other brokers."""

from __future__ import annotations

import pytest

from palio.protocol.durability.bounds import Bounds
from palio.protocol.wire.message_headers import EXPIRES_US, packed
from tests.protocol.exchange import Client, Exchange, network

SECOND = 1_000_000


def publish(client: Client, x: int, in_us: int, *, durable: bool) -> None:
    now_us = client.exchange.now_us
    block = packed({EXPIRES_US: now_us + in_us}, 100)
    client.session.publisher.publish(b'{"x": %d}' % x, b"", now_us, durable, block)


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("count", [1, 40])
def test_what_has_expired_when_it_comes_is_delivered_to_nobody(durable: bool, count: int) -> None:
    exchange = network([("a", "b")])
    ann, bob = exchange.client("b", "ann"), exchange.client("a", "bob")
    live = ann.session.subscriptions.subscribe("x > 0")
    queue = ann.session.subscriptions.subscribe("x > 0", durable="queue")
    exchange.run()
    for _ in range(count):
        publish(bob, 1, -1, durable=durable)
        publish(bob, 2, 100 * SECOND, durable=durable)
    exchange.run()
    assert ann.got(live) == ann.got(queue) == [{"x": 2}] * count
    assert bob.session.outbox.unstored == 0
    assert exchange.brokers["a"].snapshot().live.expired == count


def test_what_waits_for_credit_expires() -> None:
    exchange = Exchange()
    exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    id = ann.session.subscriptions.subscribe("x > 0")
    exchange.run()
    broker = exchange.brokers["a"]
    broker.congest(ann.link, True, exchange.now_us)
    for x in (1, 2, 3):
        publish(bob, x, SECOND if x == 2 else 100 * SECOND, durable=False)
    exchange.run()
    assert ann.got(id) == []
    exchange.advance(2 * SECOND)
    broker.congest(ann.link, False, exchange.now_us)
    exchange.run()
    assert ann.got(id) == [{"x": 1}, {"x": 3}]
    assert exchange.brokers["a"].snapshot().live.expired == 1


def test_what_waits_for_an_absent_broker_expires_there() -> None:
    exchange = network([("a", "b")])
    ann = exchange.client("b", "ann")
    queue = ann.session.subscriptions.subscribe("x > 0", durable="queue")
    exchange.run()
    exchange.part("a", "b")
    bob = exchange.client("a", "bob")
    publish(bob, 1, SECOND, durable=True)
    publish(bob, 2, 1000 * SECOND, durable=True)
    exchange.advance(2 * SECOND)
    exchange.join("a", "b")
    exchange.advance(20 * SECOND)
    assert ann.got(queue) == [{"x": 2}]
    assert exchange.brokers["b"].snapshot().durable.expired == 1


def test_what_is_held_expires() -> None:
    exchange = Exchange()
    exchange.add("a", bounds=Bounds(queue=1))
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    queue = ann.session.subscriptions.subscribe("x > 0", durable="queue", credit=1)
    exchange.run()
    ann.acks = False
    for x in (1, 2, 3):
        publish(bob, x, SECOND if x == 2 else 100 * SECOND, durable=True)
    exchange.run()
    exchange.advance(2 * SECOND)
    ann.session.subscriptions.acknowledge(queue, 1)
    ann.acks = True
    exchange.advance(20 * SECOND)
    assert ann.got(queue) == [{"x": 1}, {"x": 3}]
    assert bob.session.outbox.unstored == 0
