"""Durable messages that wait for room: nothing of their publisher overtakes them, whatever happens."""

from __future__ import annotations

from palio.protocol.broker.settings import WaitingBounds
from palio.protocol.durability.bounds import Bounds
from palio.protocol.wire.batch import MessageBatch
from palio.protocol.wire.control import Rejected
from tests.protocol.exchange import Client, Exchange


def blocked(**options: object) -> tuple[Exchange, Client, Client, int]:
    """A durable subscription for x = 1 whose queue is full, and a publisher that waits for it."""
    exchange = Exchange()
    exchange.add("a", bounds=Bounds(queue=2), **options)
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    bob.acks = False
    id = bob.session.subscriptions.subscribe("x = 1", durable="d")
    exchange.run()
    for number in range(5):
        ann.publish({"x": 1, "n": number})
    exchange.run()
    assert len(bob.arrivals) == 2
    return exchange, ann, bob, id


def acknowledge_all(exchange: Exchange, bob: Client, id: int) -> None:
    bob.acks = True
    for arrival in bob.arrivals:
        bob.session.subscriptions.acknowledge(id, arrival.header.position)
    exchange.run()


def send(exchange: Exchange, client: Client) -> None:
    """What it has to say arrives, and the broker's turn is not over."""
    data = b"".join(client.session.take())
    exchange.brokers[client.broker].receive(client.link, data, exchange.now_us)


def test_a_publisher_that_leaves_in_one_breath_with_a_message() -> None:
    """The message matches nothing, so there is room for it; those that are held must come first."""
    exchange, ann, bob, id = blocked()
    ann.publish({"x": 2})
    send(exchange, ann)
    exchange.disconnect(ann)
    exchange.connect(ann, "a")
    acknowledge_all(exchange, bob, id)
    assert [message["n"] for message in bob.got(id)] == [0, 1, 2, 3, 4]
    assert not ann.session.outbox.unstored


def test_a_publisher_that_is_sent_away_with_more_behind() -> None:
    """It says more than is held for it, and the messages after that have room."""
    exchange, ann, bob, id = blocked(held_max=10)
    for number in range(5, 70):
        ann.publish({"x": 1, "n": number})
    send(exchange, ann)
    for _ in range(70):
        ann.publish({"x": 2})
    send(exchange, ann)
    exchange.run()
    assert ann.link not in exchange.clients, "it was sent away"
    acknowledge_all(exchange, bob, id)
    while ann.session.outbox.unstored:
        exchange.connect(ann, "a")
    assert [message["n"] for message in bob.got(id)] == list(range(70))


def test_a_publisher_with_a_newer_connection() -> None:
    """It sends again what is held: were that held twice, it would be too much."""
    exchange, ann, bob, id = blocked(held_max=4)
    old = ann.link
    del exchange.clients[old]  # it is lost, and the broker does not know
    ann.session.closed()
    exchange.connect(ann, "a")
    assert ann.link in exchange.clients, "it is not sent away"
    acknowledge_all(exchange, bob, id)
    assert [message["n"] for message in bob.got(id)] == [0, 1, 2, 3, 4]
    assert not ann.session.outbox.unstored


def test_a_held_message_that_cannot_be_read_any_more() -> None:
    """The others keep their own subscriptions."""
    exchange, ann, bob, id = blocked()
    held = exchange.brokers["a"].parts.data_path.held.publishers["anybody/ann"].batches
    entries = [one for batch in held for one in batch]
    held[:] = [MessageBatch.of([entries[0]._replace(attributes=b"{"), *entries[1:]], durable=True)]
    acknowledge_all(exchange, bob, id)
    assert [message["n"] for message in bob.got(id)] == [0, 1, 3, 4]
    assert len(ann.heard(Rejected)) == 1


def test_bytes_that_are_held_of_a_client_are_bounded() -> None:
    """Large messages, not many: the client is sent away, and loses nothing."""
    exchange, ann, bob, id = blocked(waiting=WaitingBounds(held_bytes=500_000))
    held = exchange.brokers["a"].parts.data_path.held
    for number in range(5, 12):
        ann.publish({"x": 1, "n": number}, bytes(100_000))
        exchange.run()
        assert held.bytes <= 500_000
    assert ann.link not in exchange.clients, "it was sent away"
    assert (held.bytes, len(held)) == (0, 0)
    acknowledge_all(exchange, bob, id)
    while ann.session.outbox.unstored:
        exchange.connect(ann, "a")
    assert [message["n"] for message in bob.got(id)] == list(range(12))


def test_bytes_that_are_held_of_all_clients_are_bounded() -> None:
    """Those of which most is held are sent away, whoever was the last."""
    exchange, ann, bob, id = blocked(waiting=WaitingBounds(held_total_bytes=500_000))
    held = exchange.brokers["a"].parts.data_path.held
    others = [exchange.client("a", name) for name in ("cy", "di", "eve")]
    for number in range(5):
        ann.publish({"x": 1, "n": 5 + number}, bytes(40_000))
        for other in others:
            other.publish({"x": 1}, bytes(18_000))
        exchange.run()
        assert held.bytes <= 500_000
    assert held.bytes > 400_000
    others[0].publish({"x": 1}, bytes(60_000))
    exchange.run()
    assert ann.link not in exchange.clients, "it held most"
    assert all(other.link in exchange.clients for other in others)
    assert 0 < held.bytes <= 500_000
    acknowledge_all(exchange, bob, id)
    exchange.connect(ann, "a")
    assert not ann.session.outbox.unstored
    assert len(bob.got(id)) == 10 + 15 + 1
    assert (held.bytes, len(held)) == (0, 0)
