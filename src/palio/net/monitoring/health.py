"""The pages of a broker for machines: /metrics, /healthz, /readyz.

A standby is healthy and not ready.

A broker is healthy while its process can go on; a failure ends that. It is ready while it takes
connections and messages: a full disk makes it unready, and is no reason to restart it.

The text of /metrics is made in another thread, and one at a time: those who ask while one is being
made share the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from palio.net.monitoring.measures import Measure
from palio.net.monitoring.metrics import CONTENT_TYPE, MeasuredHost, Metrics
from palio.net.monitoring.web import HttpResponse, Page, as_json


def pages(
    broker: str, host: MeasuredHost, more: Callable[[], Iterable[Measure]] = tuple
) -> dict[str, Page]:
    """`more`: what listeners measure."""

    async def health() -> HttpResponse:
        if host.finished.done():
            return as_json(503, broker=broker, status="failed")
        return as_json(200, broker=broker, status="alive")

    async def readiness() -> HttpResponse:
        if not host.unready_reason:
            count = host.connection_count
            return as_json(200, broker=broker, status="ready", connections=count)
        return as_json(503, broker=broker, status="not ready", reason=host.unready_reason)

    return {"/metrics": _MetricsPage(broker, host, more), "/healthz": health, "/readyz": readiness}


class _MetricsPage:
    def __init__(
        self, broker: str, host: MeasuredHost, more: Callable[[], Iterable[Measure]]
    ) -> None:
        self._metrics, self._watch = Metrics(broker, host, more), host.watch
        self._under_way: asyncio.Task[HttpResponse] | None = None
        self._next: asyncio.Task[HttpResponse] | None = None

    async def __call__(self) -> HttpResponse:
        if self._next is None:
            self._next = asyncio.create_task(self._make(self._under_way))
        return await asyncio.shield(self._next)

    async def _make(self, before: asyncio.Task[HttpResponse] | None) -> HttpResponse:
        if before is not None:
            await asyncio.wait([before])
        self._under_way, self._next = self._next, None
        began = self._watch.clock()
        measured = self._metrics.measured()
        self._watch.measure("/metrics", began)
        text = await asyncio.to_thread(self._metrics.text, measured)
        return HttpResponse(200, CONTENT_TYPE, text)


def standby_pages(broker: str, holder: Callable[[], str]) -> dict[str, Page]:
    """The pages of a process that waits until it may run the broker; `holder` runs it now."""

    async def metrics() -> HttpResponse:
        text = f'# TYPE palio_ready gauge\npalio_ready{{broker="{broker}"}} 0.0\n'.encode()
        return HttpResponse(200, CONTENT_TYPE, text)

    async def health() -> HttpResponse:
        return as_json(200, broker=broker, status="alive")

    async def readiness() -> HttpResponse:
        reason = f"{holder() or 'another process'} runs this broker"
        return as_json(503, broker=broker, status="standby", reason=reason)

    return {"/metrics": metrics, "/healthz": health, "/readyz": readiness}
