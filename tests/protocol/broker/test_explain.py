"""Explanations say what would happen, and change nothing."""

from __future__ import annotations

import msgspec
import pytest

from palio.errors import PalioError
from palio.protocol.policies.drp import DRPPolicy
from palio.protocol.wire.control import ControlMessage, Explained, ExplainHop, HopExplained, Refused
from palio.protocol.wire.frames import FrameReader, control_frame
from tests.protocol.exchange import Exchange, network

LINE = [("a", "b"), ("b", "c")]


def asked(exchange: Exchange, route: object) -> list[ControlMessage]:
    """What b answers when a asks about a message with this route."""
    broker = exchange.brokers["b"]
    link = next(one.number for one in broker.parts.links if one.neighbour == "a")
    raw = msgspec.Raw(msgspec.msgpack.encode(route))
    hop = ExplainHop(1, "a", "a", '{"x": 1}', "", raw)
    broker.receive(link, control_frame(hop), exchange.now_us)
    data = b"".join(broker.take().writes.get(link, []))
    return [one for one in FrameReader().feed(data) if isinstance(one, HopExplained)]


@pytest.mark.parametrize("receivers", [["c"], ["b", "c"]])
def test_with_drp_only_receivers_deliver(receivers: list[str]) -> None:
    exchange = network(LINE, routing="DRP")
    exchange.client("b", "bob").session.subscriptions.subscribe("x > 0")
    exchange.run()
    (told,) = asked(exchange, (3, receivers))
    assert isinstance(told, HopExplained)
    assert bool(told.hop.delivers) is ("b" in receivers)
    assert [name for name, _ in told.hop.sends] == ["c"]


@pytest.mark.parametrize(("routing", "route"), [("PSF", (3, "zoe")), ("DRP", (3, ["zoe", "a"]))])
def test_no_message_was_dropped(routing: str, route: object) -> None:
    exchange = network(LINE, routing=routing)
    asked(exchange, route)
    assert set(exchange.brokers["b"].snapshot().misrouted.values()) == {0}


def test_a_question_that_is_refused_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = network(LINE, routing="DRP")
    ann = exchange.client("a", "ann")

    def fails(*_: object, **__: object) -> None:
        raise PalioError("no")

    with monkeypatch.context() as patch:
        patch.setattr(DRPPolicy, "next_hops", fails)
        ann.session.requests.explain('{"x": 1}')
        exchange.run()
    assert len(ann.heard(Refused)) == 1
    exchange.advance(3_000_000)
    assert not ann.heard(Explained)
