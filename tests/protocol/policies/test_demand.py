"""Demand against a recomputation: the reduced union of filters, and of what reachable brokers want."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palio import Predicate, parse, reduce
from palio.protocol.policies import demand
from palio.protocol.policies.demand import Demand, NetworkDemand
from palio.protocol.policies.link_state import LinkStateDatabase
from tests.protocol.policies.link_state_network import LinkStateNetwork
from tests.routing import random_networks as networks

some = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
filters = st.sampled_from([f for p in networks.PREDICATES for f in p.filters])


@some
@given(st.lists(st.tuples(st.booleans(), st.lists(filters, max_size=4)), max_size=20))
def test_demand_is_the_reduced_union(steps: Any) -> None:
    union, counts = Demand(), Counter[Any]()
    for adds, found in steps:
        if adds:
            union.add(found)
            counts.update(found)
        else:
            removed = [f for f in set(found) if counts[f]]
            union.remove(removed)
            counts.subtract(removed)
            counts = +counts
        answer = union.reduced()
        assert answer is not None
        assert set(answer.filters) == set(reduce(Predicate(tuple(counts))).filters)


def test_demand_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demand, "ROOTS_MAX", 4)
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
    assert union.reduced() is None  # below the limit, but not well below
    union.remove(points[4:14])
    assert union.reduced() == Predicate(wide)
    union.remove(wide)
    assert union.reduced() == Predicate(tuple(points[:4]))


@pytest.mark.parametrize("seed", range(12))
def test_network_demand_is_that_of_all_reachable_brokers(seed: int) -> None:
    """Brokers change their filters, are cut off, age, crash and return between two queries."""
    rng = random.Random(seed)
    net = LinkStateNetwork(["ann", "bob", "cy", "dan", "eve"], rng)
    texts = [str(f) for p in networks.PREDICATES for f in p.filters]
    me = net.brokers["ann"]
    asked = NetworkDemand(me)
    for _ in range(60):
        for _ in range(rng.randrange(1, 4)):
            change(net, rng, texts)
        net.quiet(rng.choice([0, 0, 0, 200_000]))
        expected = Counter(f for x in me.reachable_brokers() for f in me.wanted(x).filters)
        answer = asked.reduced()
        assert answer is not None
        assert set(answer.filters) == set(reduce(Predicate(tuple(expected))).filters)


def change(net: LinkStateNetwork, rng: random.Random, texts: list[str]) -> None:
    """Do something at random to a broker other than ann, or to a link."""
    one = rng.choice(["bob", "cy", "dan", "eve"])
    kind = rng.random()
    if one not in net.brokers:
        net.start(one)
    elif kind < 0.5:
        net.want(one, rng.sample(texts, 2), rng.sample(texts, 3))
    elif kind < 0.8:
        a, b = sorted(rng.sample(sorted(net.brokers), 2))
        if (a, b) not in net.links:
            net.join(a, b)
    elif kind < 0.95 and net.links:
        net.cut(*rng.choice(sorted(net.links)))
    else:
        net.crash(one)


def test_a_broker_alone_demands_nothing() -> None:
    alone = LinkStateDatabase("ann", "e", 0)
    alone.want(["x > 1"])
    assert NetworkDemand(alone).reduced() == Predicate(())
