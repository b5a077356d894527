"""What the simulator reads inside a broker core and a session, besides their public calls.

Nothing else in `palio.sim` reads the inside of a core or the fields of an arrived message: leaks can
be seen only inside. When the protocol changes there, only this module must change.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from palio.model.predicate import Filter
from palio.protocol.broker.broker import Broker
from palio.protocol.broker.durable_names import DurableName
from palio.protocol.client.events import Arrival
from palio.protocol.interfaces import Network, RemoteBroker
from palio.protocol.policies.subscription_forwarding import FORWARDING
from palio.protocol.wire.last_values import LAST_VALUES, unstamped
from palio.protocol.wire.message_headers import RETAIN, SIZE_MAX, body_of, headers_of, packed
from palio.protocol.wire.publishers import is_broker, publisher_key, split_key
from palio.routing.hierarchy import EVERYTHING

IDENTITY = "anybody"
"""Every simulated client has this identity,"""
SHARED_NAME = "app"
"""and this name: they differ by their sessions, as replicas of an application do."""


def publisher_of(client: str) -> str:
    """The publisher of a client's messages."""
    return publisher_key(IDENTITY, SHARED_NAME, client)


class ArrivedMessage(msgspec.Struct, frozen=True):
    """A message that a session has handed to its application."""

    id: int
    publisher: str
    number: int
    position: int
    """In the queue of a durable subscription; 0: it came live."""
    deliveries: int
    """How often it has been sent, as its header says."""
    attributes: bytes
    payload: bytes
    sent_us: int = 0
    """When the broker decided to send it."""

    @property
    def is_redelivered(self) -> bool:
        return self.deliveries > 1

    @property
    def is_queued(self) -> bool:
        return self.position > 0


def is_dead_letter(message: ArrivedMessage) -> bool:
    return is_broker(message.publisher)


def client_of(publisher: str) -> str:
    """The client that publishes as `publisher`."""
    return split_key(publisher)[1]


def arrived_message(arrival: Arrival, sent_us: int) -> ArrivedMessage:
    header, frame = arrival.header, arrival.frame
    return ArrivedMessage(
        arrival.id,
        header.publisher,
        header.number,
        header.position,
        header.deliveries,
        frame.attributes,
        _as_published(frame.payload),
        sent_us,
    )


def _as_published(payload: bytes) -> bytes:
    """Without what brokers add to last values."""
    headers = headers_of(payload)
    if RETAIN not in headers:
        return payload
    return packed(unstamped(headers), SIZE_MAX) + body_of(payload)


def linked_brokers(core: Broker) -> list[str]:
    """The neighbours that this broker has a link with."""
    return sorted(core.parts.neighbours.links.weights)


def is_dialling(core: Broker, name: str) -> bool:
    return any(link.dialled == name for link in core.parts.links)


def known_topology(core: Broker) -> object:
    """All brokers and links as this broker knows them; equal when two know the same."""
    return core.parts.view.database.places()


def queue_name(durable: str, group: str) -> str:
    """The name of a durable subscription between brokers."""
    return str(DurableName(IDENTITY, durable, group))


def durable_subscriptions(core: Broker) -> set[tuple[str, str]]:
    """Home broker and name of each durable subscription that this broker knows."""
    facts = core.parts.messages.subscriptions()
    return {(fact.broker, fact.name) for fact in facts if fact.name != LAST_VALUES}


def last_values(core: Broker) -> dict[bytes, tuple[str, int]]:
    """What this broker gives to new subscribers: publisher and number, by key."""
    values = core.parts.data_path.retaining.values
    now_us = core.now_us
    found = [one for one in values if values.find(one.key, now_us) is one]
    return {one.key: (one.publisher, one.number) for one in found}


def last_value_keys(core: Broker) -> int:
    """How many keys of its store are for last values, those that are gone among them."""
    return len(core.parts.data_path.retaining.values.values())


