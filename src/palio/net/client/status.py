"""The status of a client: usable, failed or closed, and what is wrong with its connection.

Everybody who waits for the broker shares it. Every wait ends: with what was waited for, with
Unreachable after `max_wait` seconds, or with the failure of the client.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from math import inf
from typing import TypeVar

from palio.errors import ClientClosed, NetworkError, Unreachable
from palio.net.client.address import Address

Result = TypeVar("Result")


class ClientStatus:
    __slots__ = ("_is_ready", "_loop", "_waiters", "addresses", "failure", "max_wait", "trouble")

    def __init__(
        self, addresses: tuple[Address, ...], max_wait: float, is_ready: Callable[[], bool]
    ) -> None:
        self.addresses = addresses
        """Where the broker may be; the first is in use, or is dialled next."""
        self.max_wait = max_wait
        self.failure: NetworkError | None = None
        """Why this client can no longer be used, once that is so."""
        self.trouble = ""
        """What happened to the last connection, or to the last attempt to make one."""
        self._is_ready = is_ready
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def address(self) -> Address:
        return self.addresses[0]

    def try_next_address(self) -> None:
        self.addresses = (*self.addresses[1:], self.addresses[0])

    def start(self) -> None:
        """From now on the client belongs to the running event loop."""
        self._loop = asyncio.get_running_loop()

    def check(self) -> None:
        """Raise unless the client can be used here and now."""
        if self.failure is not None:
            raise self.failure
        if self._loop is None:
            raise ClientClosed("the client is not open: use `async with palio.connect(...)`")
        if asyncio.get_running_loop() is not self._loop:
            raise ClientClosed(
                "the client belongs to another event loop; open one in each, or use palio.blocking"
            )

    def fail(self, failure: NetworkError) -> None:
        """Nothing more will happen. The first failure counts."""
        if self.failure is None:
            self.failure = failure
        self.notify()

    def describe(self) -> str:
        """The state of the connection, as part of an error message."""
        if self._is_ready():
            return "the broker is connected, but it is too slow or its store is full"
        return f"there is no connection ({self.trouble or 'none was made'})"

    # ---- waiting

    @property
    def wait_s(self) -> float | None:
        """`max_wait` for asyncio: None means for ever."""
        return None if self.max_wait == inf else self.max_wait

    async def in_time(self, answer: Awaitable[Result]) -> Result:
        """Wait for an answer of the broker, for at most `max_wait` seconds."""
        try:
            async with asyncio.timeout(self.wait_s):
                return await answer
        except TimeoutError:
            raise Unreachable(
                f"{self.address} did not answer within {self.max_wait:g} s; {self.describe()}"
            ) from None

    def notify(self) -> None:
        """Something has changed that a task may wait for."""
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait_for_change(self) -> None:
        if self.failure is not None:
            raise self.failure
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def call_from_any_thread(self, function: Callable[[], None]) -> None:
        """Run a function in the event loop. A destructor may run in any thread."""
        loop = self._loop
        if self.failure is None and loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(function)
