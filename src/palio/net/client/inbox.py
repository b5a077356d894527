"""An inbox: what has arrived for one subscription, and the tasks that wait for it.

The credit of the subscription bounds an inbox, since the broker sends no more than that. It
outlives connections. A task that is cancelled while it waits loses nothing: an item leaves the
inbox only when it is returned.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

Item = TypeVar("Item")


class InboxClosed(Exception):
    """Nothing more will arrive, and that is no error."""


class Inbox(Generic[Item]):
    """Items in their order, and why no more will follow."""

    __slots__ = ("_failure", "_is_confirmed", "_waiters", "items")

    def __init__(self) -> None:
        self.items: deque[Item] = deque()
        self._is_confirmed = False
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._failure: Exception | None = None

    @property
    def failure(self) -> Exception | None:
        """Why nothing more will arrive; None: more may."""
        return self._failure

    def put(self, item: Item) -> None:
        self.items.append(item)
        if self._waiters:
            self._wake_one()

    def end(self, failure: Exception) -> None:
        """Nothing more will arrive; items that are here can still be taken. The first call decides."""
        if self._failure is None:
            self._failure = failure
        self._wake_all()

    def confirm(self) -> None:
        """The broker has accepted the subscription."""
        self._is_confirmed = True
        self._wake_all()

    async def wait_for_confirmation(self) -> None:
        """Wait until the broker accepts the subscription; raises the failure if it does not."""
        while not self._is_confirmed or self._failure is not None:
            await self._wait_for_change()

    async def wait_for_item(self) -> None:
        """Wait until there is an item; raises the failure if none will arrive."""
        while not self.items:
            await self._wait_for_change()

    async def _wait_for_change(self) -> None:
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
                self._wake_one()  # this task was woken for an item: pass it on to another task
            raise

    def _wake_one(self) -> None:
        waiter = self._waiters.popleft()
        if not waiter.done():
            waiter.set_result(None)

    def _wake_all(self) -> None:
        while self._waiters:
            self._wake_one()
