"""The listener of the native protocol, on TCP or TLS."""

from __future__ import annotations

import asyncio
import errno
import os
import ssl
from collections.abc import Iterable

from palio.errors import PalioError
from palio.net.endpoint import Endpoint
from palio.net.listeners.listener import ConnectionHost
from palio.net.listeners.native_connection import NativeConnection
from palio.net.listeners.tls import TlsHandshake
from palio.net.monitoring.measures import Measure

_BACKLOG = 1024


class NativeListener:
    """`setting` names the key of the configuration that chose the endpoint, for errors."""

    def __init__(
        self,
        endpoint: Endpoint,
        setting: str,
        congested_bytes: int,
        tls: ssl.SSLContext | None,
        tls_handshake_s: float,
    ) -> None:
        self.endpoint = endpoint
        self._setting, self._congested_bytes = setting, congested_bytes
        self._tls, self._tls_handshake_s = tls, tls_handshake_s
        self._server: asyncio.Server | None = None

    async def start(self, host: ConnectionHost) -> None:
        def accept() -> asyncio.BaseProtocol:
            connection = NativeConnection(host, self._congested_bytes)
            if self._tls is None:
                return connection
            return TlsHandshake(connection, self._tls, self._tls_handshake_s)

        try:
            self._server = await asyncio.get_running_loop().create_server(
                accept, self.endpoint.host, self.endpoint.port, backlog=_BACKLOG
            )
        except OSError as error:
            raise listening_refused(self.endpoint, error, self._setting) from None
        self.endpoint = Endpoint(self.endpoint.host, self._server.sockets[0].getsockname()[1])

    def stop_accepting(self) -> None:
        if self._server is not None:
            self._server.close()

    async def wait_closed(self) -> None:
        if self._server is not None:
            await self._server.wait_closed()

    def measures(self) -> Iterable[Measure]:
        return ()


def listening_refused(endpoint: Endpoint, error: OSError, setting: str) -> PalioError:
    return PalioError(
        f"the broker cannot listen on {endpoint}: {_why(error)}; choose another address ({setting})"
    )


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "another program listens there"
    return os.strerror(error.errno) if error.errno else str(error)
