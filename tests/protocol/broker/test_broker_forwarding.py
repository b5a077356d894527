"""Messages between brokers: a network does the same with large batches as with single messages."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest

from palio.protocol.wire.frames import message_frame
from palio.protocol.wire.headers import ForwardHeader
from palio.routing import interest_table
from tests.protocol.exchange import Exchange, network

RING = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]


def _travelled(
    texts: list[str], routing: str, step: int, credit: int, durable: bool
) -> dict[str, object]:
    """What clients get of these messages, published so many at a time."""
    links = RING[:3] if routing == "forwarding" else RING
    exchange = network(links, routing=routing, link_credit=credit)
    predicates = {
        "a": "x >= 1",
        "b": "x = 3 OR y >= 1",
        "c": "z IS NOT NULL",
        "d": "x < 2 OR y = 4",
    }
    clients = {at: exchange.client(at, f"client {at}") for at in predicates}
    ids = {
        at: clients[at].session.subscriptions.subscribe(predicate)
        for at, predicate in predicates.items()
    }
    shared = clients["d"].session.subscriptions.subscribe("x >= 0", group="shared")
    exchange.run()
    exchange.now_us += 2_000_000
    exchange.run()
    for first in range(0, len(texts), step):
        for sender in ("a", "c"):
            for text in texts[first : first + step]:
                clients[sender].publish(json.loads(text), b"b" * 40, durable)
        exchange.run()
    found: dict[str, object] = {at: _by_publisher(exchange, at, ids[at]) for at in predicates}
    found["shared"] = len(clients["d"].got(shared))
    return found


def _by_publisher(exchange: Exchange, at: str, id: int) -> dict[str, list[bytes]]:
    """In the order in which they came from each."""
    found: dict[str, list[bytes]] = {}
    for client in exchange.clients.values():
        for arrival in client.arrivals:
            if client.broker == at and arrival.id == id:
                header = arrival.frame.header
                found.setdefault(header.publisher, []).append(arrival.frame.attributes)  # type: ignore[union-attr]
    return found


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("routing", ["PSF", "iPS", "PIF", "DRP", "forwarding"])
def test_a_large_batch_is_as_many_small_ones(
    monkeypatch: pytest.MonkeyPatch, routing: str, durable: bool
) -> None:
    monkeypatch.setattr(interest_table, "EVALUATED_MAX", 0)
    rng = np.random.default_rng(3)
    texts = [
        json.dumps({name: int(rng.integers(0, 5)) for name in "xyz" if rng.random() < 0.6})
        for _ in range(150)
    ]
    one_by_one = _travelled(texts, routing, 5, 100_000, durable)
    assert one_by_one["b"], "something arrived"
    assert _travelled(texts, routing, 150, 100_000, durable) == one_by_one
    assert _travelled(texts, routing, 150, 64, durable) == one_by_one  # they wait for credit


def test_what_comes_twice_is_passed_on_once() -> None:
    exchange = network([("a", "b")])
    bob = exchange.client("b", "bob")
    id = bob.session.subscriptions.subscribe("x > 0")
    exchange.run()
    broker = exchange.brokers["b"]
    link = next(one.number for one in broker.parts.links if one.neighbour == "a")
    route = msgspec.Raw(msgspec.msgpack.encode((3, "a")))
    frames = [
        message_frame(ForwardHeader(route, f"p/{i % 3}", i, 0, False), b'{"x": 1}', bytes(80))
        for i in range(1, 101)
    ]
    for piece in (frames, frames, [*frames[:50], *frames[:50]], frames[:1]):
        broker.receive(link, b"".join(piece), exchange.now_us)
        exchange.run()
    assert len(bob.got(id)) == 100
    assert broker.snapshot().live.duplicates == 201


@pytest.mark.parametrize("durable", [False, True])
def test_what_was_published_here_and_comes_back_is_delivered_once(durable: bool) -> None:
    """While brokers see different topologies, a neighbour may send a message back to its origin."""
    exchange = network([("a", "b")], routing="iPS")
    ann, bob = exchange.client("a", "ann"), exchange.client("b", "bob")
    here = ann.session.subscriptions.subscribe("x > 0")
    there = bob.session.subscriptions.subscribe("x > 0")
    exchange.run()
    number = ann.publish({"x": 1}, durable=durable)
    exchange.run()
    broker = exchange.brokers["a"]
    link = next(one.number for one in broker.parts.links if one.neighbour == "b")
    route = msgspec.Raw(msgspec.msgpack.encode((3, "b")))
    header = ForwardHeader(route, "anybody/ann", number, 0, durable)
    broker.receive(link, message_frame(header, b'{"x": 1}', b""), exchange.now_us)
    exchange.run()
    assert ann.got(here) == bob.got(there) == [{"x": 1}]


def _receive(exchange: Exchange, neighbour: str, route: object, *numbers: int) -> None:
    """Messages arrive at b, and its turn is not over."""
    broker = exchange.brokers["b"]
    link = next(one.number for one in broker.parts.links if one.neighbour == neighbour)
    raw = msgspec.Raw(msgspec.msgpack.encode(route))
    frames = [
        message_frame(ForwardHeader(raw, "zoe/1", number, 0, False), b'{"x": %d}' % number, b"")
        for number in numbers
    ]
    broker.receive(link, b"".join(frames), exchange.now_us)


@pytest.mark.parametrize("is_one_turn", [False, True])
@pytest.mark.parametrize("routing", ["PSF", "iPS", "PIF"])
def test_a_copy_that_is_astray_does_not_stop_the_one_on_the_right_path(
    routing: str, is_one_turn: bool
) -> None:
    """b gets messages of a from d first, and then from a, for itself and for c."""
    exchange = network([("a", "b"), ("b", "c"), ("b", "d")], routing=routing)
    bob, carl = exchange.client("b", "bob"), exchange.client("c", "carl")
    here = bob.session.subscriptions.subscribe("x > 0")
    there = carl.session.subscriptions.subscribe("x > 0")
    exchange.run()
    for neighbour in ("d", "a", "a", "d"):
        _receive(exchange, neighbour, (3, "a"), 1, 2)
        if not is_one_turn:
            exchange.run()
    exchange.run()
    assert bob.got(here) == carl.got(there) == [{"x": 1}, {"x": 2}]
    assert not exchange.brokers["b"].parts.data_path.dedup._refused


def test_copies_with_other_receivers_are_passed_on() -> None:
    """With DRP: while brokers see different topologies, two paths may join again."""
    exchange = network([("a", "b"), ("b", "c"), ("b", "d")], routing="DRP")
    clients = {at: exchange.client(at, at) for at in "bcd"}
    ids = {at: one.session.subscriptions.subscribe("x > 0") for at, one in clients.items()}
    exchange.run()
    for receivers in (["c"], ["b", "d"], ["b"]):
        _receive(exchange, "a", (3, receivers), 1)
        exchange.run()
    assert [clients[at].got(ids[at]) for at in "bcd"] == [[{"x": 1}]] * 3
