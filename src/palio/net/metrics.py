"""What Prometheus reads: the counts of the host and the measures of the core, at the moment it asks.

Names begin with palio_; each has the label `broker`. The core's measures are (name, kind, what it
is, labels, value), where kind is counter or gauge; those of one name share their kind and text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from palio.errors import MissingSoftware
from palio.net.core import Measure
from palio.net.counts import BUCKETS_S, Counts, Durations
from palio.net.host import Host

if TYPE_CHECKING:
    from prometheus_client.core import Metric
    from prometheus_client.registry import CollectorRegistry

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_COUNTERS = {
    "accepted": ("connections_accepted", "Connections from others"),
    "dialled": ("connections_dialled", "Connections to neighbours"),
    "dial_failures": ("dial_failures", "Neighbours that could not be reached"),
    "refused": ("connections_refused", "Connections over the limit or while the disk was full"),
    "closed_stuck": ("connections_stuck", "Connections closed because the other end did not read"),
    "bytes_in": ("received_bytes", "Bytes from all connections"),
    "bytes_out": ("sent_bytes", "Bytes to all connections"),
    "turns": ("turns", "Turns of the loop that did something"),
    "writes": ("writes", "Writes: one a connection and turn"),
    "commit_keys": ("commit_keys", "Keys that were changed by commits"),
    "commit_failures": ("commit_failures", "Commits that found the disk full"),
    "reading_pauses": ("reading_pauses", "Times nothing was read because the disk was behind"),
}


class Metrics:
    """Makes the text. Needs the package prometheus-client."""

    def __init__(self, broker: str, host: Host) -> None:
        self._broker, self._host = broker, host
        self._registry = _registry()
        self._registry.register(self)

    def text(self) -> bytes:
        from prometheus_client import generate_latest

        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Asked by the registry."""
        for measure in _grouped([*self._counted(), *self._host.core.measures()]):
            yield _family(measure, self._broker)
        yield _histogram(self._host.counts.commits, self._broker)

    def _counted(self) -> Iterator[Measure]:
        host, counts = self._host, self._host.counts
        for field, (name, text) in _COUNTERS.items():
            yield name, "counter", text, {}, getattr(counts, field)
        yield "connections", "gauge", "Connections that are open", {}, host.links
        waiting = host.uncommitted_bytes
        yield "uncommitted_bytes", "gauge", "What waits for the disk", {}, waiting
        yield "taking", "gauge", "1: messages are taken; 0: not", {}, float(host.is_taking)


def _registry() -> CollectorRegistry:
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
        groups.setdefault(measure[0], []).append(measure)
    return iter(groups.values())


def _family(measures: list[Measure], broker: str) -> Metric:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    name, kind, text, first, _ = measures[0]
    family = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
    made = family(f"palio_{name}", text, labels=["broker", *first])
    for *_, labels, value in measures:
        made.add_metric([broker, *(labels[label] for label in first)], value)
    return made


def _histogram(durations: Durations, broker: str) -> Metric:
    from prometheus_client.core import HistogramMetricFamily

    made = HistogramMetricFamily(
        "palio_commit_seconds", "How long commits took, with their fsync", labels=["broker"]
    )
    so_far, buckets = 0, []
    bounds = [*map(str, BUCKETS_S), "+Inf"]
    for bound, count in zip(bounds, durations.buckets, strict=True):
        so_far += count
        buckets.append((bound, float(so_far)))
    made.add_metric([broker], buckets, durations.total_s)
    return made


assert set(_COUNTERS) == set(Counts.__slots__) - {"commits"}
