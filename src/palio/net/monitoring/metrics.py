"""Metrics for Prometheus: counters of the host and a snapshot of the core, made on request.

Names begin with `palio_`; each metric has the label `broker`. Measures of one name share their kind
and their help text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias

from palio.errors import MissingSoftware
from palio.net.monitoring.counts import Durations, HostCounts
from palio.net.monitoring.measures import Measure
from palio.protocol.broker.snapshot import (
    DurableCounters,
    LiveCounters,
    MemoryGauges,
    QueueGauges,
    RepublishedSnapshot,
    Snapshot,
    StoreGauges,
    TableGauges,
)
from palio.protocol.wire.codes import CloseCode

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from prometheus_client.registry import CollectorRegistry

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_Names: TypeAlias = dict[str, tuple[str, str]]
"""A field: the name of its metric, and the help text."""

_HOST: Final[_Names] = {
    "accepted": ("connections_accepted", "Connections from others"),
    "dialled": ("connections_dialled", "Connections to neighbours"),
    "dial_failures": ("dial_failures", "Attempts to reach a neighbour that failed"),
    "refused": ("connections_refused", "Connections refused while the broker took none"),
    "closed_stuck": ("connections_stuck", "Connections closed because the other end did not read"),
    "closed_unsent": ("connections_unsent", "Connections closed: too much waited on all together"),
    "bytes_in": ("received_bytes", "Bytes from all connections"),
    "bytes_out": ("sent_bytes", "Bytes to all connections"),
    "turns": ("turns", "Turns of the event loop that did something"),
    "writes": ("writes", "Writes to sockets: at most one for each connection and turn"),
    "commit_keys": ("commit_keys", "Keys changed by commits"),
    "commit_failures": ("commit_failures", "Commits that found the disk full"),
    "reading_pauses": ("reading_pauses", "Times that reading stopped because the disk was behind"),
}
_LIVE: Final[_Names] = {
    "published": ("published", "Messages accepted from clients of this broker"),
    "received": ("received", "Live messages that came from neighbours and were matched here"),
    "rejected": ("rejected", "Messages of clients of this broker that were rejected"),
    "forwarded": ("forwarded", "Live messages sent to neighbours"),
    "duplicates": ("duplicates", "Live messages that neighbours sent more than once"),
    "dropped": ("dropped", "Live messages dropped: no room at a neighbour, or not readable"),
    "misread": ("misread", "Messages that two readers of this broker read differently: a bug"),
    "delivered": ("delivered", "Live messages delivered to clients"),
    "carry_refused": ("carry_refused", "Durable messages refused: no room at a neighbour; resent later"),
    "delivery_dropped": ("delivered_dropped", "Live messages dropped: a client was too slow"),
    "expired": ("expired", "Live messages not delivered: their time was over"),
    "subscriptions_ended": ("subscriptions_ended", "Live subscriptions ended: a client was too slow"),
    "expression_failures": ("expression_failures", "Expressions that could not be computed for a message"),
    "pattern_keys_dropped": ("pattern_keys_dropped", "Keys of patterns dropped: too much was held"),
    "pattern_dropped": ("pattern_dropped", "Messages dropped: too many waited for patterns"),
}  # fmt: skip
_DURABLE: Final[_Names] = {
    "published": ("durable_published", "Durable messages stored for publishers"),
    "duplicates": ("durable_duplicates", "Durable messages that were stored already"),
    "arrived": ("durable_arrived", "Durable messages from other brokers"),
    "carried": ("durable_carried", "Durable messages sent to other brokers, resent ones included"),
    "retries": ("durable_retries", "Streams resent because no acknowledgement came in time"),
    "delivered": ("durable_delivered", "Durable messages delivered to clients"),
    "redelivered": ("durable_redelivered", "Durable messages delivered to clients once more"),
    "acknowledged": ("durable_acknowledged", "Durable messages that clients acknowledged"),
    "returned": ("durable_returned", "Durable messages that clients gave back: nack"),
    "dropped": ("durable_dropped", "Durable messages dropped from full queues"),
    "expired": ("durable_expired", "Durable messages removed from queues: their time was over"),
    "ended": ("durable_ended", "Durable subscriptions ended: the queue was full"),
    "unreadable": ("durable_unreadable", "Durable messages that a replay could not read"),
}
_REPUBLISHED: Final[_Names] = {
    "rejected": ("durable_rejected", "Durable messages that clients will never process: reject"),
    "dead": ("dead_letters", "Dead letters that were published"),
    "dead_dropped": ("dead_letters_dropped", "Dead letters that were not processed either"),
    "delayed": ("delayed_published", "Delayed messages that were published at their time"),
}
_LAST_VALUES: Final[_Names] = {
    "values": ("last_values", "Keys of which new subscribers get the last value"),
    "bytes": ("last_values_bytes", "Bytes of last values"),
    "refused": ("last_values_refused", "Last values for which there was no room here"),
    "given": ("last_values_given", "Last values given to new subscribers"),
}
_LAST_COUNTERS: Final = frozenset({"refused", "given"})
_GAUGES: Final[_Names] = {
    "clients": ("clients", "Clients that are connected"),
    "strangers": ("strangers", "Connections whose handshake is not complete"),
    "memory.unfinished_bytes": ("unfinished_bytes", "Bytes of frames that are not complete"),
    "memory.waiting_bytes": ("waiting_bytes", "Bytes of live messages that wait for clients"),
    "memory.neighbour_waiting_bytes": (
        "neighbour_waiting_bytes",
        "Bytes of messages that wait for neighbours",
    ),
    "memory.held_bytes": (
        "held_bytes",
        "Bytes of durable messages that wait for room in the store",
    ),
    "memory.pattern_waiting_bytes": (
        "pattern_waiting_bytes",
        "Bytes of messages that wait for patterns",
    ),
    "memory.pattern_bytes": (
        "pattern_bytes",
        "Bytes of messages that watched patterns hold",
    ),
    "subscriptions": (
        "subscriptions",
        "Subscriptions and patterns of the clients that are connected",
    ),
    "topology_version": ("topology_version", "Changes of the topology and of what brokers want"),
    "store.journal_messages": ("journal_messages", "Messages in the journal"),
    "store.journal_bytes": ("journal_bytes", "Bytes of the journal"),
    "store.publishers": ("publishers", "Publishers whose sequence numbers are remembered"),
    "table.filters": ("table_filters", "Filters in the interest table"),
    "table.version": ("table_version", "Changes of the interest table"),
    "table.routing_predicates": (
        "routing_predicates",
        "Entries of the routing scheme in the table",
    ),
    "table.routing_filters": ("routing_filters", "Filters of these entries"),
    "table.routing_constraints": ("routing_constraints", "Constraints of these filters"),
    "table.routing_bytes": ("routing_bytes", "Bytes of these filters, as the 2006 paper counts"),
    "table.formula_constraints": (
        "routing_formula_constraints",
        "Constraints by the formula of the 2006 paper, with alpha = 1",
    ),
    "table.formula_bytes": (
        "routing_formula_bytes",
        "Bytes by the formula of the 2006 paper, with alpha = 1",
    ),
    "table.database_bytes": (
        "link_state_bytes",
        "Bytes of the predicates in the link-state database, from which entries are made anew",
    ),
}
_QUEUES: Final[dict[str, tuple[str, str, int]]] = {
    "messages": ("queue_messages", "Messages that wait for a durable subscription", 1),
    "bytes": ("queue_bytes", "Bytes that wait for a durable subscription", 1),
    "oldest_us": ("queue_oldest_seconds", "Age of the oldest message that waits", 1_000_000),
    "consumers": ("queue_consumers", "Clients that consume a durable subscription", 1),
    "is_paused": ("queue_paused", "1: an operator has paused the delivery; 0: it goes on", 1),
}
"""A field of QueueGauges: its metric, the help text, and what one unit of the metric is."""


class Holds(Protocol):
    """The longest holds of the event loop, in seconds."""

    @property
    def longest_s(self) -> float: ...

    @property
    def recent_s(self) -> float: ...

    @property
    def longest_cpu_s(self) -> float: ...


class MeasuredLoop(Protocol):
    """What metrics need of the watchdog of the event loop."""

    holds: Durations
    cpu_holds: Durations

    @property
    def clock(self) -> Callable[[], float]: ...

    def measure(self, what: str, began: float) -> None: ...

    def snapshot(self) -> Holds: ...


class MeasuredHost(Protocol):
    """What metrics and health checks need of a host."""

    @property
    def counts(self) -> HostCounts: ...

    @property
    def watch(self) -> MeasuredLoop: ...

    @property
    def connection_count(self) -> int: ...

    @property
    def uncommitted_bytes(self) -> int: ...

    @property
    def unready_reason(self) -> str: ...

    finished: asyncio.Future[None]

    def snapshot(self) -> Snapshot: ...


class Measured(NamedTuple):
    """What a host and its core say at one moment; nothing changes it any more."""

    host: list[Measure]
    core: Snapshot
    durations: list[tuple[str, str, Durations]]


class Metrics:
    """Makes the text. Needs the package prometheus-client."""

    def __init__(
        self, broker: str, host: MeasuredHost, more: Callable[[], Iterable[Measure]] = tuple
    ) -> None:
        """`more`: what listeners measure."""
        registry()
        self._broker, self._host, self._more = broker, host, more

    def measured(self) -> Measured:
        """Called by the event loop's thread, which the host belongs to."""
        host, watch = self._host, self._host.watch
        durations = [
            ("commit", "How long commits took, with their fsync", host.counts.commits),
            ("loop_hold", "How long the event loop was held at a time", watch.holds),
            ("loop_hold_cpu", "Processor time of the loop's thread in each hold", watch.cpu_holds),
        ]
        copies = [(name, text, deepcopy(one)) for name, text, one in durations]
        return Measured([*host_measures(host), *self._more()], host.snapshot(), copies)

    def text(self, measured: Measured) -> bytes:
        """Called by any thread: for a thousand queues it takes long."""
        from prometheus_client import generate_latest

        collected = registry()
        collected.register(_Families(measured, self._broker))
        return generate_latest(collected)


