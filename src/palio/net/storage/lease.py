"""The lease on a broker's name: whoever holds it runs the broker.

    take ──▶ epoch e ──renew, renew, ...──▶ release: the next one takes it at once
                          └── the holder dies: after `lease_s` the next one takes it, as epoch e + 1

The server's clock decides when a lease expires. Safety does not rest on clocks: every commit names its
epoch (schema.py), so a holder that wakes up after its lease was taken changes nothing.

A holder that cannot renew reports LeaseExpired once `lease_s` has passed, and goes on trying. If it
succeeds, nobody has taken the lease meanwhile, and it reports that. If it learns that the lease was
taken, it reports LeaseLost and stops.

Renewals do not wait for a synchronous standby: one that is lost in a failover shortens the lease, no
more. Taking the lease does wait.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from math import inf
from typing import TypeAlias

import psycopg

from palio.net.monitoring.logs import log_event
from palio.net.storage.database import Connection, Database
from palio.net.storage.schema import prepare
from palio.net.storage.store import LeaseExpired, LeaseLost, StoreFailed

Report: TypeAlias = Callable[[StoreFailed | None], None]
"""Called by the lease's thread: LeaseExpired, LeaseLost, or None when it was renewed after all."""

_LOOK_S = 0.1
"""How often a standby looks at the lease."""
_RETRY_S = 0.2

_LOOK = """
SELECT epoch, holder, extract(epoch FROM clock_timestamp() - expires)::float8
FROM palio.lease WHERE broker = %s
"""
_TAKE = """
INSERT INTO palio.lease (broker, epoch, holder, expires)
VALUES (%(broker)s, 1, %(holder)s, clock_timestamp() + make_interval(secs => %(lease_s)s))
ON CONFLICT (broker) DO UPDATE SET epoch = lease.epoch + 1, holder = excluded.holder,
    expires = clock_timestamp() + make_interval(secs => %(lease_s)s)
WHERE lease.epoch = %(seen)s AND lease.expires < clock_timestamp() RETURNING epoch
"""
_RENEW = """
UPDATE palio.lease SET expires = clock_timestamp() + make_interval(secs => %s)
WHERE broker = %s AND epoch = %s
"""
_RELEASE = "UPDATE palio.lease SET expires = 'epoch' WHERE broker = %s AND epoch = %s"


class Lease:
    """A lease that is held. A thread renews it until `release`."""

    def __init__(
        self, database: Database, broker: str, epoch: int, lease_s: float, connection: Connection
    ) -> None:
        self.epoch = epoch
        self._database, self._broker, self._lease_s = database, broker, lease_s
        self._connection: Connection | None = connection
        self._renewed_at = time.monotonic()
        self._trouble: StoreFailed | None = None
        self._report: Report | None = None
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="palio-lease", daemon=True)
        self._thread.start()

    def watch(self, report: Report) -> None:
        """Report troubles from now on, and one that there is already."""
        with self._lock:
            self._report = report
            if self._trouble is not None:
                report(self._trouble)

    def release(self) -> None:
        """Let the next one take it at once; if that fails, it expires."""
        self._released.set()
        self._thread.join(2 * self._lease_s)
        connection = self._connection
        if connection is None or self._thread.is_alive() or isinstance(self._trouble, LeaseLost):
            return
        with contextlib.suppress(psycopg.Error), self._database.guard.watching(connection, 1.0):
            connection.execute(_RELEASE, (self._broker, self.epoch))
        connection.close()

    # ---- the thread

    def _keep(self) -> None:
        wait_s = self._lease_s / 3
        while not self._released.wait(wait_s):
            started = time.monotonic()
            try:
                is_held = self._renew()
            except (psycopg.Error, StoreFailed) as error:
                self._drop()
                wait_s = min(_RETRY_S, self._lease_s / 3)
                if time.monotonic() - self._renewed_at > self._lease_s:
                    self._tell(self._expired(error))
                continue
            if not is_held:
                self._tell(LeaseLost(self._why_lost()))
                return
            self._renewed_at, wait_s = started, self._lease_s / 3
            self._tell(None)

    def _renew(self) -> bool:
        if self._connection is None:
            self._connection = self._database.connect()
            bound(self._connection, self._lease_s)
        connection = self._connection
        with self._database.guard.watching(connection, self._lease_s):
            connection.execute("SET synchronous_commit = local")
            done = connection.execute(_RENEW, (self._lease_s, self._broker, self.epoch))
        return done.rowcount == 1

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _tell(self, trouble: StoreFailed | None) -> None:
        with self._lock:
            before, self._trouble = self._trouble, trouble
            if self._report is not None and type(before) is not type(trouble):
                self._report(trouble)

    def _expired(self, error: Exception) -> LeaseExpired:
        return LeaseExpired(
            f"the lease on the broker {self._broker} could not be renewed for {self._lease_s:g} s: "
            f"{str(error).strip()}; another process may take it"
        )

    def _why_lost(self) -> str:
        holder = "nobody"
        with contextlib.suppress(psycopg.Error):
            if self._connection is not None:
                row = self._connection.execute(_LOOK, (self._broker,)).fetchone()
                holder = holder if row is None else f"{row[1]}, epoch {row[0]}"
        return (
            f"another process runs the broker {self._broker} now: the lease of epoch {self.epoch} "
            f"was taken (it is with {holder})"
        )


