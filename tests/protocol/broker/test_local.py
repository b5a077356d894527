"""Local delivery: groups of subscribers, and those for whom too much waits."""

from __future__ import annotations

import json
from typing import cast

from palio.protocol.wire.codes import EndCode
from palio.protocol.wire.control import Occurred, SubscriptionEnded
from tests.protocol.exchange import Client, Exchange


def test_all_members_of_a_group_overflow_in_one_turn() -> None:
    """Found by the simulator (seeds 10056 and 20031 of brokers): the group was taken for gone twice."""
    exchange = Exchange()
    broker = exchange.add("a", waiting_max=3)
    members = [exchange.client("a", name) for name in ("ann", "bob")]
    for member in members:
        member.session.subscriptions.subscribe("x > 1", group="g", credit=1, full="end")
    eve = exchange.client("a", "eve")
    exchange.run()
    for number in range(10):
        eve.publish({"x": 2 + number}, durable=False)
    exchange.run()
    assert [len(member.heard(SubscriptionEnded)) for member in members] == [1, 1]
    assert len(broker.parts.local) == 0
    assert len(broker.parts.table) == 0
    id = members[0].session.subscriptions.subscribe("x > 1", group="g", credit=1, full="end")
    exchange.run()
    eve.publish({"x": 7}, durable=False)
    exchange.run()
    assert members[0].got(id) == [{"x": 7}]


def test_one_message_for_23_000_subscriptions_of_a_client() -> None:
    """No header is larger than a client takes, and each subscription gets the message once."""
    exchange = Exchange()
    exchange.add("a")
    ann, eve = exchange.client("a", "ann"), exchange.client("a", "eve")
    ids = [ann.session.subscriptions.subscribe("x > 1") for _ in range(23_000)]
    exchange.run()
    eve.publish({"x": 2}, durable=False)
    exchange.run()
    assert sorted(arrival.id for arrival in ann.arrivals) == ids
    assert ann.session.is_ready


def test_occurrences_wait_for_credit_and_the_oldest_are_dropped() -> None:
    exchange = Exchange()
    broker = exchange.add("a", routing="forwarding", waiting_max=3)
    ann, eve = exchange.client("a", "ann"), exchange.client("a", "eve")
    id = ann.session.subscriptions.subscribe(pattern="[x >= 0]", credit=2)
    exchange.run()
    for x in range(9):
        eve.publish({"x": x}, durable=False)
        exchange.run()
    assert occurred(ann, id) == [0, 1]
    assert broker.snapshot().live.delivery_dropped == 4
    ann.session.subscriptions.consumed(id, 2)
    exchange.run()
    assert occurred(ann, id) == [0, 1, 6, 7]
    ann.session.subscriptions.consumed(id, 2)
    broker.congest(ann.link, True, exchange.now_us)
    exchange.run()
    assert occurred(ann, id) == [0, 1, 6, 7]
    broker.congest(ann.link, False, exchange.now_us)
    exchange.run()
    assert occurred(ann, id) == [0, 1, 6, 7, 8]
    assert broker.snapshot().live.delivered == 5
    ann.session.subscriptions.unsubscribe(id)
    exchange.run()
    assert len(broker.parts.local) == 0


def test_a_watch_that_ends_when_it_is_full() -> None:
    exchange = Exchange()
    broker = exchange.add("a", routing="forwarding", waiting_max=3)
    ann, eve = exchange.client("a", "ann"), exchange.client("a", "eve")
    ann.session.subscriptions.subscribe(pattern="[x >= 0]", credit=1, full="end")
    exchange.run()
    for x in range(9):
        eve.publish({"x": x}, durable=False)
    exchange.run()
    (ended,) = ann.heard(SubscriptionEnded)
    assert ended.code is EndCode.FULL  # type: ignore[union-attr]
    assert len(broker.parts.local) == 0
    assert list(broker.parts.subscriptions) == []


def occurred(client: Client, id: int) -> list[object]:
    found = cast(list[Occurred], client.heard(Occurred))
    return [json.loads(one.items[0].attributes)["x"] for one in found if one.id == id]
