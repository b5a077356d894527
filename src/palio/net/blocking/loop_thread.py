"""An event loop in a thread of its own, to which other threads give work.

A thread that is interrupted while it waits cancels its work there.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from palio.errors import ClientClosed

Result = TypeVar("Result")


class LoopThread:
    def __init__(self) -> None:
        self._loop = _new_loop()
        self._thread = threading.Thread(target=self._run, name="palio-client", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self._loop.close()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def call(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the loop and wait for its result."""
        if not self.is_alive:
            work.close()
            raise ClientClosed("this client is closed")
        if threading.current_thread() is self._thread:
            work.close()
            raise ClientClosed("the blocking client cannot be used inside its own event loop")
        future: Future[Result] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # after an interrupt; without effect if the coroutine has ended
            raise

    def call_soon(self, function: Callable[[], object]) -> None:
        """Run a function in the loop, without waiting for it."""
        if not self.is_alive:
            raise ClientClosed("this client is closed")
        self._loop.call_soon_threadsafe(function)

    def stop(self) -> None:
        if self.is_alive:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop, about twice as fast, where it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop
