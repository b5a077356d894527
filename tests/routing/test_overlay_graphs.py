"""Subscription forwarding on any graph (2000, 3.5): exact delivery, no ghosts, also while links change."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from random import Random
from types import MappingProxyType

import pytest

from palio.model.advertisement import Advertisement
from palio.model.language import parse
from palio.model.message import Message
from palio.model.predicate import Filter
from palio.routing import (
    Advertise,
    Joined,
    Left,
    Packet,
    Publish,
    Received,
    Role,
    Router,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from palio.routing.packets import Send, TopologyChanged
from palio.routing.topology import Topology

FILTERS = [
    *(parse(f"x > {i}").filters[0] for i in range(4)),
    *(parse(f"x = {i}").filters[0] for i in range(5)),
    *(parse(f"x > {i} AND y = {i % 2}").filters[0] for i in range(3)),
]
ANYTHING = Advertisement(parse("x IS NOT NULL AND y IS NOT NULL").filters[0].constraints)
MESSAGES = [{"x": x, "y": y} for x in range(6) for y in range(2)]


class Graph:
    """Routers 0, 1, ... on a graph, each with one client; links deliver in order, in any interleaving."""

    def __init__(
        self,
        edges: set[tuple[str, str, int]],
        random: Random,
        *,
        advertisements: bool = False,
        masters: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`masters`: of some routers, the neighbour that is their master."""
        self.random = random
        self.masters = masters
        self.edges = edges
        self.names = sorted({end for edge in edges for end in edge[:2]})
        self.routers = {
            name: Router(name, advertisements=advertisements, graph=lambda node: node)
            for name in self.names
        }
        self.wanted: dict[str, dict[Filter, None]] = {name: {} for name in self.names}
        self.offered: dict[str, bool] = dict.fromkeys(self.names, False)
        self.lines: dict[tuple[str, str], deque[Packet]] = {}
        self.got: list[tuple[str, int]] = []
        self.packets = 0
        for name in self.names:
            self.do(name, self.routers[name].step(Joined(f"client of {name}")))
        for u, v, _ in sorted(edges):
            self.connect(u, v)
        self.reroute()
        self.run()

    def connect(self, u: str, v: str) -> None:
        for a, b in ((u, v), (v, u)):
            self.lines[a, b] = deque()
        for a, b in ((u, v), (v, u)):
            self.do(a, self.routers[a].step(Joined(b, self.role(a, b))))

    def role(self, name: str, peer: str) -> Role:
        """What a peer is to a router."""
        if self.masters.get(name) == peer:
            return Role.MASTER
        return Role.SLAVE if self.masters.get(peer) == name else Role.NEIGHBOUR

    def cut(self, u: str, v: str) -> None:
        for a, b in ((u, v), (v, u)):
            del self.lines[a, b]
        for a, b in ((u, v), (v, u)):
            self.do(a, self.routers[a].step(Left(b)))

    def reroute(self) -> None:
        """All routers learn the topology, one after the other, with packets under way in between."""
        for name in self.random.sample(self.names, len(self.names)):
            self.do(name, self.routers[name].step(TopologyChanged(self.topology(name))))
            self.run(self.random.randrange(20))

    def topology(self, name: str) -> Topology | None:
        """What a router reaches."""
        near = {name}
        while (
            more := {b for u, v, _ in self.edges for a, b in ((u, v), (v, u)) if a in near} - near
        ):
            near |= more
        edges = [edge for edge in self.edges if edge[0] in near]
        return Topology.from_edges(edges) if edges else None

    def do(self, name: str, sends: list[Send]) -> None:
        for send in sends:
            if (name, send.peer) in self.lines:
                self.lines[name, send.peer].append(send.packet)
            elif isinstance(send.packet, Publish) and str(send.peer).startswith("client"):
                self.got.append((name, send.packet.number))

    def run(self, steps: int | None = None) -> None:
        while steps is None or steps > 0:
            waiting = [line for line, packets in self.lines.items() if packets]
            if not waiting:
                return
            a, b = self.random.choice(waiting)
            packet = self.lines[a, b].popleft()
            self.packets += isinstance(packet, Publish)
            self.do(b, self.routers[b].step(Received(a, packet)))
            steps = None if steps is None else steps - 1

    def client(self, name: str, packet: Packet) -> None:
        self.do(name, self.routers[name].step(Received(f"client of {name}", packet)))

    def subscribe(self, name: str, filter: Filter) -> None:
        self.wanted[name][filter] = None
        self.client(name, Subscribe(filter))

    def unsubscribe(self, name: str, filter: Filter) -> None:
        """Also what it covers goes (2.4.3); the client says again what stays."""
        self.wanted[name].pop(filter, None)
        self.client(name, Unsubscribe(filter, tuple(self.wanted[name])))

    def publish_all(self) -> None:
        for source in self.names:
            if not self.offered[source]:
                self.client(source, Advertise(ANYTHING))
        self.run()
        for number, values in enumerate(MESSAGES):
            for source in self.names:
                self.got.clear()
                self.client(source, Publish(Message(values), source, number))
                self.run()
                reached = self.topology(source)
                near = {source} if reached is None else set(reached.nodes)
                due = sorted(
                    (name, number)
                    for name in near - {source}
                    if any(filter.matches(Message(values)) for filter in self.wanted[name])
                )
                assert sorted(self.got) == due, (source, values)


