"""Subscription forwarding between brokers of random trees, against flooding and PSF."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from palio import parse
from palio.errors import RoutingError
from palio.model.message import Message
from palio.protocol.interfaces import LiveSubscription, RemoteBroker
from palio.protocol.policies.subscription_forwarding import SubscriptionForwardingPolicy
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
    """Brokers in a tree whose routers exchange packets until none is under way."""

    def __init__(self, net: Topology, predicates: dict[Any, Any]) -> None:
        self.tables = {broker_name(x): InterestTable() for x in net.nodes}
        self.routers = {name: Router(name, table=self.tables[name]) for name in self.tables}
        self.policies = {
            name: SubscriptionForwardingPolicy(name, router)
            for name, router in self.routers.items()
        }
        for x, predicate in predicates.items():
            router = self.routers[broker_name(x)]
            router.step(Joined(CLIENT))
            for found in predicate.filters:
                router.step(Received(CLIENT, Subscribe(found)))
        for u, v, _ in net.edges:
            self.link(broker_name(u), broker_name(v))

    def link(self, u: str, v: str) -> None:
        sends = [(u, send) for send in self.policies[u].on_neighbour(v, True)]
        sends += [(v, send) for send in self.policies[v].on_neighbour(u, True)]
        self.exchange(sends)

    def cut(self, u: str, v: str) -> None:
        sends = [(u, send) for send in self.policies[u].on_neighbour(v, False)]
        sends += [(v, send) for send in self.policies[v].on_neighbour(u, False)]
        self.exchange(sends)

    def exchange(self, sends: list[tuple[str, Send]]) -> None:
        for sender, send in sends:  # the loop appends to it
            assert isinstance(send.peer, RemoteBroker)
            answers = self.policies[send.peer.name].on_packet(sender, send.packet)
            sends += [(send.peer.name, answer) for answer in answers]

    def travel(self, source: str, message: Message) -> tuple[Any, list[tuple[str, str]]]:
        def next_hops(at: str, route: bytes, came_from: str | None) -> list[tuple[str, bytes]]:
            assert route == NO_ROUTE
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
@given(networks.situations(networks.networks(nodes_max=8, loops=False)))
def test_a_link_that_is_cut_and_established_later(situation: Any) -> None:
    net, predicates, source, attributes = situation
    message = Message(attributes)
    brokers = ForwardingNetwork(net, predicates)
    whole = brokers.travel(broker_name(source), message)
    u, v = (broker_name(x) for x in net.edges[0][:2])
    brokers.cut(u, v)
    _, packets = brokers.travel(broker_name(source), message)
    assert not {(u, v), (v, u)} & set(packets)
    brokers.link(u, v)
    got, packets = brokers.travel(broker_name(source), message)
    assert (got, sorted(packets)) == (whole[0], sorted(whole[1]))


def test_it_needs_neither_routes_nor_the_topology() -> None:
    router = Router("ann")
    policy = SubscriptionForwardingPolicy("ann", router)
    assert policy.on_neighbour("bob", False) == []  # it was never linked
    (told,) = policy.on_neighbour("bob", True)
    assert told == Send(RemoteBroker("bob"), Restate())
    policy.on_topology(None)
    assert policy.is_receiver(NO_ROUTE)
    assert policy.next_hops(NO_ROUTE, ["bob", "cy"], None) == [("bob", NO_ROUTE)]
    assert policy.next_hops(NO_ROUTE, ["bob"], "bob") == []
    assert policy.interests == {}
    assert not any(policy.dropped.values())


def test_subscriptions_are_forwarded_and_taken_back() -> None:
    policy = SubscriptionForwardingPolicy("ann", Router("ann"))
    (found,) = parse("x > 1")
    policy.on_neighbour("bob", True)
    policy.on_neighbour("cy", True)
    cy = RemoteBroker("cy")
    assert policy.on_packet("bob", Subscribe(found)) == [Send(cy, Subscribe(found))]
    assert policy.on_neighbour("bob", False) == [Send(cy, Unsubscribe(found))]
    with pytest.raises(RoutingError, match="has not joined"):
        policy.on_packet("bob", Subscribe(found))
