"""Backups of a broker's store, whatever kind of store it is.

A backup is a snapshot: a broker that runs is not disturbed. A restore needs the store for itself: it
takes the lock of the directory, or the lease on the broker's name, as a broker would.

What is restored continues under a new epoch. Other brokers have messages from after the backup, under
numbers that this broker will use again; under the old epoch they would take the new ones for these.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from palio.errors import InvalidFile
from palio.net.config.values import Config, PostgresSettings
from palio.net.storage import archive, sqlite_reading
from palio.net.storage.buffered import BufferedStore
from palio.net.storage.opening import OpenedStore, PostgresOpening, needs_psycopg
from palio.net.storage.repair import replace_damaged
from palio.net.storage.sqlite import SqliteStore
from palio.net.storage.store import StoreDamaged, StoreFailed
from palio.protocol.broker.assembly import EPOCH_KEY


def back_up(config: Config, to: Path) -> int:
    """Write all that the broker's store holds into a new file; gives the number of entries."""
    return archive.write(to, config.name, time.time_ns() // 1000, _snapshot(config))


def restore(config: Config, source: Path, *, force: bool = False) -> int:
    """Fill the broker's store from a backup; gives the number of entries.

    A store that is not empty, or damaged, is refused, unless `force` says that its content shall go.
    A damaged database of SQLite is kept, in `damaged-<time>/`.
    """
    head = archive.verify(source)
    if head.broker != config.name:
        raise InvalidFile(
            f"this is a backup of the broker {head.broker!r}, and {config.path} is of {config.name!r}",
            path=source,
            remedy="use the configuration of that broker",
        )
    entries = _Counted(_under_new_epoch(archive.read(source)))
    try:
        opened = _opened(config)
    except StoreDamaged as error:
        if config.storage is not None:
            raise
        if not force:
            remedy = "--force moves it aside and puts the backup in its place"
            raise error.at(path=error.path or config.data, remedy=remedy) from None
        replace_damaged(config.data, lambda store: store.replace_all(entries))
        return entries.count
    try:
        if not force and not _is_empty(opened.store):
            raise StoreFailed(
                f"the store of {config.name} is not empty; --force puts the backup in the place of what "
                f"it holds (back that up first)"
            )
        opened.store.replace_all(entries)
    finally:
        opened.store.close()
        opened.release()
    return entries.count


def _is_empty(store: BufferedStore) -> bool:
    return next(iter(store.scan("")), None) is None


def _under_new_epoch(entries: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    for key, value in entries:
        yield key, os.urandom(8).hex().encode() if key == EPOCH_KEY else value


class _Counted:
    def __init__(self, entries: Iterable[tuple[str, bytes]]) -> None:
        self._entries = entries
        self.count = 0

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        for entry in self._entries:
            self.count += 1
            yield entry


# ---- stores


def _snapshot(config: Config) -> Iterator[tuple[str, bytes]]:
    if config.storage is None:
        return sqlite_reading.snapshot(config.data)
    return _database_snapshot(config, config.storage)


def _database_snapshot(config: Config, storage: PostgresSettings) -> Iterator[tuple[str, bytes]]:
    place = _place(config)
    with needs_psycopg(place):
        from palio.net.storage import postgres
        from palio.net.storage.database import Database
    database = Database(storage.url, config.name, place)
    try:
        yield from postgres.snapshot(database, config.name)
    finally:
        database.close()


def _opened(config: Config) -> OpenedStore:
    if config.storage is None:
        return OpenedStore(SqliteStore(config.data))
    return _leased(config, config.storage)


def _leased(config: Config, storage: PostgresSettings) -> OpenedStore:
    opening = PostgresOpening(storage.url, config.name, storage.lease_s, _place(config))
    # Longer than a lease: one that is not renewed is free by then.
    opened = opening.wait(storage.lease_s + 1.0)
    if opened is None:
        raise StoreFailed(
            f"the broker {config.name} runs ({opening.holder}); stop it and its standbys first"
        )
    return opened


def _place(config: Config) -> str:
    return f"url, in [storage] of {config.path}"
