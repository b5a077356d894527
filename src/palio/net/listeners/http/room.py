"""What is under way: the requests of a WebSocket, bounded in number and in bytes before more is read, and the
requests that wait for a reply, bounded for each identity."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from palio.net.listeners.http.problems import RETRY_AFTER, Problem


class Room:
    """One task takes, others give back. What is alone may be larger than `bytes_max`."""

    def __init__(self, count_max: int, bytes_max: int) -> None:
        self._count_max, self._bytes_max = count_max, bytes_max
        self._count = self._bytes = 0
        self._given = asyncio.Event()

    async def take(self, size: int) -> None:
        """Returns when there is room."""
        while self._count and not self._fits(size):
            self._given.clear()
            await self._given.wait()
        self._count += 1
        self._bytes += size

    def _fits(self, size: int) -> bool:
        return self._count < self._count_max and self._bytes + size <= self._bytes_max

    def give(self, size: int) -> None:
        self._count -= 1
        self._bytes -= size
        self._given.set()


class ReplyRoom:
    """How many requests of each identity wait for a reply."""

    def __init__(self, requests_max: int) -> None:
        self._requests_max = requests_max
        self._waiting: Counter[str] = Counter()

    @contextmanager
    def waiting(self, identity: str) -> Iterator[None]:
        """Raises Problem if too many wait."""
        if self._waiting[identity] >= self._requests_max:
            most = f"{self._requests_max:,}"
            reason = (
                f"{most} requests of {identity} wait for a reply: no more, as [http] requests says"
            )
            raise Problem(429, "limit", reason, RETRY_AFTER)
        self._waiting[identity] += 1
        try:
            yield
        finally:
            self._waiting[identity] -= 1
            if not self._waiting[identity]:
                del self._waiting[identity]
