"""Requests for subscriptions that meet messages of the same turn."""

from __future__ import annotations

from palio.protocol.durability.bounds import Bounds
from palio.protocol.wire.control import Refused, Subscribed, SubscriptionEnded
from tests.protocol.exchange import Client, Exchange


def send(exchange: Exchange, client: Client) -> None:
    """What it has to say arrives, and the broker's turn is not over."""
    data = b"".join(client.session.take())
    exchange.brokers[client.broker].receive(client.link, data, exchange.now_us)


def test_a_durable_subscription_that_ends_while_somebody_asks_for_it() -> None:
    """The messages before the request end it. Whoever is refused has no subscription."""
    exchange = Exchange()
    broker = exchange.add("a", bounds=Bounds(queue=2))
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    ann.acks = False
    ann.session.subscriptions.subscribe("x > 0", durable="d", full="end")
    exchange.run()
    for x in range(1, 6):
        bob.publish({"x": x})
    send(exchange, bob)
    bob.session.subscriptions.subscribe("x > 0", durable="d", full="end")
    send(exchange, bob)
    exchange.run()
    (refused,) = bob.heard(Refused)
    assert "more messages waited" in refused.reason  # type: ignore[union-attr]
    assert not list(broker.parts.subscriptions)
    exchange.advance(1)
    id = bob.session.subscriptions.subscribe("x > 0", durable="d", full="end")
    exchange.run()
    assert len(bob.heard(Subscribed)) == 1
    bob.publish({"x": 7})
    bob.publish({"x": 8}, durable=False)
    exchange.run()
    assert bob.got(id) == [{"x": 7}, {"x": 8}] or bob.got(id) == [{"x": 8}, {"x": 7}]


def test_a_durable_subscription_is_taken_over_and_left() -> None:
    """The new consumer gets durable messages and others, and leaves nothing behind."""
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob, cy = (exchange.client("a", name) for name in ("ann", "bob", "cy"))
    ann.session.subscriptions.subscribe("x > 5", durable="d")
    exchange.run()
    id = bob.session.subscriptions.subscribe("x > 5", durable="d")
    exchange.run()
    assert len(ann.heard(SubscriptionEnded)) == 1
    cy.publish({"x": 7}, durable=False)
    cy.publish({"x": 8})
    exchange.run()
    assert sorted(got["x"] for got in bob.got(id)) == [7, 8]  # type: ignore[type-var]
    broker.close(bob.link, exchange.now_us)
    exchange.run()
    assert not list(broker.parts.subscriptions)


def test_a_successor_of_a_subscription_whose_end_is_not_committed_has_other_consumers() -> None:
    """The members of the old one do not get messages of the new one, nor the other way round."""
    exchange = Exchange()
    exchange.add("a", bounds=Bounds(queue=2))
    ann, bob, cy = (exchange.client("a", name) for name in ("ann", "bob", "cy"))
    ann.acks = False
    ann.session.subscriptions.subscribe("x > 0", durable="d", group="g", full="end")
    exchange.run()
    for x in range(1, 6):
        cy.publish({"x": x})
    send(exchange, cy)
    id = bob.session.subscriptions.subscribe("y > 0", durable="d", group="g", full="end")
    send(exchange, bob)
    exchange.run()
    assert len(ann.heard(SubscriptionEnded)) == 1
    cy.publish({"x": 5}, durable=False)
    cy.publish({"y": 6}, durable=False)
    exchange.run()
    assert bob.got(id) == [{"y": 6}]
