"""Rest: what must hold of brokers when everything is healed, and when everybody has left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from palio.protocol.broker import Broker
from palio.protocol.live import NETWORK, NOWHERE
from palio.protocol.onward import peer_of
from palio.sim.brokers.hosts import Host
from palio.sim.brokers.plans import Edge
from palio.sim.brokers.records import Desk
from palio.sim.checkers import Violation

KEYS_MAX = 40
"""Of a store that holds no messages, besides a few for each subscription."""
IDENTITY = "anybody"


def why_restless(hosts: Iterable[Host], edges: Iterable[Edge]) -> str | None:
    """What is still to be done, if anything is."""
    cores: dict[str, Broker] = {}
    for host in hosts:
        if host.core is None:
            return f"{host.place} is down"
        cores[host.place] = host.core
    for edge in edges:
        for a, b in ((edge.first, edge.second), (edge.second, edge.first)):
            if b not in cores[a].neighbours.names:
                return f"{a} is not linked with {b}"
    views = {name: core.landscape.places() for name, core in cores.items()}
    first = next(iter(views))
    for name, view in views.items():
        if len(cores) > 1 and view != views[first]:
            return f"{first} and {name} see different networks: {views[first]} and {view}"
    return next((why for core in cores.values() if (why := _why_busy(core)) is not None), None)


def _why_busy(core: Broker) -> str | None:
    found = core.deposit.statistics()
    for broker, count in found.backlogs.items():
        if count:
            return f"{count} messages wait at {core.name} for {broker}"
    for name, count in found.queues.items():
        if count:
            return f"{count} messages wait at {core.name} in the queue of {name!r}"
    return None


def check_leftovers(
    hosts: Mapping[str, Host], edges: Iterable[Edge], desks: Iterable[Desk]
) -> None:
    """All clients are gone, retention is over: brokers keep what they need, and no more."""
    facts = {(desk.home, f"{IDENTITY}/{desk.want.desk}") for desk in desks if desk.want.durable}
    links = [end for edge in edges for end in (edge.first, edge.second)]
    for host in hosts.values():
        core = host.core
        assert core is not None
        for what, there, due in _counts(core, links.count(core.name), len(facts)):
            if there != due:
                raise Violation("leftovers", f"{core.name} has {there} {what} instead of {due}")
        known = {(fact.broker, fact.name) for fact in core.deposit.subscriptions()}
        if known != facts:
            strange = sorted(known ^ facts)
            raise Violation("leftovers", f"{core.name} knows other subscriptions: {strange}")
        if len(host.disk) > KEYS_MAX + 4 * len(facts) + 4 * len(hosts):
            raise Violation("leftovers", f"the store of {core.name} has {len(host.disk)} keys")


def _counts(core: Broker, links: int, facts: int) -> list[tuple[str, object, object]]:
    """What is there, and what should be. Internals too: there is no other way to see a leak."""
    found, traffic = core.deposit.statistics(), core.traffic
    peers = {NOWHERE, *([NETWORK] if not core.settings.is_forwarding else [])}
    if core.settings.is_forwarding:
        peers |= {peer_of(name) for name in core.neighbours.names}
    return [
        ("messages in the journal", found.messages, 0),
        ("bytes in the journal", found.bytes, 0),
        ("connections", len(core.links), links),
        ("neighbours", len(core.neighbours.names), links),
        ("clients", len(core.clients), 0),
        ("live subscriptions", len(core.live), 0),
        ("peers of the router", sorted(core.live.router.peers), sorted(peers)),
        ("subscriptions on the map", sum(1 for _ in core.landscape.durables()), facts),
        ("messages that came in", len(traffic._live) + len(traffic._durable), 0),
        ("messages that wait for room", len(traffic._held), 0),
        ("messages that are not safe", len(traffic._stored) + len(traffic._unsafe), 0),
        ("messages that wait for neighbours", _waiting(core), 0),
        ("subscriptions that wait for a commit", len(core.clients.homes._awaiting), 0),
        ("subscriptions that wait for their end", len(core.clients.homes._leaving), 0),
        ("consumers", len(core.deposit._consumers), 0),
        ("commits under way", len(core.deposit._under_way), 0),
    ]


def _waiting(core: Broker) -> int:
    neighbours = core.neighbours
    waiting = [*neighbours._waiting.values(), *neighbours._carrying.values()]
    return sum(map(len, waiting))
