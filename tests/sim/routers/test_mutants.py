"""The checks catch broken routers, disks and links, and the failure becomes short."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from palio.model.predicate import Filter
from palio.routing.packets import (
    Advertise,
    Event,
    Publish,
    Received,
    Restate,
    Role,
    Send,
    Unadvertise,
    Unsubscribe,
)
from palio.sim.kernel.disk import SimulatedDisk
from palio.sim.kernel.shrinking import shrunk
from palio.sim.routers.drawing import FAULTS, RouterSettings, draw
from palio.sim.routers.kinds import AnyRouter, router_maker
from palio.sim.routers.links import ReliableLink
from palio.sim.routers.plans import parse_router_plan
from palio.sim.routers.process import RouterProcess
from palio.sim.routers.runs import ROUTERS
from palio.sim.routers.simulation import run

SEEDS_MAX = 40
OPERATIONS_MAX = 10


class Mutant:
    """A good router with something wrong around it."""

    def __init__(self, inner: AnyRouter) -> None:
        self.inner = inner
        self.peers: dict[str, Role] = {}

    def step(self, event: Event) -> list[Send]:
        if hasattr(event, "role"):
            self.peers[event.peer] = event.role
        return self.change(event, self.inner.step(event))

    def change(self, event: Event, sends: list[Send]) -> list[Send]:
        return sends

    @property
    def due(self) -> int | None:
        return self.inner.due

    @property
    def late(self) -> int:
        return self.inner.late

    @property
    def subscriptions(self) -> Iterable[Filter]:
        return self.inner.subscriptions

    def subscribers(self, filter: Filter) -> Any:
        return self.inner.subscribers(filter)

    def forwards(self, filter: Filter) -> Any:
        return self.inner.forwards(filter)


class ForgetsUnsubscriptions(Mutant):
    def step(self, event: Event) -> list[Send]:
        if isinstance(event, Received) and isinstance(event.packet, Unsubscribe):
            return []
        return super().step(event)


class SendsToEveryone(Mutant):
    def change(self, event: Event, sends: list[Send]) -> list[Send]:
        if isinstance(event, Received) and isinstance(event.packet, Publish):
            return [Send(peer, event.packet) for peer in self.peers if peer != event.peer]
        return sends


class DropsOneMessageInFifty(Mutant):
    """By content, not by count, so that a short scenario shows it too."""

    def change(self, event: Event, sends: list[Send]) -> list[Send]:
        return [send for send in sends if not (is_message(send) and _fate(send) % 50 == 0)]


class DoublesOneMessageInFifty(Mutant):
    def change(self, event: Event, sends: list[Send]) -> list[Send]:
        return sends + [send for send in sends if is_message(send) and _fate(send) % 50 == 0]


class RestatesNothing(Mutant):
    def change(self, event: Event, sends: list[Send]) -> list[Send]:
        return [
            Send(send.peer, Restate()) if isinstance(send.packet, Restate) else send
            for send in sends
        ]


class ForgetsWhatWasHidden(Mutant):
    def change(self, event: Event, sends: list[Send]) -> list[Send]:
        return [
            Send(send.peer, Unsubscribe(send.packet.filter))
            if isinstance(send.packet, Unsubscribe)
            else send
            for send in sends
        ]


class Raises(Mutant):
    def change(self, event: Event, sends: list[Send]) -> list[Send]:
        if isinstance(event, Received) and isinstance(event.packet, Unsubscribe):
            raise KeyError("a bug")
        return sends


class IgnoresAdvertisements(Mutant):
    def step(self, event: Event) -> list[Send]:
        if isinstance(event, Received) and isinstance(event.packet, Advertise):
            return []
        return super().step(event)


class ForgetsOtherAdvertisements(Mutant):
    """Those that an advertisement which is taken back had hidden, or that it covers."""

    def change(self, event: Event, sends: list[Send]) -> list[Send]:
        return [
            Send(send.peer, Unadvertise(send.packet.advertisement))
            if isinstance(send.packet, Unadvertise)
            else send
            for send in sends
        ]


def is_message(send: Send) -> bool:
    return isinstance(send.packet, Publish)


def _fate(send: Send) -> int:
    assert isinstance(send.packet, Publish)
    return zlib.crc32(send.packet.message.to_json().encode())


MUTANTS = [
    (ForgetsUnsubscriptions, {"state", "uninterested"}),
    (SendsToEveryone, {"uninterested"}),
    (DropsOneMessageInFifty, {"lost"}),
    (DoublesOneMessageInFifty, {"twice"}),
    (RestatesNothing, {"state", "lost"}),
    (ForgetsWhatWasHidden, {"state", "lost"}),
    (Raises, {"broken"}),
]


@pytest.mark.parametrize(
    ("mutant", "kinds"), MUTANTS, ids=lambda value: getattr(value, "__name__", "")
)
@pytest.mark.parametrize("base", ["plain", "covering"])
def test_broken_routers_are_caught(base: str, mutant: type[Mutant], kinds: set[str]) -> None:
    make = router_maker(base)
    caught(base, kinds, lambda name, advertisements: mutant(make(name, advertisements)))


@pytest.mark.parametrize("mutant", [IgnoresAdvertisements, ForgetsOtherAdvertisements])
@pytest.mark.parametrize("base", ["plain", "covering"])
def test_routers_that_lose_advertisements_are_caught(base: str, mutant: type[Mutant]) -> None:
    make = router_maker(base)

    def broken(name: str, advertisements: bool) -> AnyRouter:
        return mutant(make(name, advertisements))

    caught(base, {"lost", "state"}, broken, advertisements=True)


def caught(
    routing: str,
    kinds: set[str],
    make: Callable[[str, bool], AnyRouter] | None = None,
    *,
    advertisements: bool = False,
) -> None:
    """Some seed fails by one of the checkers, and shrinks to a text that fails in the same way."""
    settings = RouterSettings(8, "tree", 60, FAULTS, routing, advertisements)
    plans = (draw(settings, seed) for seed in range(SEEDS_MAX))
    plan = next(plan for plan in plans if run(plan, make).kind is not None)
    short = shrunk(ROUTERS, plan, lambda tried: run(tried, make))
    assert len(short.operations) <= OPERATIONS_MAX, str(short)
    replayed = run(parse_router_plan(str(short)), make)
    assert replayed.kind in kinds
    assert replayed == run(short, make)


def test_an_acknowledgement_before_the_sync_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that never syncs, under a router that says it did."""
    monkeypatch.setattr(SimulatedDisk, "end", lambda self: self._under_way.clear())
    caught("plain", {"lost", "state"})


def test_a_router_that_forgets_its_clients_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    start = RouterProcess._start

    def forgetful(self: RouterProcess) -> None:
        self._disk.safe.clear()
        self._disk.crash()
        start(self)

    monkeypatch.setattr(RouterProcess, "_start", forgetful)
    caught("plain", {"lost", "state"})


def test_a_link_that_takes_frames_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(self: ReliableLink[Any], number: int, packet: Any) -> list[Any]:
        self._expected = max(self._expected, number + 1)
        return [packet]

    monkeypatch.setattr(ReliableLink, "_accept", careless)
    caught("plain", {"twice", "order", "lost", "state", "restless"})


def test_a_link_that_does_not_repeat_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    wake = ReliableLink.wake

    def silent(self: ReliableLink[Any], now_us: int) -> Any:
        if self.is_open:
            self.deadline_us = None
            return []
        return wake(self, now_us)

    monkeypatch.setattr(ReliableLink, "wake", silent)
    caught("plain", {"restless"})
