"""The baselines, step by step; that whole networks of them are right is shown by seeds."""

from __future__ import annotations

import pytest

from palio.errors import PalioError
from palio.model.language import parse
from palio.model.message import Message
from palio.routing.packets import (
    Joined,
    Left,
    Publish,
    Received,
    Restate,
    Role,
    Send,
    Subscribe,
    Unsubscribe,
)
from palio.sim.routers.baselines import FloodingRouter, PlainRouter

(WIDE,) = parse("x > 0")
(NARROW,) = parse("x > 5")
MESSAGE = Publish(Message({"x": 3}), "p", 1)


def joined(router: PlainRouter) -> PlainRouter:
    for peer, role in (("a", Role.CLIENT), ("b", Role.CLIENT), ("2", Role.NEIGHBOUR)):
        router.step(Joined(peer, role))
    return router


def test_plain_forwards_what_is_covered_too() -> None:
    router = joined(PlainRouter("1"))
    assert router.step(Received("a", Subscribe(WIDE))) == [Send("2", Subscribe(WIDE))]
    assert router.step(Received("b", Subscribe(NARROW))) == [Send("2", Subscribe(NARROW))]
    assert router.step(Received("b", Subscribe(WIDE))) == []
    assert router.subscribers(WIDE) == {"a", "b"}
    assert router.step(Received("2", MESSAGE)) == [Send("a", MESSAGE), Send("b", MESSAGE)]


def test_what_is_still_wanted_goes_along_with_an_unsubscription() -> None:
    router = joined(PlainRouter("1"))
    router.step(Received("a", Subscribe(WIDE)))
    router.step(Received("b", Subscribe(NARROW)))
    sends = router.step(Received("a", Unsubscribe(WIDE)))
    assert sends == [Send("2", Unsubscribe(WIDE, (NARROW,)))]


def test_who_leaves_takes_all_back() -> None:
    router = joined(PlainRouter("1"))
    router.step(Received("a", Subscribe(WIDE)))
    assert router.step(Left("a")) == [Send("2", Unsubscribe(WIDE))]
    assert router.subscriptions == []
    with pytest.raises(PalioError, match="router 1 knows no peer a"):
        router.step(Received("a", Subscribe(WIDE)))


def test_who_joins_again_is_told_all() -> None:
    router = joined(PlainRouter("1"))
    router.step(Received("a", Subscribe(WIDE)))
    assert router.step(Joined("2", Role.NEIGHBOUR)) == [Send("2", Restate((WIDE,)))]


def test_flooding_tells_neighbours_nothing_and_sends_them_everything() -> None:
    router = joined(FloodingRouter("1"))
    assert router.step(Received("b", Subscribe(NARROW))) == []
    assert router.step(Received("a", MESSAGE)) == [Send("2", MESSAGE)]
