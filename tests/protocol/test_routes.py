"""Routes at every broker of random networks, against brute force and the schemes of the lab."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palio import Predicate, parse, reduce
from palio.errors import InvalidTopology
from palio.model.message import Message
from palio.protocol.frames import BrokenFrame
from palio.protocol.overlay import demand
from palio.protocol.overlay.demand import Demand
from palio.protocol.overlay.landscape import Landscape
from palio.protocol.overlay.routes import Routes
from palio.protocol.words import State
from palio.routing import Topology, scheme
from tests.protocol.landscapes import Network
from tests.routing import random_networks as networks

each_scheme = pytest.mark.parametrize("name", networks.EVERY_SCHEME)
some = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
ANY = Message({"x": 1})
WANTING = ["b01", "b04"]


def broker_name(node: int) -> str:
    return f"b{node:02}"


def views(net: Topology, predicates: dict[Any, Predicate]) -> dict[str, Landscape]:
    """A landscape for each broker of a network: each has heard all others."""
    links: dict[str, dict[str, float]] = {broker_name(x): {} for x in net.nodes}
    for u, v, weight in net.edges:
        links[broker_name(u)][broker_name(v)] = weight
        links[broker_name(v)][broker_name(u)] = weight
    made = {name: Landscape(name, "e", 0) for name in links}
    for name, landscape in made.items():
        landscape.set_links(links[name])
    for node, predicate in predicates.items():
        made[broker_name(node)].want(str(f) for f in predicate.filters)
    states = [landscape.news(1) for landscape in made.values()]
    for landscape in made.values():
        for state in states:
            assert state is not None
            landscape.hear(state, 1)
    return made


def travel(
    routes: dict[str, Routes], source: str, message: Message
) -> tuple[Counter[str], list[tuple[str, str]]]:
    """How often each broker got a message, and the packets."""
    got: Counter[str] = Counter([source])
    text = message.to_json().encode()
    (wanting,) = routes[source].interested([text])
    packets = [(source, to, trail) for to, trail in routes[source].start(wanting)]
    for came_from, at, trail in packets:  # which grows meanwhile
        got[at] += 1
        (wanting,) = routes[at].interested([text])
        onward = routes[at].onward(trail, wanting, came_from)
        assert came_from not in [to for to, _ in onward]
        packets += [(at, to, trail) for to, trail in onward]
        assert len(packets) < 10_000
    return got, [(x, y) for x, y, _ in packets]


# ---- when views agree


@each_scheme
@some
@given(networks.situations(networks.networks(nodes_max=12)))
def test_delivers_to_exactly_the_interested_and_once(name: str, situation: Any) -> None:
    net, predicates, source, attributes = situation
    message = Message(attributes)
    seen = views(net, predicates)
    routes = {me: Routes(me, name, view) for me, view in seen.items()}
    got, packets = travel(routes, broker_name(source), message)
    wanting = {broker_name(x) for x in networks.flood(net, predicates, source, message)}
    assert wanting <= got.keys() | {broker_name(source)}
    assert set(got.values()) == {1}
    assert all(not any(r.dropped.values()) for r in routes.values())
    # the packets are those of the scheme, by its own functions and disjunctions
    named = Topology.from_edges((broker_name(u), broker_name(v), w) for u, v, w in net.edges)
    lab = scheme(name, named, {broker_name(x): p for x, p in predicates.items()})
    expected = sorted(lab.deliver(broker_name(source), message).links)
    assert sorted(packets) == expected
    # and any broker can foretell them
    for me in (broker_name(source), broker_name(net.nodes[-1])):
        told = routes[me].explain(message, broker_name(source))
        assert told is not None
        assert sorted(told.links) == expected
        assert told.receivers == wanting == told.predicates.keys()


@some
@given(networks.networks())
def test_unicast_reaches_everybody_on_a_shortest_way(net: Topology) -> None:
    routes = {me: Routes(me, "DRP", view) for me, view in views(net, {}).items()}
    weights = {frozenset((broker_name(u), broker_name(v))): w for u, v, w in net.edges}
    for source in list(net.nodes)[:5]:
        exact = networks.distances(net, source)
        for target in net.nodes:
            at, length, end = broker_name(source), 0.0, broker_name(target)
            while at != end:
                hop = routes[at].hop(end)
                assert hop is not None
                length += weights[frozenset((at, hop))]
                at = hop
            assert length == pytest.approx(float(exact[target]))
    others = [broker_name(x) for x in net.nodes[1:]]
    parts = routes[broker_name(net.nodes[0])].split([*others, "nobody"])
    assert sorted(x for part in parts.values() for x in part) == others
    assert all(routes[broker_name(net.nodes[0])].hop(x) == hop for hop in parts for x in parts[hop])


@each_scheme
@pytest.mark.parametrize("seed", range(6))
def test_routes_follow_the_landscape(name: str, seed: int) -> None:
    """After every change of links and filters, the same routes deliver to exactly the interested."""
    rng = random.Random(seed)
    net = Network(["ann", "bob", "cy", "dan", "eve", "fay"], rng)
    routes = {me: Routes(me, name, view) for me, view in net.brokers.items()}
    texts = [str(f) for p in networks.PREDICATES for f in p.filters]
    for _ in range(40):
        a, b = sorted(rng.sample(sorted(net.brokers), 2))
        what = rng.random()
        if what < 0.3 and (a, b) not in net.links:
            net.join(a, b, rng.choice([1, 2, 3]))
        elif what < 0.4 and net.links:
            net.cut(*rng.choice(sorted(net.links)))
        else:
            net.want(a, rng.sample(texts, 2), rng.sample(texts, 3))
        net.quiet(200_000 if rng.random() < 0.1 else 0)
        message = Message({"x": rng.randrange(4), "y": rng.randrange(4)})
        got, _ = travel(routes, a, message)
        here = net.connected(a)
        wanted = {x: net.brokers[x].wanted(x) for x in here}
        wanting = {x for x, p in wanted.items() if p.matches(message)}
        assert wanting <= got.keys() <= here
        assert set(got.values()) == {1}
        if name != "PIF" and got.keys() - {a}:
            assert got.keys() & wanting - {a}  # no packets for nobody
        union = routes[a].anyone_wants()
        others = reduce(Predicate(tuple(f for x in here - {a} for f in wanted[x].filters)))
        assert union is not None
        for probe in ({"x": i, "y": j} for i in range(4) for j in range(4)):
            assert union.matches(probe) == others.matches(probe)


# ---- when they do not


@each_scheme
@some
@given(
    st.lists(networks.networks(nodes_max=8), min_size=2, max_size=8),
    st.lists(st.integers(0, 7), min_size=8, max_size=8),
)
def test_loops_end_when_views_differ(name: str, nets: list[Topology], chosen: list[int]) -> None:
    """Each broker has a map of its own, and all want everything."""
    brokers = [broker_name(x) for x in range(1, 9)]
    routes = {}
    for me, which in zip(brokers, chosen, strict=True):
        net = nets[which % len(nets)]
        seen = views(net, {x: parse("TRUE") for x in net.nodes})
        routes[me] = Routes(me, name, seen.get(me, Landscape(me, "e", 0)))
    for source in brokers:
        got, packets = travel(routes, source, ANY)
        assert len(packets) <= 8 * 8
        assert max(got.values()) <= 8


def test_a_ring_of_wrong_maps_spends_its_hops() -> None:
    """Everybody believes that dan is behind the next one."""
    routes = {}
    for me, next_one in (("ann", "bob"), ("bob", "cy"), ("cy", "ann")):
        view = Landscape(me, "e", 0)
        view.set_links({next_one: 1.0})
        others = ({me, "ann", "bob", "cy"} - {me, next_one}).pop()
        state = State(next_one, "e", 1, 0, ((me, 1.0), ("dan", 1.0), (others, 9.0)))
        view.hear(state, 1)
        view.hear(State("dan", "e", 1, 0, ((next_one, 1.0),), wanted=("TRUE",)), 1)
        view.hear(State(others, "e", 1, 0, ((next_one, 9.0),)), 1)
        routes[me] = Routes(me, "DRP", view)
    got, packets = travel(routes, "ann", ANY)
    assert packets == [("ann", "bob"), ("bob", "cy"), ("cy", "ann")]
    assert sum(r.dropped["spent"] for r in routes.values()) == 1
    assert got["dan"] == 0


# ---- rules


def trail(left: object, header: object) -> bytes:
    return msgspec.msgpack.encode((left, header))


NONSENSE = (
    *(b"", b"\xc1", b"\xff" * 9, b"\xc0", trail(-1, "b01"), trail("a", "b01")),
    *(trail(3, 7), trail(3, [1]), trail(3, None), trail(1 << 63, "b01") + b"x", trail(3, b"\xff")),
)


@each_scheme
@pytest.mark.parametrize("data", NONSENSE, ids=repr)
def test_a_trail_that_is_nonsense_is_broken(name: str, data: bytes) -> None:
    routes = Routes("b01", name, views(Topology.from_edges([(1, 2)]), {})["b01"])
    with pytest.raises(BrokenFrame):
        routes.onward(data, WANTING, "b02")


def test_a_trail_of_another_scheme_is_broken() -> None:
    view = views(Topology.from_edges([(1, 2)]), {})["b01"]
    with pytest.raises(BrokenFrame, match="not one of DRP"):
        Routes("b01", "DRP", view).onward(trail(3, "b02"), WANTING, "b02")
    with pytest.raises(BrokenFrame, match="not one of PSF"):
        Routes("b01", "PSF", view).onward(msgspec.Raw(trail(3, ["b02"])), WANTING, "b02")


def test_what_is_not_known_or_astray_is_counted() -> None:
    seen = views(
        Topology.from_edges([(1, 2), (2, 3), (3, 4)]), {4: parse("TRUE"), 1: parse("TRUE")}
    )
    drp = Routes("b02", "DRP", seen["b02"])
    assert drp.onward(trail(3, ["b02", "zoe", "b01", "b04"]), WANTING, "b01") == [
        ("b03", trail(2, ["b04"]))
    ]
    assert drp.dropped == {"astray": 1, "unknown": 1, "spent": 0}
    assert drp.onward(trail(0, ["b04"]), WANTING, "b01") == []
    assert drp.onward(trail(1 << 60, ["b04"]), WANTING, "b01") == [("b03", trail(2, ["b04"]))]
    assert drp.dropped["spent"] == 1
    psf = Routes("b02", "PSF", seen["b02"])
    assert psf.onward(trail(3, "zoe"), WANTING, "b01") == []
    assert psf.onward(trail(3, "b01"), WANTING, "b03") == []
    assert psf.onward(trail(3, "b02"), WANTING, "b03") == []
    assert psf.onward(trail(0, "b01"), WANTING, "b01") == []
    assert psf.dropped == {"astray": 2, "unknown": 1, "spent": 1}
    assert psf.onward(trail(1, "b01"), WANTING, "b01") == [("b03", trail(0, "b01"))]


@each_scheme
def test_alone(name: str) -> None:
    routes = Routes("ann", name, Landscape("ann", "e", 0))
    assert routes.start(WANTING) == []
    assert routes.explain(ANY) is None
    assert routes.hop("bob") is None
    assert routes.split(["bob"]) == {}
    assert routes.anyone_wants() == Predicate(())
    header = ["bob"] if name == "DRP" else "bob"
    assert routes.onward(trail(3, header), WANTING, "bob") == []
    assert routes.dropped["unknown"] == 1


def test_no_such_scheme() -> None:
    with pytest.raises(InvalidTopology, match="no scheme 'XYZ'; there are PSF, iPS, PIF, DRP"):
        Routes("ann", "XYZ", Landscape("ann", "e", 0))


# ---- demand


filters = st.sampled_from([f for p in networks.PREDICATES for f in p.filters])


@some
@given(st.lists(st.tuples(st.booleans(), st.lists(filters, max_size=4)), max_size=20))
def test_demand_is_the_reduced_union(steps: Any) -> None:
    union, there = Demand(), Counter[Any]()
    for adds, found in steps:
        if adds:
            union.add(found)
            there.update(found)
        else:
            gone = [f for f in set(found) if there[f]]
            union.remove(gone)
            there.subtract(gone)
            there = +there
        told = union.reduced()
        assert told is not None
        assert set(told.filters) == set(reduce(Predicate(tuple(there))).filters)


def test_demand_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand, "SAID_MAX", 4)
    monkeypatch.setattr(demand, "COUNTED_MAX", 16)
    points = [parse(f"x = {i}").filters[0] for i in range(20)]
    union = Demand()
    union.add(points[:4])
    assert union.reduced() == Predicate(tuple(points[:4]))
    union.add(points[4:6])
    assert union.reduced() is None
    wide = parse("x >= 0").filters
    union.add(wide)
    assert union.reduced() == Predicate(wide)
    union.add(points[6:])
    assert union.reduced() is None
    union.remove(points[14:])
    assert union.reduced() is None  # not to and fro
    union.remove(points[4:14])
    assert union.reduced() == Predicate(wide)
    union.remove(wide)
    assert union.reduced() == Predicate(tuple(points[:4]))
