"""The metrics of an HTTP listener."""

from __future__ import annotations

from collections.abc import Iterator

from palio.net.monitoring.counts import HttpCounts
from palio.net.monitoring.measures import Measure

_COUNTERS = {
    "accepted": ("http_connections_accepted", "Connections over HTTP"),
    "requests": ("http_requests", "Requests whose head was read"),
    "refused": ("http_refused", "Requests refused before they were read"),
    "late": ("http_late", "Requests that did not come in time, and connections without one"),
    "displaced": ("http_displaced", "Connections without a request that gave way to newer ones"),
    "stalled": ("http_stalled", "Connections cut off because the other end did not read"),
    "published": ("http_published", "Messages published over HTTP"),
    "delivered": ("http_delivered", "Messages delivered over HTTP"),
}
assert set(_COUNTERS) == set(HttpCounts.__slots__) - {"statuses"}


def http_measures(counts: HttpCounts) -> Iterator[Measure]:
    for field, (name, text) in _COUNTERS.items():
        yield Measure(name, "counter", text, {}, getattr(counts, field))
    text = "Answers over HTTP, by their status"
    for status, count in counts.statuses.items():
        yield Measure("http_answers", "counter", text, {"status": str(status)}, count)