class _Families:
    """The metrics, as a registry collects them."""

    def __init__(self, measured: Measured, broker: str) -> None:
        self._measured, self._broker = measured, broker

    def collect(self) -> Iterator[Metric]:
        """Called by the registry."""
        measures = [*self._measured.host, *core_measures(self._measured.core)]
        for group in _grouped(measures):
            yield _family(group, self._broker)
        for name, text, durations in self._measured.durations:
            yield _histogram(name, text, durations, self._broker)


def host_measures(host: MeasuredHost) -> Iterator[Measure]:
    yield from _counters(host.counts, _HOST)
    text = "Connections that the broker closed, by the reason"
    for reason in CloseCode:
        count = host.counts.closed[reason]
        yield Measure("connections_closed", "counter", text, {"reason": reason.value}, count)
    for name, text, value in (
        ("connections", "Connections that are open", host.connection_count),
        ("uncommitted_bytes", "Bytes that wait for their commit", host.uncommitted_bytes),
        (
            "ready",
            "1: the broker takes connections and messages; 0: it does not",
            not host.unready_reason,
        ),
    ):
        yield Measure(name, "gauge", text, {}, float(value))
    held = host.watch.snapshot()
    text = "The longest hold of the event loop, since the start and of the last minute or two"
    for since, longest_s in (("start", held.longest_s), ("minute", held.recent_s)):
        yield Measure("loop_hold_max_seconds", "gauge", text, {"since": since}, longest_s)
    text = "The most processor time of the loop's thread in one hold, since the start"
    yield Measure("loop_hold_cpu_max_seconds", "gauge", text, {}, held.longest_cpu_s)


