"""What each client declared and since when: the model that the checks compare routers with.

    asked     the client asked for it; it may be in force from now on
    applied   its router has it on disk and has told the client so: it is in force
    recalled  the client asked to take it back; it may be out of force from now on
    revoked   its router has told the client so: it is out of force

Between asked and applied, and between recalled and revoked, a declaration is in flux.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from palio.model.advertisement import Advertisement
from palio.model.message import Message
from palio.model.predicate import Filter
from palio.routing.packets import Advertise, Packet, Subscribe, Unadvertise, Unsubscribe
from palio.routing.patterns.packets import Unwatch, Watch
from palio.sim.routers.link_history import FOREVER
from palio.sim.routers.relations import advertisement_covers, covers

T = TypeVar("T", Filter, Advertisement, Watch)


class Declaration(Generic[T]):
    """One subscription, advertisement or watch of one client, with its instants."""

    __slots__ = ("applied", "item", "recalled", "revoked")

    def __init__(self, item: T) -> None:
        self.item: T = item
        self.applied = FOREVER
        self.recalled = FOREVER
        self.revoked = FOREVER

    @property
    def is_in_force(self) -> bool:
        return self.applied < FOREVER == self.revoked


class SubscriptionHistory:
    """All that one client has declared."""

    def __init__(self) -> None:
        self.subscriptions: list[Declaration[Filter]] = []
        self.advertisements: list[Declaration[Advertisement]] = []
        self.watches: list[Declaration[Watch]] = []

    def ask(self, packet: Packet, instant: int) -> Callable[[int], None]:
        """The client says this now; the result is to be called when its router has applied it."""
        match packet:
            case Subscribe(f):
                return _add(self.subscriptions, f)
            case Advertise(a):
                return _add(self.advertisements, a)
            case Unsubscribe(f):
                wide = f
                return _recall(self.subscriptions, lambda g: covers(wide, g), instant)
            case Unadvertise(a):
                every = a
                return _recall(
                    self.advertisements, lambda b: advertisement_covers(every, b), instant
                )
            case Watch():
                return _add(self.watches, packet)
            case Unwatch(number):
                return _recall(self.watches, lambda watch: watch.id == number, instant)
        raise AssertionError(packet)

    def wants(self, message: Message) -> bool:
        """Is there a subscription in force that selects the message?"""
        return any(w.is_in_force and w.item.matches(message) for w in self.subscriptions)

    def filters(self) -> list[Filter]:
        """The subscriptions in force."""
        return [w.item for w in self.subscriptions if w.is_in_force]

    def offers(self) -> list[Advertisement]:
        """The advertisements in force."""
        return [w.item for w in self.advertisements if w.is_in_force]

    def watched(self) -> list[Watch]:
        """The watches in force."""
        return [w.item for w in self.watches if w.is_in_force]

    def selecting(self, message: Message, instant: int) -> Iterator[Declaration[Filter]]:
        """Subscriptions that select the message and were in force, not in flux, at an instant."""
        for declared in self.subscriptions:
            if declared.applied <= instant < declared.recalled and declared.item.matches(message):
                yield declared

    def allowing(self, message: Message, instant: int) -> Iterator[Declaration[Advertisement]]:
        """Advertisements that allow the message and were in force, not in flux, at an instant."""
        for declared in self.advertisements:
            if declared.applied <= instant < declared.recalled and declared.item.matches(message):
                yield declared


def _add(declarations: list[Declaration[T]], item: T) -> Callable[[int], None]:
    declared = Declaration(item)
    declarations.append(declared)

    def apply(instant: int) -> None:
        declared.applied = instant

    return apply


def _recall(
    declarations: list[Declaration[T]], is_meant: Callable[[T], bool], instant: int
) -> Callable[[int], None]:
    meant = [
        declared
        for declared in declarations
        if declared.recalled == FOREVER and is_meant(declared.item)
    ]
    for declared in meant:
        declared.recalled = instant

    def apply(instant: int) -> None:
        for declared in meant:
            declared.revoked = instant

    return apply
