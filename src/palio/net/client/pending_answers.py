"""Requests that wait for the broker's answer.

A request whose caller gave up, or was cancelled, is withdrawn, so that no later connection repeats it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from palio.errors import NetworkError, PalioError
from palio.net.client.status import ClientStatus
from palio.net.client.writer import Writer
from palio.protocol.wire.control import ControlMessage


class PendingAnswers:
    __slots__ = ("_futures", "_status", "_withdraw", "_writer")

    def __init__(
        self, status: ClientStatus, writer: Writer, withdraw: Callable[[int], None]
    ) -> None:
        """`withdraw` tells the session that nobody waits for an answer any more."""
        self._status = status
        self._writer = writer
        self._withdraw = withdraw
        self._futures: dict[int, asyncio.Future[ControlMessage]] = {}

    async def wait_for(self, id: int) -> ControlMessage:
        """Wait for the answer to a request that the session has just made."""
        self._writer.schedule()
        future: asyncio.Future[ControlMessage] = asyncio.get_running_loop().create_future()
        self._futures[id] = future
        try:
            return await self._status.in_time(future)
        finally:
            self._futures.pop(id, None)
            self._withdraw(id)

    def answer(self, id: int, answer: ControlMessage) -> None:
        future = self._futures.pop(id, None)
        if future is not None and not future.done():
            future.set_result(answer)

    def refuse(self, id: int, error: PalioError) -> None:
        future = self._futures.pop(id, None)
        if future is not None and not future.done():
            future.set_exception(error)

    def fail(self, failure: NetworkError) -> None:
        """No answer will come any more."""
        for future in self._futures.values():
            if not future.done():
                future.set_exception(failure)
