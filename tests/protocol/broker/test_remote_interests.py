"""The entries of routing schemes in the interest table, against brute force and the lab's schemes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain

import pytest

from palio import parse
from palio.model.message import Message
from palio.model.predicate import Filter, Predicate
from palio.model.reduction import reduce
from palio.protocol.broker import network_view, remote_interests
from palio.protocol.broker.remote_interests import RemoteInterests
from palio.protocol.interfaces import NextHop, RemoteBroker, kind_of
from palio.protocol.policies.registry import POLICIES
from palio.protocol.policies.tree_policy import TreePolicy
from palio.protocol.wire.encode import NO_ROUTE
from palio.routing import Router, Topology, scheme
from palio.routing.interest_table import InterestTable
from palio.routing.schemes.memory import filter_bits
from tests.routing import random_networks as networks

each_scheme = pytest.mark.parametrize("name", networks.EVERY_SCHEME)
each_tree_scheme = pytest.mark.parametrize("name", ["PSF", "iPS", "PIF"])
NAMES = [f"b{i}" for i in range(8)]
FILTERS = [
    f
    for text in (
        *(
            "x > 0",
            "x > 1",
            "x > 2",
            "x = 2",
            "y = 1",
            "y > 0",
            "x > 0 AND y = 1",
            "x > 1 AND y = 1",
        ),
        *("s LIKE 'a%'", "s = 'ab'", "s = 'ab' AND x > 1", "y IS NULL"),
    )
    for f in parse(text).filters
]


class Node:
    """The routing of one broker, whose topology and knowledge of others are given to it."""

    def __init__(self, name: str, me: str) -> None:
        self.me = me
        self.policy = POLICIES[name](me, Router(me))
        self.table = InterestTable(kind_of)
        self.remote = RemoteInterests(self.table, self.policy, lambda: None)
        self.wanted: dict[str, dict[Filter, None]] = {x: {} for x in NAMES if x != me}
        self.stable: dict[str, list[Filter]] = {}
        """What brokers want whether or not the last change is applied."""
        self.net: Topology | None = None
        self.work: Iterator[int] = iter(())

    def toggle(self, broker: str, filters: list[Filter]) -> None:
        self.finish()
        own = self.wanted[broker]
        self.stable[broker] = [found for found in own if found not in filters]
        news = {found: found not in own for found in filters}
        for found, is_wanted in news.items():
            if is_wanted:
                own[found] = None
            else:
                del own[found]
        self.work = self.remote.change(broker, news)

    def finish(self) -> None:
        """Do all that is to be done."""
        for _ in self.work:
            pass
        self.stable = {broker: list(own) for broker, own in self.wanted.items()}

    def follow(self, net: Topology | None) -> None:
        self.net = net
        if not self.remote.is_outdated:
            self.work = chain(self.work, self._regroup())
        self.policy.on_topology(net)
        self.remote.reroute()

    def _regroup(self) -> Iterator[int]:
        while self.remote.is_outdated:
            yield from self.remote.regroup()

    def next_hops(self, message: Message) -> set[str]:
        interested = tuple(one.name for one in self.table.interfaces_of(message))
        hops = self.policy.next_hops(NO_ROUTE, interested, None)
        assert hops is not None
        return {hop for hop, _ in hops}

    def needed_hops(self, message: Message) -> set[str]:
        """The children that lead to brokers that want the message, by brute force."""
        if self.net is None:
            return set()
        tree = self.net.tree(self.me)
        wanting = {b for b, own in self.stable.items() if any(f.matches(message) for f in own)}
        return {w for w in tree.children(self.me) if not wanting.isdisjoint(tree.descendants(w))}

    def expected(self) -> dict[object, Predicate]:
        """What the table should have, from scratch."""
        if not isinstance(self.policy, TreePolicy):
            return {RemoteBroker(b): Predicate(tuple(own)) for b, own in self.wanted.items() if own}
        found: dict[object, Predicate] = {}
        for name, brokers in self.policy.entries():
            union = dict.fromkeys(f for b in sorted(brokers) for f in self.wanted[b])
            if union:
                found[NextHop(name)] = reduce(Predicate(tuple(union)))
        return found

    def check(self) -> None:
        """The table has what the scheme has, and it is counted."""
        expected = self.expected()
        assert set(self.table._filters) == expected.keys()
        for interface, predicate in expected.items():
            assert set(self.table.filters_of(interface)) == set(predicate)
        held = self.remote.held
        uses = dict.fromkeys(self.wanted, 1)
        if isinstance(self.policy, TreePolicy):
            all_ = [b for _, brokers in self.policy.entries() for b in brokers]
            uses = {b: all_.count(b) for b in self.wanted}
        given = [f for b, own in self.wanted.items() for f in own for _ in range(uses[b])]
        assert self.remote.formula() == (
            sum(len(f.constraints) for f in given),
            sum(map(filter_bits, given)),
        )
        filters = [f for predicate in expected.values() for f in predicate]
        assert self.remote.predicates == len(expected)
        assert held.filters == len(filters)
        assert held.constraints == sum(len(f.constraints) for f in filters)
        assert held.predicate_bits == sum(map(filter_bits, filters))


def drawn_topology(rng: random.Random) -> Topology | None:
    """A connected part of the brokers with b0, with random links."""
    names = [NAMES[0], *rng.sample(NAMES[1:], rng.randrange(len(NAMES)))]
    edges = {
        (rng.choice(names[:i]), names[i]): rng.choice([1.0, 2.0]) for i in range(1, len(names))
    }
    for _ in range(rng.randrange(5)):
        u, v = rng.choice(names), rng.choice(names)
        if u != v and (v, u) not in edges:
            edges[u, v] = rng.choice([1.0, 2.0])
    return (
        Topology.from_edges([(u, v, weight) for (u, v), weight in edges.items()]) if edges else None
    )


def any_message(rng: random.Random) -> Message:
    given = {"x": rng.randrange(4), "y": rng.randrange(3), "s": rng.choice(["ab", "ax", "b"])}
    return Message({name: value for name, value in given.items() if rng.random() < 0.8})


@each_scheme
@pytest.mark.parametrize("seed", range(8))
def test_entries_follow_filters_and_topologies(
    name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slices are small here, and other changes come between them: whatever has been done, the next
    hops lead to everyone who wants a message, and when all is done the entries are exact."""
    monkeypatch.setattr(remote_interests, "_FILTERS_AT_ONCE", 2)
    monkeypatch.setattr(remote_interests, "_CHANGES_AT_ONCE", 1)
    rng = random.Random(seed)
    node = Node(name, NAMES[0])
    for _ in range(60):
        kind = rng.random()
        if kind < 0.2:
            node.follow(drawn_topology(rng))
        elif kind < 0.6:
            node.toggle(rng.choice(NAMES[1:]), rng.sample(FILTERS, rng.randrange(1, 4)))
        elif kind < 0.9:
            next(node.work, None)
        else:
            node.finish()
            node.check()
        for message in [any_message(rng) for _ in range(5)]:
            if node.remote.is_settled:
                assert node.needed_hops(message) <= node.next_hops(message)
    node.finish()
    node.check()
    assert node.remote.is_settled
    for message in [any_message(rng) for _ in range(20)]:
        exact = node.needed_hops(message)
        assert node.next_hops(message) == exact or (
            name == "PIF" and exact < node.next_hops(message)
        )


