"""The metrics of subscriptions with sinks."""

from __future__ import annotations

from collections.abc import Iterator

from palio.net.monitoring.measures import Measure
from palio.net.sinks.service import SinkService

_COUNTERS = {
    "delivered": ("sink_delivered", "Events that sinks have taken"),
    "retried": ("sink_retried", "Events that are sent to a sink again"),
    "dead_letters": ("sink_dead_letters", "Events that no sink has taken, and became dead letters"),
    "handshakes_refused": ("sink_handshakes_refused", "Sinks that did not agree to get events"),
}


def sink_measures(service: SinkService) -> Iterator[Measure]:
    yield Measure("sink_subscriptions", "gauge", "Subscriptions with sinks", {}, len(service))
    for field, (name, text) in _COUNTERS.items():
        yield Measure(name, "counter", text, {}, getattr(service.counts, field))
    yield Measure("sink_retired", "counter", "Sinks that answered 410", {}, service.retired)