def drawn(random: Random, brokers: int, extra: int) -> set[tuple[str, str, int]]:
    """A connected graph with some more links than a tree, and many equally long paths."""
    edges: dict[tuple[str, str], int] = {}
    for i in range(1, brokers):
        edges[str(random.randrange(i)), str(i)] = random.choice((1, 1, 2))
    for _ in range(extra):
        u, v = sorted(random.sample(range(brokers), 2))
        edges.setdefault((str(u), str(v)), random.choice((1, 1, 2)))
    return {(u, v, weight) for (u, v), weight in edges.items()}


@pytest.mark.parametrize("advertisements", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_each_message_reaches_exactly_the_interested_once(seed: int, advertisements: bool) -> None:
    random = Random(seed)
    graph = Graph(
        drawn(random, random.randint(3, 8), seed % 6), random, advertisements=advertisements
    )
    for _ in range(30):
        name = random.choice(graph.names)
        filter = random.choice(FILTERS)
        if filter in graph.wanted[name]:
            graph.unsubscribe(name, filter)
        else:
            graph.subscribe(name, filter)
        graph.run(random.randrange(10))
    graph.run()
    graph.publish_all()


@pytest.mark.parametrize("advertisements", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_it_heals_when_links_come_and_go(seed: int, advertisements: bool) -> None:
    random = Random(100 + seed)
    graph = Graph(drawn(random, random.randint(4, 7), 4), random, advertisements=advertisements)
    every = sorted(graph.edges)
    for _ in range(25):
        name, filter = random.choice(graph.names), random.choice(FILTERS)
        choice = random.random()
        if choice < 0.4:
            graph.subscribe(name, filter)
        elif choice < 0.6:
            graph.unsubscribe(name, filter)
        else:
            edge = random.choice(every)
            if edge in graph.edges:
                graph.edges = graph.edges - {edge}
                graph.cut(*edge[:2])
            else:
                graph.edges = graph.edges | {edge}
                graph.connect(*edge[:2])
            graph.reroute()
        graph.run(random.randrange(15))
    graph.run()
    graph.publish_all()
    for name in graph.names:
        for filter in list(graph.wanted[name]):
            graph.unsubscribe(name, filter)
        graph.client(name, Unadvertise(ANYTHING))
    graph.run()
    for router in graph.routers.values():
        assert len(router.subscriptions) == 0, "a ghost is left"
        assert len(router.advertisements) == 0, "a ghost is left"


def test_a_ring_leaves_no_ghost() -> None:
    """Three routers in a ring: subscribe, end it, publish: no packet, since nobody subscribes."""
    graph = Graph({("a", "b", 1), ("b", "c", 1), ("a", "c", 1)}, Random(1))
    graph.subscribe("a", FILTERS[0])
    graph.run()
    graph.unsubscribe("a", FILTERS[0])
    graph.run()
    for number in range(3):
        graph.client("b", Publish(Message({"x": 5, "y": 0}), "b", number))
    graph.run()
    assert graph.packets == 0


def test_on_a_tree_a_covered_filter_is_not_forwarded() -> None:
    """Formula (1) of the acyclic overlay: a tree is a graph whose neighbours have one branch."""
    graph = Graph({("a", "b", 1), ("b", "c", 1), ("b", "d", 1)}, Random(1))
    graph.subscribe("a", FILTERS[0])
    graph.run()
    graph.subscribe("b", FILTERS[1])
    graph.run()
    assert graph.routers["b"].forwards(FILTERS[1]) == {"a"}
    assert len(graph.routers["c"].subscriptions) == 1
