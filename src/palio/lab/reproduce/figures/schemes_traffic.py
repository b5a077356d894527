"""Control traffic and packets of messages: subscription forwarding (2000) beside the schemes (2006).

Nodes subscribe one after the other, then messages are published. Control packets are

    forwarding   the subscriptions that routers forward, along the trees of their origins
    schemes      link states: each change of what a node wants, reduced by covering, goes to all nodes over
                 all links, since none knows where the others have it from

The routers are those of the brokers, without a network between them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from palio.errors import PalioError
from palio.lab.reproduce.drawing import chosen, curve, distinct, line
from palio.lab.reproduce.experiment import ExperimentSettings, Plain, Row, grid, sizes
from palio.lab.reproduce.networks import FAMILIES, interests, message
from palio.model.message import Message
from palio.model.predicate import Filter, Predicate
from palio.routing.packets import (
    Joined,
    Packet,
    Publish,
    Received,
    Role,
    Send,
    Subscribe,
    TopologyChanged,
)
from palio.routing.router import Router
from palio.routing.schemes import scheme
from palio.routing.topology import Topology

SETTINGS = ExperimentSettings(
    id="schemes-traffic",
    figure="beyond the papers",
    title="Control traffic and packets: subscription forwarding and the schemes",
    text="Networks of 25 nodes of each family; up to 1,000 subscriptions at random nodes, then 200 "
    "messages from random senders. Control packets: forwarded subscriptions, or link states flooded "
    "over all links. PSF, iPS, PIF and DRP flood the same.",
    is_paired=True,
)
FORWARDING = "forwarding"
SCHEMES = ("PSF", "iPS", "PIF", "DRP")
ROUTINGS = (FORWARDING, *SCHEMES)
NODES = 25
SUBSCRIPTIONS = 1_000
MESSAGES = 200
CLIENT = "client"
NETWORK = "network"


def points(scale: float) -> list[dict[str, Plain]]:
    last = max(30, round(SUBSCRIPTIONS * scale))
    counts = [10, 30] if scale < 0.1 else sizes(30, last, 10**0.5)
    often = 1 if scale < 0.1 else 2
    return grid(subscriptions=counts, family=list(FAMILIES), repetitions=[often])


def run(values: Mapping[str, Any], seed: int) -> list[dict[str, Any]]:
    random = Random(seed)
    net = named(FAMILIES[values["family"]](NODES, random))
    wanted = [_subscription(net, random) for _ in range(values["subscriptions"])]
    sent = [(random.choice(net.nodes), message(random)) for _ in range(MESSAGES)]
    rows = [traffic(routing, net, wanted, sent) for routing in ROUTINGS]
    if len({row["deliveries"] for row in rows}) > 1:
        raise PalioError(f"the routings of seed {seed} deliver to different nodes; this is a bug")
    return rows


def named(net: Topology) -> Topology:
    """The same network with names, as routers have them."""
    return Topology.from_edges([(f"{a:05}", f"{b:05}", weight) for a, b, weight in net.edges])


def _subscription(net: Topology, random: Random) -> tuple[str, Filter]:
    node = random.choice(net.nodes)
    return node, interests((node,), random)[node].filters[0]


def traffic(
    routing: str,
    net: Topology,
    wanted: Sequence[tuple[str, Filter]],
    sent: Sequence[tuple[str, Message]],
) -> dict[str, Any]:
    """What it takes to tell who wants what, and to deliver these messages."""
    if routing == FORWARDING:
        routers = GraphRouters(net)
        for node, filter in wanted:
            routers.tell(node, Subscribe(filter))
        control = routers.packets
        for number, (node, one) in enumerate(sent, 1):
            routers.tell(node, Publish(one, node, number))
        packets, deliveries = routers.packets - control, routers.deliveries
    else:
        control = flooded(net) * sum(_announcing(net, wanted))
        by_node: dict[str, list[Filter]] = {}
        for node, filter in wanted:
            by_node.setdefault(node, []).append(filter)
        made = scheme(routing, net, {node: Predicate(tuple(f)) for node, f in by_node.items()})
        trees = [(made.deliver(node, one), node) for node, one in sent]
        packets = sum(tree.packets for tree, _ in trees)
        deliveries = sum(len(tree.receivers - {node}) for tree, node in trees)
    return {"routing": routing, "control": control, "packets": packets, "deliveries": deliveries}


def flooded(net: Topology) -> int:
    """The packets of one link state: every node sends it on, but not to where it came from."""
    return 2 * len(net.edges) - (len(net) - 1)


def _announcing(net: Topology, wanted: Iterable[tuple[str, Filter]]) -> Iterable[bool]:
    """For each subscription, whether its node has something new to say to the network."""
    routers = {node: Router(node) for node in net.nodes}
    for router in routers.values():
        router.step(Joined(NETWORK, Role.NEIGHBOUR))
        router.step(Joined(CLIENT))
    for node, filter in wanted:
        yield bool(routers[node].step(Received(CLIENT, Subscribe(filter))))


class GraphRouters:
    """Routers that hand packets to each other at once, each with one client."""

    def __init__(self, net: Topology) -> None:
        self._routers = {node: Router(node, graph=lambda peer: peer) for node in net.nodes}
        self._queue: deque[tuple[str, str, Packet]] = deque()
        self.packets = 0
        """Between routers, since they know the topology."""
        self.deliveries = 0
        """To clients of other routers than that of the publisher."""
        for a, b, _ in net.edges:
            for u, v in ((a, b), (b, a)):
                self._take(u, self._routers[u].step(Joined(v, Role.NEIGHBOUR)))
        for node, router in self._routers.items():
            router.step(Joined(CLIENT))
            self._take(node, router.step(TopologyChanged(net)))
        self._run()
        self.packets = 0

    def tell(self, node: str, packet: Packet) -> None:
        """The client of a node says this."""
        self._take(node, self._routers[node].step(Received(CLIENT, packet)))
        self._run()

    def _run(self) -> None:
        while self._queue:
            source, node, packet = self._queue.popleft()
            if node == CLIENT:
                self.deliveries += 1
                continue
            self.packets += 1
            self._take(node, self._routers[node].step(Received(source, packet)))

    def _take(self, node: str, sends: Iterable[Send]) -> None:
        self._queue.extend((node, send.peer, send.packet) for send in sends)


def table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Headings and lines, for the report: the largest number of subscriptions."""
    largest = max(distinct(rows, "subscriptions"))
    lines = []
    for family in FAMILIES:
        cells = [family]
        for key in ("control", "packets"):
            for routing in ROUTINGS if key == "packets" else ROUTINGS[:2]:
                those = chosen(rows, subscriptions=largest, family=family, routing=routing)
                mean = sum(row[key] for row in those) / len(those) if those else float("nan")
                cells.append(f"{mean:,.0f}")
        lines.append(cells)
    headings = ["network", "control, forwarding", "control, schemes"]
    return [*headings, *(f"packets, {routing}" for routing in ROUTINGS)], lines


def plot(rows: Sequence[Row], figure: Any) -> None:
    left, right = figure.subplots(1, 2)
    for family in FAMILIES:
        those = chosen(rows, family=family)
        (line_of, other) = (
            curve(chosen(those, routing=routing), "subscriptions", "control")
            for routing in (FORWARDING, "PSF")
        )
        shares = [(x, y / z) for (x, y), (_, z) in zip(line_of, other, strict=True) if z]
        line(left, shares, family)
    for routing in ROUTINGS:
        line(right, curve(chosen(rows, routing=routing), "subscriptions", "packets"), routing)
    left.set(xlabel="subscriptions", ylabel="control, forwarding / schemes", xscale="log")
    right.set(xlabel="subscriptions", ylabel=f"packets of {MESSAGES} messages", xscale="log")
