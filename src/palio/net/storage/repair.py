"""Repair of a broker's directory: a new database with all that can be read of the old one.

    broker.sqlite ──salvage──▶ repairing-<time>/broker.sqlite ──made to fit together, checked──┐
    broker.sqlite, -wal, -shm, broker.id ──moved──▶ damaged-<time>/                            │
    broker.sqlite, broker.id ◀─────────────────────moved───────────────────────────────────────┘

Nothing is deleted, and nothing is moved before a core has been made of the new database.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from palio.errors import PalioError
from palio.net.storage.directory_lock import DirectoryLock
from palio.net.storage.marker import FILE as MARKER
from palio.net.storage.marker import MarkerContents, read_marker
from palio.net.storage.private_files import make_private_directory, synchronise_directory
from palio.net.storage.salvage import Salvage
from palio.net.storage.sqlite import SqliteStore
from palio.net.storage.sqlite_database import (
    COMPANIONS,
    FILE,
    FORMAT_WITHOUT_CHECKSUMS,
    READ_ERRORS,
    StoreState,
    connected_to_read,
    failure,
    read_state,
)
from palio.net.storage.sqlite_head import with_sound_head
from palio.net.storage.sqlite_reading import InspectedStore
from palio.protocol.durability.repair import repair
from palio.protocol.durability.storage import DamagedStore, Store

_COMMIT_BYTES: Final = 16 << 20
_EVERYTHING: Final = 1 << 62


def repair_directory(directory: Path, broker: str, check: Callable[[Store], None]) -> list[str]:
    """Repair the data of a broker, if it is damaged; what was lost and saved, as sentences.

    `check` makes a core of a store, and raises PalioError if that is not possible.
    """
    if not directory.is_dir():
        raise PalioError(f"there is no directory {directory}: nothing to repair")
    lock = DirectoryLock(directory)
    with contextlib.closing(lock):
        damage = _damage(directory, check)
        if damage is None:
            return [f"{directory / FILE}: nothing is damaged; nothing was changed"]
        time = _time()
        new, aside = directory / f"repairing-{time}", directory / f"damaged-{time}"
        try:
            lines = _make_anew(directory / FILE, new, broker, check)
            _exchange(directory, new, aside)
        finally:
            shutil.rmtree(new)
        last = f"the old files are in {aside}; the broker can start"
        return [f"found: {damage}", *lines, last]


def _damage(directory: Path, check: Callable[[Store], None]) -> DamagedStore | None:
    """Read everything; the first damage that is met."""
    try:
        with contextlib.closing(InspectedStore(directory, _EVERYTHING)) as store:
            check(store)
            for _ in store.scan(""):
                continue
    except DamagedStore as error:
        return error
    return None


def _make_anew(path: Path, new: Path, broker: str, check: Callable[[Store], None]) -> list[str]:
    """Make a database in the directory `new`; what is lost and saved."""
    store = SqliteStore(new)
    with contextlib.closing(store):
        try:
            salvage = _copy(path, store, new / FILE)
            report = repair(store, broker, salvage.damaged if salvage else ())
            _commit(store)
            check(store)
        except DamagedStore as error:
            raise PalioError(f"{path} cannot be repaired: {error}") from error
    return [*_missing(path, salvage), *report.lines()]


def replace_damaged(directory: Path, fill: Callable[[SqliteStore], None]) -> Path:
    """Put a new database, which `fill` fills, in the place of one that is damaged: where that is now."""
    with contextlib.closing(DirectoryLock(directory)):
        time = _time()
        new, aside = directory / f"restoring-{time}", directory / f"damaged-{time}"
        try:
            with contextlib.closing(SqliteStore(new)) as store:
                fill(store)
            _exchange(directory, new, aside)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return aside


def _time() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")


def _exchange(directory: Path, new: Path, aside: Path) -> None:
    """Move the old files aside and the new ones into their place."""
    make_private_directory(aside)
    for name in (MARKER, FILE, *COMPANIONS):
        if (directory / name).exists():
            (directory / name).rename(aside / name)
    for name in (FILE, MARKER):
        (new / name).rename(directory / name)
    synchronise_directory(directory)


# ---- what can be read


class _Salvaged(Salvage):
    """`state` is what the old database says about itself, if that can be read; `saved` counts rows."""

    state: StoreState | None = None
    saved = 0


def _copy(path: Path, store: SqliteStore, sound: Path) -> _Salvaged | None:
    """Put everything that can be read into the new store, whose file is `sound`; None: there is
    nothing to read."""
    path = with_sound_head(path, sound)
    if not path.exists() or not path.stat().st_size:
        return None
    try:
        connection = connected_to_read(path)
    except sqlite3.Error as error:
        raise failure(error, path) from None
    with contextlib.closing(connection):
        salvage = _Salvaged(connection, path, _has_checksums(connection))
        with contextlib.suppress(DamagedStore, *READ_ERRORS):
            salvage.state = read_state(connection, path)
        for key, value in salvage.rows():
            store.put(key, value)
            salvage.saved += 1
            if store.pending_bytes > _COMMIT_BYTES:
                _commit(store)
    _commit(store)
    return salvage


def _has_checksums(connection: sqlite3.Connection) -> bool:
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute(
            "SELECT count(*) FROM sqlite_master WHERE name = 'state'"
        ).fetchone()
    except READ_ERRORS:
        return True
    return bool(tables) or version != FORMAT_WITHOUT_CHECKSUMS


def _commit(store: SqliteStore) -> None:
    store.begin()
    store.commit()


def _missing(path: Path, salvage: _Salvaged | None) -> Iterator[str]:
    """What is lost without a name."""
    if salvage is None:
        yield f"lost: everything: there is nothing to read in {path}"
        return
    state, marker = salvage.state, read_marker(path.parent)
    if state is not None:
        missing = state.rows - salvage.saved - len(salvage.damaged)
        if missing > 0:
            yield f"lost: {missing:,} of {state.rows:,} rows, on pages that cannot be read"
        if isinstance(marker, MarkerContents) and marker.commits > state.commits:
            yield f"lost: the last {marker.commits - state.commits:,} commits"
    elif salvage.has_gaps or not salvage.saved:
        yield f"lost: rows on pages that cannot be read; {salvage.saved:,} rows were read"
