"""The lock of a broker's data directory, so that no two brokers use it at a time."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from palio.net.storage.private_files import make_private_directory, open_private
from palio.net.storage.store import StoreFailed

LOCK = "broker.lock"


class DirectoryLock:
    """Makes the directory if it does not exist. Held until `close`, or until the process ends."""

    def __init__(self, directory: Path) -> None:
        self._descriptor: int | None = _lock(directory)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def check_directory(directory: Path) -> None:
    """Raise StoreFailed if the directory could not be made or locked now; nothing is changed."""
    existing = directory
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise _unusable(directory, os.strerror(errno.ENOTDIR))
    if not os.access(existing, os.W_OK | os.X_OK):
        raise _unusable(directory, os.strerror(errno.EACCES))
    if (directory / LOCK).exists():
        DirectoryLock(directory).close()


def _lock(directory: Path) -> int:
    try:
        make_private_directory(directory)
        descriptor = open_private(directory / LOCK)
    except OSError as error:
        raise _unusable(directory, error.strerror) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise StoreFailed(
            f"another broker uses {directory}; stop it, or give this one another "
            f"directory (data, in [broker])"
        ) from None
    return descriptor


def _unusable(directory: Path, reason: str | None) -> StoreFailed:
    return StoreFailed(
        f"the directory {directory} cannot hold a broker's data: {reason}; "
        f"choose another one (data, in [broker]) or let this user write there"
    )
