"""The routing policies at every broker of random networks, against brute force and the lab's schemes."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palio import parse
from palio.errors import RoutingError
from palio.model.message import Message
from palio.protocol.interfaces import LiveSubscription
from palio.protocol.policies.link_state import LinkStateDatabase
from palio.protocol.policies.registry import POLICIES
from palio.protocol.policies.tree_policy import TreePolicy
from palio.protocol.policies.unicast import Unicast
from palio.protocol.wire.codes import NeighbourRole
from palio.protocol.wire.control import LinkState
from palio.protocol.wire.encode import NO_ROUTE
from palio.protocol.wire.frames import BrokenFrame
from palio.routing import Joined, Left, Received, Router, Subscribe, Topology, Unsubscribe, scheme
from tests.protocol.policies.link_state_network import LinkStateNetwork
from tests.protocol.policies.policy_network import (
    PolicyBroker,
    broker_name,
    databases,
    interested_entries,
    make_policy,
    travel_through,
)
from tests.routing import random_networks as networks

each_scheme = pytest.mark.parametrize("name", networks.EVERY_SCHEME)
each_tree_scheme = pytest.mark.parametrize("name", ["PSF", "iPS", "PIF"])
some = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ANY = Message({"x": 1})
INTERESTED = ["b01", "b04"]
CHAIN = Topology.from_edges([("b01", "b02"), ("b02", "b03"), ("b03", "b04")])


def test_the_registry_has_every_scheme_and_subscription_forwarding() -> None:
    assert set(POLICIES) == {*networks.EVERY_SCHEME, "forwarding"}


# ---- brokers that agree on the topology


@each_scheme
@some
@given(networks.situations(networks.networks(nodes_max=12)))
def test_packets_are_those_of_the_lab(name: str, situation: Any) -> None:
    net, predicates, source, attributes = situation
    message = Message(attributes)
    views = databases(net, predicates)
    brokers = {me: PolicyBroker(me, name, view) for me, view in views.items()}
    got, packets = travel_through(brokers, broker_name(source), message)
    wanting = {broker_name(x) for x in networks.flood(net, predicates, source, message)}
    assert wanting <= got.keys()
    assert set(got.values()) == {1}
    assert all(not any(broker.policy.dropped.values()) for broker in brokers.values())
    named = Topology.from_edges((broker_name(u), broker_name(v), w) for u, v, w in net.edges)
    lab = scheme(name, named, {broker_name(x): p for x, p in predicates.items()})
    assert sorted(packets) == sorted(lab.deliver(broker_name(source), message).links)
    for me, broker in brokers.items():
        passes = got[me] if me != broker_name(source) else 0
        expected = passes if name != "DRP" or me in wanting else 0  # DRP: at receivers only
        assert broker.matches == expected


@some
@given(networks.networks())
def test_unicast_takes_a_shortest_path_to_everybody(net: Topology) -> None:
    unicast = {}
    for me, view in databases(net, {}).items():
        unicast[me] = Unicast(me)
        unicast[me].on_topology(view.topology())
    weights = {frozenset((broker_name(u), broker_name(v))): w for u, v, w in net.edges}
    for source in list(net.nodes)[:5]:
        exact = networks.distances(net, source)
        for target in net.nodes:
            at, length, end = broker_name(source), 0.0, broker_name(target)
            while at != end:
                hop = unicast[at].hop_of[end]
                assert hop is not None
                length += weights[frozenset((at, hop))]
                at = hop
            assert length == pytest.approx(float(exact[target]))
    first = unicast[broker_name(net.nodes[0])]
    others = [broker_name(x) for x in net.nodes[1:]]
    assert sorted(first.hop_of) == others


@each_scheme
@pytest.mark.parametrize("seed", range(6))
def test_policies_follow_the_network(name: str, seed: int) -> None:
    """After every change of links and filters, messages reach all that want them, once."""
    rng = random.Random(seed)
    net = LinkStateNetwork(["ann", "bob", "cy", "dan", "eve", "fay"], rng)
    brokers = {me: PolicyBroker(me, name, view) for me, view in net.brokers.items()}
    texts = [str(f) for p in networks.PREDICATES for f in p.filters]
    for _ in range(40):
        a, b = sorted(rng.sample(sorted(net.brokers), 2))
        kind = rng.random()
        if kind < 0.3 and (a, b) not in net.links:
            net.join(a, b, rng.choice([1, 2, 3]))
        elif kind < 0.4 and net.links:
            net.cut(*rng.choice(sorted(net.links)))
        else:
            net.want(a, rng.sample(texts, 2), rng.sample(texts, 3))
        net.quiet(200_000 if rng.random() < 0.1 else 0)
        message = Message({"x": rng.randrange(4), "y": rng.randrange(4)})
        got, _ = travel_through(brokers, a, message)
        here = net.connected(a)
        wanting = {x for x in here if net.brokers[x].wanted(x).matches(message)}
        assert wanting <= got.keys() | {a}
        assert got.keys() <= here
        assert set(got.values()) == {1}
        if name != "PIF" and got.keys() - {a}:
            assert got.keys() & wanting - {a}  # no packets unless somebody wants the message


# ---- brokers that do not agree


@each_scheme
@some
@given(
    st.lists(networks.networks(nodes_max=8), min_size=2, max_size=8),
    st.lists(st.integers(0, 7), min_size=8, max_size=8),
)
def test_loops_end_when_topologies_differ(
    name: str, nets: list[Topology], chosen: list[int]
) -> None:
    """Each broker has a topology of its own, and all want everything."""
    brokers = {}
    for me, which in zip([broker_name(x) for x in range(1, 9)], chosen, strict=True):
        net = nets[which % len(nets)]
        views = databases(net, {x: parse("TRUE") for x in net.nodes})
        brokers[me] = PolicyBroker(me, name, views.get(me, LinkStateDatabase(me, "e", 0)))
    for source in brokers:
        got, packets = travel_through(brokers, source, ANY)
        assert len(packets) <= 8 * 8
        assert max(got.values()) <= 8


def test_a_ring_of_wrong_topologies_spends_its_hops() -> None:
    """Each of three brokers believes that dan is behind the next one."""
    brokers = {}
    for me, next_one in (("ann", "bob"), ("bob", "cy"), ("cy", "ann")):
        view = LinkStateDatabase(me, "e", 0)
        view.set_links({next_one: 1.0})
        third = ({"ann", "bob", "cy"} - {me, next_one}).pop()
        state = LinkState(next_one, "e", 1, 0, ((me, 1.0), ("dan", 1.0), (third, 9.0)))
        view.hear(state, 1)
        view.hear(LinkState("dan", "e", 1, 0, ((next_one, 1.0),), wanted=("TRUE",)), 1)
        view.hear(LinkState(third, "e", 1, 0, ((next_one, 9.0),)), 1)
        brokers[me] = PolicyBroker(me, "DRP", view)
    got, packets = travel_through(brokers, "ann", ANY)
    assert packets == [("ann", "bob"), ("bob", "cy"), ("cy", "ann")]
    assert sum(broker.policy.dropped["spent"] for broker in brokers.values()) == 1
    assert got["dan"] == 0


# ---- routes


def route(left: object, header: object) -> bytes:
    return msgspec.msgpack.encode((left, header))


NONSENSE = (
    *(b"", b"\xc1", b"\xff" * 9, NO_ROUTE, route(-1, "b01"), route("a", "b01")),
    *(route(3, 7), route(3, [1]), route(3, None), route(1 << 63, "b01") + b"x", route(3, b"\xff")),
    b"\x92\x03" + b"\x91" * 5000,
)


@each_scheme
@pytest.mark.parametrize("data", NONSENSE, ids=lambda data: repr(data[:20]))
def test_a_route_that_cannot_be_read_is_a_broken_frame(name: str, data: bytes) -> None:
    policy = make_policy(name, "b02", CHAIN)
    with pytest.raises(BrokenFrame, match="the route of a message from"):
        policy.next_hops(data, INTERESTED, "b01")
    if name == "DRP":
        with pytest.raises(BrokenFrame, match="the route of a message from"):
            policy.is_receiver(data)
    assert not any(policy.dropped.values())


@each_scheme
def test_the_route_of_another_scheme_is_a_broken_frame(name: str) -> None:
    policy = make_policy(name, "b02", CHAIN)
    other = route(3, "b01" if name == "DRP" else ["b04"])
    with pytest.raises(BrokenFrame, match=f"not one of {name}"):
        policy.next_hops(other, INTERESTED, "b01")


def test_drops_of_drp_are_counted() -> None:
    drp = make_policy("DRP", "b02", CHAIN)
    assert drp.next_hops(route(3, ["b02", "zoe", "b01", "b04"]), (), "b01") == [
        ("b03", route(2, ["b04"]))
    ]
    assert drp.dropped == {"astray": 1, "unknown": 1, "spent": 0}
    assert drp.next_hops(route(0, ["b04"]), (), "b01") == []
    assert drp.dropped["spent"] == 1
    assert drp.next_hops(route(0, ["b02"]), (), "b01") == []  # it has arrived, with its last hop
    assert drp.dropped["spent"] == 1
    assert drp.next_hops(route(1 << 60, ["b04"]), (), "b01") == [("b03", route(2, ["b04"]))]
    drp.next_hops(route(3, ["b01", "zoe", "yan"]), (), "b01", count=10)
    drp.next_hops(route(0, ["b03", "b04"]), (), "b01", count=10)
    assert drp.dropped == {"astray": 11, "unknown": 21, "spent": 11}


@each_tree_scheme
def test_drops_of_tree_policies_are_counted(name: str) -> None:
    policy = make_policy(name, "b02", CHAIN)
    interested, only_first = (interested_entries(policy, x) for x in (INTERESTED, ["b01"]))
    rewritten = "b02" if name == "iPS" else "b01"  # iPS rewrites: nobody below can tell them apart
    assert policy.next_hops(route(3, "zoe"), interested, "b01") is None
    assert policy.next_hops(route(3, "b01"), interested, "b03") is None  # not from the source
    assert policy.next_hops(route(3, "b02"), interested, "b03") is None  # its own message
    assert policy.next_hops(route(0, "b01"), interested, "b01") == []
    assert policy.dropped == {"astray": 2, "unknown": 1, "spent": 1}
    assert policy.next_hops(route(0, "b01"), only_first, "b01") == []  # nobody behind wants it
    assert policy.next_hops(route(1, "b01"), interested, "b01") == [("b03", route(0, rewritten))]
    assert policy.next_hops(route(1 << 60, "b01"), interested, "b01") == [
        ("b03", route(2, rewritten))
    ]
    policy.next_hops(route(3, "zoe"), interested, "b01", count=10)
    policy.next_hops(route(3, "b01"), interested, "b03", count=10)
    policy.next_hops(route(0, "b01"), interested, "b01", count=10)
    assert policy.dropped == {"astray": 12, "unknown": 11, "spent": 11}


@each_tree_scheme
def test_entries_are_those_of_the_paper(name: str) -> None:
    """2006, 3.1 to 3.3, at b02 of a chain: PSF has one for each source and next hop, iPS one for each
    next hop of a tree, and so has PIF."""
    policy = make_policy(name, "b02", CHAIN)
    assert isinstance(policy, TreePolicy)
    entries = dict(policy.entries())
    assert sorted(map(sorted, entries.values())) == sorted(
        [["b01"]] + [["b03", "b04"]] + ([["b01"]] * 2 + [["b03", "b04"]] if name == "PSF" else [])
    )
    assert name != "PIF" or entries.keys() == {"b01", "b03"}


@each_tree_scheme
def test_while_entries_are_incomplete_a_message_goes_to_all_children(name: str) -> None:
    policy = make_policy(name, "b02", CHAIN)
    assert isinstance(policy, TreePolicy)
    (first, _), *_ = policy.entries()
    policy.settling(frozenset([first, "former"]))
    for interested in ([first], ["former"]):
        assert [hop for hop, _ in policy.next_hops(NO_ROUTE, interested, None) or ()] == [
            "b01",
            "b03",
        ]
        assert [hop for hop, _ in policy.next_hops(route(3, "b01"), interested, "b01") or ()] == [
            "b03"
        ]
    assert policy.next_hops(NO_ROUTE, [], None) == []
    policy.settling(frozenset())
    assert policy.next_hops(NO_ROUTE, ["former"], None) == []


def test_drp_is_matched_by_receivers_only() -> None:
    drp = make_policy("DRP", "b02", CHAIN)
    assert drp.is_receiver(route(3, ["b02", "b04"]))
    assert not drp.is_receiver(route(3, ["b04"]))
    # whoever is interested here, the route decides
    assert drp.next_hops(route(3, ["b04"]), ["b01", "b03"], "b01") == [("b03", route(2, ["b04"]))]


@each_tree_scheme
def test_tree_policies_match_everywhere(name: str) -> None:
    assert make_policy(name, "b02", CHAIN).is_receiver(route(3, "b01"))


@each_scheme
def test_a_broker_alone(name: str) -> None:
    policy = make_policy(name, "ann")
    assert policy.next_hops(NO_ROUTE, INTERESTED, None) == []
    assert not any(policy.dropped.values())
    assert not policy.next_hops(route(3, ["bob"] if name == "DRP" else "bob"), INTERESTED, "bob")
    assert policy.dropped["unknown"] == 1
    unicast = Unicast("ann")
    unicast.on_topology(None)
    assert "bob" not in unicast.hop_of


@each_scheme
def test_a_topology_that_is_lost(name: str) -> None:
    policy = make_policy(name, "b01", CHAIN)
    interested = interested_entries(policy, INTERESTED)
    assert len(policy.next_hops(NO_ROUTE, interested, None)) == 1
    policy.on_topology(None)
    assert policy.next_hops(NO_ROUTE, interested, None) == []


@each_scheme
def test_brokers_that_are_not_in_the_topology_get_nothing(name: str) -> None:
    policy = make_policy(name, "b01", CHAIN)
    assert policy.next_hops(NO_ROUTE, ["zoe", "b01"], None) == []
    assert not any(policy.dropped.values())


# ---- what brokers say to each other


@each_scheme
def test_what_a_broker_wants_is_what_its_router_would_forward(name: str) -> None:
    """The interests are reduced by covering, and follow the subscriptions of clients."""
    router = Router("ann")
    policy = POLICIES[name]("ann", router)
    (wide,), (narrow,) = parse("x > 1"), parse("x > 5")
    ann, bob = LiveSubscription(1, 1), LiveSubscription(2, 1)
    assert policy.interests == {}
    for peer, found in ((ann, narrow), (bob, wide)):
        router.step(Joined(peer))
        router.step(Received(peer, Subscribe(found)))
    assert policy.interests == {wide: True}
    policy.interests.clear()
    router.step(Received(bob, Unsubscribe(wide)))
    assert policy.interests == {wide: False, narrow: True}
    policy.interests.clear()
    router.step(Left(ann))
    assert policy.interests == {narrow: False}


@each_scheme
def test_schemes_have_no_packets_between_routers(name: str) -> None:
    policy = make_policy(name, "b01", CHAIN)
    assert policy.on_neighbour("b02", NeighbourRole.PEER) == []
    assert policy.on_neighbour("b02", None) == []
    with pytest.raises(RoutingError, match="one routing policy"):
        policy.on_packet("b02", Subscribe(parse("x > 1").filters[0]))


def test_very_many_receivers_of_drp_are_split_over_several_headers() -> None:
    names = [f"{i:03}" + "\U0001f4ee" * 197 for i in range(200)]
    policy = make_policy("DRP", "me")
    policy.on_topology(Topology.from_edges([("me", "hub"), *(("hub", name) for name in names)]))
    hops = policy.next_hops(b"", names, None)
    assert hops is not None
    assert {hop for hop, _ in hops} == {"hub"}
    routes = [msgspec.msgpack.decode(route) for _, route in hops]
    assert [name for _, some in routes for name in some] == names
    assert len(routes) > 1
    assert max(len(route) for _, route in hops) <= 34 << 10
    hub = make_policy("DRP", "hub")
    hub.on_topology(Topology.from_edges([("me", "hub"), *(("hub", name) for name in names)]))
    further = [hop for _, route in hops for hop, _ in hub.next_hops(route, (), "me") or ()]
    assert sorted(further) == names
