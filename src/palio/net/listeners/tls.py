"""The TLS handshake of a connection that a listener accepted: bounded in bytes and in number, as in time.

    accepted ─▶ host.attach: a stranger takes its place ─▶ bytes, each part told to the host
             ─▶ complete: SecuredConnection.secured, with the name in the certificate

`loop.start_tls` does the handshake. While it lasts, `TlsHandshake` stands between the socket and the
protocol that `start_tls` has set: it tells the host how many bytes came, passes them on, and steps aside
when the handshake is complete. So the core knows a stranger from its first byte on, and can close it.

The callbacks of one turn of the loop, in their order: `start_tls` begins; `_step_between`; the inner
protocol begins, and the socket is read, both called by `start_tls`; `_pass_early`. asyncio reads nothing
before; uvloop may have read a part.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Protocol, cast

_EARLY_BYTES_MAX = 16 << 10


class SecuredConnection(Protocol):
    """A connection of a listener, as its TLS handshake sees it; also the protocol of its transport."""

    def accepted(self, socket: asyncio.Transport) -> None:
        """The TLS handshake begins."""
        ...

    def handshake_received(self, size: int) -> bool:
        """So many bytes of the TLS handshake came; False: the connection is closed."""
        ...

    def secured(self, transport: asyncio.Transport) -> None:
        """The TLS handshake is complete."""
        ...

    def connection_lost(self, error: Exception | None) -> None: ...


class TlsHandshake(asyncio.BufferedProtocol):
    """Of one connection; `wait_s`: how long it may take at most."""

    def __init__(
        self, connection: SecuredConnection, context: ssl.SSLContext, wait_s: float
    ) -> None:
        self._connection, self._context, self._wait_s = connection, context, wait_s
        self._socket: asyncio.Transport | None = None
        self._inner: asyncio.BufferedProtocol | None = None
        self._task: asyncio.Task[None] | None = None
        self._error: Exception | None = None
        self._early = memoryview(b"")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = cast(asyncio.Transport, transport)
        self._socket.pause_reading()  # uvloop reads in spite of this
        self._connection.accepted(self._socket)
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._shake_hands(self._socket))
        loop.call_soon(self._step_between)  # after the first step of the task, before any byte

    async def _shake_hands(self, socket: asyncio.Transport) -> None:
        try:
            transport = await asyncio.get_running_loop().start_tls(
                socket,
                cast(asyncio.Protocol, self._connection),
                self._context,
                server_side=True,
                ssl_handshake_timeout=self._wait_s,
            )
        except (OSError, RuntimeError) as error:  # ssl.SSLError is an OSError
            self._error = error  # RuntimeError: the socket was closed before
            socket.abort()
            return
        if transport is None or socket.is_closing():
            return
        if self._inner is not None:
            socket.set_protocol(self._inner)
        self._connection.secured(transport)

    def _step_between(self) -> None:
        if self._socket is not None and not self._socket.is_closing():
            inner = self._socket.get_protocol()
            if inner is not self:
                self._inner = cast(asyncio.BufferedProtocol, inner)
                self._socket.set_protocol(self)
                asyncio.get_running_loop().call_soon(self._pass_early)

    def _pass_early(self) -> None:
        """Give the inner protocol what came before it was there."""
        assert self._socket is not None
        assert self._inner is not None
        while self._early and not self._socket.is_closing():
            buffer = cast(memoryview, self._inner.get_buffer(len(self._early)))
            size = min(len(buffer), len(self._early))
            buffer[:size] = self._early[:size]
            self._early = self._early[size:]
            self._inner.buffer_updated(size)

    # ---- called by the socket, until the handshake is complete

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._inner is None:
            self._early = memoryview(bytearray(_EARLY_BYTES_MAX))
            return self._early
        return cast(memoryview, self._inner.get_buffer(sizehint))

    def buffer_updated(self, nbytes: int) -> None:
        is_open = self._connection.handshake_received(nbytes)
        if self._inner is not None and is_open:
            self._inner.buffer_updated(nbytes)
        elif self._socket is not None and is_open:
            self._early = self._early[:nbytes]
            self._socket.pause_reading()

    def eof_received(self) -> bool | None:
        return None if self._inner is None else self._inner.eof_received()

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    def connection_lost(self, error: Exception | None) -> None:
        if self._inner is not None:
            self._inner.connection_lost(error)
        self._connection.connection_lost(self._error or error)
