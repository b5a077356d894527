"""Group commit: one commit at a time, in a worker thread, of all changes since the last one.

    begin(ticket) ─▶ store.begin ─▶ thread: store.commit ─▶ events.committed(ticket)
                                            │ StoreOutage ─▶ events.store_unavailable, then once more
                                            └ any other error ─▶ events.fail

At most one commit is under way: the core gives no ticket before it knows the result of the last one,
so a slow disk makes larger groups, not a queue of commits. Checkpoints of the store run in a second
thread, beside commits.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

from palio.net.monitoring.counts import HostCounts
from palio.net.monitoring.logs import log_event
from palio.net.storage.store import CommittingStore, StoreOutage


class CommitEvents(Protocol):
    """Called by the event loop's thread."""

    def committed(self, ticket: int) -> None:
        """Everything that was pending when the ticket began is safe."""
        ...

    def store_unavailable(self, error: StoreOutage) -> None:
        """The commit waits for the store and is retried."""
        ...

    def fail(self, error: BaseException) -> None:
        """The store has failed and cannot be used any more."""
        ...


class GroupCommit:
    def __init__(self, store: CommittingStore, counts: HostCounts, events: CommitEvents) -> None:
        self._store, self._counts, self._events = store, counts, events
        self._loop = asyncio.get_running_loop()
        self._committer = ThreadPoolExecutor(1, thread_name_prefix="palio-commit")
        self._checkpointer = ThreadPoolExecutor(1, thread_name_prefix="palio-checkpoint")
        self._is_checkpointing = False
        self._is_abandoned = False
        self._ticket: int | None = None
        self._idle: asyncio.Future[None] | None = None

    @property
    def is_under_way(self) -> bool:
        return self._ticket is not None

    def begin(self, ticket: int) -> None:
        """Commit what is pending now; no other commit is under way."""
        assert self._ticket is None, f"ticket {ticket} while {self._ticket} is under way"
        self._ticket = ticket
        try:
            self._counts.commit_keys += self._store.begin()
        except Exception as error:
            self._events.fail(error)
            return
        self._commit()

    async def wait_idle(self) -> None:
        """Return when no commit is under way, or when commits were abandoned."""
        if self._ticket is not None and not self._is_abandoned:
            self._idle = self._loop.create_future()
            await self._idle

    def abandon(self) -> None:
        """Stop reporting; the result of the commit that is under way is ignored."""
        self._is_abandoned = True
        self._set_idle()

    async def close(self) -> None:
        """Wait for the threads to end."""
        for worker in (self._committer, self._checkpointer):
            await self._loop.run_in_executor(None, worker.shutdown)

    def _commit(self) -> None:
        started = self._loop.time()
        future = self._loop.run_in_executor(self._committer, self._store.commit)
        future.add_done_callback(partial(self._commit_ended, started))

    def _commit_ended(self, started: float, future: asyncio.Future[None]) -> None:
        if future.cancelled():
            return
        error = future.exception()
        if self._is_abandoned:
            return
        if error is None:
            self._counts.commits.add(self._loop.time() - started)
            self._commit_succeeded()
        elif isinstance(error, StoreOutage):
            self._counts.commit_failures += 1
            self._events.store_unavailable(error)
            self._loop.call_later(error.retry_s, self._retry)
        else:
            self._events.fail(error)

    def _retry(self) -> None:
        if not self._is_abandoned:
            self._commit()

    def _commit_succeeded(self) -> None:
        ticket, self._ticket = self._ticket, None
        assert ticket is not None
        self._events.committed(ticket)
        if self._store.wants_checkpoint and not self._is_checkpointing:
            self._checkpoint()
        self._set_idle()

    def _set_idle(self) -> None:
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def _checkpoint(self) -> None:
        self._is_checkpointing = True
        future = self._loop.run_in_executor(self._checkpointer, self._store.checkpoint)
        future.add_done_callback(self._checkpoint_ended)

    def _checkpoint_ended(self, future: asyncio.Future[None]) -> None:
        self._is_checkpointing = False
        error = None if future.cancelled() else future.exception()
        if isinstance(error, StoreOutage):
            log_event(logging.WARNING, "a checkpoint of the store failed", reason=error)
        elif error is not None and not self._is_abandoned:
            self._events.fail(error)
