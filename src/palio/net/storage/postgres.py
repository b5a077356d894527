"""The store of a broker that must survive its machine: rows of one table in PostgreSQL, with checksums.

A commit is one call of `palio.commit` (schema.py), which is fenced by the epoch of the lease. The thread
that commits has a connection of its own. When the connection is lost in the middle, nobody knows
whether the server has taken the commit, so the thread connects again and repeats it: the same changes
under the same epoch have the same result. While that fails, StoreUnreachable makes the broker wait.

Reads run in the event loop's thread and block it, for a round trip each: they take along what follows
(range_cache.py). While the database is away they are repeated for AWAY_S_MAX seconds; then StoreAway
lets the broker start again when it is back. A statement that gets no answer ends after READ_S_MAX.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import psycopg

from palio.net.storage.buffer import Changes, WriteBuffer, after_all
from palio.net.storage.buffered import BufferedStore, Rows
from palio.net.storage.checked import with_checksum, without_checksum
from palio.net.storage.database import Connection, Database
from palio.net.storage.range_cache import RangeCache
from palio.net.storage.schema import prepare
from palio.net.storage.store import StoreAway, StoreDamaged, StoreOutage, StoreUnreachable

COMMIT_S_MAX: Final = 10.0
"""A commit that takes longer counts as not acknowledged and is repeated; the broker says why it waits."""
_BYTES_PER_S_MIN: Final = 1 << 20
"""A large commit may take longer by as much as this."""
READ_S_MAX: Final = 10.0
AWAY_S_MAX: Final = 3.0
"""A broker that is blocked for longer is dead to its clients and neighbours anyway."""
_RETRY_S: Final = 0.1
_SCAN_ROWS: Final = 1000
_READ_ROWS: Final = 64
_READ_BYTES: Final = 1 << 20
"""A read takes no more rows once it has so many bytes."""

_COMMIT: Final = "SELECT palio.commit(%b, %b::bigint, %b::text[], %b::bytea[], %b::text[])"
_COPY: Final = "COPY palio.entries (broker, key, value) FROM STDIN (FORMAT binary)"
_UNCONFIRMED: Final = "start its synchronous standby, or change synchronous_standby_names: no standby confirmed a commit"
_SESSION: Final = """
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') IN ('off', 'local')
"""
_ROWS: Final = """
SELECT key, value FROM (
    SELECT key, value, sum(octet_length(value)) OVER (ORDER BY key) - octet_length(value) AS before
    FROM (
        SELECT key, value FROM palio.entries
        WHERE broker = %(broker)s AND key {} %(low)s AND (%(high)s::text IS NULL OR key < %(high)s)
        ORDER BY key LIMIT %(limit)s
    ) AS found
) AS summed WHERE before < %(bytes)s ORDER BY key
"""
_FROM, _AFTER = _ROWS.format(">="), _ROWS.format(">")


class PostgresStore(BufferedStore):
    """A `CommittingStore` of the broker `broker`, whose lease has the epoch `epoch`."""

    def __init__(self, database: Database, broker: str, epoch: int) -> None:
        super().__init__()
        self._database, self._broker, self._epoch = database, broker, epoch
        self._cache = RangeCache()
        self._warnings: list[object] = []
        self._writer: Connection | None = None
        self._reader: Connection | None = None
        try:
            self._writer = self._connected_writer()
            self._reader = database.connect()
        except psycopg.Error as error:
            self.close()
            raise database.failure(error, broker) from None

    # ---- reads

    def _read_value(self, key: str) -> bytes | None:
        is_known, value = self._cache.get(key)
        if is_known:
            return value
        leaving = self._leaving.changes
        # What follows under the same prefix; other prefixes are other things.
        high = after_all(key[: key.rfind("/") + 1])
        rows, _ = self._read(key, ">=", high, _READ_ROWS)
        self._cache.add(key, rows, leaving)
        return self._cache.get(key)[1]

    def _read_rows(self, prefix: str, after: str) -> tuple[Rows, bool]:
        high = after_all(prefix)
        if after:
            return self._read(after, ">", high, _SCAN_ROWS)
        return self._read(prefix, ">=", high, _SCAN_ROWS)

    def _read(self, low: str, compare: str, high: str | None, limit: int) -> tuple[Rows, bool]:
        arguments = {"broker": self._broker, "low": low, "high": high, "limit": limit,
                     "bytes": _READ_BYTES}  # fmt: skip
        deadline = time.monotonic() + AWAY_S_MAX
        while True:
            try:
                return self._read_once(_FROM if compare == ">=" else _AFTER, arguments)
            except psycopg.Error as error:
                failure = self._database.failure(error, self._broker)
                self._drop_reader()
                is_away = isinstance(failure, StoreOutage)
                if not is_away or time.monotonic() > deadline:
                    self.failure = StoreAway(str(failure)) if is_away else failure
                    raise self.failure from None
            except StoreDamaged as error:
                self.failure = error
                raise
            time.sleep(_RETRY_S)

    def _read_once(self, query: str, arguments: Mapping[str, object]) -> tuple[Rows, bool]:
        if self._reader is None:
            self._reader = self._database.connect()
        with self._database.guard.watching(self._reader, READ_S_MAX):
            rows = self._reader.execute(query, arguments, binary=True).fetchall()
        is_cut = sum(len(stored) for _, stored in rows) >= _READ_BYTES
        name = self._database.name
        found = [(key, without_checksum(key, stored, name)) for key, stored in rows]
        return found, is_cut or len(found) == arguments["limit"]

    # ---- commits

    def begin(self) -> int:
        count = super().begin()
        self._cache.change(self._leaving.changes)
        return count

    def commit(self) -> None:
        if not self._leaving.changes:
            return
        # A connection that ended while nobody used it is noticed by the first commit: once more.
        self._write_or_fail(may_repeat=True)
        self._leaving = WriteBuffer()

    def _write_or_fail(self, may_repeat: bool) -> None:
        try:
            self._write(self._leaving.changes)
        except psycopg.Error as error:
            is_lost = self._writer is None or self._writer.broken
            self._drop_writer()
            if not (is_lost and may_repeat):
                raise self._database.failure(error, self._broker) from None
            self._write_or_fail(may_repeat=False)

    def _write(self, changes: Changes) -> None:
        puts = [(key, value) for key, value in changes.items() if value is not None]
        gone = [key for key, value in changes.items() if value is None]
        keys, values = [key for key, _ in puts], [with_checksum(key, value) for key, value in puts]
        if self._writer is None:
            self._writer = self._connected_writer()
        self._warnings.clear()
        limit_s = COMMIT_S_MAX + self._leaving.size / _BYTES_PER_S_MIN
        with self._database.guard.watching(self._writer, limit_s):
            self._writer.execute(_COMMIT, (self._broker, self._epoch, keys, values, gone))
        if self._warnings:
            self._drop_writer()
            raise StoreUnreachable(f"{self._database.name}: {_UNCONFIRMED} within {limit_s:.0f} s")

    def _connected_writer(self) -> Connection:
        connection = self._database.connect()
        try:
            with self._database.guard.watching(connection, COMMIT_S_MAX):
                connection.execute(_SESSION)
                self._database.warn_if_single(connection)
        except BaseException:
            connection.close()
            raise
        connection.add_notice_handler(self._warnings.append)
        return connection

    def replace_all(self, entries: Iterable[tuple[str, bytes]]) -> None:
        """Without a bound on the time: a commit of everything may take long."""
        if self._writer is None:
            self._writer = self._connected_writer()
        writer, broker = self._writer, self._broker
        self._warnings.clear()
        try:
            with writer.transaction(), writer.cursor() as cursor:
                cursor.execute(_COMMIT, (broker, self._epoch, [], [], []))  # it checks the lease
                cursor.execute("DELETE FROM palio.entries WHERE broker = %s", (broker,))
                with cursor.copy(_COPY) as copy:
                    copy.set_types(["text", "text", "bytea"])
                    for key, value in entries:
                        copy.write_row((broker, key, with_checksum(key, value)))
        except psycopg.Error as error:
            raise self._database.failure(error, broker) from None
        if self._warnings:
            raise StoreUnreachable(f"{self._database.name}: {_UNCONFIRMED}")

    @property
    def wants_checkpoint(self) -> bool:
        return False

    def checkpoint(self) -> None:
        """The server does that by itself."""

    def close(self) -> None:
        """Changes that are not committed are lost."""
        self._drop_reader()
        self._drop_writer()

    def _drop_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _drop_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def snapshot(database: Database, broker: str) -> Iterator[tuple[str, bytes]]:
    """All entries of a broker at one moment, in order; it may run meanwhile."""
    connection = database.first_connection()
    try:
        prepare(connection, database.name)
        with connection, connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            with connection.cursor("snapshot") as cursor:
                cursor.itersize = _READ_ROWS
                query = "SELECT key, value FROM palio.entries WHERE broker = %s ORDER BY key"
                for key, stored in cursor.execute(query, (broker,), binary=True):
                    yield key, without_checksum(key, stored, database.name)
    except psycopg.Error as error:
        raise database.failure(error, broker) from None
    finally:
        connection.close()
