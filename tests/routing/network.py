"""Routers joined by queues, in memory, and what a client is to get by brute force.

A queue keeps the order of its packets; which queue goes on next is up to the test. Clients are at
their router: what they say is heard at once, what they get they have at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from palio import Advertisement, Filter, Message, covers, intersects
from palio.routing import (
    Advertise,
    Joined,
    Left,
    Packet,
    Publish,
    Received,
    Restate,
    Role,
    Router,
    Send,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from palio.routing.subscriptions import Subscriptions


@dataclass
class Client:
    """What a client wants and advertises now, as it knows from what it said."""

    name: str
    router: str
    wanted: list[Filter] = field(default_factory=list)
    advertised: list[Advertisement] = field(default_factory=list)

    def wants(self, message: Message) -> bool:
        return any(filter.matches(message) for filter in self.wanted)

    def may_send(self, message: Message) -> bool:
        return any(advertisement.matches(message) for advertisement in self.advertised)


def said(known: list, item: Filter | Advertisement) -> list:
    """What stands after one more was said: the rule of 2000, 3.5, pair by pair."""
    if any(covers(other, item) for other in known):
        return known
    return [*(other for other in known if not covers(item, other)), item]


def cancelled(known: list, item: Filter | Advertisement) -> list:
    return [other for other in known if not covers(item, other)]


class Network:
    """A tree of routers. `edges` are (parent, child); of `slaves`, the parent is the master."""

    def __init__(
        self,
        routers: Iterable[str],
        edges: Iterable[tuple[str, str]],
        *,
        advertisements: bool = False,
        slaves: Container[str] = (),
    ) -> None:
        self.advertisements = advertisements
        self.slaves = slaves
        self.routers = {name: Router(name, advertisements=advertisements) for name in routers}
        self.edges = list(edges)
        self.queues: dict[tuple[str, str], deque[Packet]] = {}
        self.clients: dict[str, Client] = {}
        self.got: list[tuple[str, Publish]] = []
        self.packets = 0  # that went from router to router, messages apart
        for edge in self.edges:
            self.connect(*edge)

    # ---- links

    def connect(self, parent: str, child: str) -> None:
        """Join two routers, or join them again: what was on its way is lost."""
        self.queues[parent, child] = deque()
        self.queues[child, parent] = deque()
        is_below = child in self.slaves
        down, up = (Role.SLAVE, Role.MASTER) if is_below else (Role.NEIGHBOUR, Role.NEIGHBOUR)
        self.send(parent, self.routers[parent].step(Joined(child, down)))
        self.send(child, self.routers[child].step(Joined(parent, up)))

    def waiting(self) -> list[tuple[str, str]]:
        """The queues that hold packets."""
        return [link for link, queue in self.queues.items() if queue]

    def advance(self, link: tuple[str, str]) -> None:
        """Hand over the first packet of a queue."""
        source, target = link
        packet = self.queues[link].popleft()
        self.packets += not isinstance(packet, Publish)
        self.send(target, self.routers[target].step(Received(source, packet)))

    def run(self) -> None:
        while waiting := self.waiting():
            self.advance(waiting[0])

    def send(self, source: str, sends: Iterable[Send]) -> None:
        for there, packet in ((send.peer, send.packet) for send in sends):
            if there in self.routers:
                self.queues[source, there].append(packet)
                continue
            assert isinstance(packet, Publish), "clients get messages only"
            client = self.clients[there]
            assert client.router == source
            assert client.wants(packet.message), f"{there} does not want {packet.message}"
            assert (there, packet) not in self.got, f"{there} got {packet.message} twice"
            self.got.append((there, packet))

    # ---- clients

    def join(self, name: str, router: str) -> Client:
        client = self.clients[name] = Client(name, router)
        self.send(router, self.routers[router].step(Joined(name)))
        return client

    def leave(self, client: Client) -> None:
        del self.clients[client.name]
        self.send(client.router, self.routers[client.router].step(Left(client.name)))

    def tell(self, client: Client, packet: Packet) -> None:
        """A client says something to its router."""
        if isinstance(packet, Subscribe):
            client.wanted = said(client.wanted, packet.filter)
        elif isinstance(packet, Unsubscribe):
            client.wanted = cancelled(client.wanted, packet.filter)
        elif isinstance(packet, Advertise):
            client.advertised = said(client.advertised, packet.advertisement)
        elif isinstance(packet, Unadvertise):
            client.advertised = cancelled(client.advertised, packet.advertisement)
        elif isinstance(packet, Restate):
            client.wanted, client.advertised = [], []
            for filter in packet.subscriptions:
                client.wanted = said(client.wanted, filter)
            for advertisement in packet.advertisements:
                client.advertised = said(client.advertised, advertisement)
        router = self.routers[client.router]
        self.send(client.router, router.step(Received(client.name, packet)))


# ---- what routers are to know


def check_forwards(router: Router, advertisements: bool) -> None:
    """Formula (1), from scratch: forwarded are the eligible that no other eligible covers."""
    for peer, role in router.peers.items():
        heard = router.advertisements.said(peer)
        selective = advertisements and role is Role.NEIGHBOUR
        wanted = [
            f
            for f in _heard_elsewhere(router.subscriptions, peer)
            if not selective or any(intersects(a, f) for a in heard)
        ]
        allowed = list(_heard_elsewhere(router.advertisements, peer))
        if role in (Role.CLIENT, Role.SLAVE):
            wanted, allowed = [], []
        assert set(router.subscriptions.forwarded(peer)) == _maximal(wanted)
        assert set(router.advertisements.forwarded(peer)) == _maximal(allowed)


def _heard_elsewhere(items: Subscriptions, peer: str) -> Iterator[Filter | Advertisement]:
    return (item for item in items if items.subscribers(item) - {peer})


def _maximal(items: Iterable[Filter | Advertisement]) -> set[Filter | Advertisement]:
    known = list(items)
    return {i for i in known if not any(o != i and covers(o, i) for o in known)}


def check_ends(network: Network) -> None:
    """What one end of a link forwarded is what the other end heard; a master wants everything."""
    for a, b in network.queues:
        ours, theirs = network.routers[a], network.routers[b]
        wanted = set(ours.subscriptions.forwarded(b))
        if theirs.peers[a] is Role.MASTER:
            assert not wanted
            wanted = {Filter(())}
        assert wanted == set(theirs.subscriptions.said(a))
        assert set(ours.advertisements.forwarded(b)) == set(theirs.advertisements.said(a))


def check_clients(network: Network) -> None:
    """Routers know of their clients what these said; of two equal items, one or the other."""
    for client in network.clients.values():
        router = network.routers[client.router]
        assert _are_equal(router.subscriptions.said(client.name), client.wanted)
        assert _are_equal(router.advertisements.said(client.name), client.advertised)


def _are_equal(some: Iterable[Filter | Advertisement], others: Iterable[Any]) -> bool:
    """Whether each item equals one of the others, as covering tells, and the reverse."""
    some, others = set(some), set(others)
    return len(some) == len(others) and all(
        a in others or any(covers(a, b) and covers(b, a) for b in others) for a in some
    )


def check_destinations(router: Router, message: Message) -> None:
    """The data path says what the poset says, and what each filter says by itself."""
    found = set(router.destinations(message))
    items = router.subscriptions
    by_poset = [items.subscribers(f) for f in items.poset.matching(message)]
    plain = {p for p in router.peers if any(f.matches(message) for f in items.said(p))}
    assert found == set().union(*by_poset) == plain
