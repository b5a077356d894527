"""The host of a broker: connects the core, which decides, to sockets, a store and a clock.

    connections ─▶ core.open, receive, close ─┐                     ┌─▶ one write for each link
    wake timer  ─▶ core.wake ─────────────────┼─(once a turn) take ─┼─▶ closes
    group commit ─▶ core.committed ───────────┘                     └─▶ group commit

The host calls the core for each event. Once in each turn of the event loop it takes the effects and
carries them out (`_turn`).

What always holds. Memory is bounded: connections that stay congested are closed, and while too much
waits for its commit, the host stops reading and tells the core. It calls `committed` only after the commit. A
full disk, a database that is away or a lease that could not be renewed ends all connections and
refuses new ones until that is over; nothing is dropped. Any other failure of the store or the core
ends the broker as a crash would: what was not committed was not acknowledged, so a restart goes on
from a sound state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from palio.errors import InvalidFile, PalioError
from palio.net.broker.clock import BrokerClock
from palio.net.broker.connections import Connections
from palio.net.broker.core import Core
from palio.net.broker.group_commit import GroupCommit
from palio.net.broker.job_runner import JobRunner
from palio.net.broker.loop_watch import LoopWatch
from palio.net.broker.outages import OF_COMMITS, Outages
from palio.net.broker.wake_timer import WakeTimer
from palio.net.config.values import HostLimits, Times
from palio.net.listeners.listener import Dismissal, ServedConnection
from palio.net.monitoring.counts import HostCounts
from palio.net.monitoring.logs import log_bug, log_event
from palio.net.storage.store import (
    CommittingStore,
    LeaseLost,
    StoreAway,
    StoreFailed,
    StoreOutage,
)
from palio.protocol.broker.access import Access
from palio.protocol.broker.effects import Effects
from palio.protocol.broker.failure import BrokerFailed
from palio.protocol.broker.links import LinkOrigin
from palio.protocol.broker.schemas import Schemas
from palio.protocol.broker.snapshot import Snapshot
from palio.protocol.durability.storage import DamagedStore
from palio.protocol.wire.codes import CloseCode

_STOPPING = Dismissal(CloseCode.STOPPING, "this broker is stopping")
_FAILED = Dismissal(CloseCode.FAILED, "this broker failed; restart it to continue")
_MOVED = Dismissal(CloseCode.MOVED, "another process runs this broker now")


class BrokerHost:
    """`finished` is done when the broker has stopped or failed; its exception says why."""

    def __init__(
        self,
        core: Core,
        store: CommittingStore,
        clock: BrokerClock,
        limits: HostLimits,
        times: Times,
    ) -> None:
        self.limits = limits
        self.counts = HostCounts()
        self.watch = LoopWatch(times.loop_warning_us / 1e6)
        self._core, self._store, self._clock = core, store, clock
        self._stop_s = times.stop_us_max / 1e6
        self._loop = asyncio.get_running_loop()
        self._connections = Connections(limits, self.counts, self._stop_s)
        self._commits = GroupCommit(store, self.counts, self)
        self._jobs = JobRunner(
            lambda job: self.call("job", lambda: core.finished(job, self._clock.now_us()))
        )
        self._timer = WakeTimer(self._wake_if_due, self.watch)
        self._is_turn_due = False
        self._is_stopping = False
        self.outages = Outages()
        self.finished: asyncio.Future[None] = self._loop.create_future()
        self._schedule_turn()

    # ---- for operators and diallers

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    @property
    def uncommitted_bytes(self) -> int:
        return self._store.pending_bytes

    @property
    def unready_reason(self) -> str:
        """Why the broker takes no connections and messages; empty: it does."""
        if self.outages.current is None and not self._is_stopping and not self.finished.done():
            return ""
        return (self.outages.current or _STOPPING).reason

    def is_linked(self, neighbour: str) -> bool:
        return self._core.is_linked(neighbour)

    def snapshot(self) -> Snapshot:
        return self._core.snapshot()

    # ---- called by connections

    def attach(self, connection: ServedConnection, certificate: str, identity: str = "") -> int:
        """A connection is open; gives its link number, 0: it is refused."""
        if self.unready_reason:
            self._connections.refuse(connection, self.outages.current or _STOPPING)
            return 0
        link = self._connections.add(connection)
        now_us = self._clock.now_us()
        origin = LinkOrigin(certificate, connection.is_in_process)
        self.call(
            "open",
            lambda: self._core.open(link, now_us, origin=origin, dials=connection.dials),
        )
        if identity:
            self.call("vouch", lambda: self._core.listener_acts.vouch(link, identity))
        return link

    def secure(self, link: int, size: int, certificate: str) -> None:
        """Bytes of a TLS handshake came; when it is complete, with the name in the certificate."""
        if link in self._connections:
            now_us = self._clock.now_us()
            self.call("secure", lambda: self._core.secure(link, size, certificate, now_us))

    def received(self, link: int, data: bytes) -> None:
        if link not in self._connections or self._is_stopping:
            return
        if not self._is_turn_due:
            self._schedule_turn()
        self._connections.received(link, len(data))
        try:
            self._core.receive(link, data, self._clock.now_us())
        except Exception as error:
            self.fail(error)

    def congested(self, link: int, is_congested: bool) -> None:
        if link in self._connections:
            self._connections.set_congested(link, is_congested)
            self.call(
                "congest", lambda: self._core.congest(link, is_congested, self._clock.now_us())
            )

    def detach(self, link: int, error: Exception | None) -> None:
        """A connection is lost. A thousand may be at once: a turn processes a part of them."""
        self._connections.lost.append((link, error))
        if self._is_stopping:
            self._close_in_core(self._connections.remove_lost())
        else:
            self._schedule_turn()

    def _close_in_core(self, links: list[int]) -> None:
        for link in links:
            self.call("close", partial(self._core.close, link, self._clock.now_us()))

    # ---- turns

    def reload_access(self, access: Access, schemas: Schemas) -> None:
        """Replace identities, grants and schemas; what grants do not allow ends."""
        self.call("reload", lambda: self._core.reload_access(access, self._clock.now_us(), schemas))

    def call(self, event: str, call: Callable[[], None]) -> None:
        """Call the core, and schedule a turn to take its effects. A failure ends the broker."""
        if self.finished.done():
            return
        self._schedule_turn()
        self.watch.events.append(event)
        try:
            call()
        except Exception as error:
            self.fail(error)

    def _schedule_turn(self) -> None:
        """A turn follows the events of this poll. The first of them begins a hold of the loop."""
        if not self._is_turn_due and not self.finished.done():
            self._is_turn_due = True
            self.watch.began = self.watch.clock()
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Carry out the effects of the core since the last turn."""
        self._is_turn_due = False
        if self.finished.done():
            return
        watch = self.watch
        began, watch.began, taking = watch.began, 0.0, watch.clock()
        try:
            self._close_in_core(self._connections.remove_lost())
            effects = self._core.take()
            acting = watch.clock()
            self._carry_out(effects)
            watch.end(began, taking, acting, effects.requests)
        except Exception as error:
            # A commit that is lost with other effects would never be answered.
            self.fail(error)

    def _carry_out(self, effects: Effects) -> None:
        if self._store.failure is not None:
            self.fail(self._store.failure)
            return
        self.counts.turns += 1
        for link, frames in effects.writes.items():
            if not self._connections.write(link, frames):
                self._close_in_core([link])
        self._close_in_core(self._connections.cut_unsent())
        for link, close in effects.closes:
            self._connections.close(link, close)
        if effects.commit is not None:
            self._commits.begin(effects.commit)
        if effects.jobs:
            self._jobs.start(effects.jobs)
        for link, is_read in effects.reading.items():
            self._connections.set_reading(link, is_read)
        for notice in effects.notices:
            level = logging.WARNING if notice.is_warning else logging.INFO
            log_event(level, notice.event, **notice.fields)
        for bug in effects.bugs:
            log_event(logging.ERROR, "a bug, and the broker goes on", reason=bug)
        if effects.has_more or self._connections.lost:
            self._schedule_turn()
        self._connections.end_turn()
        self._regulate_reading()
        self._timer.deadline_may_have_moved()

    def _wake_if_due(self) -> float | None:
        """Wake the core if its deadline has come; else give the seconds until then."""
        if self.finished.done() or self._is_stopping:
            return None
        self._clock.catch_up()
        now_us = self._clock.now_us()
        try:
            wait_us = self._core.deadline_us - now_us
        except Exception as error:
            self.fail(error)
            return None
        if wait_us > 0:
            return wait_us / 1e6
        self.call("wake", lambda: self._core.wake(now_us))
        return None

    # ---- called by the group commit

    def committed(self, ticket: int) -> None:
        self.outages.end(*OF_COMMITS)
        self.call("commit", lambda: self._core.committed(ticket, self._clock.now_us()))
        self._regulate_reading()

    def _regulate_reading(self) -> None:
        """Read from no connection while too much waits for its commit."""
        is_paused = self._store.pending_bytes > self.limits.uncommitted_bytes
        if is_paused and not self._connections.is_reading_paused:
            self._connections.pause_reading()
            self.call("pause", lambda: self._core.pause(self._clock.now_us()))
        elif not is_paused and self._connections.is_reading_paused:
            self._connections.resume_reading()
            self.call("resume", lambda: self._core.resume(self._clock.now_us()))

    def store_unavailable(self, error: StoreOutage) -> None:
        """End all connections with the reason, and refuse new ones until the outage is over."""
        self._close_in_core(self._connections.dismiss_all(self.outages.begin(error)))

    # ---- the end

    def fail(self, error: BaseException) -> None:
        """End the broker: from now on it reads, takes and commits nothing."""
        if self.finished.done():
            return
        if isinstance(error, BrokerFailed) and isinstance(
            error.__cause__, StoreFailed | DamagedStore
        ):  # they have the place and the remedy
            error = error.__cause__
        failure: PalioError
        if isinstance(error, StoreFailed | DamagedStore):
            log_event(logging.CRITICAL, "the broker stops", reason=error)
            failure = error
        elif isinstance(error, InvalidFile | BrokerFailed):
            log_event(logging.CRITICAL, "the broker stops", reason=error)
            failure = PalioError(f"the broker cannot go on and stops: {error}")
        else:
            log_bug("the broker stops: this is a bug", error)
            failure = PalioError(f"the broker met a bug and stops: {type(error).__name__}")
        self.finished.set_exception(failure)
        self.finished.exception()  # marks it as retrieved: not everybody waits for it
        self._commits.abandon()
        self._jobs.close()
        why = _MOVED if isinstance(error, LeaseLost) else _FAILED
        if isinstance(error, StoreAway):
            why = Dismissal(CloseCode.STORE_UNREACHABLE, str(error))
        self._connections.dismiss_all(why)

    async def stop(self, reason: str) -> None:
        """Take nothing more, commit and acknowledge what was taken, then close everything."""
        self._is_stopping = True
        # The host still reads, and drops, what arrives: closing over unread bytes would cut the
        # other end off from the last ones that are sent to it.
        self._connections.resume_reading()
        try:
            async with asyncio.timeout(self._stop_s):
                await self._settle()
        except TimeoutError:
            log_event(
                logging.WARNING, "the disk was too slow: the last messages are not acknowledged"
            )
        self._connections.dismiss_all(Dismissal(CloseCode.STOPPING, reason))
        await self._connections.wait_closed()
        self._timer.cancel()
        self._jobs.close()
        if not self.finished.done():
            self.finished.set_result(None)
        self._commits.abandon()
        await self._commits.close()
        self._store.close()

    async def _settle(self) -> None:
        """Take turns until the core has nothing more to commit."""
        while not self.finished.done():
            self._turn()
            if not self._commits.is_under_way:
                return
            await self._commits.wait_idle()
