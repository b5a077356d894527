"""What routers on a graph must hold when the network is quiet: what routers hold to which nothing happened.

New routers are joined by the links that are there, learn the topology, and hear of every client what is in
force; they exchange packets until none is left. The simulated routers, with all their faults behind them,
must have the same subscribers and forwards for every subscription and advertisement.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from palio.model.advertisement import Advertisement
from palio.model.predicate import Filter
from palio.routing.packets import Joined, Packet, Received, Restate, Role, Send, TopologyChanged
from palio.routing.router import Router
from palio.routing.subscriptions import Subscriptions
from palio.routing.topology import Topology
from palio.sim.routers.plans import RouterPlan
from palio.sim.routers.process import RouterProcess
from palio.sim.routers.subscription_history import SubscriptionHistory

T = TypeVar("T", Filter, Advertisement)


def graph_difference(
    plan: RouterPlan,
    nodes: dict[str, RouterProcess],
    histories: dict[str, SubscriptionHistory],
    topology: Callable[[str], Topology | None],
) -> str | None:
    """A sentence on the first difference; None: every router is as it must be."""
    fresh = _fresh(plan, histories, topology)
    for name, node in nodes.items():
        assert isinstance(node.router, Router)
        found, due = node.router, fresh[name]
        different = _different("subscription", found.subscriptions, due.subscriptions)
        different = different or _different(
            "advertisement", found.advertisements, due.advertisements
        )
        if different is not None:
            return f"router {name}: {different}"
    return None


def _fresh(
    plan: RouterPlan,
    histories: dict[str, SubscriptionHistory],
    topology: Callable[[str], Topology | None],
) -> dict[str, Router]:
    made = {
        name: Router(name, advertisements=plan.advertisements, graph=lambda node: node)
        for name in plan.routers
    }
    queue: deque[tuple[str, str, Packet]] = deque()

    def send(source: str, sends: Iterable[Send]) -> None:
        queue.extend((source, send.peer, send.packet) for send in sends)

    for a, b in plan.links:
        for u, v in ((a, b), (b, a)):
            send(u, made[u].step(Joined(v, Role.NEIGHBOUR)))
    for name, router in made.items():
        send(name, router.step(TopologyChanged(topology(name))))
    for client, name in plan.clients:
        said = histories[client]
        send(name, made[name].step(Joined(client)))
        whole = Restate(tuple(said.filters()), tuple(said.offers()))
        send(name, made[name].step(Received(client, whole)))
    while queue:
        source, name, packet = queue.popleft()
        send(name, made[name].step(Received(source, packet)))
    return made


def _different(what: str, found: Subscriptions[T], due: Subscriptions[T]) -> str | None:
    for item in dict.fromkeys([*found, *due]):
        actual = found.subscribers(item), found.forwards(item)
        right = due.subscribers(item), due.forwards(item)
        if actual != right:
            has, must = ([sorted(map(str, peers)) for peers in pair] for pair in (actual, right))
            return (
                f"the {what} [{item}] has the subscribers and forwards {has[0]} and {has[1]} "
                f"instead of {must[0]} and {must[1]}"
            )
    return None
