"""Dead letters over the whole path: who gets them, and what they say."""

from __future__ import annotations

import json

from palio.model.language import parse
from palio.protocol.broker.access import EVERYTHING, Access, Identity, token_hash
from palio.protocol.wire.control import Refused
from palio.protocol.wire.message_headers import EXPIRES_US, body_of, headers_of, packed
from tests.protocol.exchange import Client, Exchange, network

SECOND = 1_000_000


def consumer_of(exchange: Exchange, name: str = "ann", **options: object) -> tuple[Client, int]:
    made = exchange.client("a", name)
    made.acks = False
    id = made.session.subscriptions.subscribe("x > 0", durable="work", **options)  # type: ignore[arg-type]
    exchange.run()
    return made, id


def positions(client: Client) -> list[int]:
    found = [one.header.position for one in client.arrivals]
    client.arrivals.clear()
    return found


def test_after_so_many_deliveries_at_another_broker() -> None:
    exchange = network([("a", "b")])
    ann, id = consumer_of(exchange, deliveries_max=2)
    bob = exchange.client("b", "bob")
    durable = bob.session.subscriptions.subscribe("dead_letter = 'work'", durable="dead")
    live = bob.session.subscriptions.subscribe("original.x = 5")
    exchange.run()
    headers = packed({"trace": "7", EXPIRES_US: exchange.now_us + 900 * SECOND}, 100)
    text = b'{"x": 5, "at": {"$time": "2013-01-31T10:00:00Z"}}'
    arrival_number = bob.session.publisher.publish(text, b"body", exchange.now_us, True, headers)
    exchange.run()
    for _ in range(2):
        ann.session.subscriptions.nack(id, *positions(ann))
        exchange.run()
    assert positions(ann) == []
    assert [one.id for one in bob.arrivals] == [live, durable] or [
        one.id for one in bob.arrivals
    ] == [durable, live]
    arrival = bob.arrivals[0]
    assert json.loads(arrival.frame.attributes) == {
        "dead_letter": "work",
        "dead_queue": "anybody/work",
        "dead_reason": "deliveries",
        "deliveries": 2,
        "dead_publisher": "anybody/bob",
        "dead_number": arrival_number,
        "original": {"x": 5, "at": {"$time": "2013-01-31T10:00:00Z"}},
    }
    assert body_of(arrival.frame.payload) == b"body"
    assert dict(headers_of(arrival.frame.payload)) == {"trace": "7"}, "it does not expire"
    assert arrival.header.publisher == "/a/dead-letters"
    assert exchange.brokers["a"].snapshot().queues.republished.dead == 1


def test_rejected_with_a_reason() -> None:
    exchange = network([("a", "b")])
    ann, id = consumer_of(exchange)
    live = ann.session.subscriptions.subscribe("dead_reason = 'rejected'")
    exchange.run()
    ann.publish({"x": 1})
    exchange.run()
    ann.session.subscriptions.reject(id, *positions(ann), 'no such "desk"')
    exchange.run()
    (found,) = ann.got(live)
    assert (found["dead_text"], found["deliveries"]) == ('no such "desk"', 1)


def test_a_dead_letter_is_no_larger_than_a_message() -> None:
    exchange = network([("a", "b")])
    ann, id = consumer_of(exchange)
    dead = exchange.client("b", "dan").session.subscriptions.subscribe("dead_letter = 'work'")
    dan = exchange.clients[max(exchange.clients)]
    exchange.run()
    ann.publish({"x": 1, "text": "y" * 65_500})
    deep = b'{"x": 1, "y": %s}' % (b'{"z": ' * 60 + b"1" + b"}" * 60)
    ann.session.publisher.publish(deep, b"", exchange.now_us, True)
    exchange.run()
    for position in positions(ann):
        ann.session.subscriptions.reject(id, position, "")
    exchange.run()
    first, *_ = dan.got(dead)
    assert "original" not in first
    assert len(dan.got(dead)) == exchange.brokers["a"].snapshot().queues.republished.dead
    assert exchange.closed == []


def test_only_who_may_subscribe_to_it_gets_it() -> None:
    access = Access(
        {
            token_hash("ann"): Identity("ann", parse("x > 0 OR dead_letter = 'work'"), EVERYTHING),
            token_hash("bob"): Identity("bob", parse("x > 0"), parse("x > 0")),
        }
    )
    exchange = Exchange()
    exchange.add("a", access=access)
    ann, bob = exchange.client("a", "ann", "ann"), exchange.client("a", "bob", "bob")
    bob.session.subscriptions.subscribe("dead_letter = 'work'")
    ann.session.subscriptions.subscribe("dead_letter = 'work'")
    exchange.run()
    (refused,) = bob.heard(Refused)
    assert isinstance(refused, Refused)
    assert refused.code == "denied"
    assert ann.heard(Refused) == []


def test_who_asks_for_how_many_deliveries() -> None:
    exchange = Exchange()
    exchange.add("a", deliveries_max=3)
    ann, _ = consumer_of(exchange, deliveries_max=4)
    (refused,) = ann.heard(Refused)
    assert isinstance(refused, Refused)
    assert refused.code == "denied"
    assert "[queues] deliveries = 3" in refused.reason
    ann, id = consumer_of(exchange, "cy")
    bob, _ = consumer_of(exchange, "bob", deliveries_max=2)
    (refused,) = bob.heard(Refused)
    assert isinstance(refused, Refused)
    assert refused.code == "conflict"
    assert "deliveries_max = 3, not 2" in refused.reason
    ann.publish({"x": 1})
    exchange.run()
    for _ in range(3):
        ann.session.subscriptions.nack(id, *positions(ann))
        exchange.run()
    assert positions(ann) == [], "the operator's number holds for those that ask for none"


def test_it_survives_a_crash_of_its_broker() -> None:
    exchange = Exchange()
    exchange.add("a")
    ann, id = consumer_of(exchange, deliveries_max=1)
    dead = ann.session.subscriptions.subscribe("dead_letter = 'work'", durable="dead")
    exchange.run()
    ann.publish({"x": 1})
    exchange.run()
    ann.session.subscriptions.nack(id, *positions(ann))
    exchange.run()
    assert len(ann.got(dead)) == 1
    ann.arrivals.clear()
    exchange.crash("a")
    exchange.start("a")
    exchange.disconnect(ann)
    bob = exchange.client("a", "bob")
    dead = bob.session.subscriptions.subscribe("dead_letter = 'work'", durable="dead")
    exchange.run()
    assert len(bob.got(dead)) == 1
