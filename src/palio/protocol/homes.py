"""The durable subscriptions that live at a broker.

    open ──▶ deposit ──(commit)──▶ created: all brokers are told, and who asked    Subscribed
    forget ▶ deposit ──(commit)──▶ ended: who asked, and who consumed it           Unsubscribed, Ended

One belongs to an identity, under a name of its own choice; a client consumes it while it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast

from palio.errors import PalioError
from palio.model.language import parse
from palio.model.message import Message
from palio.model.predicate import Predicate
from palio.protocol.access import Identity
from palio.protocol.durability import outgoing
from palio.protocol.durability.queues import Full
from palio.protocol.words import Durable, Subscribe, Subscribed, Unsubscribed

if TYPE_CHECKING:
    from palio.protocol.broker import Broker
    from palio.protocol.clients import Clients


class Homes:
    def __init__(self, broker: Broker, clients: Clients) -> None:
        self._broker = broker
        self._clients = clients
        self._durables: dict[str, Durable] = {}
        self._awaiting: dict[str, list[tuple[int, int]]] = {}
        """Those that are not safe yet: who waits for an answer, link and id."""
        self._leaving: dict[tuple[str, int], list[tuple[int, int]]] = {}
        """Name and version of those whose end is not safe yet: link and id of who waits."""
        self._version = 0
        for fact in broker.deposit.subscriptions():
            if fact.broker == broker.name:
                self._create(fact.name, fact.durable, fact.full)
                self._version = max(self._version, fact.durable.version)
                broker.landscape.set_durable(fact.name, fact.durable)

    def predicates(self) -> Iterable[tuple[str, Predicate]]:
        return [(name, parse(durable.predicate)) for name, durable in self._durables.items()]

    def open(self, identity: Identity, word: Subscribe, predicate: Predicate) -> str:
        """The name of the one that is asked for; it is made when it is not there."""
        broker = self._broker
        name = f"{identity.name}/{word.durable}"
        if name in self._durables and not broker.deposit.has(name):
            self._drop(name)  # it has ended, which is not safe yet; this will be another one
        known = self._durables.get(name)
        if known is not None and parse(known.predicate) != predicate:
            raise PalioError(
                f"the durable subscription {word.durable!r} has the predicate {known.predicate}; "
                "unsubscribe it with forget first, or choose another name"
            )
        if known is None:
            since = broker.now_us if word.since is None else word.since
            self._version = max(self._version + 1, broker.now_us)
            durable = Durable(str(predicate), since, self._version)
            self._create(name, durable, _full(word.full, broker.settings.full))
            if not broker.deposit.has(name):
                self._drop(name)
                raise PalioError("more messages waited for it from the past than its bound allows")
            self._awaiting[name] = []
        return name

    def attach(self, name: str, link: int, id: int, credit: int) -> None:
        """A client consumes it; it hears of that when the subscription is safe."""
        position = self._broker.deposit.attach(name, (link, id), credit)
        if name in self._awaiting:
            self._awaiting[name].append((link, id))
        else:
            self._confirm(link, id, name, position)

    def created(self, name: str) -> None:
        """It is safe: all brokers are told, and who asked for it."""
        durable = self._durables.get(name)
        if durable is None:
            return
        self._broker.landscape.set_durable(name, durable)
        for link, id in self._awaiting.pop(name, ()):
            if self._clients.consumes(link, id, name):
                self._confirm(link, id, name, 0)

    def forget(self, name: str, asked: tuple[int, int]) -> bool:
        """End it for good; False: there is none."""
        if name not in self._durables or not self._broker.deposit.has(name):
            return False
        self._leaving.setdefault((name, self._durables[name].version), []).append(asked)
        self._broker.deposit.remove(name, self._broker.now_us)
        self._drop(name)
        return True

    def ended(self, ended: outgoing.Ended) -> None:
        """It has ended for good, and that is safe: now everybody is told."""
        name, version = ended.name, ended.version
        for link, id in self._leaving.pop((name, version), ()):
            if self._clients.is_there(link):
                self._broker.output.say(link, Unsubscribed(id))
        for link, id in cast(list[tuple[int, int]], ended.consumers):
            if self._clients.consumes(link, id, name):
                self._clients.end(link, id, ended.reason)
        known = self._durables.get(name)
        if known is not None and known.version == version:
            self._drop(name)
        if name not in self._durables:  # otherwise the others hear of it with its successor
            self._broker.landscape.set_durable(name, None)

    def _create(self, name: str, durable: Durable, full: Full) -> None:
        broker, predicate = self._broker, parse(durable.predicate)
        broker.deposit.create(name, durable, full, matching(predicate), broker.now_us)
        broker.traffic.want(broker.name, name, predicate.filters, True)
        self._durables[name] = durable

    def _confirm(self, link: int, id: int, name: str, position: int) -> None:
        last, version = self._broker.deposit.last_position(name), self._durables[name].version
        self._broker.output.say(link, Subscribed(id, position, last, version))

    def _drop(self, name: str) -> None:
        """It gets no more messages."""
        durable = self._durables.pop(name, None)
        if durable is not None:
            self._awaiting.pop(name, None)
            filters = parse(durable.predicate).filters
            self._broker.traffic.want(self._broker.name, name, filters, False)


def matching(predicate: Predicate) -> Callable[[list[bytes]], list[bool]]:
    """Which of these attributes a predicate selects; for replays."""

    def matches(texts: list[bytes]) -> list[bool]:
        return [predicate.matches(Message.from_json(text)) for text in texts]

    return matches


def _full(word: str, default: Full) -> Full:
    if not word:
        return default
    try:
        return Full(word)
    except ValueError:
        raise PalioError(f"full is {', '.join(Full)}, not {word!r}") from None
