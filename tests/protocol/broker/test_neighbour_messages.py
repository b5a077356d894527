"""Control messages of neighbours that no broker should send: they end the link, never the broker."""

from __future__ import annotations

import msgspec
import pytest

from palio.model.language import parse
from palio.protocol.broker.settings import ROUTINGS
from palio.protocol.wire.codes import CloseCode, NeighbourRole
from palio.protocol.wire.control import (
    ControlMessage,
    Durable,
    ExplainHop,
    LinkState,
    LinkStates,
    RouterPacket,
)
from palio.protocol.wire.frames import control_frame
from palio.protocol.wire.packets import to_bytes
from palio.routing.packets import Restate
from tests.protocol.exchange import Exchange, network


def say(exchange: Exchange, to: str, neighbour: str, *messages: ControlMessage) -> None:
    """What a neighbour says, whatever its own core would say."""
    broker = exchange.brokers[to]
    link = next(one.number for one in broker.parts.links if one.neighbour == neighbour)
    broker.receive(link, b"".join(map(control_frame, messages)), exchange.now_us)
    exchange.run()


def test_a_message_is_no_packet_of_a_router() -> None:
    exchange = network([("a", "b")], routing="forwarding")
    ann = exchange.client("a", "ann")
    ann.session.subscriptions.subscribe("x > 0")
    exchange.run()
    packet = msgspec.msgpack.encode(["Publish", {"x": 1}, "bob/desk", 1, 2])
    say(exchange, "a", "b", RouterPacket(packet))
    assert not exchange.brokers["a"].is_linked("b")
    assert not ann.arrivals


def test_link_states_before_an_invalid_one_are_known_and_passed_on() -> None:
    exchange = network([("a", "b"), ("b", "c")])
    durable = Durable("x > 0", 0, 1)
    good = LinkState("zoe", "disk", 5, 0, (), wanted=("y > 0",), durable={"zoe/d": durable})
    say(exchange, "b", "a", LinkStates((good, LinkState("yan", "disk", 0, 0, ()))))
    exchange.join("a", "b")
    for name in "abc":
        found = exchange.brokers[name].parts
        assert [(f.broker, f.name) for f in found.view.database.durables()] == [("zoe", "zoe/d")]
        assert [one.name for one in found.messages.subscriptions()] == ["zoe/d"]
    exchange.crash("b")
    exchange.start("b")
    assert [one.name for one in exchange.brokers["b"].parts.messages.subscriptions()] == ["zoe/d"]


def test_with_forwarding_filters_of_link_states_are_not_subscriptions() -> None:
    """A neighbour that was started with another policy before: its router says what it wants."""
    exchange = network([("a", "b")], routing="forwarding")
    (wanted,) = parse("x > 1").filters
    links = (("a", 1.0),)
    for message in (
        LinkStates((LinkState("b", "e", 1 << 60, 0, links, ("x > 1",)),)),
        RouterPacket(to_bytes(Restate(subscriptions=(wanted,)))),
        RouterPacket(to_bytes(Restate())),
        LinkStates((LinkState("b", "e", (1 << 60) + 1, 0, links),)),
    ):
        say(exchange, "a", "b", message)
    assert exchange.brokers["a"].is_linked("b")
    assert len(exchange.brokers["a"].parts.table) == 0


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("defers", [False, True])
def test_a_question_with_an_invalid_route_ends_the_link_only(routing: str, defers: bool) -> None:
    exchange = network([("a", "b"), ("a", "c")], routing=routing, defers=defers)
    for route in (b"\xc0", b"\x92\x01\xc0", b"\x01"):
        say(exchange, "a", "b", ExplainHop(1, "b", "", '{"x": 1}', "", msgspec.Raw(route)))
        assert not exchange.brokers["a"].is_linked("b")
        assert exchange.brokers["a"].is_linked("c")
        exchange.join("a", "b")
        assert exchange.brokers["a"].is_linked("b")


def test_the_beginning_of_a_packet_goes_with_its_link() -> None:
    """Also if a newer connection of the same neighbour has replaced it."""
    exchange = network([("a", "b")], routing="forwarding")
    say(exchange, "a", "b", RouterPacket(b"x" * 1000, more=True))
    assert exchange.brokers["a"].parts.neighbours._packets
    exchange.join("a", "b")
    assert exchange.brokers["a"].is_linked("b")
    assert not exchange.brokers["a"].parts.neighbours._packets


@pytest.mark.parametrize("dialler", ["a", "b"])
def test_brokers_with_different_routing_refuse_each_other(dialler: str) -> None:
    exchange = Exchange()
    exchange.add("a", {"b": NeighbourRole.PEER}, routing="PSF")
    exchange.add("b", {"a": NeighbourRole.PEER}, routing="iPS")
    other = "ab"[dialler == "a"]
    exchange.join(dialler, other)
    assert not exchange.brokers["a"].is_linked("b")
    (name, reason), *_ = exchange.closed
    routing = {"a": "PSF", "b": "iPS"}
    assert (name, reason.code) == (dialler, CloseCode.ROUTING)
    assert reason.reason == (
        f"broker '{dialler}' has routing '{routing[dialler]}', and '{other}' has '{routing[other]}': "
        "set the same routing in [broker] of all brokers of a network"
    )
