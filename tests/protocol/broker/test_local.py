"""Local delivery: groups of subscribers, and those for whom too much waits."""

from __future__ import annotations

import json
from typing import cast

from palio.protocol.broker.local import SENT_BYTES_MAX
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


def test_what_waited_for_many_subscriptions_of_a_link_is_sent_in_several_turns() -> None:
    """Only after a turn is it known that the other end does not read. Credit in one packet for many
    subscriptions, each of which gets its own copy, must not become one very large write."""
    exchange = Exchange()
    broker = exchange.add("a")
    ann, eve = exchange.client("a", "ann"), exchange.client("a", "eve")
    ids = [ann.session.subscriptions.subscribe("x >= 0") for _ in range(40)]
    exchange.run()
    for id in ids:
        broker.parts.local.grant_credit(ann.link, id, -5000)
    body = bytes(10_000)
    for x in range(30):
        eve.publish({"x": x}, body, durable=False)
    exchange.run()
    for id in ids:
        broker.parts.local.grant_credit(ann.link, id, 5000)
    turns = 0
    while True:
        effects = broker.take()
        size = sum(map(len, effects.writes.get(ann.link, [])))
        assert size <= SENT_BYTES_MAX + 20_000
        if not size:
            break
        turns += 1
        exchange._carry("a", ann.link, b"".join(effects.writes[ann.link]))
        assert effects.has_more == bool(broker.parts.local.deferred)
        if turns == 3:  # what comes now must not overtake
            eve.publish({"x": 30}, durable=False)
            data = b"".join(eve.session.take())
            broker.receive(eve.link, data, exchange.now_us)
    assert turns >= 40 * 30 * len(body) // (SENT_BYTES_MAX + 20_000)
    for id in ids:
        assert [found["x"] for found in ann.got(id)] == list(range(31))
    assert broker.snapshot().memory.waiting_bytes == 0


def test_a_link_that_is_congested_meanwhile_gets_nothing_more() -> None:
    exchange = Exchange()
    broker = exchange.add("a")
    ann, eve = exchange.client("a", "ann"), exchange.client("a", "eve")
    ids = [ann.session.subscriptions.subscribe("x >= 0") for _ in range(20)]
    exchange.run()
    broker.congest(ann.link, True, exchange.now_us)
    for x in range(20):
        eve.publish({"x": x}, bytes(10_000), durable=False)
    exchange.run()
    broker.congest(ann.link, False, exchange.now_us)
    assert broker.take().has_more
    broker.congest(ann.link, True, exchange.now_us)
    broker.take()
    effects = broker.take()
    assert not effects.has_more
    assert ann.link not in effects.writes
    broker.congest(ann.link, False, exchange.now_us)
    exchange.run()
    assert [found["x"] for found in ann.got(ids[-1])] == list(range(20))
    exchange.disconnect(ann)
    assert broker.parts.local.deferred == {}
    assert broker.snapshot().memory.waiting_bytes == 0


def test_a_large_message_for_many_clients_is_in_memory_once() -> None:
    exchange = Exchange()
    broker = exchange.add("a")
    many = [exchange.client("a", str(i)) for i in range(5)]
    for client in many:
        client.session.subscriptions.subscribe("x >= 0")
    eve = exchange.client("a", "eve")
    exchange.run()
    for x in range(20):  # together they are a batch that kernels would take
        eve.publish({"x": x}, bytes([x]) * 20_000, durable=False)
    broker.receive(eve.link, b"".join(eve.session.take()), exchange.now_us)
    writes = broker.take().writes
    large = {id(piece) for client in many for piece in writes[client.link] if len(piece) >= 20_000}
    assert len(large) == 20
    for client in many:
        exchange._carry("a", client.link, b"".join(writes[client.link]))
        assert [found.frame.body[0] for found in client.arrivals] == list(range(20))
