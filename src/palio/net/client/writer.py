"""The writer: everything that a client sends in one turn of the event loop leaves in one write.

Without a connection nothing is written, and nothing is lost: the session keeps what must be sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Writer:
    __slots__ = ("_is_scheduled", "_take", "_transport", "is_paused", "unflushed")

    def __init__(self, take: Callable[[], list[bytes]]) -> None:
        """`take` hands over what is to be written."""
        self._take = take
        self._transport: asyncio.Transport | None = None
        self._is_scheduled = False
        self.is_paused = False
        """The socket takes nothing more for now."""
        self.unflushed = 0
        """Messages since the last write."""

    def attach(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.is_paused = False

    def detach(self) -> None:
        self._transport = None
        self.is_paused = False

    def schedule(self, messages: int = 1) -> None:
        """Write at the end of this turn of the loop, with everything that is added until then."""
        self.unflushed += messages
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Write now. Without a connection, everything stays where it is."""
        self._is_scheduled = False
        self.unflushed = 0
        if self._transport is None:
            return
        frames = self._take()
        if frames:
            self._transport.write(frames[0] if len(frames) == 1 else b"".join(frames))
