"""The first page of a database, without which SQLite reads nothing of it.

It is nearly the same in all our databases: the page size, the format, and that the table of entries
begins on page 2. So that of a new database fits an old one whose own is damaged, to read it.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Final

from palio.net.storage.sqlite_database import PAGE_BYTES, READ_ERRORS, connected_to_read

_ENTRIES_PAGE: Final = 2
_PAGE_COUNT: Final = slice(28, 32)
_FREE_PAGES: Final = slice(32, 40)


def with_sound_head(path: Path, sound: Path) -> Path:
    """The database itself if its first page can be read; else a copy beside the sound one, with the
    first page of that. A copy of a lost file has its write-ahead log alone."""
    log = path.with_name(f"{path.name}-wal")
    has_log = log.exists() and log.stat().st_size > 0
    size = path.stat().st_size if path.exists() else 0
    if (size and _is_sound(path)) or not (size or has_log):
        return path
    copy = sound.with_name("copy.sqlite")
    if size:
        shutil.copyfile(path, copy)
    if has_log:
        shutil.copyfile(log, copy.with_name(f"{copy.name}-wal"))
    with sound.open("rb") as file:
        head = bytearray(file.read(PAGE_BYTES))
    head[_PAGE_COUNT] = max(1, size // PAGE_BYTES).to_bytes(4, "big")
    head[_FREE_PAGES] = bytes(8)  # only to be read: nobody takes a free page
    with copy.open("r+b" if size else "wb") as file:
        file.write(head)
    return copy


def _is_sound(path: Path) -> bool:
    query = "SELECT rootpage FROM sqlite_master WHERE name = 'entries' AND type = 'table'"
    try:
        with contextlib.closing(connected_to_read(path)) as connection:
            found = connection.execute(query).fetchall()
            connection.execute("SELECT key, value FROM entries LIMIT 0").fetchall()
    except READ_ERRORS:
        return False
    return bool(found == [(_ENTRIES_PAGE,)])
