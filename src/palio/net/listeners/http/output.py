"""The bytes to the other end of a connection: whoever does not read them in time is cut off."""

from __future__ import annotations

import asyncio
import logging

from palio.net.monitoring.counts import HttpCounts
from palio.net.monitoring.logs import log_event

_WRITE_BYTES_HIGH = 64 << 10


class SocketOutput:
    """`stalled_s`: how long the other end may leave most of what was sent unread."""

    def __init__(self, stalled_s: float, counts: HttpCounts) -> None:
        self._stalled_s, self._counts = stalled_s, counts
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._drained: asyncio.Future[None] | None = None

    def attach(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(high=_WRITE_BYTES_HIGH)

    def detach(self) -> None:
        """The socket is closed."""
        self._transport = None
        self.resume()

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_read(self) -> bool:
        """Whether the other end has read most of what was sent."""
        return self._drained is None

    def write(self, data: bytes) -> None:
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    async def drained(self) -> None:
        """Return when the other end has read most of it."""
        if self._drained is not None:
            await self._drained

    def pause(self) -> None:
        """Too much waits to be read."""
        self._drained = self._loop.create_future()
        self._stall = self._loop.call_later(self._stalled_s, self.cut_off)

    def resume(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self._drained = None

    def set_reading(self, is_reading: bool) -> None:
        """Read from the socket, or not for now."""
        if self._transport is not None and not self._transport.is_closing():
            if is_reading:
                self._transport.resume_reading()
            else:
                self._transport.pause_reading()

    def finish(self) -> None:
        """Say that nothing more will come; the socket stays open for reading, where it can."""
        if self._transport is not None and self._transport.can_write_eof():  # not with TLS
            try:
                self._transport.write_eof()
            except OSError:  # the other end has closed, and the loop has not noticed yet
                self._transport.abort()

    def close(self) -> None:
        """Close when everything is sent, within the time that a reader has."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.close()
            if self._drained is None:
                self._stall = self._loop.call_later(self._stalled_s, self.abort)

    def cut_off(self) -> None:
        self._counts.stalled += 1
        if self._transport is not None:
            peer = peer_of(self._transport)
            log_event(logging.INFO, "connection over HTTP closed: it is not read", peer=peer)
        self.abort()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def peer_of(transport: asyncio.BaseTransport) -> str:
    address = transport.get_extra_info("peername")
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else "?"
