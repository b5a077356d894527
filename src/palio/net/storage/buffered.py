"""What all stores have in common: changes wait in buffers, and reads see these over the table.

    pending   put since the last `begin`            read first
    leaving   the commit that is under way          read next; dropped only when the table holds it
    table     what whole commits made               read last

A scan reads the table in parts. Each part is read in one go, and the buffers are taken before it: a
commit that ends meanwhile moves changes from `leaving` into the table, so that none is missed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from palio.net.storage.buffer import Changes, WriteBuffer
from palio.net.storage.store import StoreFailed

Rows: TypeAlias = list[tuple[str, bytes]]


class BufferedChanges(ABC):
    """Changes over a table; subclasses read the table."""

    def __init__(self) -> None:
        self._pending, self._leaving = WriteBuffer(), WriteBuffer()
        self.failure: StoreFailed | None = None

    @abstractmethod
    def _read_value(self, key: str) -> bytes | None:
        """The value in the table."""

    @abstractmethod
    def _read_rows(self, prefix: str, after: str) -> tuple[Rows, bool]:
        """The next rows of the table with this prefix, and whether there may be more.

        They begin after the key `after`; if that is empty, with the prefix.
        """

    @property
    def pending_bytes(self) -> int:
        return self._pending.size + self._leaving.size

    def put(self, key: str, value: bytes) -> None:
        self._pending.put(key, value)

    def delete(self, key: str) -> None:
        self._pending.delete(key)

    def get(self, key: str) -> bytes | None:
        for buffer in (self._pending, self._leaving):
            if key in buffer.changes:
                return buffer.changes[key]
        return self._read_value(key)

    def scan(self, prefix: str) -> Iterator[tuple[str, bytes]]:
        """Keys with this prefix, in order. A change during the scan may or may not be seen."""
        after: str | None = ""
        while after is not None:
            part, after = self._part(prefix, after)
            yield from part

    def _part(self, prefix: str, after: str) -> tuple[Rows, str | None]:
        """Some entries of a scan, and the key after which it goes on; None: these are the last."""
        buffers = (self._leaving, self._pending)
        rows, has_more = self._read_rows(prefix, after)
        last = rows[-1][0] if has_more and rows else None
        merged: Changes = dict(rows)
        changed = False
        for buffer in buffers:
            for key, value in buffer.scan(after, prefix):
                if last is not None and key > last:
                    break
                merged[key] = value
                changed = True
        if changed:
            merged = {key: merged[key] for key in sorted(merged)}
        return [(key, value) for key, value in merged.items() if value is not None], last

    def begin(self) -> int:
        if self._leaving.changes:
            raise RuntimeError("a commit is under way; there is only one at a time")
        self._pending, self._leaving = WriteBuffer(), self._pending
        return len(self._leaving.changes)


class BufferedStore(BufferedChanges):
    """A `CommittingStore`: subclasses also commit `_leaving` to the table."""

    @abstractmethod
    def commit(self) -> None: ...

    @property
    @abstractmethod
    def wants_checkpoint(self) -> bool: ...

    @abstractmethod
    def checkpoint(self) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    @abstractmethod
    def replace_all(self, entries: Iterable[tuple[str, bytes]]) -> None:
        """Put these entries in the place of all there are, in one transaction."""
