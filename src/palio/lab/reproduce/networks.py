"""Networks and interests that the experiments on schemes share: families by name, predicates, messages.

An interest is a disjunction of filters `topic = t AND price < p` with 20 topics and prices below 100,
all alike; a message has both attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from palio.lab.reproduce.experiment import Plain, grid, sizes
from palio.model.message import Message
from palio.model.predicate import Constraint, Filter, Predicate
from palio.routing import Topology, generators
from palio.routing.trees import Node

TOPICS, PRICES = 20, 100


def _grid(nodes: int, _random: Random) -> Topology:
    side = max(2, round(nodes**0.5))
    return generators.grid(side, side)


def _internet(nodes: int, random: Random) -> Topology:
    """25 routers for each of the core: itself, and three domains of eight."""
    return generators.internet(random, cores=max(2, nodes // 25))


def _power_law(nodes: int, random: Random) -> Topology:
    """Links of different lengths, so that shortest paths are unique."""
    return generators.reweighted(generators.power_law(nodes, random), random)


FAMILIES: dict[str, Callable[[int, Random], Topology]] = {
    "tree": generators.random_tree,
    "ring": lambda nodes, _random: generators.ring(nodes),
    "grid": _grid,
    "power law": _power_law,
    "internet": _internet,
}


def family_points(nodes: int, scale: float, repetitions: int) -> list[dict[str, Plain]]:
    """Networks of every family from 25 nodes on, to `nodes` at the full scale."""
    counts = sizes(25, max(50, round(nodes * scale)), 2)
    often = 1 if scale < 0.1 else repetitions
    return grid(nodes=counts, family=list(FAMILIES), repetitions=[often])


def interests(nodes: tuple[Node, ...], random: Random, filters: int = 1) -> dict[Node, Predicate]:
    """A predicate for each of these nodes."""
    return {node: Predicate(tuple(_filter(random) for _ in range(filters))) for node in nodes}


def message(random: Random) -> Message:
    return Message({"topic": random.randrange(TOPICS), "price": random.randrange(PRICES)})


def _filter(random: Random) -> Filter:
    topic = Constraint("topic", "=", random.randrange(TOPICS))
    return Filter((topic, Constraint("price", "<", random.randrange(1, PRICES))))