def core_measures(snapshot: Snapshot) -> Iterator[Measure]:
    yield from _counters(snapshot.live, _LIVE)
    yield from _counters(snapshot.durable, _DURABLE)
    yield from _counters(snapshot.queues.republished, _REPUBLISHED)
    for field, (name, text) in _GAUGES.items():
        yield Measure(name, "gauge", text, {}, attrgetter(field)(snapshot))
    text = "Durable subscriptions of this broker; only the largest have metrics"
    waiting = "Messages that wait for the time at which they are published"
    yield Measure("delayed_messages", "gauge", waiting, {}, snapshot.queues.delayed)
    yield Measure("queues", "gauge", text, {}, snapshot.queues.count)
    for field, (name, text) in _LAST_VALUES.items():
        value = getattr(snapshot.queues.last_values, field)
        kind: Literal["counter", "gauge"] = "counter" if field in _LAST_COUNTERS else "gauge"
        yield Measure(name, kind, text, {}, value)
    for field, (name, text, unit) in _QUEUES.items():
        for subscription, gauges in snapshot.queues.largest.items():
            value = getattr(gauges, field) / unit
            yield Measure(name, "gauge", text, {"subscription": subscription}, value)
    text = "Durable messages that wait for another broker"
    for broker, count in snapshot.streams.items():
        yield Measure("backlog_messages", "gauge", text, {"destination": broker}, count)
    text = "Live messages that waited for clients and were dropped, by the bound that was reached"
    for bound, count in snapshot.overflows.items():
        yield Measure("waiting_dropped", "counter", text, {"bound": bound}, count)
    yield Measure("neighbours", "gauge", "Neighbours that are linked", {}, snapshot.neighbours)
    text = "Neighbours that are linked, by what they are to this broker"
    for role, count in snapshot.roles.items():
        yield Measure("neighbours_by_role", "gauge", text, {"role": role}, count)
    for schema, counters in snapshot.table.schemas.items():
        for name, text, count in (
            ("schema_checked", "Messages that were checked by a schema", counters.checked),
            ("schema_refused", "Messages that are not valid by a schema", counters.refused),
        ):
            yield Measure(name, "counter", text, {"schema": schema}, count)
    text = "Live messages that the routing policy dropped"
    for reason, count in snapshot.misrouted.items():
        yield Measure("misrouted", "counter", text, {"reason": reason}, count)


