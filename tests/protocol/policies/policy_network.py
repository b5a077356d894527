"""Brokers with a routing policy each, over the link-state databases of a network; no sockets.

A message travels as in a broker: a policy that needs no match gets no interested brokers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from palio import Predicate
from palio.model.message import Message
from palio.protocol.policies.link_state import LinkStateDatabase
from palio.protocol.policies.policy import RoutingPolicy
from palio.protocol.policies.registry import POLICIES
from palio.protocol.policies.tree_policy import TreePolicy
from palio.protocol.wire.encode import NO_ROUTE
from palio.routing import Router, Topology


def broker_name(node: int) -> str:
    return f"b{node:02}"


def databases(net: Topology, predicates: dict[Any, Predicate]) -> dict[str, LinkStateDatabase]:
    """The databases of all brokers of a network, each with the states of all others."""
    links: dict[str, dict[str, float]] = {broker_name(x): {} for x in net.nodes}
    for u, v, weight in net.edges:
        links[broker_name(u)][broker_name(v)] = weight
        links[broker_name(v)][broker_name(u)] = weight
    made = {name: LinkStateDatabase(name, "e", 0) for name in links}
    for name, database in made.items():
        database.set_links(links[name])
    for node, predicate in predicates.items():
        made[broker_name(node)].want(str(f) for f in predicate.filters)
    states = [database.news(1) for database in made.values()]
    for database in made.values():
        for state in states:
            assert state is not None
            database.hear(state, 1)
    return made


def make_policy(name: str, me: str, net: Topology | None = None) -> RoutingPolicy:
    policy = POLICIES[name](me, Router(me))
    policy.on_topology(net)
    return policy


def interested_entries(policy: RoutingPolicy, wanting: Iterable[str]) -> list[str]:
    """What an interest table answers when these brokers want a message."""
    if not isinstance(policy, TreePolicy):
        return sorted(wanting)
    return [name for name, brokers in policy.entries() if not brokers.isdisjoint(wanting)]


class PolicyBroker:
    """A routing policy and the database that it follows."""

    def __init__(self, me: str, name: str, database: LinkStateDatabase) -> None:
        self.me, self.database = me, database
        self.policy = POLICIES[name](me, Router(me))
        self.matches = 0
        """How many messages from neighbours were matched here."""

    def next_hops(
        self, route: bytes, message: Message, came_from: str | None
    ) -> list[tuple[str, bytes]]:
        self.policy.on_topology(self.database.topology())
        interested: list[str] = []
        if came_from is None or self.policy.is_receiver(route):
            self.matches += came_from is not None
            known = [place.broker for place in self.database.places()]
            wanting = {x for x in known if self.database.wanted(x).matches(message)}
            interested = interested_entries(self.policy, wanting - {self.me})
        return self.policy.next_hops(route, interested, came_from)


Packets = list[tuple[str, str]]


def travel(
    next_hops: Callable[[str, bytes, str | None], list[tuple[str, bytes]] | None], source: str
) -> tuple[Counter[str], Packets]:
    """Let a message travel; returns how often each broker got it, and the packets.

    `next_hops` has the arguments broker, route and the neighbour where the message came from.
    """
    got: Counter[str] = Counter([source])
    packets = [(source, to, route) for to, route in next_hops(source, NO_ROUTE, None) or []]
    for came_from, at, route in packets:  # the loop appends to it
        got[at] += 1
        hops = next_hops(at, route, came_from) or []
        assert came_from not in [to for to, _ in hops]
        packets += [(at, to, route) for to, route in hops]
        assert len(packets) < 10_000
    return got, [(x, y) for x, y, _ in packets]


def travel_through(
    brokers: dict[str, PolicyBroker], source: str, message: Message
) -> tuple[Counter[str], Packets]:
    return travel(
        lambda at, route, came_from: brokers[at].next_hops(route, message, came_from), source
    )
