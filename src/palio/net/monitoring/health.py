"""The pages of a broker for machines: /metrics, /healthz, /readyz.

A standby is healthy and not ready.

A broker is healthy while its process can go on; a failure ends that. It is ready while it takes
connections and messages: a full disk makes it unready, and is no reason to restart it.
"""

from __future__ import annotations

from collections.abc import Callable

from palio.net.monitoring.metrics import CONTENT_TYPE, MeasuredHost, Metrics
from palio.net.monitoring.web import HttpResponse, Page, as_json


def pages(broker: str, host: MeasuredHost) -> dict[str, Page]:
    metrics = Metrics(broker, host)

    def measured() -> HttpResponse:
        began = host.watch.clock()
        text = metrics.text()
        host.watch.measure("/metrics", began)
        return HttpResponse(200, CONTENT_TYPE, text)

    return {
        "/metrics": measured,
        "/healthz": lambda: _health(broker, host),
        "/readyz": lambda: _readiness(broker, host),
    }


def standby_pages(broker: str, holder: Callable[[], str]) -> dict[str, Page]:
    """The pages of a process that waits until it may run the broker; `holder` runs it now."""

    def readiness() -> HttpResponse:
        reason = f"{holder() or 'another process'} runs this broker"
        return as_json(503, broker=broker, status="standby", reason=reason)

    text = f'# TYPE palio_ready gauge\npalio_ready{{broker="{broker}"}} 0.0\n'.encode()
    return {
        "/metrics": lambda: HttpResponse(200, CONTENT_TYPE, text),
        "/healthz": lambda: as_json(200, broker=broker, status="alive"),
        "/readyz": readiness,
    }


def _health(broker: str, host: MeasuredHost) -> HttpResponse:
    if host.finished.done():
        return as_json(503, broker=broker, status="failed")
    return as_json(200, broker=broker, status="alive")


def _readiness(broker: str, host: MeasuredHost) -> HttpResponse:
    if host.is_ready:
        count = host.connection_count
        return as_json(200, broker=broker, status="ready", connections=count)
    return as_json(503, broker=broker, status="not ready", reason=host.unready_reason)
