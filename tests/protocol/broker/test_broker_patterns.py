"""Patterns between brokers: what neighbours match is shared, and ends with the last who watches."""

from __future__ import annotations

from palio.protocol.wire.control import Occurred
from palio.routing.patterns import Task
from tests.protocol.exchange import Client, Exchange, network

LINE = [("a", "b"), ("b", "c")]
PAIR = "[x = 1] then [x = 2]"


def exchanges() -> tuple[Exchange, Client]:
    """Three brokers in a line, and bob at c, who advertises x."""
    exchange = network(LINE, routing="forwarding", advertisements=True)
    bob = exchange.client("c", "bob")
    bob.session.requests.advertise(("x IN (1, 2)",))
    exchange.run()
    return exchange, bob


def delegated(exchange: Exchange, names: str = "abc") -> list[tuple[str, str, Task, int]]:
    """From broker to broker: the task, and how many watches use it."""
    return [
        (name, str(entry.peer.name), entry.task, len(entry.uses))
        for name in names
        for entry in exchange.brokers[name].parts.port.router.watches.available
    ]


def publish(exchange: Exchange, bob: Client, *values: int) -> None:
    for value in values:
        exchange.now_us += 10
        bob.publish({"x": value}, durable=False)
        exchange.run()


def numbers(client: Client) -> list[list[int]]:
    """Which messages of bob, from 1 on, are in each occurrence."""
    return [[item.number % 1000 for item in found.items] for found in client.heard(Occurred)]  # type: ignore[attr-defined]


def test_equal_patterns_of_clients_are_delegated_once() -> None:
    exchange, bob = exchanges()
    ann, cy = exchange.client("a", "ann"), exchange.client("a", "cy")
    first = ann.session.subscriptions.subscribe(pattern=PAIR)
    second = cy.session.subscriptions.subscribe(pattern=PAIR)
    third = cy.session.subscriptions.subscribe(pattern=f"{PAIR} within 1 hour")
    exchange.run()
    assert delegated(exchange) == [("a", "b", Task.ASSEMBLE, 3), ("b", "c", Task.ASSEMBLE, 1)]
    publish(exchange, bob, 1, 2)
    assert (numbers(ann), numbers(cy)) == ([[1, 2]], [[1, 2], [1, 2]])
    ann.session.subscriptions.unsubscribe(first)
    cy.session.subscriptions.unsubscribe(second)
    exchange.run()
    assert [use for *_, use in delegated(exchange)] == [1, 1]
    cy.session.subscriptions.unsubscribe(third)
    exchange.run()
    assert delegated(exchange) == []


def test_who_watches_later_gets_what_begins_later() -> None:
    """c has assembled the first half for ann already; the broker's clock says that it was before."""
    exchange, bob = exchanges()
    ann, cy = exchange.client("a", "ann"), exchange.client("b", "cy")
    ann.session.subscriptions.subscribe(pattern=PAIR)
    exchange.run()
    publish(exchange, bob, 1)
    exchange.now_us += 10
    cy.session.subscriptions.subscribe(pattern=PAIR)
    exchange.run()
    assert delegated(exchange) == [("a", "b", Task.ASSEMBLE, 1), ("b", "c", Task.ASSEMBLE, 2)]
    publish(exchange, bob, 2, 1, 2)
    assert (numbers(ann), numbers(cy)) == ([[1, 2], [3, 4]], [[3, 4]])


def test_a_link_that_is_lost_takes_the_delegation_along() -> None:
    exchange, bob = exchanges()
    ann, cy = exchange.client("a", "ann"), exchange.client("b", "cy")
    for client in (ann, cy):
        client.session.subscriptions.subscribe(pattern=PAIR)
    exchange.run()
    exchange.part("b", "c")
    exchange.run()
    assert [link[:2] for link in delegated(exchange)] == []
    exchange.join("b", "c")
    exchange.advance(1_000_000)
    assert delegated(exchange) == [("a", "b", Task.ASSEMBLE, 1), ("b", "c", Task.ASSEMBLE, 2)]
    publish(exchange, bob, 1, 2)
    assert (numbers(ann), numbers(cy)) == ([[1, 2]], [[1, 2]])


def test_a_broker_that_restarts_is_told_again_and_delegates_again() -> None:
    exchange, bob = exchanges()
    ann, cy = exchange.client("a", "ann"), exchange.client("a", "cy")
    for client in (ann, cy):
        client.session.subscriptions.subscribe(pattern=PAIR)
    exchange.run()
    exchange.crash("b")
    exchange.advance(1_000_000)
    assert delegated(exchange, "ac") == []
    exchange.start("b")
    for other in "ac":
        exchange.join("b", other)
    exchange.advance(1_000_000)
    assert delegated(exchange) == [("a", "b", Task.ASSEMBLE, 2), ("b", "c", Task.ASSEMBLE, 1)]
    publish(exchange, bob, 1, 2)
    assert (numbers(ann), numbers(cy)) == ([[1, 2]], [[1, 2]])


def test_on_a_ring_the_delegations_lead_toward_the_source() -> None:
    """The source is at c; from a its tree leads over one of b and d. Each client gets all, and once."""
    ring = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    exchange = network(ring, routing="forwarding", advertisements=True)
    bob = exchange.client("c", "bob")
    bob.session.requests.advertise(("x IN (1, 2)",))
    watching = [exchange.client(name, f"client {i}") for i, name in enumerate("aabd")]
    exchange.run()
    ids = [client.session.subscriptions.subscribe(pattern=PAIR) for client in watching]
    exchange.run()
    used = delegated(exchange, "abcd")
    assert sum(uses for *_, uses in used) == 5  # the four clients, and broker a at its neighbour
    assert len(used) == 3
    publish(exchange, bob, 1, 2, 2, 1, 2)
    assert [numbers(client) for client in watching] == [[[1, 2], [4, 5]]] * 4
    for client, id in zip(watching, ids, strict=True):
        client.session.subscriptions.unsubscribe(id)
    exchange.run()
    assert delegated(exchange, "abcd") == []
