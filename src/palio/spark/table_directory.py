"""A directory of table versions, so that a running stream can take up a new one.

    tables/
      table-000041.palio
      table-000042.palio      never changed once it is whole
      CURRENT                 the name of the version to use, replaced in one step
      LOCK                    held while CURRENT is replaced

CURRENT always names a whole file, and only ever moves to a higher version. Several processes may
publish at once: each gets a version of its own, and the highest stays current.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path

from palio.errors import InvalidFile, InvalidValue
from palio.matching.table import ForwardingTable

_NAME = re.compile(r"table-(\d{6,})\.palio")


class TableDirectory:
    """Versions of one table in a directory that every worker sees.

    >>> tables = TableDirectory("tables")  # doctest: +SKIP
    >>> tables.publish(table)  # doctest: +SKIP
    1
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"TableDirectory({str(self.path)!r})"

    def publish(self, table: ForwardingTable) -> int:
        """Write the table as the next version and make it current; its number."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            version, path = self._reserved()
        except OSError as error:
            raise InvalidFile(
                f"a table cannot be published here: {error.strerror}", path=self.path
            ) from None
        try:
            table.save(path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        with self._locked():
            if version > self._current_version():
                beside = self.path / f"CURRENT.{version}"
                beside.write_text(path.name + "\n")
                os.replace(beside, self.path / "CURRENT")
        return version

    def _reserved(self) -> tuple[int, Path]:
        """A version that nobody else has: its empty file is made by one process only."""
        version = max([*self._versions(), 0])
        while True:
            version += 1
            path = self.file(version)
            try:
                path.open("x").close()
                return version, path
            except FileExistsError:
                continue

    def current(self) -> tuple[int, Path]:
        """The current version and its file."""
        version = self._current_version()
        if not version:
            raise InvalidFile(
                "no table was published here",
                remedy="TableDirectory.publish does that",
                path=self.path,
            )
        return version, self.file(version)

    def prune(self, keep: int = 2) -> list[int]:
        """Remove all but the last `keep` versions up to the current one; what was removed.

        A worker that has an old one open keeps it.
        """
        if keep < 1:
            raise InvalidValue(f"the current version stays: keep is at least 1, not {keep}")
        current = self._current_version()
        gone = sorted(v for v in self._versions() if v <= current)[:-keep]
        for version in gone:
            self.file(version).unlink(missing_ok=True)
        return gone

    def file(self, version: int) -> Path:
        """Where a version lies, or would."""
        return self.path / f"table-{version:06d}.palio"

    def _versions(self) -> list[int]:
        found = (_NAME.fullmatch(entry.name) for entry in self.path.iterdir())
        return [int(match[1]) for match in found if match]

    def _current_version(self) -> int:
        """0 when nothing was published."""
        try:
            text = (self.path / "CURRENT").read_text().strip()
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise InvalidFile(f"CURRENT cannot be read: {error.strerror}", path=self.path) from None
        found = _NAME.fullmatch(text)
        if not found:
            raise InvalidFile(
                f"CURRENT says {text[:40]!r}, which is no version of a table",
                remedy="publish again",
                path=self.path,
            )
        return int(found[1])

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.path / "LOCK").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
