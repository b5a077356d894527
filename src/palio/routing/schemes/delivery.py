"""The delivery tree of one message, and what makes one good (2006, 2.2 and 2.3).

A vertex is a packet at a processor: the first is the message at its source, every other one was
sent by the processor of its parent vertex. A processor that gets two packets has two vertices.

`is_correct`, `is_latency_minimal`, `is_cost_minimal` and `is_ideal` judge a tree by the definitions
alone: they evaluate predicates one by one and know nothing of schemes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from palio.errors import InvalidTopology
from palio.model.message import Message
from palio.model.predicate import Predicate
from palio.routing.topology import Topology
from palio.routing.trees import Node

_STATES_MAX, _DEPTH_MAX = 20_000, 300


@dataclass(frozen=True, slots=True)
class Vertex:
    """A packet that arrived: where, with which header, after how long, sent from which vertex."""

    processor: Node
    header: Any
    latency: float
    parent: int | None
    """The position of the parent among the vertices; the source has none."""


@dataclass(frozen=True)
class Delivery:
    """All that happened to one message. `vertices` come after their parents."""

    net: Topology = field(repr=False)
    predicates: Mapping[Node, Predicate] = field(repr=False)
    message: Message
    vertices: tuple[Vertex, ...] = field(repr=False)
    receivers: frozenset[Node]
    """Who handed the message to its own applications."""

    @property
    def source(self) -> Node:
        return self.vertices[0].processor

    @property
    def packets(self) -> int:
        """How many were sent from one processor to another."""
        return len(self.vertices) - 1

    @cached_property
    def processors(self) -> set[Node]:
        """Who saw the message: source, receivers and those between them."""
        return {vertex.processor for vertex in self.vertices}

    @cached_property
    def latency(self) -> dict[Node, float]:
        """How long it took to each receiver, by the first packet."""
        found: dict[Node, float] = {}
        for vertex in self.vertices:
            if vertex.processor in self.receivers:
                known = found.get(vertex.processor, vertex.latency)
                found[vertex.processor] = min(known, vertex.latency)
        return found

    @property
    def links(self) -> list[tuple[Node, Node]]:
        """From whom to whom packets went, one entry a packet."""
        return [
            (self.vertices[vertex.parent].processor, vertex.processor)
            for vertex in self.vertices
            if vertex.parent is not None
        ]

    @cached_property
    def interested(self) -> frozenset[Node]:
        """Whose predicate matches, each evaluated on its own."""
        return frozenset(x for x, p in self.predicates.items() if p.matches(self.message))


def is_correct(delivery: Delivery) -> bool:
    """Everyone interested gets the message, and nobody else takes it for itself."""
    return delivery.receivers == delivery.interested <= delivery.processors


def is_latency_minimal(delivery: Delivery) -> bool:
    """Everyone interested gets it, and as early as the network admits."""
    distance = delivery.net.tree(delivery.source).distance
    return is_correct(delivery) and all(late == distance(x) for x, late in delivery.latency.items())


def is_cost_minimal(delivery: Delivery) -> bool:
    """No latency-minimal tree of this message has fewer packets."""
    wanted = delivery.interested - {delivery.source}
    return delivery.packets == packets_min(delivery.net, delivery.source, wanted)


def is_ideal(delivery: Delivery) -> bool:
    """Minimal latency, and of all trees with that the fewest packets (2006, 2.3)."""
    return is_latency_minimal(delivery) and is_cost_minimal(delivery)


def packets_min(net: Topology, source: Node, wanted: frozenset[Node]) -> int:
    """The fewest packets that reach all of these on shortest paths.

    Where several shortest paths exist, this is a search: the farthest processor that is still to be
    reached gets its packet from some neighbour on a shortest path; if one of those gets the message
    anyway it is the best choice, and otherwise all are tried. Too long a search is an error.
    """
    tree = net.tree(source)
    rank = {x: i for i, x in enumerate(net.nodes[i] for i in tree.order)}
    fewest: dict[frozenset[Node], int] = {}

    def search(needed: frozenset[Node], depth: int) -> int:
        key, added = needed, 0
        if key in fewest:
            return fewest[key]
        if len(fewest) > _STATES_MAX or depth > _DEPTH_MAX:
            raise InvalidTopology(
                "too many equally long ways to find the fewest packets; "
                "weights that differ make them few (`generators.reweighted`)"
            )
        while needed:
            last = max(needed, key=rank.__getitem__)
            needed, added = needed - {last}, added + 1
            upstream = net.towards(source, last)
            if source in upstream or not needed.isdisjoint(upstream):
                continue
            if len(upstream) > 1:
                added += min(search(needed | {parent}, depth + 1) for parent in upstream)
                break
            needed |= {upstream[0]}
        fewest[key] = added
        return added

    return search(frozenset(wanted), 0)
