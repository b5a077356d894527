"""Memory and messages of the routing schemes in brokers: `python -m palio.lab.bench.routing_memory`.

    cores of brokers in one process, joined by a topology ─┬─ subscriptions at each: what does each hold?
                                                           ├─ publications: how many packets and bytes?
                                                           └─ one new filter, one lost link: what do they cost?

No clock and no sockets: the figures are counts and the same on every machine. All schemes get the same
topology (power law), subscriptions (equality on a name by Zipf's law, and a bound) and messages.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, count
from random import Random
from typing import Final

from rich.console import Console

from palio.errors import InvalidTopology
from palio.lab.bench.harness import Column, Result, table
from palio.lab.memory_store import MemoryStore
from palio.protocol.broker.access import EVERYTHING, Access, Identity
from palio.protocol.broker.broker import Broker
from palio.protocol.broker.settings import Neighbour, Settings
from palio.protocol.interfaces import NextHop, RemoteBroker
from palio.protocol.wire.control import VERSION, Hello, SubscribeRequest
from palio.protocol.wire.frames import control_frame, message_frame
from palio.protocol.wire.headers import PublishHeader
from palio.protocol.wire.routing_memory import RoutingMemory
from palio.routing.generators import power_law
from palio.routing.topology import Topology

SCHEMES: Final = ("PSF", "iPS", "PIF", "DRP")
NAMES, BOUNDS = 20, 40
"""Different names, and bounds, in subscriptions."""
CLIENT = 1  # the link of the client of each broker


@dataclass(frozen=True, slots=True)
class RoutingMemoryResult(Result):
    """One scheme. Amounts are means over the brokers; `most` is the largest of them."""

    scheme: str
    brokers: int
    subscriptions: int
    predicates: float
    constraints: float
    bytes: float
    bytes_most: int
    formula_bytes: float
    alpha: float
    database_bytes: float
    setup_bytes: int
    """Between brokers, until all know all."""
    packets_per_message: float
    bytes_per_message: float
    """Between brokers."""
    matched_per_message: float
    """Brokers that look a message up."""
    filter_bytes: int
    """Between brokers, after one new subscription."""
    filter_changes: int
    """Of filters in all tables, after one new subscription."""
    link_bytes: int
    """Between brokers, after a link is lost."""
    link_changes: int


class BrokerMesh:
    """Brokers with one routing scheme, joined as a topology says, and a client at each."""

    def __init__(self, scheme: str, net: Topology) -> None:
        self.now_us = 1_000_000_000
        self.bytes = 0
        """Between brokers, so far."""
        self._numbers = count(1)
        access = Access(anonymous=Identity("anybody", EVERYTHING, EVERYTHING))
        self.brokers = {}
        for i, name in enumerate(net.nodes):
            secrets = {
                other: Neighbour("-".join(sorted((name, other))).encode())
                for other in net.neighbours(name)
            }
            settings = Settings(name, access, secrets, routing=scheme)
            self.brokers[name] = Broker(settings, MemoryStore(), self.now_us, _numbered(1000 * i))
        self._busy: dict[str, None] = dict.fromkeys(net.nodes)
        self._ends: dict[tuple[str, int], tuple[str, int]] = {}
        self._links: dict[tuple[str, str], tuple[int, int]] = {}
        numbers = count(10)
        for a, b, _ in net.edges:
            x, y = self._links[a, b] = next(numbers), next(numbers)
            self._ends[a, x], self._ends[b, y] = (b, y), (a, x)
            self.brokers[b].open(y, self.now_us)
            self.brokers[a].open(x, self.now_us, dials=b)
        self.run()
        for name, broker in self.brokers.items():
            broker.open(CLIENT, self.now_us)
            self._receive(name, CLIENT, control_frame(Hello(VERSION, "client", name)))
        self.run()

    def subscribe(self, name: str, id: int, predicate: str) -> None:
        self._receive(name, CLIENT, control_frame(SubscribeRequest(id, predicate)))

    def publish(self, name: str, attributes: bytes) -> None:
        header = PublishHeader(next(self._numbers), self.now_us, False)
        self._receive(name, CLIENT, message_frame(header, attributes, b""))

    def cut(self, a: str, b: str) -> None:
        """A link is lost, and both ends see it."""
        for name, number in zip((a, b), self._links[a, b], strict=True):
            self._ends.pop((name, number))
            self.brokers[name].close(number, self.now_us)
            self._busy[name] = None

    def run(self) -> None:
        """Until nothing happens any more, in rounds: all brokers have a turn, then all receive."""
        self.now_us += 1000
        while self._busy:
            busy, self._busy = self._busy, {}
            sent: list[tuple[tuple[str, int], bytes]] = []
            for name in busy:
                effects = self.brokers[name].take()
                for link, frames in effects.writes.items():
                    end = self._ends.get((name, link))
                    if end is not None:
                        sent.append((end, b"".join(frames)))
                if effects.commit is not None:
                    self.brokers[name].committed(effects.commit, self.now_us)
                if effects.commit is not None or effects.has_more:
                    self._busy[name] = None
            for end, data in sent:
                self.bytes += len(data)
                self._receive(*end, data)

    def _receive(self, name: str, link: int, data: bytes) -> None:
        self._busy[name] = None
        self.brokers[name].receive(link, data, self.now_us)

    def memories(self) -> list[RoutingMemory]:
        return [broker.parts.view.memory() for broker in self.brokers.values()]

    def counted(self, what: Callable[[Broker], int]) -> int:
        return sum(map(what, self.brokers.values()))

    def table_filters(self) -> list[frozenset[object]]:
        """The filters of the entries for other brokers."""
        return [
            frozenset(
                (interface, found)
                for interface in broker.parts.table.interfaces
                if isinstance(interface, NextHop | RemoteBroker)
                for found in broker.parts.table.filters_of(interface)
            )
            for broker in self.brokers.values()
        ]


def measure(
    scheme: str, brokers: int = 50, subscriptions: int = 20, messages: int = 300, seed: int = 7
) -> RoutingMemoryResult:
    """Bring up a network with a scheme, and measure it."""
    rng = Random(seed)
    drawn = power_law(brokers, rng)
    net = Topology.from_edges([(f"b{u}", f"b{v}", 1.0) for u, v, _ in drawn.edges])
    mesh = BrokerMesh(scheme, net)
    for name in net.nodes:
        for id in range(1, subscriptions + 1):
            mesh.subscribe(name, id, _predicate(rng))
    mesh.run()
    setup_bytes, held = mesh.bytes, mesh.memories()
    for _ in range(messages):
        mesh.publish(rng.choice(net.nodes), _message(rng))
    mesh.run()
    message_bytes = mesh.bytes - setup_bytes
    forwarded = mesh.counted(lambda broker: broker.snapshot().live.forwarded)
    matched = mesh.counted(lambda broker: broker.snapshot().live.received)

    before, start = mesh.table_filters(), mesh.bytes
    mesh.subscribe(net.nodes[-1], subscriptions + 1, "name = 'n0' AND price < 7777")
    mesh.run()
    filter_changes, filter_bytes = _changes(before, mesh.table_filters()), mesh.bytes - start
    before, start = mesh.table_filters(), mesh.bytes
    mesh.cut(*_redundant(net))
    mesh.run()
    total = [sum(getattr(one, field) for one in held) for field in ("bytes", "formula_bytes")]
    return RoutingMemoryResult(
        scheme=scheme,
        brokers=brokers,
        subscriptions=subscriptions,
        predicates=sum(one.predicates for one in held) / brokers,
        constraints=sum(one.constraints for one in held) / brokers,
        bytes=total[0] / brokers,
        bytes_most=max(one.bytes for one in held),
        formula_bytes=total[1] / brokers,
        alpha=total[0] / total[1] if total[1] else 1.0,
        database_bytes=sum(one.database_bytes for one in held) / brokers,
        setup_bytes=setup_bytes,
        packets_per_message=forwarded / messages,
        bytes_per_message=message_bytes / messages,
        matched_per_message=1 + matched / messages,
        filter_bytes=filter_bytes,
        filter_changes=filter_changes,
        link_bytes=mesh.bytes - start,
        link_changes=_changes(before, mesh.table_filters()),
    )


_ZIPF = list(accumulate(1 / (i + 1) for i in range(NAMES)))


def _predicate(rng: Random) -> str:
    (name,) = rng.choices(range(NAMES), cum_weights=_ZIPF)
    return f"name = 'n{name}' AND price < {100 * rng.randint(1, BOUNDS)}"


def _message(rng: Random) -> bytes:
    (name,) = rng.choices(range(NAMES), cum_weights=_ZIPF)
    return b'{"name":"n%d","price":%d}' % (name, rng.randrange(100 * BOUNDS))


def _redundant(net: Topology) -> tuple[str, str]:
    """A link without which the network still hangs together."""
    for u, v, _ in net.edges:
        left = [edge for edge in net.edges if edge[:2] != (u, v)]
        try:
            if len(Topology.from_edges(left)) == len(net):
                return u, v
        except InvalidTopology:  # not connected
            continue
    raise InvalidTopology("every link of this network is a bridge; take one with cycles")


def _changes(before: list[frozenset[object]], after: list[frozenset[object]]) -> int:
    return sum(len(a ^ b) for a, b in zip(before, after, strict=True))


def _numbered(first: int) -> Callable[[int], bytes]:
    """Bytes that are different each time, in place of random ones."""
    numbers = count(first)
    return lambda size: next(numbers).to_bytes(size, "little")


COLUMNS: Final[list[Column[RoutingMemoryResult]]] = [
    Column("scheme", lambda r: r.scheme),
    Column("predicates", lambda r: f"{r.predicates:.1f}"),
    Column("constraints", lambda r: f"{r.constraints:,.0f}"),
    Column("bytes", lambda r: f"{r.bytes:,.0f}"),
    Column("most", lambda r: f"{r.bytes_most:,}"),
    Column("formula", lambda r: f"{r.formula_bytes:,.0f}"),
    Column("alpha", lambda r: f"{r.alpha:.2f}"),
    Column("database", lambda r: f"{r.database_bytes:,.0f}"),
    Column("setup bytes", lambda r: f"{r.setup_bytes:,}"),
    Column("packets", lambda r: f"{r.packets_per_message:.2f}"),
    Column("packet bytes", lambda r: f"{r.bytes_per_message:,.0f}"),
    Column("matched", lambda r: f"{r.matched_per_message:.2f}"),
    Column("filter: bytes", lambda r: f"{r.filter_bytes:,}"),
    Column("changes", lambda r: f"{r.filter_changes:,}"),
    Column("link: bytes", lambda r: f"{r.link_bytes:,}"),
    Column("changes", lambda r: f"{r.link_changes:,}"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description="memory and messages of the routing schemes")
    parser.add_argument("--brokers", type=int, default=50)
    parser.add_argument("--subscriptions", type=int, default=20, help="of each broker")
    parser.add_argument("--messages", type=int, default=300)
    given = parser.parse_args()
    results = [
        measure(scheme, given.brokers, given.subscriptions, given.messages) for scheme in SCHEMES
    ]
    title = f"{given.brokers} brokers, {given.subscriptions} subscriptions each: means"
    Console(width=200).print(table(title, COLUMNS, results))


if __name__ == "__main__":
    main()
