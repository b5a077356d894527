"""What operators are told of the whole network."""

from __future__ import annotations

import pytest

from palio.protocol.wire.control import Place, Shown
from tests.protocol.exchange import Client, network


def shown(client: Client, memory: bool) -> dict[str, Place]:
    client.session.requests.show(memory=memory)
    client.exchange.run()
    return {place.broker: place for place in client.heard(Shown)[-1].places}


@pytest.mark.parametrize("routing", ["PSF", "iPS", "PIF", "DRP", "forwarding"])
def test_the_memory_of_brokers_is_shown_when_it_is_asked_for(routing: str) -> None:
    exchange = network([("a", "b"), ("b", "c")], routing=routing)
    exchange.client("c", "cy").session.subscriptions.subscribe("x > 1 AND y = 2")
    exchange.run()
    ann = exchange.client("a", "ann")
    assert {place.memory for place in shown(ann, False).values()} == {None}
    exchange.advance(25_000_000)  # brokers refresh their states
    found = {name: place.memory for name, place in shown(ann, True).items()}
    assert {memory.scheme for memory in found.values() if memory is not None} == {routing}
    has_scheme = routing != "forwarding"
    for name, entries in {"a": 1, "b": 2 if routing == "PSF" else 1, "c": 0}.items():
        memory = found[name]
        assert memory is not None
        assert memory.predicates == memory.filters == entries * has_scheme
        assert memory.constraints == memory.formula_constraints == 2 * entries * has_scheme
        assert memory.bytes == memory.formula_bytes
        assert (memory.database_bytes > 0) is has_scheme
    held = exchange.brokers["b"].snapshot().table
    assert held.routing_predicates == found["b"].predicates  # type: ignore[union-attr]
