"""What a broker shows of itself to operators."""

from __future__ import annotations

import pytest

from palio.protocol.broker.snapshot import (
    QUEUES_MAX,
    DurableCounters,
    LiveCounters,
    QueuesSnapshot,
)
from tests.protocol.exchange import Exchange, network


def test_a_new_broker_has_counted_nothing() -> None:
    snapshot = Exchange().add("a").snapshot()
    assert (snapshot.live, snapshot.durable) == (LiveCounters(), DurableCounters())
    assert (snapshot.links, snapshot.clients, snapshot.neighbours, snapshot.queues) == (
        0,
        0,
        0,
        QueuesSnapshot(),
    )


def test_counters_and_sizes() -> None:
    exchange = network([("a", "b")])
    ann, bob = exchange.client("a", "ann"), exchange.client("b", "bob")
    ann.session.subscriptions.subscribe("x > 0")
    ann.session.subscriptions.subscribe("x > 1", durable="all")
    exchange.run()
    before = exchange.brokers["a"].snapshot()
    exchange.disconnect(ann)
    for x in (1, 2, 3):
        bob.publish({"x": x})
    exchange.run()
    here, there = exchange.brokers["a"].snapshot(), exchange.brokers["b"].snapshot()
    assert (before.links, before.clients, before.neighbours, before.subscriptions) == (2, 1, 1, 2)
    assert (here.links, here.clients, here.neighbours, here.subscriptions) == (1, 0, 1, 0)
    assert here.topology_version > before.topology_version, "nobody wants x > 0 any more"
    assert {name: one.messages for name, one in here.queues.largest.items()} == {"anybody/all": 2}
    assert here.queues.count == 1
    assert (there.durable.published, there.durable.carried, here.durable.arrived) == (3, 2, 2)
    assert (there.store.journal_messages, there.store.publishers) == (3, 1)
    assert before.clients == 1, "a snapshot stays as it was"


def test_published_counts_own_clients_and_delivered_counts_live_messages() -> None:
    exchange = network([("a", "b")])
    ann, bob = exchange.client("a", "ann"), exchange.client("b", "bob")
    ann.session.subscriptions.subscribe("x > 0")
    ann.session.subscriptions.subscribe("x > 0", durable="d")
    exchange.run()
    bob.publish({"x": 1})
    bob.publish({"x": 2}, durable=False)
    exchange.run()
    here, there = exchange.brokers["a"].snapshot(), exchange.brokers["b"].snapshot()
    assert (there.live.published, there.live.received, there.live.forwarded) == (2, 0, 2)
    assert (here.live.published, here.live.received) == (0, 2)
    assert (here.live.delivered, here.durable.delivered) == (3, 1)


def test_only_the_largest_queues_are_in_it() -> None:
    exchange = Exchange()
    exchange.add("a")
    client = exchange.client("a", "c")
    client.acks = False
    for n in range(QUEUES_MAX + 5):
        client.session.subscriptions.subscribe(f"x = {n}", durable=f"q{n}")
    exchange.run()
    for n in range(3):
        client.publish({"x": n})
    exchange.run()
    exchange.advance(2_000_000)
    queues = exchange.brokers["a"].snapshot().queues
    assert (queues.count, len(queues.largest)) == (QUEUES_MAX + 5, QUEUES_MAX)
    first = queues.largest["anybody/q1"]
    assert (first.messages, first.consumers, first.is_paused) == (1, 1, False)
    assert 1_000_000 < first.oldest_us < 4_000_000


def test_it_is_frozen() -> None:
    snapshot = Exchange().add("a").snapshot()
    with pytest.raises(AttributeError):
        snapshot.clients = 1  # type: ignore[misc]
    assert snapshot.live == LiveCounters()
