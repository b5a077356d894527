"""What waits for an application: between the loop that receives and the tasks that iterate.

An inbox is bounded by its subscription's credit: the broker sends no more than that. It outlives
connections. Cancelling a task that waits loses nothing: an item leaves only when it is returned.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Ended(Exception):
    """Nothing more will come, and nobody is to blame."""


class Inbox(Generic[Item]):
    """Items in order, and how it ended."""

    __slots__ = ("_failure", "_is_taken", "_waiters", "items")

    def __init__(self) -> None:
        self.items: deque[Item] = deque()
        self._is_taken = False
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._failure: Exception | None = None

    @property
    def failure(self) -> Exception | None:
        """Why nothing more will come; None: more may."""
        return self._failure

    def put(self, item: Item) -> None:
        self.items.append(item)
        if self._waiters:
            self._wake()

    def end(self, failure: Exception) -> None:
        """Nothing more will come; what is here may still be taken. Only the first end counts."""
        if self._failure is None:
            self._failure = failure
        while self._waiters:
            self._wake()

    def take(self) -> None:
        """The broker says that it takes the subscription; items come after this."""
        self._is_taken = True
        while self._waiters:
            self._wake()

    async def ready(self) -> None:
        """Until the broker has taken the subscription; raises how it ended if it does not."""
        while not self._is_taken or self._failure is not None:
            await self._wait()

    async def wait(self) -> None:
        """Until there is an item; raises how it ended when there will be none."""
        while not self.items:
            await self._wait()

    async def _wait(self) -> None:
        """Until something happens. Whoever was woken looks again."""
        if self._failure is not None:
            raise self._failure
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            elif self.items and self._waiters:
                self._wake()  # it was our turn: let another task have it
            raise

    def _wake(self) -> None:
        waiter = self._waiters.popleft()
        if not waiter.done():
            waiter.set_result(None)
