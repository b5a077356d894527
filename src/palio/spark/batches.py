"""What a stream remembers of its micro-batches: which version of the table routed each.

    batches/
      000011.json    version, messages, matches, ...: the batch was routed
      000012.json    version only: the batch was begun

Spark may repeat a batch after a crash, with the same number and the same rows. The version is on
disk before the batch is routed, so that a repeated batch is routed by the same table. Records are
replaced in one step. Each holds the totals of all batches up to it, so that old ones can be removed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from palio.errors import InvalidFile

KEPT_MAX = 1_000  # records; Spark repeats the last batch only


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """A micro-batch; what is not known (yet) is None."""

    batch: int
    version: int
    messages: int | None = None
    matches: int | None = None
    seconds: float | None = None
    messages_total: int = 0
    matches_total: int = 0


class BatchRecords:
    """The records of one stream, in a directory of their own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, batch: int, current: Callable[[], int]) -> BatchRecord:
        """The record of a batch: the one it had before, or a new one with the current version."""
        known = self.of(batch)
        if known is None:
            known = BatchRecord(batch, current())
            self.write(known)
        return known

    def of(self, batch: int) -> BatchRecord | None:
        path = self._file(batch)
        try:
            found = json.loads(path.read_text())
            return BatchRecord(**{field.name: found[field.name] for field in fields(BatchRecord)})
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InvalidFile(
                f"the record of a micro-batch cannot be read ({error})",
                remedy="it says which "
                "version of the table routed the batch: restore it, or begin with a new output",
                path=path,
            ) from None

    def last(self) -> BatchRecord | None:
        """The record of the last batch that was begun."""
        known = self._known()
        return self.of(known[-1]) if known else None

    def all(self) -> list[BatchRecord]:
        """The records that are still there, in their order."""
        found = (self.of(batch) for batch in self._known())
        return [record for record in found if record is not None]

    def write(self, record: BatchRecord) -> None:
        """Write a record with its totals to disk, and remove very old ones."""
        before = self.of(record.batch - 1)
        totals = (before.messages_total, before.matches_total) if before else (0, 0)
        whole = {
            **asdict(record),
            "messages_total": totals[0] + (record.messages or 0),
            "matches_total": totals[1] + (record.matches or 0),
        }
        path = self._file(record.batch)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            write_durably(path, json.dumps(whole) + "\n")
            self._file(record.batch - KEPT_MAX).unlink(missing_ok=True)
        except OSError as error:
            raise InvalidFile(
                f"the record of a micro-batch cannot be written: {error.strerror}", path=path
            ) from None

    def _file(self, batch: int) -> Path:
        return self.path / f"{batch:06d}.json"

    def _known(self) -> list[int]:
        if not self.path.is_dir():
            return []
        return sorted(int(p.stem) for p in self.path.glob("*.json") if p.stem.isdigit())


def write_durably(path: Path, text: str) -> None:
    """Replace a small file in one step; it survives a crash of the machine."""
    beside = path.with_name(path.name + ".new")
    with beside.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)
    sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make sure that the names in a directory are on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
