"""How a failing plan of brokers is made smaller, besides leaving out operations."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from msgspec.structs import replace

from palio.protocol.wire.message_headers import NO_HEADERS
from palio.sim.brokers.plans import (
    BOUNDS,
    BrokerLimits,
    BrokerOperation,
    BrokerPlan,
    MessageSpec,
    PlannedLink,
    is_connected,
    reached,
)


def with_default_limits(plan: BrokerPlan) -> Iterator[BrokerPlan]:
    """Queues are long, and every client is quick."""
    if plan.limits != BrokerLimits():
        yield replace(plan, limits=BrokerLimits())
    if plan.bounds != BOUNDS:
        yield replace(plan, bounds=BOUNDS)
    if plan.advertisements:
        yield replace(plan, advertisements=False)
    quick = tuple(replace(client, pace_us=1_000) for client in plan.clients)
    if quick != plan.clients:
        yield replace(plan, clients=quick)


def with_plain_messages(plan: BrokerPlan) -> Iterator[BrokerPlan]:
    """No message has a body or headers."""
    operations = tuple(map(_without_payload, plan.operations))
    if operations != plan.operations:
        yield replace(plan, operations=operations)


def _without_payload(operation: BrokerOperation) -> BrokerOperation:
    message = operation.argument
    if not isinstance(message, MessageSpec):
        return operation
    plain = replace(message, body=b"", headers=NO_HEADERS, expires_us=0, retain="", forget=False)
    return replace(operation, argument=plain)


def without_idle_clients(plan: BrokerPlan) -> Iterator[BrokerPlan]:
    """Without all clients that do nothing, or without one of them: a probe may be its part."""
    busy = {operation.client for operation in plan.operations}
    busy |= {place for operation in plan.operations for place in operation.places}
    idle = [client for client in plan.clients if client.name not in busy]
    for gone in (idle, *([client] for client in idle)):
        kept = tuple(client for client in plan.clients if client not in gone)
        if kept and kept != plan.clients:
            fewer = replace(plan, clients=kept)
            yield _connected(plan, fewer, set(plan.brokers) - set(fewer.brokers))


def without_a_broker(plan: BrokerPlan) -> Iterator[BrokerPlan]:
    """Without one of the brokers that have no clients; its neighbours are linked in its place."""
    busy = {client.home for client in plan.clients}
    for name in plan.brokers:
        if name not in busy:
            links = tuple(one for one in plan.links if name not in (one.first, one.second))
            operations = tuple(one for one in plan.operations if name not in one.places)
            fewer = _with_links(replace(plan, operations=operations), links)
            yield _connected(plan, fewer, {name})


def with_plain_links(plan: BrokerPlan) -> Iterator[BrokerPlan]:
    """Without one link that is not needed; then all links alike."""
    used = {frozenset(one.places) for one in plan.operations if len(one.places) == 2}
    for link in plan.links:
        fewer = _with_links(plan, tuple(one for one in plan.links if one is not link))
        is_used = frozenset((link.first, link.second)) in used
        if not is_used and fewer.brokers == plan.brokers and is_connected(fewer):
            yield fewer
    plain = tuple(PlannedLink(link.first, link.second) for link in plan.links)
    if plain != plan.links:
        yield replace(plan, links=plain)


def without_masters(plan: BrokerPlan) -> Iterator[BrokerPlan]:
    """All neighbours are peers; then without one of the masters, unless slaves must have no peers."""
    if plan.masters:
        yield replace(plan, masters=())
    for pair in () if plan.advertisements else plan.masters:
        yield replace(plan, masters=tuple(one for one in plan.masters if one != pair))


def _with_links(plan: BrokerPlan, links: tuple[PlannedLink, ...]) -> BrokerPlan:
    """The plan with fewer links, and the masters that are still linked."""
    ends = {frozenset((link.first, link.second)) for link in links}
    masters = tuple(pair for pair in plan.masters if frozenset(pair) in ends)
    return replace(plan, links=links, masters=masters)


def _connected(before: BrokerPlan, plan: BrokerPlan, gone: set[str]) -> BrokerPlan:
    """The plan, with links between former neighbours of what is gone where it falls apart."""
    ends = [{link.first, link.second} for link in before.links]
    beside = sorted(set[str]().union(*(pair for pair in ends if pair & gone)) - gone)
    for a, b in pairwise(beside):
        if b not in reached(plan.links, a):
            plan = replace(plan, links=(*plan.links, PlannedLink(a, b)))
    return plan


REDUCTIONS = (
    with_default_limits,
    with_plain_messages,
    without_idle_clients,
    without_a_broker,
    without_masters,
    with_plain_links,
)
