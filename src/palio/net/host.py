"""The host of a broker: connects the core, which decides, to sockets, a disk and a clock, which do.

    data_received ─▶ core.receive ─┐                     ┌─▶ one write a link
    connections   ─▶ open, close  ─┼─(once a turn) take ─┼─▶ closes
    timer         ─▶ core.wake    ─┘                     └─▶ begin ─▶ commit, in a thread ─▶ committed

Everything that one turn of the loop brings is taken together (`_turn`). At most one commit is under
way; what comes meanwhile waits for the next, so a slow disk makes larger groups, not a queue.

What always holds. Memory is bounded: a connection for which too much waits is closed; when too
much waits for the disk, nothing is read. `committed` is said only after the commit. A full disk
closes all connections with the reason and refuses new ones until the commit passes; nothing is
dropped. Any other failure of the disk or the core ends the broker as a crash would: what was not
committed was never acknowledged, so a restart goes on from a sound state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from palio.errors import PalioError
from palio.net.broker_connection import BrokerConnection
from palio.net.clock import Clock
from palio.net.config import Room, Times
from palio.net.core import Core, Disk
from palio.net.counts import Counts
from palio.net.logs import failed, told
from palio.net.storage import StoreFailed, StoreFull
from palio.protocol.access import Access
from palio.protocol.frames import word_frame
from palio.protocol.words import Bye

_RETRY_S = 1.0
_DEADLINE_S = 0.01
"""The deadline is asked for at most this often: it may take time that grows with the links."""


class Host:
    """`finished` is done when the broker cannot go on; its exception says why."""

    def __init__(self, core: Core, disk: Disk, clock: Clock, room: Room, times: Times) -> None:
        self.core = core
        self.room = room
        self.counts = Counts()
        self._disk, self._clock, self._times = disk, clock, times
        self._loop = asyncio.get_running_loop()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="palio-disk")
        self._copier = ThreadPoolExecutor(1, thread_name_prefix="palio-log")
        self._is_copying = False
        self._connections: dict[int, BrokerConnection] = {}
        self._sockets: set[asyncio.Future[None]] = set()  # also those that are being closed
        self._last_link = 0
        self._turn_is_due = False
        self._reading_is_paused = False
        self._is_stopping = False
        self._ticket: int | None = None
        self._next_ticket: int | None = None
        self._idle: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self.trouble: str | None = None
        """Why nothing is taken at the moment; None: all is well."""
        self.finished: asyncio.Future[None] = self._loop.create_future()
        self._soon()

    @property
    def links(self) -> int:
        return len(self._connections)

    @property
    def uncommitted_bytes(self) -> int:
        return self._disk.pending_bytes

    @property
    def is_taking(self) -> bool:
        """It takes connections."""
        return self.trouble is None and not self._is_stopping and not self.finished.done()

    # ---- connections

    def attach(self, connection: BrokerConnection, certificate: str) -> int:
        """A connection is there; the number by which it is known from now on, 0: it is refused."""
        self._sockets.add(connection.closed)
        connection.closed.add_done_callback(self._sockets.discard)
        reason = self._refusal(connection)
        if reason is not None:
            self.counts.refused += 1
            told(logging.WARNING, "connection refused", peer=connection.peer, reason=reason)
            connection.write(word_frame(Bye(reason)))
            connection.finish(self._stop_s)
            return 0
        self._last_link = link = self._last_link + 1
        self._connections[link] = connection
        if connection.dials is None:
            self.counts.accepted += 1
        else:
            self.counts.dialled += 1
        told(logging.DEBUG, "connection open", link=link, peer=connection.peer)
        if self._reading_is_paused:
            connection.pause_reading()
        now_us = self._clock.now_us()
        self._do(self.core.open, link, now_us, certificate=certificate, dials=connection.dials)
        return link

    def _refusal(self, connection: BrokerConnection) -> str | None:
        if not self.is_taking:
            return self.trouble or "this broker is stopping"
        if connection.dials is None and len(self._connections) >= self.room.connections:
            return f"this broker has {len(self._connections)} connections; that is its limit"
        return None

    def received(self, link: int, data: bytes) -> None:
        if link not in self._connections or self._is_stopping:
            return
        self.counts.bytes_in += len(data)
        try:
            self.core.receive(link, data, self._clock.now_us())
        except Exception as error:
            self._fail(error)
        if not self._turn_is_due:
            self._soon()

    def detach(self, link: int, error: Exception | None) -> None:
        """A connection is gone by itself."""
        connection = self._connections.pop(link, None)
        if connection is None:
            return
        told(logging.INFO, "connection lost", link=link, peer=connection.peer, reason=error or "")
        self._do(self.core.close, link, self._clock.now_us())

    def pressed(self, link: int, pressed: bool) -> None:
        if link in self._connections:
            self._do(self.core.press, link, pressed, self._clock.now_us())

    def _do(self, call: Callable[..., None], *arguments: object, **options: object) -> None:
        """Tell the core something; a failure in it ends the broker."""
        if self.finished.done():
            return
        try:
            call(*arguments, **options)
        except Exception as error:
            self._fail(error)
        self._soon()

    # ---- turns

    def grant(self, access: Access) -> None:
        """Identities and grants are others from now on."""
        self._do(self.core.grant, access, self._clock.now_us())

    def _soon(self) -> None:
        if not self._turn_is_due and not self.finished.done():
            self._turn_is_due = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Do all that the core wants since the last turn."""
        self._turn_is_due = False
        if self.finished.done():
            return
        try:
            effects = self.core.take()
        except Exception as error:
            self._fail(error)
            return
        if self._disk.failure is not None:
            self._fail(self._disk.failure)
            return
        self.counts.turns += 1
        for link, frames in effects.writes.items():
            self._write(link, frames)
        for link, reason in effects.closes:
            self._close(link, reason)
        if effects.commit is not None:
            self._begin(effects.commit)
        if self._disk.pending_bytes > self.room.uncommitted_bytes:
            self._pause_reading()
        self._set_timer(self._loop.time() + _DEADLINE_S)

    def _write(self, link: int, frames: list[bytes]) -> None:
        connection = self._connections.get(link)
        if connection is None:
            return
        data = frames[0] if len(frames) == 1 else b"".join(frames)
        self.counts.writes += 1
        self.counts.bytes_out += len(data)
        was_pressed = connection.is_pressed  # one turn alone may bring more than `stuck_bytes`
        waiting = connection.write(data)
        if was_pressed and waiting > self.room.stuck_bytes:
            del self._connections[link]
            self.counts.closed_stuck += 1
            told(
                logging.WARNING, "connection closed: the other end does not read",
                link=link, peer=connection.peer, waiting_bytes=waiting,
            )  # fmt: skip
            connection.abort()
            self._do(self.core.close, link, self._clock.now_us())

    def _close(self, link: int, reason: str) -> None:
        connection = self._connections.pop(link, None)
        if connection is not None:
            told(logging.INFO, "connection closed", link=link, peer=connection.peer, reason=reason)
            connection.finish(self._stop_s)

    # ---- time

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            if self._timer_at <= at:
                return
            self._timer.cancel()
        self._timer, self._timer_at = self._loop.call_at(at, self._ring), at

    def _ring(self) -> None:
        self._timer = None
        if self.finished.done() or self._is_stopping:
            return
        self._clock.catch_up()
        now_us = self._clock.now_us()
        try:
            wait_us = self.core.deadline_us - now_us
        except Exception as error:
            self._fail(error)
            return
        if wait_us <= 0:
            self._do(self.core.wake, now_us)
        else:
            self._set_timer(self._loop.time() + wait_us / 1e6)

    # ---- the disk

    def _begin(self, ticket: int) -> None:
        if self._ticket is not None:
            self._next_ticket = ticket
            return
        self._ticket = ticket
        try:
            self.counts.commit_keys += self._disk.begin()
        except Exception as error:
            self._fail(error)
            return
        self._commit()

    def _commit(self) -> None:
        started = self._loop.time()
        future = self._loop.run_in_executor(self._worker, self._disk.commit)
        future.add_done_callback(partial(self._commit_ended, started))

    def _commit_ended(self, started: float, future: asyncio.Future[None]) -> None:
        if self.finished.done() or future.cancelled():
            return
        error = future.exception()
        if error is None:
            self.counts.commits.add(self._loop.time() - started)
            self._committed()
        elif isinstance(error, StoreFull):
            self.counts.commit_failures += 1
            self._refuse_all(str(error))
            self._loop.call_later(_RETRY_S, self._retry)
        else:
            self._fail(error)

    def _retry(self) -> None:
        if not self.finished.done():
            self._commit()

    def _committed(self) -> None:
        if self.trouble is not None:
            told(logging.INFO, "the disk takes data again")
            self.trouble = None
        ticket, self._ticket = self._ticket, None
        self._do(self.core.committed, ticket, self._clock.now_us())
        if self._disk.wants_checkpoint and not self._is_copying:
            self._is_copying = True
            self._loop.run_in_executor(self._copier, self._disk.checkpoint).add_done_callback(
                self._checkpointed
            )
        if self._next_ticket is not None:
            ticket, self._next_ticket = self._next_ticket, None
            self._begin(ticket)
        elif self._idle is not None and not self._idle.done():
            self._idle.set_result(None)
        if self._reading_is_paused and self._disk.pending_bytes <= self.room.uncommitted_bytes:
            self._resume_reading()

    def _checkpointed(self, future: asyncio.Future[None]) -> None:
        self._is_copying = False
        error = None if future.cancelled() else future.exception()
        if isinstance(error, StoreFull):
            told(logging.WARNING, "the log of the disk could not be worked off", reason=error)
        elif error is not None:
            self._fail(error)

    def _pause_reading(self) -> None:
        if not self._reading_is_paused:
            self._reading_is_paused = True
            self.counts.reading_pauses += 1
            for connection in self._connections.values():
                connection.pause_reading()

    def _resume_reading(self) -> None:
        self._reading_is_paused = False
        for connection in self._connections.values():
            connection.resume_reading()

    def _refuse_all(self, trouble: str) -> None:
        """The disk is full: everybody is told, and nobody is taken until it is not."""
        if self.trouble is None:
            told(logging.ERROR, "nothing is taken until there is room", reason=trouble)
        self.trouble = trouble
        for link in list(self._connections):
            self._say_bye(link, trouble)
            self._do(self.core.close, link, self._clock.now_us())

    def _say_bye(self, link: int, reason: str) -> None:
        connection = self._connections.pop(link)
        connection.write(word_frame(Bye(reason)))
        connection.finish(self._stop_s)

    # ---- the end

    @property
    def _stop_s(self) -> float:
        return self._times.stop_us_max / 1e6

    def _fail(self, error: BaseException) -> None:
        """The broker cannot go on. Nothing more is read, taken or committed."""
        if self.finished.done():
            return
        sentence: PalioError
        if isinstance(error, StoreFailed):
            told(logging.CRITICAL, "the broker stops", reason=error)
            sentence = error
        else:
            failed("the broker stops: this is a bug", error)
            sentence = PalioError(f"the broker met a bug and stops: {type(error).__name__}")
        self.finished.set_exception(sentence)
        self.finished.exception()  # somebody has seen it
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)
        for link in list(self._connections):
            self._say_bye(link, "this broker failed; it goes on after a restart")

    async def stop(self, reason: str) -> None:
        """Take nothing more, make safe what was taken, say it, say goodbye, close."""
        self._is_stopping = True
        # What still comes is read and dropped: closing over unread bytes would cut the other end
        # off from the last ones that are sent to it.
        if self._reading_is_paused:
            self._resume_reading()
        try:
            async with asyncio.timeout(self._stop_s):
                await self._settle()
        except TimeoutError:
            told(logging.WARNING, "the disk was too slow: the last messages are not acknowledged")
        for link in list(self._connections):
            self._say_bye(link, reason)
        if self._sockets:
            await asyncio.wait(self._sockets, timeout=2 * self._stop_s)
        if self._timer is not None:
            self._timer.cancel()
        if not self.finished.done():
            self.finished.set_result(None)
        for worker in (self._worker, self._copier):
            await self._loop.run_in_executor(None, worker.shutdown)
        self._disk.close()

    async def _settle(self) -> None:
        """Until the core has nothing more to commit."""
        while not self.finished.done():
            self._turn()
            if self._ticket is None:
                return
            self._idle = self._loop.create_future()
            await self._idle
