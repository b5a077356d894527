"""Quenching: publishers learn what anyone wants, and need not send the rest.

Who asked is told at once, and again when it has changed, at most every QUENCH_US: the reduced filters
of all live and durable subscriptions of the network, of which a publisher hears only those that
concern what it may publish. Where they are too many to say, it is told to send everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palio.model.language import parse
from palio.model.predicate import Filter, Predicate
from palio.model.reduction import reduce
from palio.protocol.access import Identity, of_concern
from palio.protocol.words import Wanted

if TYPE_CHECKING:
    from palio.protocol.broker import Broker, Link

QUENCH_US = 200_000
WANTED_MAX = 1000
"""Filters: a publisher is told to send everything rather than more than these."""


class Quenching:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._told: dict[int, tuple[Link, str | None]] = {}
        self.deadline_us: int | None = None

    def ask(self, link: Link, on: bool) -> None:
        """A client wants to be told, or no more."""
        self.leave(link)
        if on:
            self._told[link.number] = link, ""
            self.deadline_us = self._broker.now_us
            self.wake(self._broker.now_us)

    def leave(self, link: Link) -> None:
        self._told.pop(link.number, None)

    def soon(self) -> None:
        """Somebody wants something else."""
        if self.deadline_us is None and self._told:
            self.deadline_us = self._broker.now_us + QUENCH_US

    def wake(self, now_us: int) -> None:
        if self.deadline_us is None or now_us < self.deadline_us:
            return
        self.deadline_us = now_us + QUENCH_US if self._told else None
        wanted, texts = self._wanted() if self._told else None, dict[str, str | None]()
        for link, told in list(self._told.values()):
            identity = link.identity
            assert identity is not None
            if identity.name not in texts:
                texts[identity.name] = _text(wanted, identity)
            text = texts[identity.name]
            if told != text:
                self._told[link.number] = link, text
                self._broker.output.say(link.number, Wanted(text))

    def _wanted(self) -> list[Filter] | None:
        """What anyone wants; None: too much to say."""
        broker = self._broker
        filters: dict[Filter, None] = dict.fromkeys(broker.live.router.subscriptions)
        for fact in broker.landscape.durables():
            filters.update(dict.fromkeys(parse(fact.durable.predicate)))
        if not broker.settings.is_forwarding:
            others = broker.routes.anyone_wants()
            if others is None:
                return None
            filters.update(dict.fromkeys(others))
        if len(filters) > WANTED_MAX:
            return None
        return list(reduce(Predicate(tuple(filters))))


def _text(wanted: list[Filter] | None, identity: Identity) -> str | None:
    """What a publisher is told: nothing of what it may not publish."""
    return None if wanted is None else str(Predicate(tuple(of_concern(identity, wanted))))
