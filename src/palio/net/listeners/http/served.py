"""What all connections of the HTTP listener share: the sockets, the room for bodies, the counts.

When there are too many connections, a new one takes the place of the one that has waited longest for a
request; so those who open many and send nothing keep nobody out. Connections with a request stay.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from palio.net.listeners.http.exchange import Exchange, Headers, Request
from palio.net.listeners.shared_turns import SharedTurns
from palio.net.monitoring.counts import HttpCounts


class Service(Protocol):
    """What a connection serves."""

    def check(self, request: Request) -> None:
        """Raise Problem for a head whose body is not worth reading."""
        ...

    def headers(self, request: Request) -> Headers:
        """Header fields of every answer to it."""
        ...

    async def serve(self, exchange: Exchange) -> None: ...


class Socket(Protocol):
    @property
    def is_streaming(self) -> bool:
        """Its answer has no end of its own."""
        ...

    def overload(self) -> None: ...

    def cancel(self) -> None: ...

    def abort(self) -> None: ...


class Sockets:
    def __init__(self, connections_max: int, bodies_bytes_max: int) -> None:
        self.counts = HttpCounts()
        self.turns = SharedTurns()
        """In which what has arrived is parsed: together they hold the event loop shortly."""
        self.ending = asyncio.Event()
        """Set when the broker stops."""
        self._connections_max, self._bodies_bytes_max = connections_max, bodies_bytes_max
        self._bodies_bytes = 0
        self._waiting: dict[Socket, None] = {}  # for a request; the oldest first
        self._serving: set[Socket] = set()
        self._empty: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting) + len(self._serving)

    def add(self, socket: Socket) -> None:
        self._waiting[socket] = None
        if len(self) > self._connections_max:
            oldest = next(iter(self._waiting))
            if oldest is socket:
                asyncio.get_running_loop().call_soon(socket.overload)
            else:
                self.counts.displaced += 1
                oldest.abort()

    def serve(self, socket: Socket) -> None:
        """Its request is complete."""
        self._waiting.pop(socket, None)
        self._serving.add(socket)

    def wait(self, socket: Socket) -> None:
        """It waits for its next request."""
        self._serving.discard(socket)
        self._waiting[socket] = None

    def remove(self, socket: Socket) -> None:
        self._waiting.pop(socket, None)
        self._serving.discard(socket)
        if not len(self) and self._empty is not None and not self._empty.done():
            self._empty.set_result(None)

    def end_streams(self) -> None:
        """The broker stops: requests may still be answered."""
        self.ending.set()
        for socket in [*self._serving]:
            if socket.is_streaming:
                socket.cancel()

    async def close_all(self, wait_s: float) -> None:
        """Cancel what is served, and close everything."""
        self.ending.set()
        for act in ("cancel", "abort"):
            for socket in [*self._waiting, *self._serving]:
                getattr(socket, act)()
            if not len(self):
                return
            self._empty = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._empty], timeout=wait_s)

    # ---- bodies

    def take_room(self, size: int) -> bool:
        if self._bodies_bytes + size > self._bodies_bytes_max:
            return False
        self._bodies_bytes += size
        return True

    def give_room(self, size: int) -> None:
        self._bodies_bytes -= size
