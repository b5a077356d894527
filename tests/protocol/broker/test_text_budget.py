"""Bounds in bytes on what clients make grow: predicates, patterns, names, advertisements."""

from __future__ import annotations

from typing import Any

import pytest

from palio.errors import LimitExceeded
from palio.model.language import parse
from palio.protocol.broker import text_budget
from palio.protocol.broker.settings import SubscriptionBounds
from palio.protocol.broker.text_budget import TextBudget, predicate_bytes, sendable_bytes
from palio.protocol.wire.codes import RefusalCode
from palio.protocol.wire.control import Done, Refused, Subscribed
from palio.protocol.wire.parts import TEXT_BYTES_MAX
from palio.protocol.wire.refusals import RequestRefused
from tests.protocol.exchange import Client, Exchange


def exchange_with(**bounds: Any) -> Exchange:
    exchange = Exchange()
    exchange.add("a", subscriptions=SubscriptionBounds(**bounds))
    return exchange


def refusals(client: Client) -> list[Refused]:
    return [one for one in client.heard(Refused) if isinstance(one, Refused)]


def subscribe(client: Client, text: str = "", **options: Any) -> int:
    id = client.session.subscriptions.subscribe(text, **options)
    client.exchange.run()
    return id


def test_what_is_added_is_removed() -> None:
    budget = TextBudget(SubscriptionBounds(predicates_bytes_max=100))
    budget.add(1, 60)
    budget.add("ann", 90)
    budget.check(1, 40)
    budget.check(2, 100)
    with pytest.raises(RequestRefused, match="predicates of this client have 60 bytes"):
        budget.check(1, 41)
    with pytest.raises(RequestRefused, match="of the identity 'ann' have 90 bytes"):
        budget.check("ann", 11)
    budget.remove(1, 60)
    budget.check(1, 100)


def test_a_broker_has_a_bound_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_budget, "BROKER_BYTES_MAX", 150)
    budget = TextBudget(SubscriptionBounds(predicates_bytes_max=100))
    budget.add(1, 90)
    with pytest.raises(RequestRefused, match="all subscriptions at this broker have 90 bytes"):
        budget.check(2, 61)
    budget.check(2, 60)


def test_a_predicate_counts_as_it_is_printed() -> None:
    (found,) = parse("s = 'it''s'").filters
    assert predicate_bytes([found, found]) == 2 * (64 + len(str(found)))
    text = f"({' OR '.join(f'x = {i}' for i in range(30))}) AND s = '{'n' * 30_000}'"
    with pytest.raises(LimitExceeded, match=f"in its normal form; brokers take {TEXT_BYTES_MAX:,}"):
        sendable_bytes(parse(text).filters)


def test_a_client_has_a_bound_for_all_its_live_predicates() -> None:
    exchange = exchange_with(predicates_bytes_max=1000)
    ann, bob = exchange.client("a", "ann"), exchange.client("a", "bob")
    ids = [subscribe(ann, f"s = '{i}{'n' * 400}'") for i in range(3)]
    (refused,) = refusals(ann)
    assert (refused.id, refused.code) == (ids[2], RefusalCode.LIMIT)
    subscribe(bob, f"s = '{'n' * 400}'")
    assert not refusals(bob)
    ann.session.subscriptions.unsubscribe(ids[0])
    exchange.run()
    subscribe(ann, f"s = 'again{'n' * 400}'")
    assert len(refusals(ann)) == 1
    exchange.disconnect(ann)
    exchange.connect(ann, "a")
    assert len(ann.heard(Subscribed)) == 5
    assert len(refusals(ann)) == 1


def test_an_identity_has_a_bound_for_its_durable_predicates_connected_or_not() -> None:
    exchange = exchange_with(predicates_bytes_max=1000)
    ann = exchange.client("a", "ann")
    kept = subscribe(ann, f"s = 'x{'n' * 400}'", durable="one")
    exchange.disconnect(ann)
    exchange.crash("a")
    exchange.start("a")
    bob = exchange.client("a", "bob")
    subscribe(bob, f"s = 'y{'n' * 400}'", durable="two")
    subscribe(bob, f"s = 'z{'n' * 400}'", durable="three")
    (refused,) = refusals(bob)
    assert "the identity 'anybody'" in refused.reason
    exchange.connect(ann, "a")
    assert not refusals(ann)
    ann.session.subscriptions.unsubscribe(kept, forget=True)
    exchange.run()
    subscribe(bob, f"s = 'z{'n' * 400}'", durable="three")
    assert len(refusals(bob)) == 1


def test_names_patterns_and_advertisements_are_bounded() -> None:
    exchange = exchange_with(
        text_bytes_max=3000, filters_max=40, advertisements_max=2, predicates_bytes_max=9000
    )
    ann = exchange.client("a", "ann")
    subscribe(ann, "x > 1", group="g" * 255)
    assert not refusals(ann)
    subscribe(ann, "x > 1", group="g" * 256)
    subscribe(ann, pattern=f"[s = '{'n' * 3000}']")
    subscribe(
        ann, pattern=" then ".join("[(x > 1 OR y > 1) AND (z > 1 OR v > 1)]" for _ in range(11))
    )
    assert [one.code for one in refusals(ann)] == [
        RefusalCode.LIMIT,
        RefusalCode.TOO_LARGE,
        RefusalCode.TOO_LARGE,
    ]
    advertise = ann.session.requests.advertise
    for constraints in (("x > 1",), ("x > 2",), ("x > 3",)):
        advertise(constraints)
    exchange.run()
    advertise(tuple(f"x > {i}" for i in range(41)))
    exchange.run()
    assert len(ann.heard(Done)) == 2
    assert len(refusals(ann)) == 5
    assert "2 advertisements" in refusals(ann)[3].reason