@each_tree_scheme
def test_no_message_is_lost_while_a_link_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The brokers are the same, only the way to them changes: in every slice everyone is reached."""
    monkeypatch.setattr(remote_interests, "_FILTERS_AT_ONCE", 2)
    monkeypatch.setattr(remote_interests, "_CHANGES_AT_ONCE", 1)
    rng = random.Random(1)
    ring = [(NAMES[i], NAMES[(i + 1) % 8], 1.0) for i in range(8)]
    node = Node(name, NAMES[0])
    for broker in NAMES[1:]:
        node.toggle(broker, rng.sample(FILTERS, 4))
    node.follow(Topology.from_edges(ring))
    node.finish()
    slices = 0
    for gone in range(1, 8):
        node.follow(Topology.from_edges([*ring[:gone], *ring[gone + 1 :]]))
        for _ in node.work:
            slices += 1
            for message in [any_message(rng) for _ in range(10)]:
                assert node.needed_hops(message) <= node.next_hops(message)
        node.check()
    assert slices > 7


@each_tree_scheme
@pytest.mark.parametrize("seed", range(4))
def test_entries_are_what_the_lab_says_that_a_node_stores(name: str, seed: int) -> None:
    """Every broker wants something; then predicates, constraints and bits agree (2006, 3)."""
    rng = random.Random(seed)
    edges = {(min(u, v), max(u, v)) for u, v in zip(NAMES, NAMES[1:] + NAMES[:1], strict=True)}
    edges |= {(min(u, v), max(u, v)) for u, v in [rng.sample(NAMES, 2) for _ in range(4)]}
    net = Topology.from_edges([(u, v, 1.0) for u, v in sorted(edges)])
    wanted = {broker: rng.sample(FILTERS, 3) for broker in NAMES}
    lab = scheme(name, net, {b: Predicate(tuple(own)) for b, own in wanted.items()}).memory()
    for me in NAMES:
        node = Node(name, me)
        for broker in NAMES:
            if broker != me:
                node.toggle(broker, wanted[broker])
        node.follow(net)
        node.finish()
        held, stored = node.remote.held, lab.nodes[me]
        assert node.remote.predicates == stored.predicates
        assert held.constraints == stored.constraints
        assert held.predicate_bits == stored.predicate_bits


def test_one_filter_changes_few_entries() -> None:
    node = Node("PSF", NAMES[0])
    node.follow(Topology.from_edges([(NAMES[i], NAMES[i + 1]) for i in range(7)]))
    node.finish()
    for i in range(100):
        node.toggle(NAMES[1 + i % 7], parse(f"id = {i}").filters)
    node.finish()
    changes: list[object] = []
    node.table.change = lambda interface, news: changes.append((interface, news))  # type: ignore[method-assign]
    list(node.remote.change(NAMES[7], {parse("id = 7000").filters[0]: True}))
    assert len(changes) == 1  # of the tree of b0: in all others b1 is above it


@each_tree_scheme
def test_a_filter_that_covers_many_is_added_and_removed_in_small_pieces(name: str) -> None:
    node = Node(name, NAMES[0])
    node.follow(Topology.from_edges([(NAMES[i], NAMES[i + 1]) for i in range(7)]))
    node.toggle(NAMES[1], [f for i in range(600) for f in parse(f"id = {i} AND x < 5").filters])
    for _ in range(2):
        node.toggle(NAMES[3], list(parse("x < 9").filters))
        costs = list(node.work)
        assert len(costs) > 600 // remote_interests._CHANGES_AT_ONCE
        assert max(costs) <= network_view.SLICE_COST
        node.finish()
        node.check()
