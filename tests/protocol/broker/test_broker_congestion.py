"""A connection for which too much waits gets no messages until it has room, and then all of them."""

from __future__ import annotations

import pytest

from palio.protocol.wire.control import CloseCode
from tests.protocol.exchange import Exchange, network


@pytest.mark.parametrize("durable", ["", "kept"])
def test_a_client_that_is_congested_waits(durable: str) -> None:
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    id = ann.session.subscriptions.subscribe("x > 0", durable=durable)
    exchange.run()
    broker.congest(ann.link, True, exchange.now_us)
    for x in range(1, 6):
        bob.publish({"x": x}, durable=bool(durable))
    exchange.run()
    assert ann.got(id) == []
    later = ann.session.subscriptions.subscribe(
        "x > 5"
    )  # others of its subscriptions come and go meanwhile
    exchange.run()
    broker.congest(ann.link, False, exchange.now_us)
    bob.publish({"x": 6}, durable=bool(durable))
    exchange.run()
    assert ann.got(id) == [{"x": x} for x in range(1, 7)]
    assert ann.got(later) == [{"x": 6}]


def test_pressure_keeps_the_credit() -> None:
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    ann.acks = False
    id = ann.session.subscriptions.subscribe("x > 0", durable="kept", credit=3)
    exchange.run()
    for congested in (True, True, False, False, True, False):
        broker.congest(ann.link, congested, exchange.now_us)
    for x in range(1, 8):
        bob.publish({"x": x})
    exchange.run()
    assert ann.got(id) == [{"x": x} for x in (1, 2, 3)], "three are under way, as before"


def test_a_subscription_that_ends_under_pressure_leaves_nothing() -> None:
    exchange = Exchange()
    broker = exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    id = ann.session.subscriptions.subscribe("x > 0", durable="kept")
    exchange.run()
    broker.congest(ann.link, True, exchange.now_us)
    ann.session.subscriptions.unsubscribe(id)
    exchange.run()
    broker.congest(ann.link, False, exchange.now_us)
    bob.publish({"x": 1})
    exchange.disconnect(ann)
    exchange.run()
    assert ann.got(id) == []


@pytest.mark.parametrize("routing", ["forwarding", "PSF"])
def test_a_neighbour_that_is_congested_waits(routing: str) -> None:
    exchange = network([("a", "b")], routing=routing, waiting_max=4)
    ann, bob = exchange.client("b", "ann"), exchange.client("a", "bob")
    id = ann.session.subscriptions.subscribe("x > 0")
    exchange.run()
    broker = exchange.brokers["a"]
    (link,) = [one.number for one in broker.parts.links if one.neighbour == "b"]
    broker.congest(link, True, exchange.now_us)
    for x in range(1, 7):
        bob.publish({"x": x}, durable=False)
    exchange.run()
    assert ann.got(id) == []
    broker.congest(link, False, exchange.now_us)
    exchange.run()
    assert ann.got(id) == [{"x": x} for x in (3, 4, 5, 6)], "the oldest made room"


@pytest.mark.parametrize(("mine", "theirs"), [(100, 4), (4, 100)])
def test_the_receiver_says_how_much_credit_a_link_has(mine: int, theirs: int) -> None:
    """With the sender's own setting, it would wait for ever for credit that nobody grants."""
    exchange = Exchange()
    exchange.add("a", ["b"], link_credit=mine)
    exchange.add("b", ["a"], link_credit=theirs)
    exchange.join("a", "b")
    clients = {at: exchange.client(at, at) for at in "ab"}
    ids = {at: one.session.subscriptions.subscribe("x > 0") for at, one in clients.items()}
    exchange.run()
    for x in range(1, 31):
        for one in clients.values():
            one.publish({"x": x}, durable=False)
        exchange.run()
    for at, one in clients.items():
        assert len(one.got(ids[at])) == 60
        (link,) = [n for n in exchange.brokers[at].parts.links if n.neighbour]
        assert link.credit <= (theirs if at == "a" else mine)


def test_nobody_is_silent_while_the_host_does_not_read() -> None:
    """A slow disk: the others are asked for a sign of life, and it is not read in time."""
    exchange = network([("a", "b")], keepalive_us=1_000_000)
    broker = exchange.brokers["a"]
    ann = exchange.client("a", "ann")
    exchange.advance(500_000)
    broker.take()
    broker.pause(exchange.now_us)
    pings = 0
    for _ in range(100):  # the host takes turns meanwhile
        exchange.now_us += 100_000
        if broker.deadline_us <= exchange.now_us:
            broker.wake(exchange.now_us)
        effects = broker.take()
        assert not effects.closes
        pings += len(effects.writes.get(ann.link, []))
    assert 9 <= pings <= 11, "the other end hears that this one is there"
    broker.open(99, exchange.now_us)
    exchange.now_us += 100_000
    broker.resume(exchange.now_us)
    broker.wake(exchange.now_us)
    assert not broker.take().closes
    for _ in range(40):
        exchange.now_us += 100_000
        broker.wake(exchange.now_us)
    assert {close.code for _, close in broker.take().closes} == {CloseCode.SILENT}
    assert not len(broker.parts.links)
