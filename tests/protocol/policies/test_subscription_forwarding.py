"""Subscription forwarding between brokers of random networks, against flooding and PSF."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from palio import parse
from palio.errors import RoutingError
from palio.model.message import Message
from palio.protocol.interfaces import LiveSubscription, RemoteBroker
from palio.protocol.policies.subscription_forwarding import SubscriptionForwardingPolicy
from palio.protocol.wire.codes import NeighbourRole
from palio.protocol.wire.encode import NO_ROUTE
from palio.routing import (
    Joined,
    Received,
    Restate,
    Router,
    Send,
    Subscribe,
    Topology,
    Unsubscribe,
    scheme,
)
from palio.routing.interest_table import InterestTable
from tests.protocol.policies.policy_network import broker_name, travel
from tests.routing import random_networks as networks

some = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
CLIENT = LiveSubscription(1, 1)


class ForwardingNetwork:
    """Brokers whose routers exchange packets until none is under way."""

    def __init__(self, net: Topology, predicates: dict[Any, Any]) -> None:
        self.tables = {broker_name(x): InterestTable() for x in net.nodes}
        self.edges = {(broker_name(u), broker_name(v), weight) for u, v, weight in net.edges}
        self.routers = {
            name: Router(name, table=self.tables[name], graph=RemoteBroker) for name in self.tables
        }
        self.policies = {
            name: SubscriptionForwardingPolicy(name, router)
            for name, router in self.routers.items()
        }
        for x, predicate in predicates.items():
            router = self.routers[broker_name(x)]
            router.step(Joined(CLIENT))
            for found in predicate.filters:
                router.step(Received(CLIENT, Subscribe(found)))
        for u, v, _ in sorted(self.edges):
            self.change(u, v, True)
        self.learn()

    def link(self, u: str, v: str, weight: float) -> None:
        self.edges.add((u, v, weight))
        self.change(u, v, True)
        self.learn()

    def cut(self, u: str, v: str, weight: float) -> None:
        self.edges.remove((u, v, weight))
        self.change(u, v, False)
        self.learn()

    def change(self, u: str, v: str, is_up: bool) -> None:
        role = NeighbourRole.PEER if is_up else None
        sends = [(u, send) for send in self.policies[u].on_neighbour(v, role)]
        sends += [(v, send) for send in self.policies[v].on_neighbour(u, role)]
        self.exchange(sends)

    def learn(self) -> None:
        """All brokers learn the links that they reach."""
        for name, policy in self.policies.items():
            near = {name}
            while (
                more := {y for edge in self.edges for y in edge[:2] if near & set(edge[:2])} - near
            ):
                near |= more
            edges = [edge for edge in self.edges if edge[0] in near]
            sends = policy.on_topology(Topology.from_edges(edges) if edges else None)
            self.exchange([(name, send) for send in sends])

    def exchange(self, sends: list[tuple[str, Send]]) -> None:
        for sender, send in sends:  # the loop appends to it
            assert isinstance(send.peer, RemoteBroker)
            answers = self.policies[send.peer.name].on_packet(sender, send.packet)
            sends += [(send.peer.name, answer) for answer in answers]

    def travel(self, source: str, message: Message) -> tuple[Any, list[tuple[str, str]]]:
        def next_hops(
            at: str, route: bytes, came_from: str | None
        ) -> list[tuple[str, bytes]] | None:
            found = self.tables[at].interfaces_of(message)
            brokers = [peer.name for peer in found if isinstance(peer, RemoteBroker)]
            return self.policies[at].next_hops(route, brokers, came_from)

        return travel(next_hops, source)


@some
@given(networks.situations(networks.networks(nodes_max=12, loops=False)))
def test_packets_on_trees_are_those_of_psf(situation: Any) -> None:
    net, predicates, source, attributes = situation
    message = Message(attributes)
    brokers = ForwardingNetwork(net, predicates)
    got, packets = brokers.travel(broker_name(source), message)
    assert set(got.values()) == {1}
    wanting = networks.flood(net, predicates, source, message)
    assert {broker_name(x) for x in wanting} <= got.keys()
    expected = scheme("PSF", net, predicates).deliver(source, message).links
    assert sorted(packets) == sorted((broker_name(u), broker_name(v)) for u, v in expected)


@some
@given(networks.situations(networks.networks(nodes_max=10)))
def test_on_any_graph_who_wants_a_message_gets_it_once(situation: Any) -> None:
    """Packets are those of PSF, and some more: which brokers are behind a link is not known."""
    net, predicates, source, attributes = situation
    message = Message(attributes)
    brokers = ForwardingNetwork(net, predicates)
    got, packets = brokers.travel(broker_name(source), message)
    assert set(got.values()) == {1}
    wanting = networks.flood(net, predicates, source, message)
    assert {broker_name(x) for x in wanting} <= got.keys()
    expected = scheme("PSF", net, predicates).deliver(source, message).links
    assert {(broker_name(u), broker_name(v)) for u, v in expected} <= set(packets)


@some
@given(networks.situations(networks.networks(nodes_max=8)))
def test_a_link_that_is_cut_and_established_later(situation: Any) -> None:
    net, predicates, source, attributes = situation
    message = Message(attributes)
    brokers = ForwardingNetwork(net, predicates)
    whole = brokers.travel(broker_name(source), message)
    u, v, weight = min(brokers.edges)
    brokers.cut(u, v, weight)
    _, packets = brokers.travel(broker_name(source), message)
    assert not {(u, v), (v, u)} & set(packets)
    brokers.link(u, v, weight)
    got, packets = brokers.travel(broker_name(source), message)
    assert (got, sorted(packets)) == (whole[0], sorted(whole[1]))


PAIR = Topology.from_edges([("ann", "bob"), ("ann", "cy")])


def test_a_broker_that_reaches_nobody_forwards_nothing() -> None:
    policy = SubscriptionForwardingPolicy("ann", Router("ann", graph=RemoteBroker))
    assert policy.on_neighbour("bob", None) == []  # it was never linked
    (told,) = policy.on_neighbour("bob", NeighbourRole.PEER)
    assert told == Send(RemoteBroker("bob"), Restate())
    assert policy.on_topology(None) == []
    assert policy.next_hops(NO_ROUTE, ["bob", "cy"], None) == []
    assert policy.is_receiver(NO_ROUTE)
    assert policy.interests == {}
    assert not any(policy.dropped.values())


def test_subscriptions_are_forwarded_and_taken_back() -> None:
    policy = SubscriptionForwardingPolicy("ann", Router("ann", graph=RemoteBroker))
    (found,) = parse("x > 1")
    policy.on_neighbour("bob", NeighbourRole.PEER)
    policy.on_neighbour("cy", NeighbourRole.PEER)
    policy.on_topology(PAIR)
    cy = RemoteBroker("cy")
    told = policy.on_packet("bob", Subscribe(found, "bob"))
    assert told == [Send(cy, Subscribe(found, "ann"))]
    assert policy.on_neighbour("bob", None) == [Send(cy, Unsubscribe(found, (), "ann"))]
    with pytest.raises(RoutingError, match="has not joined"):
        policy.on_packet("bob", Subscribe(found))


def test_an_item_counts_only_on_the_path_of_its_origin() -> None:
    """A neighbour that is not next towards the origin cannot keep its subscription alive."""
    policy = SubscriptionForwardingPolicy("ann", Router("ann", graph=RemoteBroker))
    (found,) = parse("x > 1")
    policy.on_neighbour("bob", NeighbourRole.PEER)
    policy.on_neighbour("cy", NeighbourRole.PEER)
    policy.on_topology(PAIR)
    assert policy.on_packet("bob", Subscribe(found, "cy")) == []
    assert policy.on_packet("bob", Subscribe(found, "nobody")) == []
