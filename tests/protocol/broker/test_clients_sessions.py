"""Clients of one identity that share a name: their sessions keep their numbers apart."""

from __future__ import annotations

import pytest

from palio.protocol.client.session import Session
from palio.protocol.wire.control import Published
from palio.protocol.wire.handshake import Unwelcome, check_client
from palio.protocol.wire.publishers import publisher_key, split_key
from tests.protocol.exchange import Client, Exchange


def replica(exchange: Exchange, session: str) -> Client:
    client = Client(exchange, "app")
    client.session = Session("app", session=session)
    exchange.connect(client, "a")
    return client


def test_one_replica_does_not_acknowledge_what_another_has_not_stored() -> None:
    exchange = Exchange()
    exchange.add("a")
    reader = exchange.client("a", "reader")
    id = reader.session.subscriptions.subscribe("x > 0", durable="d")
    exchange.run()
    one, two = replica(exchange, "1"), replica(exchange, "2")
    assert one.session.is_ready
    assert two.session.is_ready  # neither replaces the other
    exchange.disconnect(one)
    lost = one.publish({"x": 1})
    for x in range(2, 5):
        exchange.advance(1)
        assert two.publish({"x": x}) >= lost  # under one name alone, these would cover it
    exchange.run()
    assert two.session.outbox.unstored == 0
    exchange.connect(one, "a")
    assert [said.number for said in one.heard(Published)] == [lost]  # type: ignore[attr-defined]
    assert sorted(got["x"] for got in reader.got(id)) == [1, 2, 3, 4]  # type: ignore[type-var]


def test_a_newer_connection_of_a_session_replaces_the_older_one() -> None:
    exchange = Exchange()
    broker = exchange.add("a")
    one = replica(exchange, "1")
    before = one.link
    one.session.closed()  # the client has lost its connection, and the broker does not know
    exchange.connect(one, "a")
    assert one.link != before
    assert len(broker.parts.clients) == 1


def test_a_session_is_short_and_plain() -> None:
    for session in ("a" * 33, "a/b", "a b", "é\n"):
        client = Session("app", session=session)
        client.opened(0)
        with pytest.raises(Unwelcome, match="letters and digits"):
            check_client(client._hello)


def test_publishers_are_named_by_their_parts() -> None:
    assert split_key(publisher_key("ann", "app", "5")) == ("ann/app", "5")
    assert publisher_key("ann", "app", "") == "ann/app"
    assert split_key("ann") == ("ann", "")
