"""The requests of a WebSocket that are under way: bounded in number and in bytes, before more is read."""

from __future__ import annotations

import asyncio


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
