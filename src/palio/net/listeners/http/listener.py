"""The listener of HTTP, on TCP or TLS, in the event loop of the broker."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterable

from palio.net.config.values import Config, HttpSettings
from palio.net.endpoint import Endpoint
from palio.net.listeners.http.clients import BrokerClients
from palio.net.listeners.http.connection import HttpConnection
from palio.net.listeners.http.routes import HttpService
from palio.net.listeners.http.served import Sockets
from palio.net.listeners.listener import ConnectionHost
from palio.net.listeners.native import listening_refused
from palio.net.listeners.tls import TlsHandshake
from palio.net.monitoring.counts import HttpCounts
from palio.net.monitoring.http_metrics import http_measures
from palio.net.monitoring.measures import Measure
from palio.net.sinks.metrics import sink_measures
from palio.net.sinks.records import SinkRecords
from palio.net.sinks.service import SinkService
from palio.protocol.durability.storage import Store

_BACKLOG = 1024
_CLOSE_S = 1.0

logging.getLogger("palio.client").addHandler(logging.NullHandler())
"""Clients in a broker's process log nothing on standard error: the broker says what happens to them."""


class HttpListener:
    def __init__(
        self, settings: HttpSettings, config: Config, tls: ssl.SSLContext | None, store: Store
    ) -> None:
        """`tls`: the context of the broker, used if the settings say so."""
        self._records = SinkRecords(store)
        self._sinks: SinkService | None = None
        self.endpoint = settings.listen
        self._settings, self._config = settings, config
        self._tls = tls if settings.tls else None
        self._sockets = Sockets(settings.connections_max, settings.bodies_bytes_max)
        self._server: asyncio.Server | None = None
        self._clients: BrokerClients | None = None

    @property
    def counts(self) -> HttpCounts:
        return self._sockets.counts

    @property
    def connection_count(self) -> int:
        return len(self._sockets)

    async def start(self, host: ConnectionHost) -> None:
        settings, config = self._settings, self._config
        clients = BrokerClients(
            host, config.settings.limits, config.limits.congested_bytes,
            settings.answer_us_max / 1e6, self._sockets.ending,
        )  # fmt: skip
        self._clients = clients
        if config.sinks is not None:
            self._sinks = SinkService(config.sinks, self._records, clients.acting_for)
        service = HttpService(settings, clients, config.settings.limits, self.counts, self._sinks)

        def accept() -> asyncio.BaseProtocol:
            connection = HttpConnection(service, settings, self._sockets)
            if self._tls is None:
                return connection
            return TlsHandshake(connection, self._tls, settings.head_us_max / 1e6)

        try:
            self._server = await asyncio.get_running_loop().create_server(
                accept, self.endpoint.host, self.endpoint.port, backlog=_BACKLOG
            )
        except OSError as error:
            place = f"listen, in [http] of {config.path}"
            raise listening_refused(self.endpoint, error, place) from None
        self.endpoint = Endpoint(self.endpoint.host, self._server.sockets[0].getsockname()[1])
        if self._sinks is not None:
            self._sinks.start()

    def stop_accepting(self) -> None:
        if self._server is not None:
            self._server.close()
        self._sockets.end_streams()
        if self._sinks is not None:
            self._sinks.stop()

    async def wait_closed(self) -> None:
        if self._server is None:
            return
        await self._sockets.close_all(_CLOSE_S)
        await self._server.wait_closed()
        if self._sinks is not None:
            await self._sinks.close()
        if self._clients is not None:
            await self._clients.close()

    def measures(self) -> Iterable[Measure]:
        yield from http_measures(self.counts)
        if self._sinks is not None:
            yield from sink_measures(self._sinks)
