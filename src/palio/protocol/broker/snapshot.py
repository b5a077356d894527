"""The state of a broker for operators: one frozen value, made on request.

    Broker.snapshot() ──▶ Snapshot ──▶ metrics, health, log

Metrics, health checks and log lines read a snapshot and nothing else of the core. Counters count
since the broker started; all other fields describe the moment. Making a snapshot takes time that
grows with the number of queues, so nobody takes one for each message.
"""

from __future__ import annotations

import msgspec


class SchemaCounters(msgspec.Struct, frozen=True):
    """Messages that a schema was asked about; from 0 when it is new or has changed."""

    checked: int = 0
    refused: int = 0


class LiveCounters(msgspec.Struct, frozen=True):
    """Messages that are not stored, and the live copies of those that are."""

    published: int = 0
    """Messages that the broker accepted from its own clients, durable ones too."""
    received: int = 0
    """New messages that neighbours sent and that were matched here."""
    rejected: int = 0
    forwarded: int = 0
    """Messages sent to neighbours."""
    duplicates: int = 0
    """Messages that neighbours sent more than once."""
    dropped: int = 0
    """Messages dropped because a neighbour had no room, or that could not be parsed."""
    misread: int = 0
    """Messages, or batches, on which kernels and Python did not agree: a bug (admission.py)."""
    carry_refused: int = 0
    """Carried messages for which a neighbour had no room; their origin resends them."""
    delivered: int = 0
    """Messages and occurrences of patterns sent to live subscriptions."""
    delivery_dropped: int = 0
    """Messages and occurrences of patterns dropped because a client was too slow."""
    expired: int = 0
    """Messages that were not delivered because their time was over."""
    subscriptions_ended: int = 0
    """Subscriptions ended because a client was too slow."""
    expression_failures: int = 0
    """Expressions of subscriptions that could not be computed for a message, and were NULL."""
    pattern_dropped: int = 0
    """Messages, and answers of neighbours, dropped because too many waited for patterns."""
    pattern_keys_dropped: int = 0
    """Keys of patterns, with their incomplete matches, dropped because too much was held."""


class DurableCounters(msgspec.Struct, frozen=True):
    """Messages of the message store."""

    published: int = 0
    duplicates: int = 0
    """Messages that publishers or other brokers sent more than once."""
    arrived: int = 0
    """Messages from other brokers."""
    carried: int = 0
    """Messages sent to other brokers, including resent ones; one for several brokers counts once."""
    retries: int = 0
    """Timeouts after which the messages of a stream were resent."""
    delivered: int = 0
    redelivered: int = 0
    acknowledged: int = 0
    returned: int = 0
    """Messages that clients gave back (nack)."""
    dropped: int = 0
    """Messages dropped from full queues whose policy is `drop`."""
    expired: int = 0
    """Messages removed from queues because their time was over."""
    ended: int = 0
    """Subscriptions ended by full queues whose policy is `end`."""
    unreadable: int = 0
    """Stored messages that a replay skipped because they cannot be parsed."""


QUEUES_MAX = 1000
"""Of a snapshot: the ones with the most messages."""


class QueueGauges(msgspec.Struct, frozen=True):
    """A durable subscription and its queue."""

    messages: int = 0
    bytes: int = 0
    oldest_us: int = 0
    """The age of its oldest message."""
    consumers: int = 0
    is_paused: bool = False


class RepublishedSnapshot(msgspec.Struct, frozen=True):
    """Messages that the broker published anew."""

    rejected: int = 0
    """Messages that clients will never process (reject)."""
    dead: int = 0
    """Dead letters."""
    dead_dropped: int = 0
    """Dead letters that died again."""
    delayed: int = 0
    """Delayed messages, at their time."""


class LastValuesSnapshot(msgspec.Struct, frozen=True):
    values: int = 0
    """Keys of which new subscribers get the last value."""
    bytes: int = 0
    refused: int = 0
    """Values for which there was no room, and that other brokers have."""
    given: int = 0
    """Values that new subscribers were given."""


class QueuesSnapshot(msgspec.Struct, frozen=True):
    count: int = 0
    """Durable subscriptions whose home is this broker."""
    largest: dict[str, QueueGauges] = {}
    """By durable subscription; only the QUEUES_MAX with the most messages."""
    republished: RepublishedSnapshot = RepublishedSnapshot()
    delayed: int = 0
    """Messages that wait for their time."""
    last_values: LastValuesSnapshot = LastValuesSnapshot()


class MemoryGauges(msgspec.Struct, frozen=True):
    """What waits in memory."""

    unfinished_bytes: int = 0
    """Of frames that are not complete."""
    waiting_bytes: int = 0
    """Of live messages that wait for clients; one that waits for several counts once."""
    neighbour_waiting_bytes: int = 0
    """Of messages that wait for neighbours."""
    held_bytes: int = 0
    """Of durable messages that wait for room in the store."""
    pattern_waiting_bytes: int = 0
    """Of messages that wait for patterns."""
    pattern_bytes: int = 0
    """Of messages that watched patterns hold, for matches that are not complete; one that several hold
    counts for each."""


class StoreGauges(msgspec.Struct, frozen=True):
    publishers: int = 0
    """Publishers whose sequence numbers the message store remembers."""
    journal_messages: int = 0
    journal_bytes: int = 0


class TableGauges(msgspec.Struct, frozen=True):
    """The interest table, and what it has for other brokers (wire/routing_memory.py)."""

    filters: int = 0
    """For other brokers, durable and local subscriptions."""
    version: int = 0
    """Grows with every change."""
    schemas: dict[str, SchemaCounters] = {}
    """What schemas were asked, whose predicates are in the table: by the name of the schema."""
    routing_predicates: int = 0
    routing_filters: int = 0
    routing_constraints: int = 0
    routing_bytes: int = 0
    formula_constraints: int = 0
    formula_bytes: int = 0
    database_bytes: int = 0


class Snapshot(msgspec.Struct, frozen=True):
    live: LiveCounters = LiveCounters()
    durable: DurableCounters = DurableCounters()
    links: int = 0
    """Connections, including those whose handshake is not complete."""
    clients: int = 0
    strangers: int = 0
    """Connections from others whose handshake is not complete."""
    roles: dict[str, int] = {}
    """How many neighbours of each role are linked now."""
    subscriptions: int = 0
    """Subscriptions and patterns of the clients that are connected."""
    topology_version: int = 0
    """Grows with every change of the topology or of what brokers subscribe to."""
    memory: MemoryGauges = MemoryGauges()
    store: StoreGauges = StoreGauges()
    queues: QueuesSnapshot = QueuesSnapshot()
    streams: dict[str, int] = {}
    """Durable messages that wait, by the broker they go to."""
    overflows: dict[str, int] = {}
    """Live messages that waited for clients and were dropped, by the bound that was reached."""
    misrouted: dict[str, int] = {}
    """Live messages that the routing policy dropped, by the reason."""
    table: TableGauges = TableGauges()

    @property
    def neighbours(self) -> int:
        """Neighbours that are linked now."""
        return sum(self.roles.values())
