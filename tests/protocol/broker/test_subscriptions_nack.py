"""Clients give messages of queues back, over the whole path from session to session."""

from __future__ import annotations

import pytest

from palio.protocol.wire.control import NACKED_MAX, Bye, Nack
from palio.protocol.wire.frames import control_frame
from tests.protocol.exchange import Client, Exchange

SECOND = 1_000_000


def exchange_of(messages: int) -> tuple[Exchange, Client, int]:
    exchange = Exchange()
    exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    ann.acks = False
    id = ann.session.subscriptions.subscribe("x > 0", durable="queue", credit=3)
    exchange.run()
    for x in range(1, messages + 1):
        bob.publish({"x": x})
    exchange.run()
    return exchange, ann, id


def arrived(client: Client) -> list[tuple[int, int]]:
    """Positions, and how often each was delivered."""
    found = [(one.header.position, one.header.deliveries) for one in client.arrivals]
    client.arrivals.clear()
    return found


def test_given_back_and_delivered_again() -> None:
    exchange, ann, id = exchange_of(4)
    assert arrived(ann) == [(1, 1), (2, 1), (3, 1)]
    mine = ann.session.subscriptions
    assert mine.nack(id, 2)
    assert mine.nack(id, 3, 5 * SECOND)
    assert mine.nack(id, 99)
    exchange.run()
    assert arrived(ann) == [(2, 2), (4, 1)], "the credit is back"
    exchange.advance(6 * SECOND)
    assert arrived(ann) == []
    mine.acknowledge(id, 1)
    exchange.advance(SECOND)
    assert arrived(ann) == [(3, 2)]
    assert exchange.brokers["a"].snapshot().durable.returned == 2


def test_after_ack_nack_has_no_effect_and_nack_is_not_ack() -> None:
    exchange, ann, id = exchange_of(2)
    arrived(ann)
    mine = ann.session.subscriptions
    mine.acknowledge(id, 1)
    mine.nack(id, 1)
    mine.nack(id, 2)
    mine.acknowledge(id, 2)
    exchange.run()
    assert arrived(ann) == [(2, 2)]
    exchange.advance(SECOND)
    exchange.crash("a")
    exchange.start("a")
    exchange.disconnect(ann)
    exchange.connect(ann, "a")
    exchange.run()
    assert arrived(ann) == [], "the application has it"
    mine.nack(id, 2)
    exchange.run()
    assert [position for position, _ in arrived(ann)] == [2]


def test_a_nack_that_a_lost_connection_swallows() -> None:
    exchange, ann, id = exchange_of(2)
    arrived(ann)
    exchange.disconnect(ann)
    ann.session.subscriptions.nack(id, 1, 100 * SECOND)
    exchange.connect(ann, "a")
    exchange.run()
    assert arrived(ann) == [(1, 2)]


@pytest.mark.parametrize("positions", [(1,) * (NACKED_MAX + 1), ()])
def test_too_many_positions_end_the_connection(positions: tuple[int, ...]) -> None:
    exchange, ann, id = exchange_of(1)
    frame = control_frame(Nack(id, positions))
    exchange.brokers["a"].receive(ann.link, frame, exchange.now_us)
    ((_, close),) = exchange.brokers["a"].take().closes if positions else ((0, Bye("")),)
    assert bool(positions) == ("Nack" in str(close.reason) or "1024" in str(close.reason))