class Standby:
    """Waits for the lease on a broker's name. All calls block: a thread makes them."""

    def __init__(self, database: Database, broker: str, lease_s: float) -> None:
        self._database, self._broker, self._lease_s = database, broker, lease_s
        self._holder = f"{socket.gethostname()}:{os.getpid()}"
        self._connection: Connection | None = None
        self._connected_at = 0.0
        self._cancelled = threading.Event()
        self.other = ""
        """Who holds the lease."""

    def cancel(self) -> None:
        """Wait no more."""
        self._cancelled.set()

    def wait(self, limit_s: float = inf, *, is_restart: bool = False) -> Lease | None:
        """Take the lease as soon as it is free; None: `cancel` was called, or the time is over.

        A server that cannot be used at the start is an error; one that goes away later, or before a
        restart, is waited for.
        """
        if not is_restart:
            self._begin()
        has_trouble = False
        until = time.monotonic() + limit_s
        while not self._cancelled.is_set() and time.monotonic() < until:
            try:
                lease = self._try()
                has_trouble = False
            except (psycopg.Error, StoreFailed) as error:
                if not has_trouble:
                    log_event(
                        logging.WARNING, "the standby cannot reach the database", reason=error
                    )
                has_trouble = True
                self._drop()
                lease = None
            if lease is not None:
                return lease
            self._cancelled.wait(_RETRY_S if has_trouble else _LOOK_S)
        self._drop()
        return None

    def _begin(self) -> None:
        self._connection = self._database.first_connection()
        self._connected_at = -self._lease_s  # at a start, what has expired has expired
        prepare(self._connection, self._database.name)  # without a bound: it may have to migrate
        bound(self._connection, self._lease_s)

    def _try(self) -> Lease | None:
        connection = self._connection
        if connection is None:
            connection = self._connection = self._database.connect()
            self._connected_at = time.monotonic()
            bound(connection, self._lease_s)
        with self._database.guard.watching(connection, 2 * self._lease_s):
            epoch = self._take(connection)
        if epoch is None:
            return None
        self._connection = None
        return Lease(self._database, self._broker, epoch, self._lease_s, connection)

    def _take(self, connection: Connection) -> int | None:
        row = connection.execute(_LOOK, (self._broker,)).fetchone()
        seen, other, expired_s = (0, "", self._lease_s) if row is None else row
        # After an outage of the server the lease has expired although its holder may live: it gets
        # the time of a lease to reconnect and renew before somebody else takes it.
        is_new = time.monotonic() - self._connected_at < self._lease_s
        if expired_s < (self._lease_s if is_new else 0.0):
            self._note(other)
            return None
        arguments = {"broker": self._broker, "holder": self._holder, "lease_s": self._lease_s,
                     "seen": seen}  # fmt: skip
        warnings: list[object] = []
        connection.add_notice_handler(warnings.append)
        try:
            taken = connection.execute(_TAKE, arguments).fetchone()
        finally:
            connection.remove_notice_handler(warnings.append)
        # A warning: the wait for the synchronous standby was cancelled. The lease expires unused.
        return None if taken is None or warnings else int(taken[0])

    def _note(self, other: str) -> None:
        if other != self.other:
            self.other = other
            log_event(logging.INFO, "standby: another process runs this broker",
                      broker=self._broker, holder=other)  # fmt: skip

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def bound(connection: Connection, limit_s: float) -> None:
    """Let statements and their waits for locks end in time."""
    connection.execute(f"SET statement_timeout = {int(1000 * limit_s)}")
