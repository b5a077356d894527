"""What docs/concepts/delivery.md says about sessions, names, groups and live messages of whole brokers."""

from __future__ import annotations

from palio.protocol.wire.codes import RefusalCode
from palio.protocol.wire.control import Occurred, Refused, Subscribed
from tests.protocol.exchange import Client, Exchange, network

LINE = [("a", "b"), ("b", "c")]


def subscribed(client: Client, predicate: str = "x > 0", **options: object) -> int:
    id = client.session.subscriptions.subscribe(predicate, **options)  # type: ignore[arg-type]
    client.exchange.run()
    assert client.heard(Subscribed)
    return id


def test_a_durable_subscription_that_was_answered_survives_a_crash() -> None:
    exchange = Exchange()
    exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    id = subscribed(ann, durable="d")
    for client in (ann, bob):
        exchange.disconnect(client)
    exchange.crash("a")
    exchange.start("a")
    exchange.connect(bob, "a")
    bob.publish({"x": 1})
    exchange.run()
    exchange.connect(ann, "a")
    exchange.run()
    assert ann.got(id) == [{"x": 1}]


def test_a_durable_name_at_another_broker_is_another_subscription() -> None:
    exchange = network(LINE)
    here, there, bob = (exchange.client(broker, "ann") for broker in "abc")
    ids = [subscribed(here, durable="d"), subscribed(there, "x > 1", durable="d")]
    for x in (1, 2):
        bob.publish({"x": x})
    exchange.run()
    assert here.got(ids[0]) == [{"x": 1}, {"x": 2}]
    assert there.got(ids[1]) == [{"x": 2}]


def test_members_of_a_group_at_two_brokers_are_two_groups() -> None:
    exchange = network(LINE)
    members = [exchange.client(broker, f"member {n}") for n, broker in enumerate("aab")]
    ids = [subscribed(member, group="g") for member in members]
    bob = exchange.client("c", "bob")
    for x in (1, 2):
        bob.publish({"x": x}, durable=False)
        exchange.run()
    first, second, other = (len(one.got(id)) for one, id in zip(members, ids, strict=True))
    assert (first + second, other) == (2, 2)


def test_the_same_thing_published_at_two_brokers_is_two_messages() -> None:
    exchange = network(LINE)
    ann = exchange.client("c", "ann")
    id = subscribed(ann, durable="d")
    for broker in "ab":
        exchange.client(broker, "bob").publish({"x": 1})
    exchange.run()
    assert ann.got(id) == [{"x": 1}, {"x": 1}]


def test_a_publisher_that_starts_anew_publishes_a_second_message() -> None:
    """It was killed when the broker had stored the message, and before it heard of that."""
    exchange = Exchange()
    exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    id = subscribed(ann, durable="d")
    bob.publish({"x": 1})
    exchange.round()
    exchange.disconnect(bob)
    exchange.client("a", "bob").publish({"x": 1})
    exchange.run()
    assert ann.got(id) == [{"x": 1}, {"x": 1}]


def test_best_effort_messages_do_not_wait_for_a_client_that_is_away() -> None:
    exchange = network(LINE)
    ann, bob = exchange.client("a", "ann"), exchange.client("c", "bob")
    ids = [subscribed(ann), subscribed(ann, durable="d")]
    exchange.disconnect(ann)
    bob.publish({"x": 1}, durable=False)
    exchange.run()
    exchange.connect(ann, "a")
    bob.publish({"x": 2}, durable=False)
    exchange.run()
    assert [ann.got(id) for id in ids] == [[{"x": 2}], [{"x": 2}]]


def test_a_live_subscription_gets_durable_messages_while_its_client_is_there() -> None:
    exchange = network(LINE)
    ann, bob = exchange.client("a", "ann"), exchange.client("c", "bob")
    id = subscribed(ann)
    bob.publish({"x": 1})
    exchange.run()
    exchange.disconnect(ann)
    bob.publish({"x": 2})
    exchange.run()
    exchange.connect(ann, "a")
    bob.publish({"x": 3})
    exchange.run()
    assert ann.got(id) == [{"x": 1}, {"x": 3}]


def test_a_live_subscription_may_not_block() -> None:
    exchange = Exchange()
    exchange.add("a")
    ann = exchange.client("a", "ann")
    ann.session.subscriptions.subscribe("x > 0", full="block")
    exchange.run()
    (refused,) = ann.heard(Refused)
    assert isinstance(refused, Refused)
    assert refused.code is RefusalCode.INVALID
    assert "publishers do not wait for a live subscription" in refused.reason


def test_a_pattern_is_watched_only_while_its_client_is_there() -> None:
    exchange = Exchange()
    exchange.add("a")
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    ann.session.subscriptions.subscribe(pattern="[x = 1] THEN [x = 2] WITHIN 1 minute")
    exchange.run()
    bob.publish({"x": 1})
    exchange.run()
    exchange.disconnect(ann)
    exchange.connect(ann, "a")
    exchange.now_us += 10
    bob.publish({"x": 2})
    exchange.advance(1_000_000)
    assert ann.heard(Occurred) == []
