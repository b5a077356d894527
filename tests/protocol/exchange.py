"""Brokers and clients in one process, joined by perfect links: what is said arrives at once.

Time moves only when a test says so. A commit takes until the next round, so that what must wait
for it does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import count
from random import Random
from types import MappingProxyType

from palio.protocol.broker.access import EVERYTHING, Access, Identity
from palio.protocol.broker.broker import Broker
from palio.protocol.broker.effects import Close
from palio.protocol.broker.settings import Neighbour, Settings
from palio.protocol.client.events import Arrival
from palio.protocol.client.session import Session
from palio.protocol.wire.codes import NeighbourRole
from palio.protocol.wire.control import ControlMessage
from tests.protocol.durability.memory_store import MemoryStore

ANYBODY = Access(anonymous=Identity("anybody", EVERYTHING, EVERYTHING, admin=True))


class Client:
    """A session and what happened to it."""

    def __init__(self, exchange: Exchange, name: str, token: str = "") -> None:
        self.session = Session(name, token)
        self.exchange = exchange
        self.link = 0
        self.broker = ""
        self.control_messages: list[ControlMessage] = []
        self.arrivals: list[Arrival] = []
        self.acks = True

    def heard(self, kind: type) -> list[ControlMessage]:
        return [one for one in self.control_messages if isinstance(one, kind)]

    def publish(self, message: dict[str, object], body: bytes = b"", durable: bool = True) -> int:
        text = json.dumps(message).encode()
        return self.session.publisher.publish(text, body, self.exchange.now_us, durable)

    def got(self, id: int) -> list[dict[str, object]]:
        return [json.loads(a.frame.attributes) for a in self.arrivals if a.id == id]


class Exchange:
    def __init__(self, seed: int = 1, *, defers: bool = False) -> None:
        self.defers = defers
        self.now_us = 1_000_000_000
        self.brokers: dict[str, Broker] = {}
        self.stores: dict[str, MemoryStore] = {}
        self.clients: dict[int, Client] = {}
        self.settings: dict[str, Settings] = {}
        self._pairs: dict[tuple[str, int], tuple[str, int]] = {}
        self.commits: dict[str, int] = {}
        self.closed: list[tuple[str, Close]] = []
        self._links = count(1)
        self._random = Random(seed)

    # ---- making

    def add(
        self,
        name: str,
        neighbours: Iterable[str] | Mapping[str, NeighbourRole] = (),
        access: Access = ANYBODY,
        **options: object,
    ) -> Broker:
        """`neighbours` may have their roles."""
        known = neighbours if isinstance(neighbours, Mapping) else {}
        links = {
            other: Neighbour(_secret(name, other), role=known.get(other, NeighbourRole.PEER))
            for other in neighbours
        }
        self.settings[name] = Settings(name, access, links, **options)  # type: ignore[arg-type]
        self.stores[name] = MemoryStore()
        return self.start(name)

    def start(self, name: str) -> Broker:
        store = self.stores[name]
        made = Broker(
            self.settings[name], store, self.now_us, self._random.randbytes, defers=self.defers
        )
        self.brokers[name] = made
        return made

    def crash(self, name: str) -> None:
        """Lose everything that is not committed, and all connections."""
        for side in [s for s in self._pairs if s[0] == name]:
            self.cut(side)
        del self.brokers[name]
        self.commits.pop(name, None)
        self.stores[name].crash()

    def join(self, a: str, b: str) -> None:
        x, y = next(self._links), next(self._links)
        self._pairs[a, x], self._pairs[b, y] = (b, y), (a, x)
        self.brokers[b].open(y, self.now_us)
        self.brokers[a].open(x, self.now_us, dials=b)
        self.run()

    def cross(self, a: str, b: str) -> None:
        """Both dial at the same moment."""
        for x, y in ((a, b), (b, a)):
            m, n = next(self._links), next(self._links)
            self._pairs[x, m], self._pairs[y, n] = (y, n), (x, m)
            self.brokers[y].open(n, self.now_us)
            self.brokers[x].open(m, self.now_us, dials=y)
        self.run()

    def part(self, a: str, b: str) -> None:
        for side, other in list(self._pairs.items()):
            if (side[0], other[0]) == (a, b):
                self.cut(side)
        self.run()

    def cut(self, side: tuple[str, int]) -> None:
        other = self._pairs.pop(side, None)
        if other is None:
            return
        self._pairs.pop(other, None)
        for name, link in (side, other):
            if name in self.brokers:
                self.brokers[name].close(link, self.now_us)

    def client(self, broker: str, name: str, token: str = "") -> Client:
        made = Client(self, name, token)
        self.connect(made, broker)
        return made

    def connect(self, client: Client, broker: str) -> None:
        client.link, client.broker = next(self._links), broker
        self.clients[client.link] = client
        self.brokers[broker].open(client.link, self.now_us)
        client.session.opened(self.now_us)
        self.run()

    def disconnect(self, client: Client) -> None:
        del self.clients[client.link]
        if client.broker in self.brokers:
            self.brokers[client.broker].close(client.link, self.now_us)
        client.control_messages += client.session.closed()  # type: ignore[arg-type]
        self.run()

    # ---- running

    def run(self, rounds: int = 500) -> None:
        """Until nothing is said any more."""
        for _ in range(rounds):
            if not self.round():
                return
        raise AssertionError("it does not come to rest")

    def advance(self, us: int, step_us: int = 100_000) -> None:
        end_us = self.now_us + us
        while self.now_us < end_us:
            self.now_us += min(step_us, end_us - self.now_us)
            for broker in list(self.brokers.values()):
                if broker.deadline_us <= self.now_us:
                    broker.wake(self.now_us)
            for client in list(self.clients.values()):
                deadline_us = client.session.deadline_us
                if deadline_us is not None and deadline_us <= self.now_us:
                    self._happen(client, client.session.wake(self.now_us))
            self.run()

    def round(self) -> bool:
        busy = False
        for name in list(self.brokers):
            ticket = self.commits.pop(name, None)
            if ticket is not None:
                busy = True
                self.stores[name].end()
                self.brokers[name].committed(ticket, self.now_us)
        for name, broker in list(self.brokers.items()):
            effects = broker.take()
            if effects.commit is not None:
                busy = True
                self.stores[name].begin()
                self.commits[name] = effects.commit
            for link, frames in effects.writes.items():
                busy = True
                self._carry(name, link, b"".join(frames))
            for link, reason in effects.closes:
                busy = True
                self.closed.append((name, reason))
                self._close(name, link)
            for job in effects.jobs:
                busy = True
                job.run()
                broker.finished(job, self.now_us)
            busy |= effects.has_more
        for client in list(self.clients.values()):
            data = b"".join(client.session.take())
            if data:
                busy = True
                self.brokers[client.broker].receive(client.link, data, self.now_us)
        return busy

    def _carry(self, name: str, link: int, data: bytes) -> None:
        client = self.clients.get(link)
        if client is not None:
            self._happen(client, client.session.receive(data, self.now_us))
        elif (name, link) in self._pairs:
            other, number = self._pairs[name, link]
            if other in self.brokers:
                self.brokers[other].receive(number, data, self.now_us)

    def _close(self, name: str, link: int) -> None:
        client = self.clients.pop(link, None)
        if client is not None:
            self._happen(client, client.session.closed())
        else:
            self.cut((name, link))

    def _happen(self, client: Client, events: Iterable[object]) -> None:
        for one in events:
            if isinstance(one, Arrival):
                client.arrivals.append(one)
                if one.header.position and client.acks:
                    client.session.subscriptions.acknowledge(one.id, one.header.position)
                elif not one.header.position:
                    client.session.subscriptions.consumed(one.id)
            else:
                client.control_messages.append(one)  # type: ignore[arg-type]


def _secret(a: str, b: str) -> bytes:
    return f"the secret of {' and '.join(sorted((a, b)))}".encode()


def network(
    edges: Iterable[tuple[str, str]],
    masters: Mapping[str, str] = MappingProxyType({}),
    *,
    defers: bool = False,
    **options: object,
) -> Exchange:
    """Brokers joined by these links; `masters` has those of some."""
    exchange = Exchange(defers=defers)
    links = list(edges)
    names = dict.fromkeys(name for edge in links for name in edge)
    for name in names:
        neighbours = {
            other: _role(name, other, masters)
            for other in [b if a == name else a for a, b in links if name in (a, b)]
        }
        exchange.add(name, neighbours, **options)
    for a, b in links:
        exchange.join(a, b)
    return exchange


def _role(name: str, neighbour: str, masters: Mapping[str, str]) -> NeighbourRole:
    if masters.get(name) == neighbour:
        return NeighbourRole.MASTER
    return NeighbourRole.SLAVE if masters.get(neighbour) == name else NeighbourRole.PEER
