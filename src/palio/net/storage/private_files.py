"""Files and directories of a broker's data: nobody but its user reads them, whatever the umask is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600


def make_private_directory(path: Path) -> None:
    """Make a directory for this user alone; one that exists keeps its mode."""
    if path.is_dir():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.mkdir(DIRECTORY_MODE, exist_ok=True)
    path.chmod(DIRECTORY_MODE)


def open_private(path: Path) -> int:
    """A descriptor of a file to read and write. A new file is for this user alone."""
    flags = os.O_RDWR | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, FILE_MODE)
    except FileExistsError:
        return os.open(path, flags)
    os.fchmod(descriptor, FILE_MODE)
    return descriptor


def synchronise_directory(path: Path) -> None:
    """Make safe which files are in it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
