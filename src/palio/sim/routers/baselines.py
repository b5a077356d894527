"""The baselines that routing by covering is compared with; both have the router's `step`.

`PlainRouter` floods subscriptions: each goes to every neighbour but the one it came from, whatever
covers it. `FloodingRouter` floods messages: each goes to every neighbour, and only the router of a
client looks at what the client wants.

    said[peer]   the filters that the peer wants from this router, in the order they came
    told[peer]   the filters that this router wants from the peer: what all others said
    (the same twice for advertisements)

What always holds after a step of `PlainRouter`: told[Y] is the union of said[X] for X other than Y
(with advertisements: of those that intersect one that Y said; a master gets all). An unsubscription takes back all
that its filter covers, so what is still wanted of that goes along in the same packet.
"""

from __future__ import annotations

from palio.errors import PalioError
from palio.model.advertisement import Advertisement
from palio.model.predicate import Filter
from palio.routing.packets import (
    Advertise,
    Event,
    Joined,
    Left,
    Packet,
    Peer,
    Publish,
    Restate,
    Role,
    Send,
    Subscribe,
    Tick,
    TopologyChanged,
    Unadvertise,
    Unsubscribe,
)
from palio.sim.routers.relations import advertisement_covers, covers, intersects

BELOW = (Role.CLIENT, Role.SLAVE)
"""Peers that get messages by match only, and are told nothing else."""


class PlainRouter:
    """Subscriptions go everywhere, messages where they are wanted."""

    def __init__(self, name: str, *, advertisements: bool = False) -> None:
        self.name = name
        self._by_advertisement = advertisements
        self._roles: dict[Peer, Role] = {}
        # Dicts serve as sets that keep an order: a run must not depend on hashes.
        self._said: dict[Peer, dict[Filter, None]] = {}
        self._told: dict[Peer, dict[Filter, None]] = {}
        self._advertised: dict[Peer, dict[Advertisement, None]] = {}
        self._passed_on: dict[Peer, dict[Advertisement, None]] = {}

    def step(self, event: Event) -> list[Send]:
        """Take an event; what is to be sent because of it."""
        if isinstance(event, Joined):
            return self._join(event.peer, event.role)
        if isinstance(event, Tick | TopologyChanged):
            return []
        if event.peer not in self._roles:
            raise PalioError(
                f"router {self.name} knows no peer {event.peer}: it must join before it is heard"
            )
        if isinstance(event, Left):
            for table in (self._roles, self._said, self._told, self._advertised, self._passed_on):
                table.pop(event.peer)
            return self._catch_up()
        return self._hear(event.peer, event.packet)

    @property
    def due(self) -> None:
        """Nothing is held: the baselines know no patterns."""
        return None

    @property
    def late(self) -> int:
        return 0

    @property
    def subscriptions(self) -> list[Filter]:
        """All filters that somebody said."""
        return list({f: None for said in self._said.values() for f in said})

    def subscribers(self, filter: Filter) -> set[Peer]:
        return {peer for peer, said in self._said.items() if filter in said}

    def forwards(self, filter: Filter) -> set[Peer]:
        return {peer for peer, told in self._told.items() if filter in told}

    def _join(self, peer: Peer, role: Role) -> list[Send]:
        self._roles[peer] = role
        self._said.setdefault(peer, {})
        self._advertised.setdefault(peer, {})
        self._told[peer] = self._due(peer)
        self._passed_on[peer] = self._advertisements_due(peer)
        if role in BELOW:
            return []
        return [Send(peer, Restate(tuple(self._told[peer]), tuple(self._passed_on[peer])))]

    def _hear(self, peer: Peer, packet: Packet) -> list[Send]:
        said, advertised = self._said[peer], self._advertised[peer]
        match packet:
            case Publish():
                return [Send(to, packet) for to in self._destinations(peer, packet)]
            case Subscribe(f):
                said[f] = None
            case Unsubscribe(f, instead):
                for other in [g for g in said if covers(f, g)]:
                    del said[other]
                said.update(dict.fromkeys(instead))
            case Advertise(a):
                advertised[a] = None
            case Unadvertise(a, replacements):
                for offered in [b for b in advertised if advertisement_covers(a, b)]:
                    del advertised[offered]
                advertised.update(dict.fromkeys(replacements))
            case Restate(subscriptions, advertisements):
                self._said[peer] = dict.fromkeys(subscriptions)
                self._advertised[peer] = dict.fromkeys(advertisements)
        return self._catch_up()

    def _destinations(self, source: Peer, publication: Publish) -> list[Peer]:
        message = publication.message
        return [
            peer
            for peer, role in self._roles.items()
            if peer != source
            and (role is Role.MASTER or any(f.matches(message) for f in self._said[peer]))
        ]

    def _hears_subscriptions(self, role: Role) -> bool:
        return role not in BELOW

    def _due(self, peer: Peer) -> dict[Filter, None]:
        """What this peer is to be told."""
        if not self._hears_subscriptions(self._roles[peer]):
            return {}
        wanted = {f: None for other, said in self._said.items() if other != peer for f in said}
        if not self._by_advertisement or self._roles[peer] is Role.MASTER:
            return wanted
        offers = self._advertised[peer]
        return {f: None for f in wanted if any(intersects(a, f) for a in offers)}

    def _advertisements_due(self, peer: Peer) -> dict[Advertisement, None]:
        if self._roles[peer] in BELOW:
            return {}
        offers = self._advertised.items()
        return {a: None for other, offered in offers if other != peer for a in offered}

    def _catch_up(self) -> list[Send]:
        """Tell every peer what has changed for it."""
        sends: list[Send] = []
        for peer, role in self._roles.items():
            if role in BELOW:
                continue
            offered, offers = self._passed_on[peer], self._advertisements_due(peer)
            if offered.keys() != offers.keys():
                for a in [a for a in offered if a not in offers]:
                    still = tuple(b for b in offered if b in offers and advertisement_covers(a, b))
                    sends.append(Send(peer, Unadvertise(a, still)))
                sends.extend(Send(peer, Advertise(a)) for a in offers if a not in offered)
                self._passed_on[peer] = offers
            told, due = self._told[peer], self._due(peer)
            if told.keys() != due.keys():
                for f in [f for f in told if f not in due]:
                    left = tuple(g for g in told if g in due and covers(f, g))
                    sends.append(Send(peer, Unsubscribe(f, left)))
                sends.extend(Send(peer, Subscribe(f)) for f in due if f not in told)
                self._told[peer] = due
        return sends


class FloodingRouter(PlainRouter):
    """Messages go everywhere, but to slaves as to applications: so only a master is told
    subscriptions."""

    def _hears_subscriptions(self, role: Role) -> bool:
        return role is Role.MASTER

    def _destinations(self, source: Peer, publication: Publish) -> list[Peer]:
        message = publication.message
        return [
            peer
            for peer, role in self._roles.items()
            if peer != source
            and (role not in BELOW or any(f.matches(message) for f in self._said[peer]))
        ]
