"""A disk that keeps what was synced: a crash drops every write after the last sync."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Disk(Generic[T]):
    """A log. `records` is what a reader sees; the first `synced` of them survive a crash."""

    def __init__(self) -> None:
        self.records: list[T] = []
        self.synced = 0

    def write(self, record: T) -> None:
        self.records.append(record)

    def sync(self, count: int) -> None:
        """The first `count` records are safe from now on."""
        self.synced = max(self.synced, count)

    def crash(self) -> None:
        del self.records[self.synced :]
