"""What real brokers hold to route messages, against the schemes and formulas of the 2006 paper."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TypeAlias

import pytest

import palio
from palio.net.cluster import local_cluster
from palio.protocol.wire.control import Place
from palio.protocol.wire.routing_memory import RoutingMemory
from palio.routing import Topology, scheme
from palio.routing.schemes.memory import Amount, filter_bits

BROKERS, CHORDS = 12, 3
PATIENCE_S = 60.0
Counts: TypeAlias = tuple[int, int, int]
"""Predicates, constraints and bytes."""


def predicate(i: int) -> str:
    """Some cover those of other brokers, some do not."""
    return f"price < {100 * (i % 4 + 1)} OR dest = 'D{i % 5}' AND stops <= {i % 3} OR id = {i}"


async def memories(urls: dict[str, str]) -> dict[str, RoutingMemory]:
    """What each broker says about itself."""
    found = {}
    for name, url in urls.items():
        async with palio.connect(url) as client:
            places: dict[str, Place] = {
                place.broker: place for place in await client.topology(memory=True)
            }
        held = places[name].memory
        assert held is not None
        found[name] = held
    return found


async def settled(
    name: str, due: Callable[[list[tuple[str, str]], list[str]], dict[str, Counts]]
) -> tuple[list[tuple[str, str]], dict[str, RoutingMemory]]:
    """Start the brokers, a subscriber at each, and wait until all hold what is due. Returns the links
    and what they hold then."""
    async with (
        local_cluster(BROKERS, "ring", chords=CHORDS, routing=name) as cluster,
        AsyncExitStack() as stack,
    ):
        urls = dict(zip(cluster.names, cluster.urls, strict=True))
        expected = due(cluster.links, cluster.names)
        for i, url in enumerate(cluster.urls):
            client = await stack.enter_async_context(palio.connect(url))
            await stack.enter_async_context(client.subscribe(predicate(i)))
        deadline = time.monotonic() + PATIENCE_S
        while True:
            held = await memories(urls)
            told = {x: (m.predicates, m.constraints, m.bytes) for x, m in held.items()}
            if told == expected or time.monotonic() > deadline:
                assert told == expected
                return cluster.links, held
            await asyncio.sleep(0.5)


@pytest.mark.parametrize("name", ["PSF", "iPS", "PIF", "DRP"])
def test_twelve_brokers_hold_what_the_paper_says(name: str) -> None:
    """A ring with chords; every broker has a subscriber. Predicates and constraints are those of the
    scheme's functions, computed from scratch; the formula with alpha = 1 bounds them (2006, 3)."""
    wanted: dict[str, palio.Predicate] = {}

    def due(links: list[tuple[str, str]], names: list[str]) -> dict[str, Counts]:
        wanted.update((x, palio.reduce(palio.parse(predicate(i)))) for i, x in enumerate(names))
        nodes = scheme(name, Topology.from_edges(links), wanted).memory().nodes
        return {x: _stored(name, nodes[x], wanted[x]) for x in names}

    links, held = asyncio.run(settled(name, due))
    for memory in held.values():
        assert memory.scheme == name
        assert memory.constraints <= memory.formula_constraints
        assert memory.bytes <= memory.formula_bytes
    if name in ("PSF", "iPS", "PIF"):  # the disjunctions are smaller than their parts
        assert sum(m.bytes for m in held.values()) < 0.9 * sum(
            m.formula_bytes for m in held.values()
        )
    bits = {x: sum(map(filter_bits, p)) for x, p in wanted.items()}
    formula_bytes = sum(memory.formula_bytes for memory in held.values())
    net = Topology.from_edges(links)
    if name == "PSF":  # M_p times the sum of distances, with the real size of each predicate
        hops = {(v, x): len(net.tree(v).path(x)) - 1 for v in net.nodes for x in net.nodes}
        summed = sum(count * bits[x] for (_, x), count in hops.items())
        assert formula_bytes == pytest.approx(summed / 8, abs=BROKERS)
    if name == "DRP":  # r M_p at each sender, without its own predicate
        assert formula_bytes == pytest.approx((BROKERS - 1) * sum(bits.values()) / 8, abs=BROKERS)
    assert len({memory.database_bytes for memory in held.values()}) == 1  # whatever the scheme


def _stored(name: str, amount: Amount, own: palio.Predicate) -> Counts:
    """With DRP the lab counts a broker's own predicate too, which is not for other brokers."""
    predicates, constraints, bits = amount.predicates, amount.constraints, amount.predicate_bits
    if name == "DRP":
        predicates -= 1
        constraints -= sum(len(f.constraints) for f in own)
        bits -= sum(map(filter_bits, own))
    return predicates, constraints, (bits + 7) // 8
