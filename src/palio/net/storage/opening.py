"""Opening the store that a configuration asks for.

SQLite is opened at once. A store in PostgreSQL belongs to whoever holds the lease on the broker's name:
`PostgresOpening.wait` takes it, or waits as a standby until it can.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from palio.errors import MissingSoftware
from palio.net.monitoring.logs import log_event
from palio.net.storage.buffered import BufferedStore

if TYPE_CHECKING:
    from palio.net.storage.database import Database
    from palio.net.storage.lease import Lease


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """A store, and the lease under which it is used, if it needs one."""

    store: BufferedStore
    lease: Lease | None = None
    database: Database | None = None

    def release(self) -> None:
        """After the store was closed: let another process have it. It may block for seconds."""
        if self.lease is not None:
            self.lease.release()
        if self.database is not None:
            self.database.close()


class PostgresOpening:
    """Its calls block, but for `cancel` and `holder`: a thread makes them."""

    def __init__(self, url: str, broker: str, lease_s: float, place: str) -> None:
        with needs_psycopg(place):
            from palio.net.storage.database import Database
            from palio.net.storage.lease import Standby
        self._broker = broker
        self._database = Database(url, broker, place)
        self._standby = Standby(self._database, broker, lease_s)

    @property
    def holder(self) -> str:
        """Who runs the broker while this process is its standby; empty before that is known."""
        return self._standby.other

    def cancel(self) -> None:
        """Wait no more."""
        self._standby.cancel()

    def wait(self, limit_s: float = inf, *, is_restart: bool = False) -> OpenedStore | None:
        """The store, when the lease on it is taken; None: `cancel` was called, or the time is over.

        A restart waits for a database that is away; a start does not.
        """
        from palio.net.storage.postgres import PostgresStore

        lease = None
        try:
            started = time.monotonic()
            lease = self._standby.wait(limit_s, is_restart=is_restart)
            if lease is None:
                self._database.close()
                return None
            waited_s = round(time.monotonic() - started, 3)
            log_event(logging.INFO, "lease taken: this process runs the broker",
                      broker=self._broker, epoch=lease.epoch, waited_s=waited_s)  # fmt: skip
            store = PostgresStore(self._database, self._broker, lease.epoch)
        except BaseException:
            if lease is not None:
                lease.release()
            self._database.close()
            raise
        return OpenedStore(store, lease, self._database)


def check_database(url: str, broker: str, place: str) -> None:
    """Raise what a start would raise because of the database; nothing is changed there."""
    with needs_psycopg(place):
        from palio.net.storage import schema
        from palio.net.storage.database import Database
    database = Database(url, broker, place)
    try:
        with database.first_connection() as connection:
            schema.check(connection, database.name)
    finally:
        database.close()


@contextlib.contextmanager
def needs_psycopg(place: str) -> Iterator[None]:
    """Imports of the block need the package psycopg."""
    try:
        yield
    except ImportError as error:
        raise MissingSoftware(
            f"{place}: a store in PostgreSQL needs the package psycopg ({error})",
            remedy="pip install 'palio[postgres]'",
        ) from None
