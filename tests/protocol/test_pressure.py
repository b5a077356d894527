"""A connection for which too much waits gets no messages until it has room, and then all of them."""

from __future__ import annotations

import pytest

from tests.protocol.exchange import Exchange, network


@pytest.mark.parametrize("durable", ["", "kept"])
def test_a_client_that_is_pressed_waits(durable: str) -> None:
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    id = ann.session.subscribe("x > 0", durable=durable)
    exchange.run()
    broker.press(ann.link, True, exchange.now_us)
    for x in range(1, 6):
        bob.publish({"x": x}, durable=bool(durable))
    exchange.run()
    assert ann.got(id) == []
    later = ann.session.subscribe("x > 5")  # others of its subscriptions come and go meanwhile
    exchange.run()
    broker.press(ann.link, False, exchange.now_us)
    bob.publish({"x": 6}, durable=bool(durable))
    exchange.run()
    assert ann.got(id) == [{"x": x} for x in range(1, 7)]
    assert ann.got(later) == [{"x": 6}]


def test_pressure_keeps_the_credit() -> None:
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    ann.acks = False
    id = ann.session.subscribe("x > 0", durable="kept", credit=3)
    exchange.run()
    for pressed in (True, True, False, False, True, False):
        broker.press(ann.link, pressed, exchange.now_us)
    for x in range(1, 8):
        bob.publish({"x": x})
    exchange.run()
    assert ann.got(id) == [{"x": x} for x in (1, 2, 3)], "three are under way, as before"


def test_a_subscription_that_ends_under_pressure_leaves_nothing() -> None:
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    id = ann.session.subscribe("x > 0", durable="kept")
    exchange.run()
    broker.press(ann.link, True, exchange.now_us)
    ann.session.unsubscribe(id)
    exchange.run()
    broker.press(ann.link, False, exchange.now_us)
    bob.publish({"x": 1})
    exchange.disconnect(ann)
    exchange.run()
    assert ann.got(id) == []


@pytest.mark.parametrize("routing", ["forwarding", "PSF"])
def test_a_neighbour_that_is_pressed_waits(routing: str) -> None:
    exchange = network([("a", "b")], routing=routing, waiting_max=4)
    ann, bob = exchange.client("b", "ann"), exchange.client("a", "bob")
    id = ann.session.subscribe("x > 0")
    exchange.run()
    broker = exchange.brokers["a"]
    (link,) = (number for number, found in broker.links.items() if found.name == "b")
    broker.press(link, True, exchange.now_us)
    for x in range(1, 7):
        bob.publish({"x": x}, durable=False)
    exchange.run()
    assert ann.got(id) == []
    broker.press(link, False, exchange.now_us)
    exchange.run()
    assert ann.got(id) == [{"x": x} for x in (3, 4, 5, 6)], "the oldest made room"
