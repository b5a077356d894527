"""Publishers hear what is wanted when that changes, and an idle broker computes nothing."""

from __future__ import annotations

import pytest

from palio.model.message import Message
from palio.model.predicate import Filter
from palio.protocol.broker.quench import QUENCH_US, Quenching
from tests.protocol.exchange import Client, Exchange, network


@pytest.fixture
def quenched() -> tuple[Exchange, Client]:
    exchange = network([("a", "b")])
    bob = exchange.client("a", "bob")
    bob.session.quenching.switch(True)
    exchange.run()
    exchange.advance(10 * QUENCH_US)
    return exchange, bob


def test_nothing_is_computed_while_nothing_changes(
    quenched: tuple[Exchange, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange, bob = quenched
    assert exchange.brokers["a"].parts.operations.quenching.deadline_us is None

    def computed(_: object) -> None:
        raise AssertionError("nothing has changed")

    with monkeypatch.context() as patch:
        patch.setattr(Quenching, "_filters", computed)
        exchange.advance(10 * QUENCH_US)
        bob.publish({"x": 1})
        exchange.advance(10 * QUENCH_US)


@pytest.mark.parametrize("durable", ["", "d"])
@pytest.mark.parametrize("at", ["a", "b"])
def test_a_change_is_told(quenched: tuple[Exchange, Client], at: str, durable: str) -> None:
    exchange, bob = quenched
    ann = exchange.client(at, "ann")
    id = ann.session.subscriptions.subscribe("x > 0", durable=durable)
    exchange.run()
    exchange.advance(2 * QUENCH_US)
    assert bob.session.quenching.wants(Message({"x": 1}))
    assert not bob.session.quenching.wants(Message({"x": 0}))
    ann.session.subscriptions.unsubscribe(id, forget=True)
    exchange.run()
    exchange.advance(2 * QUENCH_US)
    assert not bob.session.quenching.wants(Message({"x": 1}))


def test_a_network_that_is_parted_wants_less(quenched: tuple[Exchange, Client]) -> None:
    exchange, bob = quenched
    exchange.client("b", "ann").session.subscriptions.subscribe("x > 0")
    exchange.run()
    exchange.advance(2 * QUENCH_US)
    assert bob.session.quenching.wants(Message({"x": 1}))
    exchange.part("a", "b")
    exchange.advance(2 * QUENCH_US)
    assert not bob.session.quenching.wants(Message({"x": 1}))


def test_many_changes_are_told_together(
    quenched: tuple[Exchange, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange, bob = quenched
    ann = exchange.client("a", "ann")
    computed: list[int] = []
    filters = Quenching._filters

    def counted(self: Quenching) -> tuple[list[Filter] | None, list[str]]:
        computed.append(exchange.now_us)
        return filters(self)

    monkeypatch.setattr(Quenching, "_filters", counted)
    for x in range(10):
        ann.session.subscriptions.subscribe(f"x = {x}")
        exchange.run()
        exchange.advance(QUENCH_US // 10, QUENCH_US // 10)
    exchange.advance(2 * QUENCH_US)
    assert len(computed) == 2, "at once, and all that came meanwhile"
    assert computed[1] - computed[0] >= QUENCH_US
    assert bob.session.quenching.wants(Message({"x": 9}))
