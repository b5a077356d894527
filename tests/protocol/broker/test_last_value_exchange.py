"""All brokers hold the last values of the whole network, whatever was down meanwhile."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from palio.protocol.broker import last_value_exchange
from palio.protocol.durability.bounds import Bounds, LastValueBounds
from palio.protocol.wire.message_headers import NOT_BEFORE_US
from tests.protocol.broker.last_value_client import expiring, given, last, retain
from tests.protocol.durability.memory_store import MemoryStore
from tests.protocol.exchange import Exchange, network

SECOND = 1_000_000


def here(exchange: Exchange, broker: str) -> list[dict[str, object]]:
    """What a new subscriber gets at a broker."""
    client = exchange.client(broker, f"new {len(exchange.clients)}")
    id = last(client)
    exchange.run()
    found = given(client, id)
    assert sorted(client.got(id), key=str) == found
    exchange.disconnect(client)
    return found


def held(exchange: Exchange) -> list[object]:
    """The last values of each broker, as they are compared."""
    return [
        sorted(
            [
                (one.key, one.order, one.is_gone)
                for one in broker.parts.data_path.retaining.values.values()
            ]
        )
        for broker in exchange.brokers.values()
    ]


def test_a_new_subscriber_anywhere() -> None:
    exchange = network([("a", "b"), ("b", "c")])
    ann = exchange.client("a", "ann")
    retain(ann, "s", s="x", v=1)
    retain(ann, "s", s="x", v=2)
    retain(ann, "s", s="y", v=3)
    retain(ann, "s", forget=True, s="y", v=3)
    exchange.run()
    assert [here(exchange, name) for name in "abc"] == [[{"s": "x", "v": 2}]] * 3
    places = exchange.brokers["a"].parts.view.database.places()
    assert [place.durable for place in places] == [0, 0, 0], "no client has a durable subscription"
    assert held(exchange)[0] == held(exchange)[1] == held(exchange)[2]


def test_what_has_expired_on_its_way_is_not_given() -> None:
    exchange = network([("a", "b")])
    ann, bob = exchange.client("a", "ann"), exchange.client("b", "bob")
    id = last(bob)
    retain(ann, "s", s="x", v=1)
    exchange.run()
    retain(ann, "s", s="y", v=2, headers=expiring(ann, -1))
    retain(ann, "s", s="z", v=3, headers=expiring(ann, 9 * SECOND))
    exchange.run()
    assert bob.got(id) == [{"s": "x", "v": 1}, {"s": "z", "v": 3}]


def test_once_live_and_never_an_older_one_after_a_newer_one() -> None:
    exchange = network([("a", "b"), ("b", "c")])
    ann, bob = exchange.client("a", "ann"), exchange.client("c", "bob")
    ids = []
    for v in range(30):
        retain(ann, "s", s=v % 3, v=v)
        ids.append(last(bob))
        for _ in range(v % 4):
            exchange.round()
    exchange.run()
    for id in ids:
        got = [(one["s"], one["v"]) for one in bob.got(id)]
        for key in range(3):
            own = [v for s, v in got if s == key]
            assert own == sorted(set(own)), "none twice, none older"
            assert own[-1] == 27 + key


def test_publishers_at_two_brokers_and_clocks_that_differ() -> None:
    exchange = network([("a", "b")])
    ann, bob = exchange.client("a", "ann"), exchange.client("b", "bob")
    exchange.now_us += 3600 * SECOND
    retain(ann, "s", s="x", v=1)
    exchange.run()
    exchange.now_us -= 3600 * SECOND
    retain(bob, "s", s="x", v=2)
    exchange.run()
    assert here(exchange, "a") == here(exchange, "b") == [{"s": "x", "v": 2}]


def test_what_comes_out_of_order_ends_the_same_everywhere() -> None:
    exchange = network([("a", "b"), ("b", "c")])
    ann, cat = exchange.client("a", "ann"), exchange.client("c", "cat")
    exchange.part("a", "b")
    retain(ann, "s", s="x", v=1)
    exchange.run()
    exchange.now_us += SECOND
    retain(cat, "s", s="x", v=2)
    retain(cat, "s", s="y", v=1)
    retain(cat, "s", forget=True, s="z", v=2)
    exchange.run()
    retain(ann, "s", s="y", v=3)
    exchange.run()
    assert here(exchange, "a") == [{"s": "x", "v": 1}, {"s": "y", "v": 3}]
    exchange.join("a", "b")
    exchange.advance(20 * SECOND)
    assert held(exchange)[0] == held(exchange)[1] == held(exchange)[2]
    assert here(exchange, "b")[0] == {"s": "x", "v": 2}


def test_an_older_value_does_not_come_back_after_it_was_forgotten() -> None:
    exchange = network([("a", "b"), ("b", "c")])
    ann, cat = exchange.client("a", "ann"), exchange.client("c", "cat")
    exchange.part("a", "b")
    retain(ann, "s", s="x", v=1)
    retain(ann, "s", s="y", v=1)
    exchange.run()
    exchange.now_us += SECOND
    retain(cat, "s", forget=True, s="x", v=0)
    retain(cat, "s", s="y", v=2, headers=expiring(cat, SECOND))
    exchange.run()
    exchange.advance(2 * SECOND)
    exchange.join("a", "b")
    exchange.advance(20 * SECOND)
    assert [here(exchange, name) for name in "abc"] == [[]] * 3


def test_a_broker_that_was_down_and_one_that_is_new() -> None:
    exchange = network([("a", "b"), ("b", "c")])
    ann, cat = exchange.client("a", "ann"), exchange.client("c", "cat")
    retain(ann, "s", s="x", v=1)
    retain(cat, "s", s="y", v=1)
    exchange.run()
    exchange.crash("c")
    retain(ann, "s", s="x", v=2)
    exchange.run()
    exchange.start("c")
    exchange.join("b", "c")
    exchange.advance(20 * SECOND)
    wanted = [{"s": "x", "v": 2}, {"s": "y", "v": 1}]
    assert here(exchange, "c") == wanted
    _replace_disk(exchange, "c")
    exchange.join("b", "c")
    exchange.advance(20 * SECOND)
    assert here(exchange, "c") == wanted, "its own value too"


def test_values_of_a_broker_that_is_gone_reach_a_new_one() -> None:
    exchange = network([("a", "b"), ("b", "c")])
    ann = exchange.client("a", "ann")
    retain(ann, "s", s="x", v=1)
    exchange.run()
    exchange.disconnect(ann)
    exchange.crash("a")
    exchange.advance(200 * SECOND)
    _replace_disk(exchange, "c")
    exchange.join("b", "c")
    exchange.advance(20 * SECOND)
    assert here(exchange, "c") == [{"s": "x", "v": 1}]


def _replace_disk(exchange: Exchange, name: str) -> None:
    """A broker loses its store."""
    exchange.crash(name)
    exchange.stores[name] = MemoryStore()
    exchange.start(name)


def test_a_crash_in_the_middle_of_giving_begins_anew() -> None:
    exchange = Exchange()
    exchange.add("a", ["b"])
    ann = exchange.client("a", "ann")
    for i in range(300):
        retain(ann, "s", s=i, v=i)
    exchange.run()
    exchange.add("b", ["a"])
    exchange.join("a", "b")
    for _ in range(2):
        exchange.crash("a")
        exchange.start("a")
        exchange.join("a", "b")
    exchange.advance(30 * SECOND)
    assert len(here(exchange, "b")) == 300


def test_who_is_away_for_long_is_given_the_newest_and_fills_no_backlog(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(last_value_exchange, "BACKLOG_MAX", 40)
    exchange = network([("a", "b")])
    ann = exchange.client("a", "ann")
    retain(ann, "s", s="x", v=0)
    exchange.run()
    exchange.crash("b")
    for v in range(200):
        retain(ann, "s", s=v % 3, v=v)
        exchange.advance(SECOND // 2)
    streams = exchange.brokers["a"].snapshot().streams
    assert 20 < streams["b"] < 60
    exchange.start("b")
    exchange.join("a", "b")
    exchange.advance(30 * SECOND)
    found = here(exchange, "b")
    assert sorted([one["v"] for one in found]) == [0, 197, 198, 199]  # type: ignore[type-var]
    streams = exchange.brokers["a"].snapshot().streams
    assert streams["b"] == 0


def test_brokers_that_hold_none_and_those_that_stop_holding_them() -> None:
    exchange = network([("a", "b")])
    ann = exchange.client("a", "ann")
    retain(ann, "s", s="x", v=1)
    exchange.run()
    exchange.crash("b")
    off = LastValueBounds(values=0)
    exchange.settings["b"] = replace(exchange.settings["b"], last_values=off)
    exchange.advance(SECOND)
    exchange.start("b")
    exchange.join("a", "b")
    exchange.advance(20 * SECOND)
    assert exchange.brokers["a"].parts.data_path.retaining.others == ()
    retain(ann, "s", s="x", v=2)
    exchange.run()
    assert exchange.brokers["a"].snapshot().streams.get("b", 0) == 0
    assert here(exchange, "a") == [{"s": "x", "v": 2}]


def test_a_delayed_value_reaches_all_at_its_time() -> None:
    exchange = network([("a", "b")])
    ann = exchange.client("a", "ann")
    retain(ann, "s", s="x", v=2, headers={NOT_BEFORE_US: exchange.now_us + 5 * SECOND})
    retain(ann, "s", s="x", v=1)
    exchange.run()
    assert here(exchange, "b") == [{"s": "x", "v": 1}]
    exchange.advance(7 * SECOND)
    assert here(exchange, "b") == [{"s": "x", "v": 2}]


def test_durable_subscriptions_get_the_messages_as_ever() -> None:
    exchange = network([("a", "b")])
    ann, bob = exchange.client("a", "ann"), exchange.client("b", "bob")
    id = bob.session.subscriptions.subscribe("v >= 0", durable="q")
    exchange.run()
    for v in range(5):
        retain(ann, "s", s="x", v=v)
        ann.publish({"v": v})
    exchange.run()
    assert [one["v"] for one in bob.got(id)] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_subscriptions_get_what_was_published_while_the_network_was_in_two() -> None:
    exchange = network([("a", "b"), ("b", "c")])
    ann, bob = exchange.client("a", "ann"), exchange.client("c", "bob")
    retain(ann, "s", s="x", v=1)
    exchange.run()
    id, plain = last(bob), bob.session.subscriptions.subscribe("v >= 0 AND abs(v) < 100")
    some = last(bob, "v > 1 AND abs(v) < 3")
    exchange.run()
    exchange.part("a", "b")
    retain(ann, "s", s="x", v=2)
    exchange.run()
    exchange.join("a", "b")
    exchange.advance(20 * SECOND)
    assert bob.got(id) == [{"s": "x", "v": 1}, {"s": "x", "v": 2}]
    assert (bob.got(plain), bob.got(some)) == ([], [{"s": "x", "v": 2}])


@pytest.mark.parametrize("seed", range(6))
def test_subscribers_at_any_broker_and_moment_end_with_the_last_values(seed: int) -> None:
    random = Random(seed)
    exchange = network([("a", "b"), ("b", "c"), ("c", "a")], defers=seed % 2 == 1)
    ids, newest = [], {}
    clients = {name: exchange.client(name, name) for name in "abc"}
    for v in range(40):
        name, key = random.choice("abc"), random.randrange(3)
        exchange.now_us += 1000
        retain(clients[name], "s", s=key, v=v)
        newest[key] = v
        if random.random() < 0.5:
            client = clients[random.choice("abc")]
            ids.append((client, last(client, credit=random.choice([1, 1000]))))
        for _ in range(random.choice([0, 1, 2, 5])):
            exchange.round()
        if random.random() < 0.1:
            exchange.part(*random.choice([("a", "b"), ("b", "c"), ("c", "a")]))
    for pair in (("a", "b"), ("b", "c"), ("c", "a")):
        exchange.part(*pair)
        exchange.join(*pair)
    exchange.advance(20 * SECOND)
    for client, id in ids:
        got = {one["s"]: one["v"] for one in client.got(id)}
        assert got == newest
    assert held(exchange)[0] == held(exchange)[1] == held(exchange)[2]


def test_values_that_are_stored_while_a_stream_is_full_are_not_forgotten() -> None:
    """Seed 155 of the simulator: the replay of the new subscription could not end, so fan-out left it out."""
    exchange = network([("a", "b")], bounds=Bounds(backlog=3))
    ann, bob = exchange.client("a", "ann"), exchange.client("b", "bob")
    bob.session.subscriptions.subscribe("v >= 0", durable="q")
    exchange.run()
    for v in range(8):
        retain(ann, "s", s=v, v=v)
    exchange.run()
    exchange.advance(20 * SECOND)
    assert [one["v"] for one in here(exchange, "b")] == list(range(8))
