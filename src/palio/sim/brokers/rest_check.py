"""What must hold of brokers when everything is healed, and when all clients have left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from palio.protocol.broker.broker import Broker
from palio.sim.brokers.core_view import (
    durable_subscriptions,
    known_topology,
    last_value_keys,
    leftover_counts,
    linked_brokers,
    queue_name,
    waiting_messages,
)
from palio.sim.brokers.expected import ExpectedDeliveries
from palio.sim.brokers.plans import PlannedLink
from palio.sim.brokers.process import BrokerProcess
from palio.sim.kernel.verdicts import Violation

KEYS_MAX = 40
"""Of a store that holds no messages, besides a few for each subscription."""


def why_restless(processes: Iterable[BrokerProcess], links: Iterable[PlannedLink]) -> str | None:
    """What is still to be done, if anything is."""
    cores: dict[str, Broker] = {}
    for process in processes:
        if process.core is None:
            return f"{process.place} is down"
        cores[process.place] = process.core
    for link in links:
        for a, b in ((link.first, link.second), (link.second, link.first)):
            if b not in linked_brokers(cores[a]):
                return f"{a} is not linked with {b}"
    views = {name: known_topology(core) for name, core in cores.items()}
    first = next(iter(views))
    for name, view in views.items():
        if len(cores) > 1 and view != views[first]:
            return f"{first} and {name} see different networks: {views[first]} and {view}"
    for name, core in cores.items():
        for what, count in waiting_messages(core):
            if count:
                return f"{count} messages wait at {name} for {what}"
    return None


def check_leftovers(
    processes: Mapping[str, BrokerProcess],
    links: Iterable[PlannedLink],
    expected: Iterable[ExpectedDeliveries],
) -> None:
    """All clients are gone, retention is over: brokers keep what they need, and no more."""
    durable = {
        (subscription.home, queue_name(subscription.spec.durable_name, subscription.spec.group))
        for subscription in expected
        if subscription.spec.durable
    }
    ends = [end for link in links for end in (link.first, link.second)]
    for process in processes.values():
        core = process.core
        assert core is not None
        name = process.place
        for what, there, due in leftover_counts(core, ends.count(name), len(durable)):
            if there != due:
                raise Violation("leftovers", f"{name} has {there} {what} instead of {due}")
        known = durable_subscriptions(core)
        if known != durable:
            wrong = sorted(known ^ durable)
            raise Violation("leftovers", f"{name} knows other subscriptions: {wrong}")
        keys_max = KEYS_MAX + 4 * len(durable) + 4 * len(processes) + last_value_keys(core)
        if len(process.disk) > keys_max:
            raise Violation("leftovers", f"the store of {name} has {len(process.disk)} keys")
