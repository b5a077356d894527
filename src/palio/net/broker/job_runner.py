"""Jobs of the core in a worker thread, so that no request holds the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from palio.protocol.broker.effects import BackgroundJob


class JobRunner:
    """`finished(job)` is called by the event loop's thread."""

    def __init__(self, finished: Callable[[BackgroundJob[Any]], None]) -> None:
        self._finished = finished
        self._loop = asyncio.get_running_loop()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="palio-job")
        self._is_closed = False

    def start(self, jobs: list[BackgroundJob[Any]]) -> None:
        for job in jobs:
            future = self._loop.run_in_executor(self._worker, job.run)
            future.add_done_callback(partial(self._done, job))

    def _done(self, job: BackgroundJob[Any], future: asyncio.Future[None]) -> None:
        if not self._is_closed and not future.cancelled():
            self._finished(job)

    def close(self) -> None:
        """Report nothing any more; the job that is under way ends unnoticed."""
        self._is_closed = True
        self._worker.shutdown(wait=False, cancel_futures=True)
