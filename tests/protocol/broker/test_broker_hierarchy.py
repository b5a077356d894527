"""Brokers in a hierarchy: subscriptions go up only, all messages go up, and down where they match."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from palio.model.message import Message
from palio.protocol.broker.explain import FROM_BELOW
from palio.protocol.broker.quench import QUENCH_US
from palio.protocol.wire.codes import CloseCode, NeighbourRole
from palio.protocol.wire.control import Explained
from palio.routing.hierarchy import EVERYTHING
from tests.protocol.exchange import Client, Exchange, network

FORWARDING = "forwarding"
MASTER, SLAVE, PEER = NeighbourRole.MASTER, NeighbourRole.SLAVE, NeighbourRole.PEER
THREE = [("a", "b"), ("c", "a")]
BELOW_A = {"b": "a", "c": "a"}


def forwarded(exchange: Exchange) -> dict[str, int]:
    return {name: broker.snapshot().live.forwarded for name, broker in exchange.brokers.items()}


def filters(exchange: Exchange, name: str) -> list[str]:
    return [str(f) for f in exchange.brokers[name].parts.port.router.subscriptions]


def subscribe(exchange: Exchange, broker: str, name: str, predicate: str) -> tuple[Client, int]:
    client = exchange.client(broker, name)
    id = client.session.subscriptions.subscribe(predicate)
    exchange.run()
    return client, id


def test_a_master_and_two_slaves() -> None:
    exchange = network(THREE, BELOW_A, routing=FORWARDING)
    ann, id = subscribe(exchange, "b", "ann", "x > 0")
    assert filters(exchange, "a") == ["x > 0"]
    assert filters(exchange, "c") == [str(EVERYTHING)]  # what ann wants is not told downward
    bob, top = exchange.client("c", "bob"), exchange.client("a", "top")
    bob.publish({"x": 1}, durable=False)
    bob.publish({"x": 0}, durable=False)  # goes up, and no further
    top.publish({"x": 2}, durable=False)
    top.publish({"x": 0}, durable=False)
    exchange.run()
    assert sorted(one["x"] for one in ann.got(id)) == [1, 2]
    assert forwarded(exchange) == {"a": 2, "b": 0, "c": 2}
    ann.session.subscriptions.unsubscribe(id)
    exchange.run()
    assert filters(exchange, "a") == []
    assert filters(exchange, "b") == filters(exchange, "c") == [str(EVERYTHING)]


def test_without_its_master_a_slave_works_alone() -> None:
    exchange = network(THREE, BELOW_A, routing=FORWARDING)
    exchange.part("a", "b")
    ann, id = subscribe(exchange, "b", "ann", "x > 0")
    bob, cy = exchange.client("b", "bob"), exchange.client("c", "cy")
    bob.publish({"x": 1}, durable=False)
    cy.publish({"x": 2}, durable=False)
    exchange.run()
    assert ann.got(id) == [{"x": 1}]
    assert filters(exchange, "b") == ["x > 0"]
    exchange.join("a", "b")
    cy.publish({"x": 3}, durable=False)
    exchange.run()
    assert ann.got(id) == [{"x": 1}, {"x": 3}]


@pytest.mark.parametrize("seed", range(8))
def test_mixed_networks_deliver_exactly(seed: int) -> None:
    """Peers above, masters and slaves below, peers beside slaves, with cycles."""
    random = Random(seed)
    names = "abcdef"
    edges = [(names[random.randrange(i)], names[i]) for i in range(1, len(names))]
    for _ in range(seed % 4):
        pair = tuple(sorted(random.sample(names, 2)))
        edges += [pair] * (pair not in edges)
    masters: dict[str, str] = {}
    for above, below in edges:
        if random.random() < 0.5:
            masters.setdefault(below, above)
    exchange = network(edges, masters, routing=FORWARDING)
    wanted = {}
    for i, name in enumerate(names):
        wanted[name] = subscribe(exchange, name, f"s{name}", f"x >= {i}")
    for name, x in product(names, range(len(names))):
        exchange.client(name, f"p{name}{x}").publish({"x": x, "from": name}, durable=False)
    exchange.run()
    for i, (client, id) in enumerate(wanted.values()):
        due = {(x, name) for name, x in product(names, range(len(names))) if x >= i}
        got = [(one["x"], one["from"]) for one in client.got(id)]
        assert len(got) == len(due)
        assert set(got) == due


@pytest.mark.parametrize(("mine", "theirs"), [
    (MASTER, MASTER), (SLAVE, SLAVE), (MASTER, PEER), (PEER, SLAVE), (PEER, MASTER),
])  # fmt: skip
@pytest.mark.parametrize("dialler", ["a", "b"])
def test_both_ends_must_agree(mine: NeighbourRole, theirs: NeighbourRole, dialler: str) -> None:
    exchange = Exchange()
    exchange.add("a", {"b": mine}, routing=FORWARDING)
    exchange.add("b", {"a": theirs}, routing=FORWARDING)
    exchange.join(dialler, "ab"[dialler == "a"])
    assert not exchange.brokers["a"].is_linked("b")
    assert not exchange.brokers["b"].is_linked("a")
    (name, reason), *_ = exchange.closed
    assert (name, reason.code) == (dialler, CloseCode.ROLES)
    roles = {"a": mine, "b": theirs}
    other = "ab"[dialler == "a"]
    assert reason.reason == (
        f"broker '{dialler}' has '{other}' as its {roles[dialler]}, and '{other}' has '{dialler}' as its "
        f"'{roles[other]}': set role in [neighbours] of both brokers, to peer, or to master at the one "
        "below and slave at the one above"
    )


@pytest.mark.parametrize("dialler", ["a", "c"])
def test_masters_form_no_cycle(dialler: str) -> None:
    """The link that would close it is refused; the others work."""
    exchange = Exchange()
    exchange.add("a", {"b": MASTER, "c": SLAVE}, routing=FORWARDING)
    exchange.add("b", {"c": MASTER, "a": SLAVE}, routing=FORWARDING)
    exchange.add("c", {"a": MASTER, "b": SLAVE}, routing=FORWARDING)
    exchange.join("a", "b")
    exchange.join("b", "c")
    exchange.join(dialler, "ac"[dialler == "a"])
    assert not exchange.brokers["a"].is_linked("c")
    (_, reason), *_ = exchange.closed
    assert reason.code is CloseCode.ROLES
    assert reason.reason.startswith(
        "masters form a cycle, c -> a -> b -> c, each the slave of the next: "
    )
    ann, id = subscribe(exchange, "a", "ann", "x > 0")
    exchange.client("c", "cy").publish({"x": 1}, durable=False)
    exchange.run()
    assert ann.got(id) == [{"x": 1}]


def test_operators_see_the_roles() -> None:
    exchange = network(THREE, BELOW_A, routing=FORWARDING)
    found = exchange.brokers["c"].parts.view.database.places()
    assert {one.broker: one.master for one in found} == {"a": "", "b": "a", "c": "a"}
    assert exchange.brokers["a"].snapshot().roles == {"peer": 0, "master": 0, "slave": 2}
    assert exchange.brokers["b"].snapshot().roles == {"peer": 0, "master": 1, "slave": 0}
    subscribe(exchange, "c", "cy", "x > 0")
    ann = exchange.client("b", "ann")
    ann.session.requests.explain('{"x": 1}')
    exchange.run()
    (told,) = ann.heard(Explained)
    assert isinstance(told, Explained)
    sends = {hop.broker: hop.sends for hop in told.hops}
    assert sends == {
        "b": (("a", FROM_BELOW),),
        "a": (("c", "its router has subscribed to the message"),),
        "c": (),
    }


def test_below_a_master_publishers_send_everything() -> None:
    """Nobody there knows what is wanted above."""
    exchange = network(THREE, BELOW_A, routing=FORWARDING)
    bob = exchange.client("b", "bob")
    bob.session.quenching.switch(True)
    exchange.run()
    exchange.advance(10 * QUENCH_US)
    assert bob.session.quenching.wants(Message({"x": 1}))
    exchange.part("a", "b")
    exchange.advance(10 * QUENCH_US)
    assert not bob.session.quenching.wants(Message({"x": 1}))


def test_a_broker_of_a_large_state_keeps_its_master() -> None:
    """Also when its link state goes in parts, and when the record ages."""
    exchange = network(THREE, BELOW_A, routing=FORWARDING)
    ann = exchange.client("b", "ann")
    for i in range(40):
        text = f"s = '{i}{'x' * 40_000}'"
        ann.session.subscriptions.subscribe(text, durable=f"d{i}")
    exchange.run()
    exchange.crash("c")
    exchange.start("c")
    exchange.join("c", "a")
    found = {one.broker: one for one in exchange.brokers["c"].parts.view.database.places()}
    assert (found["b"].master, found["b"].durable) == ("a", 40)
    exchange.disconnect(ann)
    exchange.crash("b")
    exchange.advance(70_000_000, 1_000_000)
    found = {one.broker: one for one in exchange.brokers["c"].parts.view.database.places()}
    assert (found["b"].master, found["b"].links) == ("", ())
