"""The body of a request, as it comes: bounded in bytes and in chunks, and with all others together."""

from __future__ import annotations

from palio.net.listeners.http.problems import RETRY_AFTER, Problem
from palio.net.listeners.http.served import Sockets

_CHUNKS_MAX = 1024
_CHUNK_BYTES_MIN = 64
"""Of the average chunk of a body in more than _CHUNKS_MAX chunks: smaller ones cost more than they bring."""
_PROGRESS_BYTES = 64 << 10


class RequestBody:
    """Its bytes count among those of all bodies until `clear`."""

    def __init__(self, sockets: Sockets, bytes_max: int) -> None:
        self._sockets, self._bytes_max = sockets, bytes_max
        self._parts: list[bytes] = []
        self._size = self._counted = self._progress = self._chunks = 0

    def add(self, data: bytes) -> bool:
        """Raises Problem if it is too much. True: enough has come to wait for more."""
        self._parts.append(data)
        self._chunks += 1
        self._size += len(data)
        if self._size > self._bytes_max:
            raise Problem(413, "too_large", f"the body has more than {self._bytes_max:,} bytes")
        if self._chunks > _CHUNKS_MAX and self._size < _CHUNK_BYTES_MIN * self._chunks:
            raise Problem(400, "protocol", "the chunks of the body are too small")
        if not self._sockets.take_room(len(data)):
            raise Problem(503, "overload", "too many requests at once", RETRY_AFTER)
        self._counted += len(data)
        is_progress = self._size - self._progress >= _PROGRESS_BYTES
        if is_progress:
            self._progress = self._size
        return is_progress

    def whole(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)

    def clear(self) -> None:
        self._sockets.give_room(self._counted)
        self._parts = []
        self._size = self._counted = self._progress = self._chunks = 0
