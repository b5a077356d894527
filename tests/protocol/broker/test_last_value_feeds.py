"""New subscriptions get the last value of each key that they select, and no older one after a newer one."""

from __future__ import annotations

import time
from random import Random

import pytest

from palio.protocol.wire.control import Rejected
from palio.protocol.wire.message_headers import NOT_BEFORE_US
from tests.protocol.broker.last_value_client import expiring, given, last, retain
from tests.protocol.exchange import Client, Exchange

SECOND = 1_000_000


def one_broker(**options: object) -> tuple[Exchange, Client, Client]:
    exchange = Exchange()
    exchange.add("a", **options)
    return exchange, exchange.client("a", "ann"), exchange.client("a", "bob")


def test_a_new_subscriber_gets_the_last_value_of_each_key_that_it_selects() -> None:
    exchange, ann, bob = one_broker()
    for v in (1, 2, 3):
        retain(ann, "sensor", sensor="x", v=v)
        retain(ann, "sensor", sensor="y", v=10 * v)
    ann.publish({"sensor": "z", "v": 7})
    exchange.run()
    id, some = last(bob), last(bob, "v > 20")
    exchange.run()
    assert len(bob.got(id)) == 2
    assert given(bob, id) == [{"sensor": "x", "v": 3}, {"sensor": "y", "v": 30}]
    assert bob.got(some) == [{"sensor": "y", "v": 30}]
    retain(ann, "sensor", sensor="x", v=4)
    exchange.run()
    assert bob.got(id)[2:] == [{"sensor": "x", "v": 4}], "live, and once"


def test_keys_of_several_attributes_and_of_equal_numbers() -> None:
    exchange, ann, bob = one_broker()
    retain(ann, "room kind", room=1, kind="t", v=1)
    retain(ann, "kind room", room=1.0, kind="t", v=2)
    retain(ann, "room kind", room=1, kind="h", v=3)
    retain(ann, "room", room=1, kind="h", v=4)
    retain(ann, "room", room=True, v=5)
    exchange.run()
    id = last(bob)
    exchange.run()
    assert sorted([one["v"] for one in bob.got(id)], key=str) == [2, 3, 4, 5]


def test_others_get_none_and_a_key_can_be_forgotten() -> None:
    exchange, ann, bob = one_broker()
    retain(ann, "sensor", sensor="x", v=1)
    exchange.run()
    plain = bob.session.subscriptions.subscribe("v >= 0")
    exchange.run()
    assert bob.got(plain) == []
    retain(ann, "sensor", forget=True, sensor="x", v=0)
    exchange.run()
    assert bob.got(plain) == [{"sensor": "x", "v": 0}], "it is a message as any other"
    id = last(bob)
    exchange.run()
    assert bob.got(id) == []
    retain(ann, "sensor", sensor="x", v=2)
    exchange.run()
    late = last(bob)
    exchange.run()
    assert given(bob, late) == [{"sensor": "x", "v": 2}]


def test_restarts_and_crashes_keep_what_is_committed() -> None:
    exchange, ann, _ = one_broker()
    retain(ann, "sensor", sensor="x", v=1)
    retain(ann, "sensor", sensor="y", v=1)
    retain(ann, "sensor", forget=True, sensor="y", v=0)
    exchange.run()
    exchange.crash("a")
    exchange.start("a")
    bob = exchange.client("a", "bob")
    id = last(bob)
    exchange.run()
    assert bob.got(id) == [{"sensor": "x", "v": 1}]


def test_what_is_stored_and_not_committed_is_given_after_the_commit() -> None:
    exchange, ann, bob = one_broker()
    retain(ann, "sensor", sensor="x", v=1)
    exchange.run()
    retain(ann, "sensor", sensor="x", v=2)
    id = last(bob)
    for name, client in (("ann", ann), ("bob", bob)):
        data = b"".join(client.session.take())
        exchange.brokers["a"].receive(client.link, data, exchange.now_us)
        assert data, name
    exchange.brokers["a"].take()  # its commit never ends
    assert bob.arrivals == []
    exchange.crash("a")
    exchange.start("a")
    del exchange.clients[ann.link], exchange.clients[bob.link]
    ann.session.closed()
    bob = exchange.client("a", "bob")
    id = last(bob)
    exchange.run()
    assert bob.got(id) == [{"sensor": "x", "v": 1}]
    exchange.connect(ann, "a")
    exchange.run()
    assert bob.got(id) == [{"sensor": "x", "v": 1}, {"sensor": "x", "v": 2}]


def test_a_subscriber_in_the_moment_of_a_commit_misses_nothing() -> None:
    exchange, ann, bob = one_broker()
    retain(ann, "sensor", sensor="x", v=1)
    retain(ann, "sensor", sensor="y", v=1)
    exchange.run()
    broker = exchange.brokers["a"]
    retain(ann, "sensor", sensor="x", v=2)
    broker.receive(ann.link, b"".join(ann.session.take()), exchange.now_us)
    broker.parts.data_path.flush()  # it is stored, and matched with whoever is there
    id = last(bob)
    exchange.run()
    assert sorted(bob.got(id), key=str) == [{"sensor": "x", "v": 2}, {"sensor": "y", "v": 1}]