def waiting_messages(core: Broker) -> Iterator[tuple[str, int]]:
    """What messages wait for, and how many."""
    statistics = core.parts.messages.statistics()
    for broker, count in statistics.backlogs.items():
        yield f"broker {broker}", count
    yield "their time", len(core.parts.messages.republishing.delayed)
    yield "brokers that lack last values", len(core.parts.view.last_values.transfers)
    yield "subscribers to last values", len(core.parts.subscriptions.last_values)
    for name, count in statistics.queues.items():
        yield f"the queue of {name!r}", count


def has_unfinished_frames(core: Broker) -> bool:
    """Whether a part of a frame has arrived, and not the rest."""
    return core._guard.unfinished_bytes > 0


def leftover_counts(core: Broker, links: int, durable: int) -> Iterator[tuple[str, object, object]]:
    """What an idle broker holds, and what it should hold: a leak is a difference."""
    parts, snapshot = core.parts, core.snapshot()
    statistics, data_path, home = (
        parts.messages.statistics(),
        parts.data_path,
        parts.subscriptions.home,
    )
    peers: set[object] = {Network()}
    if core.settings.routing == FORWARDING:
        peers = {RemoteBroker(name) for name in linked_brokers(core)}
    yield "messages in the journal", statistics.messages, 0
    yield "bytes in the journal", statistics.bytes, 0
    yield "connections", snapshot.links, links
    yield "neighbours", snapshot.neighbours, links
    yield "clients", snapshot.clients, 0
    yield "subscriptions of clients", snapshot.subscriptions, 0
    yield "live subscriptions", len(parts.local), 0
    yield "peers of the router", set(parts.port.router.peers), peers
    yield "filters in the router", list(parts.port.router.subscriptions), _wanted_above(core)
    yield "advertisements in the router", len(parts.port.router.advertisements), 0
    facts = [fact for fact in parts.view.database.durables() if fact.name != LAST_VALUES]
    yield "durable subscriptions of all", len(facts), durable
    yield "messages that came in", len(data_path._arrived), 0
    yield "messages that wait for room", len(data_path.held), 0
    yield "bytes that wait for room", data_path.held.bytes, 0
    yield "bytes that wait for live subscriptions", parts.local.waiting.bytes, 0
    yield "live subscriptions that wait for a turn", len(parts.local.deferred), 0
    yield "connections without a handshake", core._guard.strangers, 0
    yield "bytes of unfinished frames", core._guard.unfinished_bytes, 0
    yield "bytes of requests that wait", core._scheduler.bytes, 0
    yield "messages that are not safe", len(data_path._uncommitted), 0
    yield "slots of the table that are not reused", len(parts.table._slots._retired), 0
    yield "messages that wait for neighbours", _waiting_for_neighbours(core), 0
    yield "subscriptions that wait for a commit", len(home._uncommitted), 0
    yield "subscriptions that wait for their end", len(home._leaving), 0
    yield "consumers", statistics.consumers, 0
    yield "commits under way", statistics.commits, 0


def _wanted_above(core: Broker) -> list[Filter]:
    """What a broker holds when no client subscribes: a master wants everything of its slaves, and that
    is known to all brokers whose path to somebody goes up there."""
    database = core.parts.view.database
    net, master_of = database.topology(), {one.broker: one.master for one in database.places()}
    for node in () if net is None else net.nodes:
        assert net is not None
        tree, at = net.tree(database.me), node
        while (before := tree.parent(at)) is not None:
            if master_of[before] == at:
                return [EVERYTHING]
            at = before
    return []


def _waiting_for_neighbours(core: Broker) -> int:
    neighbours = core.parts.neighbours.links
    waiting = [*neighbours._waiting.values(), *neighbours._carrying.values()]
    return sum(map(len, waiting))


def state_lines(core: Broker) -> Iterator[str]:
    """The state of a broker, as `show` prints it."""
    yield f"linked with {', '.join(linked_brokers(core)) or 'nobody'}"
    for home, name in sorted(durable_subscriptions(core)):
        yield f"knows {name!r} at {home}"
    for what, count in waiting_messages(core):
        if count:
            yield f"{count} messages wait for {what}"
