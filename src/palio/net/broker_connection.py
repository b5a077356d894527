"""A connection: bytes between a socket and the host. It decides nothing.

socket ──data_received──▶ host.received(link)        host.turn ──▶ write, finish ──▶ socket
       ──pause_writing──▶ host.pressed(link)         `link` is the number the host gave it
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from palio.net.security import certificate_name

if TYPE_CHECKING:
    from palio.net.host import Host

_LINGER_S = 0.25


class BrokerConnection(asyncio.Protocol):
    """`dials`: the neighbour at the other end, if this broker dialled."""

    def __init__(self, host: Host, dials: str | None = None) -> None:
        self._host = host
        self._transport: asyncio.Transport | None = None
        self.dials = dials
        self._is_finishing = False
        self.link = 0
        self.is_pressed = False
        """More waits to be sent than should."""
        self.peer = ""
        """The address of the other end, for the operator."""
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # ---- from the socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        address = transport.get_extra_info("peername")
        self.peer = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else "?"
        self._transport.set_write_buffer_limits(high=self._host.room.link_bytes)
        certificate = certificate_name(transport.get_extra_info("ssl_object"))
        self.link = self._host.attach(self, certificate)

    def data_received(self, data: bytes) -> None:
        self._host.received(self.link, data)

    def pause_writing(self) -> None:
        self.is_pressed = True
        self._host.pressed(self.link, True)

    def resume_writing(self) -> None:
        self.is_pressed = False
        self._host.pressed(self.link, False)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if not self.closed.done():
            self.closed.set_result(None)
        self._host.detach(self.link, error)

    # ---- from the host

    def write(self, data: bytes) -> int:
        """Send; tells how much waits in memory because the other end does not read."""
        if self._transport is None or self._is_finishing or self._transport.is_closing():
            return 0
        self._transport.write(data)
        return self._transport.get_write_buffer_size()

    def pause_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def finish(self, wait_s: float) -> None:
        """Close when all is sent; after `wait_s` seconds, anyway.

        What the other end still sends is read for a moment and dropped: closing over unread bytes
        would reset the connection, and the last words to it might be lost.
        """
        if self._transport is None or self._is_finishing:
            return
        self._is_finishing = True
        self.resume_reading()
        if self._transport.can_write_eof():  # not with TLS
            try:
                self._transport.write_eof()
            except OSError:  # the other end is gone already; the loop has yet to hear it
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


def _cancel(timers: list[asyncio.TimerHandle]) -> None:
    for timer in timers:
        timer.cancel()