def test_values_come_as_the_subscriber_has_credit() -> None:
    exchange, ann, bob = one_broker()
    for i in range(50):
        retain(ann, "sensor", sensor=i, v=i)
    exchange.run()
    id = last(bob, credit=4)
    exchange.run()
    assert sorted([one["v"] for one in bob.got(id)]) == list(range(50))  # type: ignore[type-var]
    assert len(exchange.brokers["a"].parts.subscriptions.last_values) == 0


def test_a_subscriber_that_leaves_leaves_nothing_behind() -> None:
    exchange, ann, bob = one_broker()
    for i in range(20):
        retain(ann, "sensor", sensor=i, v=i)
    exchange.run()
    id = last(bob, credit=5)
    data = b"".join(bob.session.take())
    exchange.brokers["a"].receive(bob.link, data, exchange.now_us)
    for _ in range(9):  # nothing that the client says arrives
        bob.session.receive(b"".join(exchange.brokers["a"].take().writes.get(bob.link, ())), 0)
    feeds = exchange.brokers["a"].parts.subscriptions.last_values
    assert (feeds.given, len(feeds)) == (5, 1), id
    exchange.disconnect(bob)
    exchange.run()
    assert len(feeds) == 0


def test_a_reconnected_subscriber_gets_only_what_is_new_to_it() -> None:
    exchange, ann, bob = one_broker()
    retain(ann, "sensor", sensor="x", v=1)
    retain(ann, "sensor", sensor="y", v=1)
    exchange.run()
    id = last(bob)
    exchange.run()
    exchange.disconnect(bob)
    retain(ann, "sensor", sensor="x", v=2)
    exchange.run()
    exchange.connect(bob, "a")
    exchange.run()
    assert bob.got(id)[2:] == [{"sensor": "x", "v": 2}]


def test_expired_values_are_not_given() -> None:
    exchange, ann, bob = one_broker()
    retain(ann, "sensor", sensor="x", v=1)
    retain(ann, "sensor", sensor="x", v=2, headers=expiring(ann, 2 * SECOND))
    retain(ann, "sensor", sensor="y", v=3, headers=expiring(ann, 9 * SECOND))
    exchange.run()
    exchange.advance(3 * SECOND)
    id = last(bob)
    exchange.run()
    assert bob.got(id) == [{"sensor": "y", "v": 3}], "and not the older value of x"


def test_a_delayed_value_becomes_the_last_one_at_its_time() -> None:
    exchange, ann, bob = one_broker()
    later = {NOT_BEFORE_US: exchange.now_us + 5 * SECOND}
    retain(ann, "sensor", sensor="x", v=2, headers=later)
    exchange.run()
    retain(ann, "sensor", sensor="x", v=1)
    exchange.run()
    early = last(bob)
    exchange.run()
    assert bob.got(early) == [{"sensor": "x", "v": 1}]
    exchange.advance(6 * SECOND)
    late = last(bob)
    exchange.run()
    assert bob.got(late) == [{"sensor": "x", "v": 2}]
    assert bob.got(early)[1:] == [{"sensor": "x", "v": 2}]


def test_last_values_are_for_live_subscriptions_alone() -> None:
    exchange, _, bob = one_broker()
    for options in ({"durable": "d"}, {"group": "g"}):
        bob.session.subscriptions.subscribe("v >= 0", last=True, **options)  # type: ignore[arg-type]
    exchange.run()
    refused = [one for one in bob.control_messages if type(one).__name__ == "Refused"]
    assert len(refused) == 2
    assert bob.heard(Rejected) == []


@pytest.mark.parametrize("seed", range(8))
def test_subscribers_at_any_moment_end_with_the_last_value_of_each_key(seed: int) -> None:
    random = Random(seed)
    exchange = Exchange(defers=seed % 2 == 1)
    exchange.add("a")
    publishers = [exchange.client("a", f"p{i}") for i in range(2)]
    ids: list[tuple[Client, int]] = []
    newest: dict[int, tuple[int, bool]] = {}
    owners = {key: publishers[key % 2] for key in range(4)}
    for v in range(60):
        key, forgets = random.randrange(4), random.random() < 0.2
        retain(owners[key], "s", forget=forgets, s=key, v=v)
        newest[key] = v, forgets
        if random.random() < 0.3:
            client = exchange.client("a", f"s{v}") if random.random() < 0.5 else publishers[0]
            ids.append((client, last(client, credit=random.choice([1, 3, 1000]))))
        for _ in range(random.randrange(4)):
            exchange.round()
    exchange.run()
    ids.append((publishers[0], last(publishers[0])))
    exchange.run()
    for client, id in ids:
        got = {one["s"]: one["v"] for one in client.got(id)}
        for key, (v, forgets) in newest.items():
            assert got.get(key) == v or (forgets and key not in got)
        for key in newest:
            own = [one["v"] for one in client.got(id) if one["s"] == key]
            assert own == sorted(set(own))  # type: ignore[type-var]


def test_many_values_do_not_hold_the_loop() -> None:
    exchange = Exchange(defers=True)
    exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    for i in range(2000):
        retain(ann, "s", s=i, v=i)
    exchange.run(5000)
    id = last(bob, "v >= 0 AND s > 1990")
    longest_s = 0.0
    while len(bob.got(id)) < 9:
        start = time.thread_time()
        exchange.round()
        longest_s = max(longest_s, time.thread_time() - start)
    assert longest_s < 0.05
