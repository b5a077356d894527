"""The marker beside a database: it says which database belongs here, and how far that had come.

    <data>/broker.id    palio store
                        identity 5f0c...       drawn when the database was made
                        format 2
                        commits 00000000000000000042
                        checksum 1c291ca3

The database has the same identity and counts its commits itself (`sqlite_database.py`). The marker is
written after each commit, and synchronised at checkpoints and stops: after a power cut it may lag
behind the database, and it is never ahead. So a database that has fewer commits than its marker says
has lost some: it was emptied or replaced, or its write-ahead log was lost or cut.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple
from zlib import crc32

from palio.net.storage.private_files import open_private, synchronise_directory

FILE: Final = "broker.id"
_TITLE = "palio store"
_BYTES_MAX = 4096


class MarkerContents(NamedTuple):
    identity: str
    format: int
    commits: int

    def encode(self) -> bytes:
        """Always as long, so that writing it again replaces all of it."""
        text = (
            f"{_TITLE}\nidentity {self.identity}\nformat {self.format:04}\n"
            f"commits {self.commits:020}\n"
        )
        return f"{text}checksum {crc32(text.encode()):08x}\n".encode()


class DamagedMarker:
    """There is a file, and it cannot be read as a marker."""


def read_marker(directory: Path) -> MarkerContents | DamagedMarker | None:
    """None: there is none, so the directory is new, or older than markers."""
    try:
        with (directory / FILE).open("rb") as file:
            data = file.read(_BYTES_MAX)
    except FileNotFoundError:
        return None
    except OSError:
        return DamagedMarker()
    try:
        words = [line.split(" ") for line in data.decode("ascii").splitlines()]
        found = MarkerContents(words[1][1], int(words[2][1]), int(words[3][1]))
    except (ValueError, IndexError):
        return DamagedMarker()
    return found if found.encode() == data else DamagedMarker()


class MarkerFile:
    """The marker of a database that is in use. Made, or made anew, with the contents given."""

    def __init__(self, directory: Path, contents: MarkerContents) -> None:
        self._contents = contents
        self._is_closed = False
        self._descriptor = open_private(directory / FILE)
        data = contents.encode()
        os.pwrite(self._descriptor, data, 0)
        os.ftruncate(self._descriptor, len(data))
        os.fsync(self._descriptor)
        synchronise_directory(directory)

    def advance(self, commits: int) -> None:
        """So many commits are safe."""
        self._contents = self._contents._replace(commits=commits)
        os.pwrite(self._descriptor, self._contents.encode(), 0)

    def synchronise(self) -> None:
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Synchronise and close it, once."""
        if not self._is_closed:
            self._is_closed = True
            os.fsync(self._descriptor)
            os.close(self._descriptor)