def _counters(
    values: HostCounts | LiveCounters | DurableCounters | RepublishedSnapshot, names: _Names
) -> Iterator[Measure]:
    for field, (name, text) in names.items():
        yield Measure(name, "counter", text, {}, getattr(values, field))


def registry() -> CollectorRegistry:
    try:
        from prometheus_client import CollectorRegistry
    except ImportError:
        raise MissingSoftware(
            "[metrics] needs the package prometheus-client: pip install 'palio[net]', or leave the "
            "section out"
        ) from None
    return CollectorRegistry()


def _grouped(measures: Iterable[Measure]) -> Iterator[list[Measure]]:
    groups: dict[str, list[Measure]] = {}
    for measure in measures:
        groups.setdefault(measure.name, []).append(measure)
    return iter(groups.values())


def _family(measures: list[Measure], broker: str) -> Metric:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    first = measures[0]
    family = CounterMetricFamily if first.kind == "counter" else GaugeMetricFamily
    made = family(f"palio_{first.name}", first.help, labels=["broker", *first.labels])
    for measure in measures:
        made.add_metric([broker, *(measure.labels[label] for label in first.labels)], measure.value)
    return made


def _histogram(name: str, text: str, durations: Durations, broker: str) -> Metric:
    from prometheus_client.core import HistogramMetricFamily

    made = HistogramMetricFamily(f"palio_{name}_seconds", text, labels=["broker"])
    so_far, buckets = 0, []
    bounds = [*map(str, durations.bounds_s), "+Inf"]
    for bound, count in zip(bounds, durations.buckets, strict=True):
        so_far += count
        buckets.append((bound, float(so_far)))
    made.add_metric([broker], buckets, durations.total_s)
    return made


# Every field of these has a metric.
assert set(_HOST) == set(HostCounts.__slots__) - {"commits", "closed"}
assert set(_LIVE) == set(LiveCounters.__struct_fields__)
assert set(_DURABLE) == set(DurableCounters.__struct_fields__)
assert set(_REPUBLISHED) == set(RepublishedSnapshot.__struct_fields__)
assert set(_QUEUES) == set(QueueGauges.__struct_fields__)
# Every field of a snapshot has one too; `connections` of the host tells what `links` does.
_LABELLED = ("queues", "streams", "overflows", "roles", "misrouted", "table.schemas")
_GROUPS = {"memory": MemoryGauges, "store": StoreGauges, "table": TableGauges}
assert {"live", "durable", "links", *_LABELLED, *_GAUGES} == {
    *(set(Snapshot.__struct_fields__) - _GROUPS.keys()),
    *(f"{group}.{field}" for group, made in _GROUPS.items() for field in made.__struct_fields__),
}
