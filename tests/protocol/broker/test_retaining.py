"""Which messages of clients may be last values, and what their broker makes of them."""

from __future__ import annotations

import pytest

from palio.protocol.durability.bounds import LastValueBounds
from palio.protocol.wire.control import Rejected
from palio.protocol.wire.last_values import stamp_of
from palio.protocol.wire.message_headers import (
    RETAIN,
    RETAINED,
    RETAINED_KEY,
    RETAINED_US,
    Headers,
    packed,
)
from tests.protocol.broker.last_value_client import given, last, retain
from tests.protocol.exchange import Client, Exchange


def one_broker(**options: object) -> tuple[Exchange, Client, Client]:
    exchange = Exchange()
    exchange.add("a", **options)
    return exchange, exchange.client("a", "ann"), exchange.client("a", "bob")


def reasons(client: Client) -> list[str]:
    return [one.reason for one in client.heard(Rejected) if isinstance(one, Rejected)]


def publish(client: Client, headers: Headers, text: bytes = b'{"x": 1}') -> None:
    now_us = client.exchange.now_us
    client.session.publisher.publish(text, b"", now_us, True, packed(headers, 16_384))


@pytest.mark.parametrize(
    ("names", "what"),
    [
        ('["y"]', "'y' is part of the key"),
        ("[]", "0 names"),
        ('["x", "x"]', "2 names"),
        ("x", "no list of names"),
        ('{"x": 1}', "no list of names"),
        ("[" * 500, "no list of names"),
        (str([f"n{i}" for i in range(17)]).replace("'", '"'), "17 names"),
    ],
)
def test_a_key_that_is_none_is_rejected(names: str, what: str) -> None:
    exchange, ann, _ = one_broker()
    publish(ann, {RETAIN: names})
    exchange.run()
    assert len(reasons(ann)) == 1
    assert what in reasons(ann)[0]
    assert ann.session.outbox.unstored == 0


def test_only_durable_ones() -> None:
    exchange, ann, _ = one_broker()
    retain(ann, "x", x=1, durable=False)
    exchange.run()
    assert "durable=True" in reasons(ann)[0]


def test_new_keys_beyond_the_bound_are_rejected_and_others_go_on() -> None:
    exchange, ann, bob = one_broker(last_values=LastValueBounds(values=2))
    for i in (1, 2, 3):
        retain(ann, "x", x=i, v=1)
        exchange.run()
    assert len(reasons(ann)) == 1
    assert "[limits] last_values" in reasons(ann)[0]
    retain(ann, "x", x=1, v=2)
    retain(ann, "x", forget=True, x=2, v=0)
    exchange.run()
    retain(ann, "x", x=3, v=2)
    exchange.run()
    assert len(reasons(ann)) == 1
    id = last(bob)
    exchange.run()
    assert given(bob, id) == [{"x": 1, "v": 2}, {"x": 3, "v": 2}]


def test_bytes_are_bounded_too() -> None:
    exchange, ann, _ = one_broker(last_values=LastValueBounds(bytes=1000))
    retain(ann, "x", x=1, v="a" * 700)
    retain(ann, "x", x=2, v="a" * 700)
    exchange.run()
    assert "last_values_bytes" in reasons(ann)[0]


def test_a_broker_may_hold_none() -> None:
    exchange, ann, _ = one_broker(last_values=LastValueBounds(values=0))
    retain(ann, "x", x=1)
    exchange.run()
    assert "[limits] last_values" in reasons(ann)[0]


def test_clients_do_not_set_what_brokers_set() -> None:
    exchange, ann, bob = one_broker()
    id = bob.session.subscriptions.subscribe("x = 1")
    exchange.run()
    forged: Headers = {RETAINED: True, RETAINED_US: 1 << 60, RETAINED_KEY: b"0" * 16, "mine": 1}
    publish(ann, forged)
    publish(ann, {**forged, RETAIN: '["x"]'})
    exchange.run()
    plain, retained = [one.frame.headers for one in bob.arrivals if one.id == id]
    assert dict(plain) == {"mine": 1}
    stamp = stamp_of(retained)
    assert stamp is not None
    assert (stamp.key != b"0" * 16, stamp.time_us < 1 << 60) == (True, True)
    assert RETAINED not in retained


def test_headers_must_leave_room_for_the_stamp() -> None:
    exchange, ann, _ = one_broker()
    retain(ann, "x", x=1, headers={"long": "a" * 16_330})
    exchange.run()
    assert "headers of" in reasons(ann)[0]


def test_of_one_publisher_the_later_one_stays_though_its_clock_goes_back() -> None:
    exchange, ann, bob = one_broker()
    retain(ann, "x", x=1, v=1)
    exchange.run()
    exchange.now_us -= 500_000
    retain(ann, "x", x=1, v=2)
    exchange.run()
    id = last(bob)
    exchange.run()
    assert bob.got(id) == [{"x": 1, "v": 2}]
