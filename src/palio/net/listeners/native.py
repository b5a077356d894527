"""The native protocol on TCP or TLS: bytes pass between sockets and the host as they are.

`NativeConnection` decides nothing. Both ends of a link use it: connections that the listener accepts,
and those that a broker dials (`broker/dialling.py`).
"""

from __future__ import annotations

import asyncio
import errno
import os
import ssl
from typing import cast

from palio.errors import PalioError
from palio.net.endpoint import Endpoint
from palio.net.listeners.listener import ConnectionHost, Dismissal
from palio.net.security import certificate_name
from palio.protocol.wire.control import Bye
from palio.protocol.wire.frames import control_frame
from palio.protocol.wire.parts import cut

_BACKLOG = 1024
_LINGER_S = 0.25
_LARGE_BYTES = 16 << 10
"""A piece of so many bytes is written as it is; smaller ones are joined."""


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
        try:
            self._server = await asyncio.get_running_loop().create_server(
                lambda: NativeConnection(host, self._congested_bytes),
                self.endpoint.host,
                self.endpoint.port,
                ssl=self._tls,
                ssl_handshake_timeout=self._tls_handshake_s if self._tls is not None else None,
                backlog=_BACKLOG,
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


class NativeConnection(asyncio.Protocol):
    """A `ServedConnection`. `dials`: the neighbour at the other end, if this broker dialled."""

    def __init__(
        self, host: ConnectionHost, congested_bytes: int, dials: str | None = None
    ) -> None:
        self._host, self._congested_bytes = host, congested_bytes
        self._transport: asyncio.Transport | None = None
        self._is_finishing = False
        self._link = 0
        self.dials = dials
        self.is_congested = False
        self.peer = ""
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # ---- called by the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername")
        self.peer = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else "?"
        self._transport.set_write_buffer_limits(high=self._congested_bytes)
        certificate = certificate_name(transport.get_extra_info("ssl_object"))
        self._link = self._host.attach(self, certificate)

    def data_received(self, data: bytes) -> None:
        self._host.received(self._link, data)

    def pause_writing(self) -> None:
        self.is_congested = True
        self._host.congested(self._link, True)

    def resume_writing(self) -> None:
        self.is_congested = False
        self._host.congested(self._link, False)

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is None:  # it was given up before
            return
        self._transport = None
        if not self.closed.done():
            self.closed.set_result(None)
        self._host.detach(self._link, error)

    # ---- called by the host

    @property
    def waiting_bytes(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def write(self, frames: list[bytes]) -> int:
        if self._transport is None or self._is_finishing or self._transport.is_closing():
            return 0
        size = sum(map(len, frames))
        if size < _LARGE_BYTES:
            self._transport.write(frames[0] if len(frames) == 1 else b"".join(frames))
        else:  # a large piece may wait on many connections: it is not copied
            self._transport.writelines(_joined(frames))
        return size

    def pause_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def dismiss(self, dismissal: Dismissal, wait_s: float) -> None:
        self.write([control_frame(Bye(cut(dismissal.reason), dismissal.code))])
        self.finish(wait_s)

    def finish(self, wait_s: float) -> None:
        """Close when everything is sent, at the latest after `wait_s` seconds.

        Bytes that the other end still sends are read for a moment and dropped: closing over unread
        bytes would reset the connection, and the other end might lose the last frames sent to it.
        """
        if self._transport is None or self._is_finishing:
            return
        self._is_finishing = True
        self.resume_reading()
        if self._transport.can_write_eof():  # not with TLS
            try:
                self._transport.write_eof()
            except OSError:  # the other end has closed, and the loop has not noticed yet
                self._transport.abort()
        loop = asyncio.get_running_loop()
        timers = [loop.call_later(_LINGER_S, self._close), loop.call_later(wait_s, self.abort)]
        self.closed.add_done_callback(lambda _: _cancel(timers))

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def lose(self) -> None:
        """Close at once, and tell the host now: the loop may have closed the socket, and say nothing."""
        self.abort()
        self.connection_lost(None)


def listening_refused(endpoint: Endpoint, error: OSError, setting: str) -> PalioError:
    return PalioError(
        f"the broker cannot listen on {endpoint}: {_why(error)}; choose another address ({setting})"
    )


def _joined(pieces: list[bytes]) -> list[bytes]:
    """The same bytes: large pieces as they are, and what is between them in one."""
    found: list[bytes] = []
    small: list[bytes] = []
    for piece in pieces:
        if len(piece) < _LARGE_BYTES:
            small.append(piece)
            continue
        if small:
            found.append(b"".join(small))
            small = []
        found.append(piece)
    if small:
        found.append(b"".join(small))
    return found


def _cancel(timers: list[asyncio.TimerHandle]) -> None:
    for timer in timers:
        timer.cancel()


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "another program listens there"
    return os.strerror(error.errno) if error.errno else str(error)
