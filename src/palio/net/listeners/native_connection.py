"""A connection of the native protocol: bytes pass between its socket and the host as they are.

It decides nothing. Both ends of a link use it: connections that a listener accepts, and those that a
broker dials (`broker/dialling.py`). With TLS, the host knows an accepted connection from the beginning
of its TLS handshake on (`tls.py`); until that is complete nothing can be said to the other end.

    plain, dialled   connection_made ──────────────────────────────────▶ data_received ... connection_lost
    accepted, TLS    accepted ─▶ handshake_received ... ─▶ secured ────▶ data_received ... connection_lost
"""

from __future__ import annotations

import asyncio
from typing import cast

from palio.net.listeners.listener import ConnectionHost, Dismissal
from palio.net.security import certificate_name
from palio.protocol.wire.control import Bye
from palio.protocol.wire.frames import control_frame
from palio.protocol.wire.parts import cut

_LINGER_S = 0.25
_REFUSAL_S = 1.0
"""How long the TLS handshake of a connection that is dismissed may go on, so that it hears why."""
_LARGE_BYTES = 16 << 10
"""A piece of so many bytes is written as it is; smaller ones are joined."""


class NativeConnection(asyncio.Protocol):
    """A `ServedConnection`. `dials`: the neighbour at the other end, if this broker dialled."""

    is_in_process = False

    def __init__(
        self, host: ConnectionHost, congested_bytes: int, dials: str | None = None
    ) -> None:
        self._host, self._congested_bytes = host, congested_bytes
        self._transport: asyncio.Transport | None = None
        self._unsecured: asyncio.Transport | None = None  # the socket, during a TLS handshake
        self._early: list[bytes] = []  # data that came with the end of it
        self._dismissal: tuple[Dismissal, float] | None = None  # to be said after it
        self._is_read = True
        self._is_finishing = False
        self._link = 0
        self.dials = dials
        self.is_congested = False
        self.peer = ""
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # ---- called by the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.peer = peer_of(transport)
        self._transport.set_write_buffer_limits(high=self._congested_bytes)
        certificate = certificate_name(transport.get_extra_info("ssl_object"))
        self._link = self._host.attach(self, certificate)

    def accepted(self, socket: asyncio.Transport) -> None:
        """The TLS handshake begins."""
        self._unsecured = socket
        self.peer = peer_of(socket)
        self._link = self._host.attach(self, "")

    def handshake_received(self, size: int) -> bool:
        """So many bytes of the TLS handshake came; False: the host has closed the connection."""
        self._host.secure(self._link, size, "")
        return self._unsecured is not None and not self._unsecured.is_closing()

    def secured(self, transport: asyncio.Transport) -> None:
        """The TLS handshake is complete."""
        self._unsecured, self._transport = None, transport
        transport.set_write_buffer_limits(high=self._congested_bytes)
        if self._dismissal is not None:
            self.dismiss(*self._dismissal)
            return
        self._host.secure(self._link, 0, certificate_name(transport.get_extra_info("ssl_object")))
        if not self._is_read:
            self.pause_reading()
        early, self._early = self._early, []
        for data in early:
            self._host.received(self._link, data)

    def data_received(self, data: bytes) -> None:
        if self._transport is None:
            self._early.append(data)
        else:
            self._host.received(self._link, data)

    def pause_writing(self) -> None:
        self.is_congested = True
        self._host.congested(self._link, True)

    def resume_writing(self) -> None:
        self.is_congested = False
        self._host.congested(self._link, False)

    def connection_lost(self, error: Exception | None) -> None:
        if self._transport is None and self._unsecured is None:  # it was given up before
            return
        self._transport = self._unsecured = None
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
        self._is_read = False
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._is_read = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def dismiss(self, dismissal: Dismissal, wait_s: float) -> None:
        if self._unsecured is not None:
            self._dismissal = dismissal, wait_s
            timer = asyncio.get_running_loop().call_later(_REFUSAL_S, self._abort_unsecured)
            self.closed.add_done_callback(lambda _: timer.cancel())
            return
        self.write([control_frame(Bye(cut(dismissal.reason), dismissal.code))])
        self.finish(wait_s)

    def finish(self, wait_s: float) -> None:
        """Close when everything is sent, at the latest after `wait_s` seconds.

        Bytes that the other end still sends are read for a moment and dropped: closing over unread
        bytes would reset the connection, and the other end might lose the last frames sent to it.
        During a TLS handshake nothing can be sent: the connection is closed at once.
        """
        self._abort_unsecured()
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
        self.closed.add_done_callback(lambda _: cancel_all(timers))

    def _close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _abort_unsecured(self) -> None:
        if self._unsecured is not None:
            self._unsecured.abort()

    def abort(self) -> None:
        self._abort_unsecured()
        if self._transport is not None:
            self._transport.abort()

    def lose(self) -> None:
        """Close at once, and tell the host now: the loop may have closed the socket, and say nothing."""
        self.abort()
        self.connection_lost(None)


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


def peer_of(transport: asyncio.BaseTransport) -> str:
    address = transport.get_extra_info("peername")
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else "?"


def cancel_all(timers: list[asyncio.TimerHandle]) -> None:
    for timer in timers:
        timer.cancel()
