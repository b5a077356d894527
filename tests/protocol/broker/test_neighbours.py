"""Messages that wait for a neighbour without room, bounded in bytes."""

from __future__ import annotations

from palio.protocol.broker.settings import WaitingBounds
from tests.protocol.exchange import network

BODY = bytes(100_000)


def test_live_messages_that_wait_for_a_neighbour_drop_the_oldest() -> None:
    exchange = network([("a", "b")], waiting=WaitingBounds(queue_bytes=350_000))
    ann, bob = exchange.client("b", "ann"), exchange.client("a", "bob")
    id = ann.session.subscriptions.subscribe("x >= 0")
    exchange.run()
    origin = exchange.brokers["a"]
    link = origin.parts.neighbours.links._links["b"]
    origin.congest(link.number, True, exchange.now_us)
    for x in range(10):
        bob.publish({"x": x}, BODY, durable=False)
        exchange.run()
        assert origin.snapshot().memory.neighbour_waiting_bytes <= 350_000
    origin.congest(link.number, False, exchange.now_us)
    exchange.run()
    assert ann.got(id) == [{"x": x} for x in (7, 8, 9)]
    snapshot = origin.snapshot()
    assert (snapshot.live.dropped, snapshot.memory.neighbour_waiting_bytes) == (7, 0)


def test_carried_messages_that_do_not_fit_are_refused_and_resent() -> None:
    exchange = network([("a", "b")], waiting=WaitingBounds(queue_bytes=350_000))
    ann, bob = exchange.client("b", "ann"), exchange.client("a", "bob")
    id = ann.session.subscriptions.subscribe("x >= 0", durable="d")
    exchange.run()
    origin = exchange.brokers["a"]
    link = origin.parts.neighbours.links._links["b"]
    bob.publish({"x": 0}, BODY)
    exchange.run()  # its acknowledgement tells how many may be under way
    origin.congest(link.number, True, exchange.now_us)
    for x in range(1, 10):
        bob.publish({"x": x}, BODY)
        exchange.run()
        assert origin.snapshot().memory.neighbour_waiting_bytes <= 2 * 350_000
    assert origin.snapshot().live.carry_refused > 0
    origin.congest(link.number, False, exchange.now_us)
    exchange.advance(10_000_000)
    assert ann.got(id) == [{"x": x} for x in range(10)]
    assert origin.snapshot().memory.neighbour_waiting_bytes == 0
