"""The applications at a broker: what they ask for, and what they are told.

    Subscribe   live: at once; durable: when it is safe (homes.py)
    Unsubscribe, Acknowledge, Credit, Advertise, Unadvertise
    Quench      Wanted now, and when it has changed, at most every so often (quenching.py)
    Explain, Show

A client is an identity (access.py) and a name of its own choice. Both together are the publisher of
its messages; the identity alone owns durable subscriptions and groups, so that several clients of
one application can share them. What an identity may not do is refused with a sentence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from palio.errors import InvalidPredicate, PalioError
from palio.model.advertisement import Advertisement
from palio.model.language import parse
from palio.model.message import Message
from palio.model.predicate import Constraint, Predicate
from palio.protocol.access import (
    Access,
    Identity,
    check_admin,
    check_quench,
    check_subscribe,
    check_watch,
)
from palio.protocol.explaining import Explaining, is_named, why
from palio.protocol.frames import BrokenFrame
from palio.protocol.handshake import check_client
from palio.protocol.homes import Homes
from palio.protocol.quenching import Quenching
from palio.protocol.words import (
    Acknowledge,
    Advertise,
    Credit,
    Done,
    Ended,
    Explain,
    Forget,
    Hello,
    Quench,
    Refused,
    Show,
    Shown,
    Subscribe,
    Subscribed,
    Unadvertise,
    Unsubscribe,
    Unsubscribed,
    Word,
)
from palio.routing import packets
from palio.routing.patterns.language import parse as parse_pattern
from palio.routing.patterns.pattern import Pattern

if TYPE_CHECKING:
    from palio.protocol.broker import Broker, Link

_ALL_CREDIT = 1 << 40
"""More than anybody has."""


class _Client:
    """What is known of a client beyond its link."""

    __slots__ = ("advertised", "durable", "link", "pressed", "subscribed", "watched")

    def __init__(self, link: Link) -> None:
        self.link = link
        self.subscribed: dict[int, Predicate | None] = {}
        """Live subscriptions and durable ones; None: a pattern."""
        self.watched: dict[int, Pattern] = {}
        self.durable: dict[int, str] = {}
        self.advertised: dict[int, Advertisement] = {}
        self.pressed: set[int] = set()
        """Subscriptions whose credit was taken while much waits to be sent."""


class Clients:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.access = broker.settings.access
        self.explaining = Explaining(broker)
        self.quenching = Quenching(broker)
        self._clients: dict[int, _Client] = {}
        self._publishers: dict[str, Link] = {}
        self.homes = Homes(broker, self)

    def __len__(self) -> int:
        return len(self._clients)

    def link_of(self, publisher: str) -> Link | None:
        return self._publishers.get(publisher)

    # ---- coming and going

    def welcome(self, link: Link, hello: Hello) -> None:
        check_client(hello)
        identity = self.access.identify(hello.token, link.certificate)
        self._identify(link, identity)
        link.publisher = f"{identity.name}/{hello.name}"
        known = self._publishers.get(link.publisher)
        if known is not None:
            self._broker.hang_up(known, f"client {hello.name!r} has a newer connection")
        self._publishers[link.publisher] = link
        self._clients[link.number] = _Client(link)
        self._broker.traffic.flush()
        self._broker.welcome(link)

    def _identify(self, link: Link, identity: Identity) -> None:
        link.identity = identity
        link.is_bound = not identity.publishes_anything

    def leave(self, link: Link) -> None:
        self._broker.traffic.flush()
        client = self._clients.pop(link.number)
        for id in list(client.subscribed):
            self._end(client, id)
        for id in list(client.advertised):
            self._unadvertise(client, id)
        if self._publishers.get(link.publisher) is link:
            del self._publishers[link.publisher]
            self._broker.traffic.forget(link.publisher)
        self.explaining.leave(link)
        self.quenching.leave(link)

    def press(self, link: Link, pressed: bool) -> None:
        """While a link is pressed, its subscriptions are as those without credit."""
        link.is_pressed = pressed
        client = self._clients[link.number]
        if pressed:
            client.pressed = set(client.subscribed)
        for id in client.pressed:
            self._broker.live.pay(link.number, id, -_ALL_CREDIT if pressed else _ALL_CREDIT)
            self._broker.deposit.pay((link.number, id), -_ALL_CREDIT if pressed else _ALL_CREDIT)

    def reload(self, access: Access) -> None:
        """Identities and grants are others now: what they do not allow ends."""
        self.access = access
        known = {identity.name: identity for identity in access.identities()}
        for client in list(self._clients.values()):
            link = client.link
            assert link.identity is not None
            identity = known.get(link.identity.name)
            if identity is None:
                self._broker.hang_up(
                    link, f"{link.identity.name!r} is no more among the identities"
                )
                continue
            self._identify(link, identity)
            for id, predicate in list(client.subscribed.items()):
                try:
                    if predicate is not None:
                        check_subscribe(identity, predicate)
                    else:
                        check_watch(identity, client.watched[id])
                except PalioError as error:
                    self.end(link.number, id, str(error))

    # ---- requests

    def hear(self, link: Link, word: Word) -> None:
        client = self._clients[link.number]
        if isinstance(word, Credit):
            self._broker.live.pay(link.number, word.id, _positive(word.count))
        elif isinstance(word, Acknowledge):
            name = client.durable.get(word.id)
            if name is not None:
                self._broker.deposit.acknowledge(
                    (link.number, word.id), word.positions, self._broker.now_us
                )
        elif isinstance(word, Subscribe | Unsubscribe | Advertise | Unadvertise):
            self._broker.traffic.flush()
            self._answer(client, word)
        elif isinstance(word, Quench | Explain | Show | Forget):
            self._answer(client, word)
        else:
            raise BrokenFrame(f"{type(word).__name__} is nothing that a client says")

    def _answer(
        self,
        client: _Client,
        word: Subscribe | Unsubscribe | Advertise | Unadvertise | Quench | Explain | Show | Forget,
    ) -> None:
        link = client.link.number
        say = self._broker.output.say
        try:
            if isinstance(word, Subscribe):
                self._subscribe(client, word)
            elif isinstance(word, Unsubscribe):
                if self._unsubscribe(client, word):
                    say(link, Unsubscribed(word.id))
            elif isinstance(word, Advertise):
                self._advertise(client, word)
                say(link, Done(word.id))
            elif isinstance(word, Unadvertise):
                self._unadvertise(client, word.id)
                say(link, Done(word.id))
            elif isinstance(word, Quench):
                assert client.link.identity is not None
                check_quench(client.link.identity)
                say(link, Done(word.id))
                self.quenching.ask(client.link, word.on)
            elif isinstance(word, Forget):
                assert client.link.identity is not None
                check_admin(client.link.identity, "forget a broker")
                self._broker.neighbours.forget(word.broker)
                say(link, Done(word.id))
            elif isinstance(word, Explain):
                self.explaining.begin(client.link, word)
            else:
                assert client.link.identity is not None
                check_admin(client.link.identity, "see the network")
                say(link, Shown(word.id, self._broker.landscape.places()))
        except PalioError as error:
            say(link, Refused(word.id, str(error)))

    # ---- subscriptions

    def _subscribe(self, client: _Client, word: Subscribe) -> None:
        link, identity = client.link.number, client.link.identity
        assert identity is not None
        if word.id in client.subscribed:
            raise PalioError(f"subscription {word.id} is there already; choose another id")
        if len(client.subscribed) >= self._broker.settings.subscriptions_max:
            raise PalioError(
                f"a client may have {self._broker.settings.subscriptions_max} subscriptions here"
            )
        if bool(word.pattern) == bool(word.predicate):
            raise PalioError("a subscription has a predicate or a pattern, and not both")
        if word.pattern:
            self._watch(client, identity, word)
            return
        predicate = parse(word.predicate)
        check_subscribe(identity, predicate)
        if word.durable:
            self._subscribe_durably(client, identity, word, predicate)
            return
        if word.since is not None:
            raise PalioError("only a durable subscription starts in the past; give it a name")
        shared = f"shared\n{identity.name}\n{word.group}\n{predicate}" if word.group else ""
        self._broker.live.subscribe(
            link,
            word.id,
            predicate.filters,
            credit=_positive(word.credit),
            ends=word.full == "end",
            group=shared,
        )
        client.subscribed[word.id] = predicate
        self._broker.output.say(link, Subscribed(word.id))
        self.quenching.soon()

    def _watch(self, client: _Client, identity: Identity, word: Subscribe) -> None:
        if word.durable or word.group or word.since is not None:
            raise PalioError("a pattern is watched while the client is there: no durable, no group")
        pattern = parse_pattern(word.pattern)
        check_watch(identity, pattern)
        self._broker.live.watch(client.link.number, word.id, pattern)
        client.subscribed[word.id], client.watched[word.id] = None, pattern
        self._broker.output.say(client.link.number, Subscribed(word.id))
        self.quenching.soon()

    def _subscribe_durably(
        self, client: _Client, identity: Identity, word: Subscribe, predicate: Predicate
    ) -> None:
        link, credit = client.link.number, _positive(word.credit)
        name = self.homes.open(identity, word, predicate)
        for other in self._sharing(name) if not word.group else []:
            self.end(*other, "another client has taken it over")
        client.subscribed[word.id] = predicate
        client.durable[word.id] = name
        self._broker.live.subscribe(
            link,
            word.id,
            predicate.filters,
            credit=credit,
            group=f"durable\n{name}",
            only_live=True,
        )
        self.homes.attach(name, link, word.id, credit)
        self.quenching.soon()

    def _sharing(self, name: str) -> list[tuple[int, int]]:
        return [
            (link, id)
            for link, client in self._clients.items()
            for id, own in client.durable.items()
            if own == name
        ]

    def _unsubscribe(self, client: _Client, word: Unsubscribe) -> bool:
        """True: it is done; otherwise it is when the commit is."""
        name = client.durable.get(word.id)
        if word.id not in client.subscribed:
            raise PalioError(f"there is no subscription {word.id}")
        self._end(client, word.id)
        self.quenching.soon()
        if name is None or not word.forget:
            return True
        for link, id in self._sharing(name):
            self.end(link, id, "it was forgotten by another client")
        return not self.homes.forget(name, (client.link.number, word.id))

    def is_there(self, link: int) -> bool:
        return link in self._clients

    def consumes(self, link: int, id: int, name: str) -> bool:
        """Is this subscription of a client the durable one of this name?"""
        client = self._clients.get(link)
        return client is not None and client.durable.get(id) == name

    def end(self, link: int, id: int, reason: str) -> None:
        """A subscription is over, and its client is told why."""
        self._broker.output.say(link, Ended(id, reason))
        self._end(self._clients[link], id)

    def _end(self, client: _Client, id: int) -> None:
        client.subscribed.pop(id, None)
        client.watched.pop(id, None)
        client.pressed.discard(id)
        self._broker.live.unsubscribe(client.link.number, id)
        if client.durable.pop(id, None) is not None:
            self._broker.deposit.detach((client.link.number, id))

    # ---- advertisements

    def _advertise(self, client: _Client, word: Advertise) -> None:
        self._unadvertise(client, word.id)
        made = Advertisement(tuple(_single(text) for text in word.constraints))
        client.advertised[word.id] = made
        self._broker.live.advertise(_advertiser(client), packets.Advertise(made))

    def _unadvertise(self, client: _Client, id: int) -> None:
        if client.advertised.pop(id, None) is not None:
            rest = tuple(client.advertised.values())
            if rest:
                restate = packets.Restate(advertisements=rest)
                self._broker.live.advertise(_advertiser(client), restate)
            else:
                self._broker.live.part(_advertiser(client))

    # ---- time

    @property
    def deadline_us(self) -> int | None:
        known = (self.quenching.deadline_us, self.explaining.deadline_us)
        return min((at for at in known if at is not None), default=None)

    def wake(self, now_us: int) -> None:
        self.explaining.wake(now_us)
        self.quenching.wake(now_us)

    # ---- explanations and the map

    def reasons(self, message: Message, subscription: str) -> list[tuple[str, str]]:
        """Who here gets a message and why; of `subscription` also why not."""
        named: list[tuple[str, Predicate]] = [
            (f"{client.link.publisher}#{id}", predicate)
            for client in self._clients.values()
            for id, predicate in client.subscribed.items()
            if predicate is not None and id not in client.durable
        ]
        named += self.homes.predicates()
        return [
            (name, why(predicate, message))
            for name, predicate in named
            if predicate.matches(message) or is_named(name, subscription)
        ]


def _advertiser(client: _Client) -> str:
    return f"a{client.link.number}"


def _single(text: str) -> Constraint:
    predicate = parse(text)
    if len(predicate) != 1 or len(predicate.filters[0]) != 1:
        raise InvalidPredicate(
            f"{text}: an advertisement is a list of single constraints; write AND as two of them"
        )
    return predicate.filters[0].constraints[0]


def _positive(count: int) -> int:
    if not 0 < count <= 1 << 30:
        raise PalioError(f"credit is a number from 1 to {1 << 30}, not {count}")
    return count
